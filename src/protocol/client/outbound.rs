//! What the server was told of one type on the present stream, and what it is to be told next.
//!
//! Owns the difference between the two and its form in both dialects. Refuses to know resources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::acks::{Ack, Acks};
use super::refusals::Refusal;
use super::ways::Ways;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use crate::proto::google::rpc::Status;
use crate::xds::{Name, TypeUrl};

/// One type on one stream. The wildcard is a name here, as it is on the wire.
///
/// Invariant: `leave` is part of `told`; a name in both `join` and `told` is in `leave`.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// Something was sent for this type on this stream.
    pub(super) opened: bool,
    /// The server has answered on this stream.
    pub(super) answered: bool,
    pub(super) acks: Acks,
    told: BTreeSet<Name>,
    join: BTreeSet<Name>,
    leave: BTreeSet<Name>,
    /// How the names are written.
    pub(super) ways: Ways,
    /// F-07: by these texts the server shall be asked as well for names that it was asked for.
    more: BTreeMap<Name, Name>,
    /// By these texts it shall be asked anew.
    less: BTreeSet<Name>,
    /// The wildcard was asked for by an empty list.
    legacy: bool,
    /// SotW: the nonce of the newest response.
    nonce: String,
    /// SotW: the names went with a refusal, and follow once more without one.
    repeat: bool,
}

/// How many bytes of names a delta request carries, so that it stays well below the limits of common servers.
const REQUEST_BYTES: usize = 1024 * 1024;
/// INVALID_ARGUMENT.
const REFUSED: i32 = 3;

impl Outbound {
    /// A new stream: everything is to be said again (E-04).
    pub(super) fn reset(&mut self, wanted: BTreeSet<Name>) {
        let mut ways = std::mem::take(&mut self.ways);
        ways.reset();
        *self = Self {
            join: wanted,
            ways,
            ..Self::default()
        };
    }

    pub(super) fn join(&mut self, name: Name) {
        self.join.insert(name);
    }

    pub(super) fn leave(&mut self, name: &Name) {
        self.join.remove(name);
        self.more.retain(|_, of| of != name);
        if let Some(told) = self.told.get(name) {
            self.leave.insert(told.clone());
        }
    }

    /// How a name is written does not matter any more, once the server is told that it is not wanted.
    pub(super) fn forget_written(&mut self, name: &Name) {
        if !self.told.contains(name) {
            self.ways.forget(name);
        }
    }

    /// F-07: somebody writes a name so; `known`: one that was wanted already, `held`: of which the server has something. Whether nobody
    /// wrote it so before, and whether the server must be asked once more.
    pub(super) fn write(&mut self, name: &Name, written: Option<&Name>, known: bool, held: bool) -> (bool, bool) {
        let new = self.ways.add(name, written, known, held);
        let told = self.told.contains(name) && !self.leave.contains(name);
        let text = written.unwrap_or(name);
        let more = new && told && self.ways.ask_more(name, text);
        if more {
            self.more.insert(text.clone(), name.clone());
        }
        (new, more)
    }

    /// The server says that there is nothing of a name that it writes so. Whether that is all that can be said of the name.
    pub(super) fn absent(&mut self, name: &Name, text: &str) -> bool {
        let (all, alternatives) = self.ways.absent(name, text);
        if self.told.contains(name) && !self.leave.contains(name) {
            // E-17: what is to be sent again is first unsubscribed.
            self.less.extend(alternatives.again.iter().cloned());
            let more = alternatives.more.into_iter().chain(alternatives.again);
            self.more.extend(more.map(|text| (text, name.clone())));
        }
        all
    }

    /// What was held of a name is gone, and perhaps there is something by another text.
    pub(super) fn lost(&mut self, name: &Name) {
        if let Some(text) = self.ways.answered(name).cloned() {
            self.absent(name, text.as_str());
        }
    }

    /// Whether the server was asked for this name and shall be told that we do not want it, or want it anew.
    pub(super) fn is_leaving(&self, name: &str) -> bool {
        self.leave.contains(name)
    }

    /// Whether the server was asked for this name.
    pub(super) fn has_told(&self, name: &str) -> bool {
        self.told.contains(name)
    }

    /// Whether there is anything to say at all, now or later.
    pub(super) fn is_ready(&self) -> bool {
        !self.acks.is_empty() || self.changed()
    }

    pub(super) fn changed(&self) -> bool {
        let names = !self.join.is_empty() || !self.leave.is_empty();
        self.repeat || names || !self.more.is_empty() || !self.less.is_empty()
    }

    /// The response with this nonce was received and will be answered (SotW).
    pub(super) fn received(&mut self, ack: Ack, now: Instant) {
        // E-03: every further request of the type carries the newest nonce.
        self.nonce.clone_from(&ack.nonce);
        self.acks.replace(ack, now);
    }

    /// The next delta answer. E-16: an answer never shares its request with a change of what we want, and goes first.
    pub(super) fn delta_answer(&mut self, type_url: &TypeUrl, now: Instant) -> Option<DeltaDiscoveryRequest> {
        let ack = self.acks.take(now)?;
        Some(DeltaDiscoveryRequest {
            type_url: type_url.url().to_owned(),
            response_nonce: ack.nonce,
            error_detail: ack.refusal.map(status),
            ..DeltaDiscoveryRequest::default()
        })
    }

