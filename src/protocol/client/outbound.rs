//! The subscription of one type on the present stream: what the server knows of it, and what it must be sent next.
//!
//! Owns the difference between the two and its form in both dialects. Knows nothing of resources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::acks::{Ack, Acks};
use super::refusals::Refusal;
use super::ways::Ways;
use crate::sorted::Sorted;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use proto::google::rpc::Status;
use xds::{Dialect, Name, TypeUrl};

/// The subscription of one type on one stream. The wildcard is a name here, as on the wire.
///
/// Invariant: `leave` is part of `told`; a name in both `join` and `told` is in `leave`.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// A request for this type was sent on this stream.
    pub(super) opened: bool,
    /// The server has answered on this stream.
    pub(super) answered: bool,
    pub(super) acks: Acks,
    told: Sorted<Name>,
    join: BTreeSet<Name>,
    leave: BTreeSet<Name>,
    /// The spellings of the names.
    pub(super) ways: Ways,
    /// F-07: further spellings that the server must be asked for, with the names that they belong to.
    more: BTreeMap<Name, Name>,
    /// Spellings that the server must be asked for again, so they are unsubscribed first.
    less: BTreeSet<Name>,
    /// The wildcard was requested by an empty list.
    legacy: bool,
    /// The nonce of the newest response.
    nonce: String,
    /// SotW: the names were sent with a NACK, and are sent once more without one.
    repeat: bool,
}

/// How many bytes of names a delta request carries. This stays well below the limits of common servers.
const REQUEST_BYTES: usize = 1024 * 1024;
/// gRPC's INVALID_ARGUMENT.
const REFUSED: i32 = 3;

