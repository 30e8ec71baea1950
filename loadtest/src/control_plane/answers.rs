//! What the control plane has to say, encoded but for the nonce. Answers to everybody who asks for everything are
//! encoded once, so that the control plane without a relay is no worse than it must be.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use prost::Message;

use crate::arguments::Dialect;
use crate::ledger::Ledger;

/// The ledger, encoded.
pub(crate) struct Answers {
    pub(crate) ledger: Arc<Ledger>,
    latest: RefCell<Option<(Step, Rc<[Bytes]>)>>,
}

/// From which generation to which, in which dialect; from none is everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) dialect: Dialect,
    pub(crate) since: Option<usize>,
    pub(crate) until: usize,
}

/// A delta answer that is larger goes out in several messages.
const MESSAGE_BYTES_MAX: usize = 2 * 1024 * 1024;

impl Answers {
    pub(crate) const fn new(ledger: Arc<Ledger>) -> Self {
        Self {
            ledger,
            latest: RefCell::new(None),
        }
    }

    /// What changed for those who ask for everything.
    pub(crate) fn wildcard(&self, step: Step) -> Rc<[Bytes]> {
        if let Some((latest, messages)) = &*self.latest.borrow()
            && *latest == step
        {
            return Rc::clone(messages);
        }
        let all = (0..self.ledger.len()).collect();
        let messages: Rc<[Bytes]> = match (step.dialect, step.since) {
            (Dialect::Delta, Some(since)) => self.delta(self.ledger.changed_since(since).0, step.until),
            (Dialect::Delta, None) => self.delta(all, step.until),
            (Dialect::Sotw, _) => vec![self.sotw(all, &step.until.to_string())],
        }
        .into();
        *self.latest.borrow_mut() = Some((step, Rc::clone(&messages)));
        messages
    }

    /// The resources with these indexes as delta messages; at least one, even an empty one.
    pub(crate) fn delta(&self, indexes: Vec<u32>, generation: usize) -> Vec<Bytes> {
        let mut messages = Vec::new();
        let mut message = DeltaDiscoveryResponse {
            system_version_info: generation.to_string(),
            type_url: self.ledger.kind().type_url().to_owned(),
            ..DeltaDiscoveryResponse::default()
        };
        let empty = message.clone();
        let mut size = 0;
        for index in indexes {
            let name = self.ledger.name(index);
            let Some((Some(body), serial)) = self.ledger.current(index) else {
                message.removed_resources.push(name);
                continue;
            };
            size += body.len();
            message.resources.push(Resource {
                version: format!("v{serial}"),
                resource: Some(self.any(body)),
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

    /// The resources with these indexes as a SotW message.
    pub(crate) fn sotw(&self, indexes: Vec<u32>, version: &str) -> Bytes {
        let resources = indexes.into_iter().filter_map(|index| self.ledger.current(index)?.0);
        let message = DiscoveryResponse {
            version_info: version.to_owned(),
            resources: resources.map(|body| self.any(body)).collect(),
            type_url: self.ledger.kind().type_url().to_owned(),
            ..DiscoveryResponse::default()
        };
        Bytes::from(message.encode_to_vec())
    }

    fn any(&self, body: Bytes) -> Any {
        Any {
            type_url: self.ledger.kind().type_url().to_owned(),
            value: body,
        }
    }
}