    /// The next change of what we want, in delta, and the names that are new in it. `held` gives the versions that we hold; E-04: they go with the first request.
    pub(super) fn delta_change(
        &mut self,
        type_url: &TypeUrl,
        legacy: bool,
        held: impl FnOnce(&BTreeSet<Name>) -> BTreeMap<String, String>,
    ) -> Option<(DeltaDiscoveryRequest, Vec<Name>)> {
        let mut request = DeltaDiscoveryRequest {
            type_url: type_url.url().to_owned(),
            ..DeltaDiscoveryRequest::default()
        };
        // E-16, E-17: a name that is to be sent again is first unsubscribed, in a request of its own.
        if !self.leave.is_empty() || !self.less.is_empty() {
            let leave = portion(&mut self.leave);
            self.told.retain(|name| !leave.contains(name));
            let less = std::mem::take(&mut self.less).into_iter();
            request.resource_names_unsubscribe = self.texts(&leave);
            request
                .resource_names_unsubscribe
                .extend(less.map(|text| text.to_string()));
            self.forget_ways(&leave);
            return Some((request, Vec::new()));
        }
        if !self.more.is_empty() {
            let (more, names): (Vec<Name>, Vec<Name>) = std::mem::take(&mut self.more).into_iter().unzip();
            request.resource_names_subscribe = more.iter().map(Name::to_string).collect();
            return Some((request, names));
        }
        if self.join.is_empty() {
            return None;
        }
        let join = portion(&mut self.join);
        join.iter().for_each(|name| self.ways.ask(name));
        let first = !std::mem::replace(&mut self.opened, true);
        if first {
            request.initial_resource_versions = held(&join);
        }
        // E-20: the wildcard's legacy form, a first request that names nothing.
        if !(first && legacy && is_wildcard(&join)) {
            request.resource_names_subscribe = self.texts(&join);
        }
        self.told.extend(join.iter().cloned());
        Some((request, join.into_iter().collect()))
    }

    /// The next request in SotW: the answer that is due, always all that we want, and the names that are new in it.
    pub(super) fn sotw(
        &mut self,
        type_url: &TypeUrl,
        legacy: bool,
        accepted: &str,
        now: Instant,
    ) -> Option<(DiscoveryRequest, Vec<Name>)> {
        if !self.changed() && !self.acks.due(now) {
            return None;
        }
        // E-22: a change of names does not wait for the pace of a refusal, and carries it: a request with the nonce and without
        // the refusal would accept the response. An ACK is the same request as a change of names.
        let refusal = self.acks.take_any(now).and_then(|ack| ack.refusal);
        let joined = if std::mem::take(&mut self.repeat) {
            Vec::new()
        } else {
            let changed = self.changed();
            let joined = self.turn(legacy);
            // Some servers do not look at the names of a refusal.
            self.repeat = changed && refusal.is_some();
            joined
        };
        let names = if self.legacy {
            Vec::new()
        } else {
            self.texts(&self.told)
        };
        let request = DiscoveryRequest {
            version_info: accepted.to_owned(),
            resource_names: names,
            type_url: type_url.url().to_owned(),
            response_nonce: self.nonce.clone(),
            error_detail: refusal.map(status),
            ..DiscoveryRequest::default()
        };
        Some((request, joined))
    }

    /// Brings `told` nearer to what we want; gives the names that are new in it.
    fn turn(&mut self, legacy: bool) -> Vec<Name> {
        let leave = std::mem::take(&mut self.leave);
        self.told.retain(|name| !leave.contains(name));
        self.less.clear();
        let more = std::mem::take(&mut self.more).into_values();
        let join = std::mem::take(&mut self.join).into_iter();
        let (again, joined): (BTreeSet<Name>, BTreeSet<Name>) = join.partition(|name| leave.contains(name));
        // B-15: what is to be sent again must be missing in one request and come back in the next.
        self.join = again;
        self.forget_ways(&leave);
        let first = !joined.is_empty() && !std::mem::replace(&mut self.opened, true);
        joined.iter().for_each(|name| self.ways.ask(name));
        self.told.extend(joined.iter().cloned());
        if first {
            self.legacy = legacy && is_wildcard(&self.told);
        }
        joined.into_iter().chain(more).collect()
    }

    /// How these names are written.
    fn texts(&self, names: &BTreeSet<Name>) -> Vec<String> {
        let texts = names.iter().flat_map(|name| self.ways.asked(name));
        texts.map(Name::to_string).collect()
    }

    /// The server was told that these are not wanted; those that are wanted anew are written as before.
    fn forget_ways(&mut self, left: &BTreeSet<Name>) {
        if !self.ways.is_empty() {
            let gone = left.iter().filter(|name| !self.join.contains(*name));
            gone.for_each(|name| self.ways.forget(name));
        }
    }
}

fn is_wildcard(names: &BTreeSet<Name>) -> bool {
    names.len() == 1 && names.contains(Name::WILDCARD)
}

/// As many names as one request carries.
fn portion(names: &mut BTreeSet<Name>) -> BTreeSet<Name> {
    let mut bytes = 0;
    let beyond = names.iter().find(|name| {
        bytes += name.as_str().len() + 8;
        bytes > REQUEST_BYTES
    });
    match beyond.cloned() {
        // One name alone always fits.
        Some(name) if names.first() != Some(&name) => {
            let rest = names.split_off(&name);
            std::mem::replace(names, rest)
        }
        Some(name) => {
            names.remove(&name);
            BTreeSet::from([name])
        }
        None => std::mem::take(names),
    }
}

fn status(refusal: Refusal) -> Status {
    Status {
        code: REFUSED,
        message: refusal.into_text(),
        details: Vec::new(),
    }
}
