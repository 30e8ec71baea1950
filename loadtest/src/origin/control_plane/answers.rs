// SPDX-License-Identifier: Apache-2.0
//! The control plane's responses, encoded without the nonce. A response for all clients that ask for everything is encoded once,
//! so that the control plane is as cheap as possible when it runs without a relay.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use prost::Message;

use crate::origin::ledger::Ledger;
use crate::origin::world::World;
use crate::wire::kind::{Dialect, Kind};

/// The ledgers, encoded.
pub(crate) struct Answers {
    pub(crate) world: Arc<World>,
    /// The last answer of each type.
    latest: RefCell<Vec<(Step, Rc<[Bytes]>)>>,
}

/// A dialect, and the generations from which to which; everything if there is no first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) dialect: Dialect,
    pub(crate) since: Option<usize>,
    pub(crate) until: usize,
}

/// A larger delta answer is split into several messages.
const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

impl Answers {
    pub(crate) const fn new(world: Arc<World>) -> Self {
        Self {
            world,
            latest: RefCell::new(Vec::new()),
        }
    }

    /// Returns what changed, for clients that ask for everything.
    pub(crate) fn wildcard(&self, ledger: &Ledger, step: Step) -> Rc<[Bytes]> {
        if let Some((_, messages)) = self.latest.borrow().iter().find(|(latest, _)| *latest == step) {
            return Rc::clone(messages);
        }
        let all = (0..ledger.len()).collect();
        let messages: Rc<[Bytes]> = match (step.dialect, step.since) {
            (Dialect::Delta, Some(since)) => Self::delta(ledger, ledger.changed_since(since).0, step.until),
            (Dialect::Delta, None) => Self::delta(ledger, all, step.until),
            (Dialect::Sotw, _) => vec![Self::sotw(ledger, all, &step.until.to_string())],
        }
        .into();
        let mut latest = self.latest.borrow_mut();
        latest.retain(|(it, _)| (it.kind, it.dialect) != (step.kind, step.dialect));
        latest.push((step, Rc::clone(&messages)));
        messages
    }

    /// Encodes the resources with these indexes as delta messages; returns at least one, which may be empty.
    pub(crate) fn delta(ledger: &Ledger, indexes: Vec<u32>, generation: usize) -> Vec<Bytes> {
        let mut messages = Vec::new();
        let mut message = DeltaDiscoveryResponse {
            system_version_info: version(generation),
            type_url: ledger.kind().type_url().to_owned(),
            ..DeltaDiscoveryResponse::default()
        };
        let empty = message.clone();
        let mut size = 0;
        for index in indexes {
            let name = ledger.name(index);
            let Some((Some(body), serial)) = ledger.current(index) else {
                message.removed_resources.push(name);
                continue;
            };
            size += body.len();
            message.resources.push(Resource {
                version: version(serial),
                resource: Some(any(ledger, body)),
                name,
                ..Resource::default()
            });
            if size > MESSAGE_BYTES_MAX {
                messages.push(Bytes::from(message.encode_to_vec()));
                message.clone_from(&empty);
                size = 0;
            }
        }
        if messages.is_empty() || message != empty {
            messages.push(Bytes::from(message.encode_to_vec()));
        }
        messages
    }

    /// Encodes the resources with these indexes as a SotW message.
    pub(crate) fn sotw(ledger: &Ledger, indexes: Vec<u32>, version: &str) -> Bytes {
        let resources = indexes.into_iter().filter_map(|index| ledger.current(index)?.0);
        let message = DiscoveryResponse {
            version_info: version.to_owned(),
            resources: resources.map(|body| any(ledger, body)).collect(),
            type_url: ledger.kind().type_url().to_owned(),
            ..DiscoveryResponse::default()
        };
        Bytes::from(message.encode_to_vec())
    }
}

/// Versions have the length of a content hash, as at most control planes.
fn version(number: impl std::fmt::LowerHex) -> String {
    format!("{number:032x}")
}

fn any(ledger: &Ledger, body: Bytes) -> Any {
    Any {
        type_url: ledger.kind().type_url().to_owned(),
        value: body,
    }
}