impl Outbound {
    /// A new stream: everything must be sent again (E-04).
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
        for text in self.ways.texts(name) {
            self.more.remove(text);
        }
        if let Some(told) = self.told.get(name.as_str()) {
            self.leave.insert(told.clone());
        }
    }

    /// Forgets the spellings of a name that nobody wants, once the server knows that.
    pub(super) fn forget_written(&mut self, name: &Name) {
        if !self.told.contains(name.as_str()) {
            self.ways.forget(name);
        }
    }

    /// F-07: adds a spelling of a name. `known`: the name was wanted already; `held`: the server has content for it. Returns
    /// whether the spelling is new, and whether the server must be asked for it too.
    pub(super) fn write(&mut self, name: &Name, written: Option<&Name>, known: bool, held: bool) -> (bool, bool) {
        let new = self.ways.add(name, written, known, held);
        let told = self.told.contains(name.as_str()) && !self.leave.contains(name);
        let text = written.unwrap_or(name);
        let more = new && told && self.ways.ask_more(name, text);
        if more {
            self.more.insert(text.clone(), name.clone());
        }
        (new, more)
    }

    /// The server says that nothing exists under this spelling of the name. Returns whether that settles the name.
    pub(super) fn absent(&mut self, name: &Name, text: &str) -> bool {
        let (all, alternatives) = self.ways.absent(name, text);
        if self.told.contains(name.as_str()) && !self.leave.contains(name) {
            // E-17: a spelling that must be requested again is unsubscribed first.
            self.less.extend(alternatives.again.iter().cloned());
            let more = alternatives.more.into_iter().chain(alternatives.again);
            self.more.extend(more.map(|text| (text, name.clone())));
        }
        all
    }

    /// The content of a name is gone; another spelling may still have some.
    pub(super) fn lost(&mut self, name: &Name) {
        if let Some(text) = self.ways.answered(name).cloned() {
            self.absent(name, text.as_str());
        }
    }

    /// Whether the server was asked for this name and must be sent an unsubscription, also if the name is wanted again after
    /// that.
    pub(super) fn is_leaving(&self, name: &str) -> bool {
        self.leave.contains(name)
    }

    /// Whether the server was asked for this name.
    pub(super) fn has_told(&self, name: &str) -> bool {
        self.told.contains(name)
    }

    /// Whether there is anything to send at all, now or later.
    pub(super) fn is_ready(&self) -> bool {
        !self.acks.is_empty() || self.changed()
    }

    pub(super) fn changed(&self) -> bool {
        let names = !self.join.is_empty() || !self.leave.is_empty();
        self.repeat || names || !self.more.is_empty() || !self.less.is_empty()
    }

    /// A response was received, and this is its answer. In SotW it replaces earlier ones.
    pub(super) fn received(&mut self, ack: Ack, dialect: Dialect, now: Instant) {
        // E-03: in SotW, every further request of the type carries the newest nonce.
        self.nonce.clone_from(&ack.nonce);
        match dialect {
            Dialect::Sotw => self.acks.replace(ack, now),
            // C-02: without a nonce, the response cannot be acknowledged.
            Dialect::Delta if ack.nonce.is_empty() => {}
            Dialect::Delta => self.acks.push(ack, now),
        }
    }

    /// E-24: whether the server may be told what clients reject: it has got the acknowledgement of the last response on this stream, and
    /// there is nothing else to send.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.nonce.is_empty() && self.acks.acknowledged(&self.nonce) && !self.changed()
    }

    /// E-24: returns the SotW request that tells the server what clients reject. It has the names of the last request: a server takes
    /// missing ones for given up.
    pub(super) fn sotw_late(&self, type_url: &TypeUrl, accepted: &str, rejected: Status) -> DiscoveryRequest {
        self.sotw_request(type_url, accepted, Some(rejected))
    }

    /// E-24: the same in delta.
    pub(super) fn delta_late(&self, type_url: &TypeUrl, rejected: Status) -> DeltaDiscoveryRequest {
        delta_answer(type_url, self.nonce.clone(), Some(rejected))
    }

    /// Returns the next delta answer. E-16: an answer never shares its request with a change of the subscription, and goes first.
    pub(super) fn delta_answer(&mut self, type_url: &TypeUrl, now: Instant) -> Option<DeltaDiscoveryRequest> {
        let ack = self.acks.take(now)?;
        Some(delta_answer(type_url, ack.nonce, ack.refusal.map(status)))
    }

    /// Returns the next change of the subscription in delta, and the names that are new in it. `held` returns the versions of the
    /// held content; E-04: they go with the first request.
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
        // E-16, E-17: a name that must be sent again is first unsubscribed, in a request of its own.
        if !self.leave.is_empty() || !self.less.is_empty() {
            let leave = portion(&mut self.leave);
            self.untell(&leave);
            let less = std::mem::take(&mut self.less).into_iter();
            request.resource_names_unsubscribe = self.texts(leave.iter());
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
        // E-20: the wildcard's legacy form is a first request without names.
        if !(first && legacy && is_wildcard(&join)) {
            request.resource_names_subscribe = self.texts(join.iter());
        }
        self.told.extend(join.iter().cloned());
        Some((request, join.into_iter().collect()))
    }

    /// Returns the next SotW request, and the names that are new in it. It has all wanted names, and the answer that is due.
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
        // E-22: a change of names does not wait until its refusal may be sent again, but carries the refusal: a request with the
        // nonce and without a refusal would accept the response. An ACK is the same request as a change of names.
        let refusal = self.acks.take_any(now).and_then(|ack| ack.refusal);
        let joined = if std::mem::take(&mut self.repeat) {
            Vec::new()
        } else {
            let changed = self.changed();
            let joined = self.turn(legacy);
            // Some servers ignore the names in a NACK.
            self.repeat = changed && refusal.is_some();
            joined
        };
        Some((self.sotw_request(type_url, accepted, refusal.map(status)), joined))
    }

    fn sotw_request(&self, type_url: &TypeUrl, accepted: &str, error_detail: Option<Status>) -> DiscoveryRequest {
        let names = if self.legacy {
            Vec::new()
        } else {
            self.texts(self.told.iter())
        };
        DiscoveryRequest {
            version_info: accepted.to_owned(),
            resource_names: names,
            type_url: type_url.url().to_owned(),
            response_nonce: self.nonce.clone(),
            error_detail,
            ..DiscoveryRequest::default()
        }
    }

    /// Moves `told` towards what is wanted; returns the names that are new in it.
    fn turn(&mut self, legacy: bool) -> Vec<Name> {
        let leave = std::mem::take(&mut self.leave);
        self.untell(&leave);
        self.less.clear();
        let more = std::mem::take(&mut self.more).into_values();
        let join = std::mem::take(&mut self.join).into_iter();
        let (again, joined): (BTreeSet<Name>, BTreeSet<Name>) = join.partition(|name| leave.contains(name));
        // B-14: a name that must be sent again is missing in one request and comes back in the next.
        self.join = again;
        self.forget_ways(&leave);
        let first = !joined.is_empty() && !std::mem::replace(&mut self.opened, true);
        joined.iter().for_each(|name| self.ways.ask(name));
        self.told.extend(joined.iter().cloned());
        if first {
            self.legacy = legacy && self.told.iter().map(Name::as_str).eq([Name::WILDCARD]);
        }
        joined.into_iter().chain(more).collect()
    }

    /// The server was told that these names are not wanted.
    fn untell(&mut self, leave: &BTreeSet<Name>) {
        for name in leave {
            self.told.remove(name.as_str());
        }
    }

    /// Returns the spellings by which these names were requested.
    fn texts<'a>(&'a self, names: impl Iterator<Item = &'a Name>) -> Vec<String> {
        let texts = names.flat_map(|name| self.ways.asked(name));
        texts.map(Name::to_string).collect()
    }

    /// The server was told that these names are not wanted. Those that are wanted again keep their spellings.
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

/// Takes as many names as one request carries.
fn portion(names: &mut BTreeSet<Name>) -> BTreeSet<Name> {
    let mut bytes = 0;
    let beyond = names.iter().find(|name| {
        bytes += name.as_str().len() + 8;
        bytes > REQUEST_BYTES
    });
    match beyond.cloned() {
        // A single name always fits.
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

fn delta_answer(type_url: &TypeUrl, response_nonce: String, error_detail: Option<Status>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        type_url: type_url.url().to_owned(),
        response_nonce,
        error_detail,
        ..DeltaDiscoveryRequest::default()
    }
}

fn status(refusal: Refusal) -> Status {
    Status {
        code: REFUSED,
        message: refusal.into_text(),
        details: Vec::new(),
    }
}
