//! What the server was told of one type on the present stream, and what it is to be told next.
//!
//! Owns the difference between the two and its form in both dialects. Refuses to know resources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::answers::{Answer, Answers};
use super::refusals::Refusal;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use crate::proto::google::rpc::Status;
use crate::xds::{Name, TypeUrl};

/// One type on one stream. The wildcard is a name here, as it is on the wire.
///
/// Invariant: `leave` is part of `told`; a name in both `join` and `told` is in `leave`.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Something was sent for this type on this stream.
    pub(super) opened: bool,
    /// The server has answered on this stream.
    pub(super) answered: bool,
    pub(super) answers: Answers,
    told: BTreeSet<Name>,
    join: BTreeSet<Name>,
    leave: BTreeSet<Name>,
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

impl Line {
    /// A new stream: everything is to be said again (E-04).
    pub(super) fn reset(&mut self, wanted: BTreeSet<Name>) {
        *self = Self {
            join: wanted,
            ..Self::default()
        };
    }

    pub(super) fn join(&mut self, name: Name) {
        self.join.insert(name);
    }

    pub(super) fn leave(&mut self, name: &Name) {
        self.join.remove(name);
        if let Some(told) = self.told.get(name) {
            self.leave.insert(told.clone());
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
        !self.answers.is_empty() || self.changed()
    }

    pub(super) fn changed(&self) -> bool {
        self.repeat || !self.join.is_empty() || !self.leave.is_empty()
    }

    /// The response with this nonce was received and will be answered (SotW).
    pub(super) fn received(&mut self, answer: Answer, now: Instant) {
        // E-03: every further request of the type carries the newest nonce.
        self.nonce.clone_from(&answer.nonce);
        self.answers.replace(answer, now);
    }

    /// The next delta answer. E-16: an answer never shares its request with a change of what we want, and goes first.
    pub(super) fn delta_answer(&mut self, type_url: &TypeUrl, now: Instant) -> Option<DeltaDiscoveryRequest> {
        let answer = self.answers.take(now)?;
        Some(DeltaDiscoveryRequest {
            type_url: type_url.url().to_owned(),
            response_nonce: answer.nonce,
            error_detail: answer.refusal.map(status),
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
        if !self.leave.is_empty() {
            let leave = portion(&mut self.leave);
            self.told.retain(|name| !leave.contains(name));
            request.resource_names_unsubscribe = texts(&leave);
            return Some((request, Vec::new()));
        }
        if self.join.is_empty() {
            return None;
        }
        let join = portion(&mut self.join);
        let first = !std::mem::replace(&mut self.opened, true);
        if first {
            request.initial_resource_versions = held(&join);
        }
        // E-20: the wildcard's legacy form, a first request that names nothing.
        if !(first && legacy && is_wildcard(&join)) {
            request.resource_names_subscribe = texts(&join);
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
        if !self.changed() && !self.answers.due(now) {
            return None;
        }
        // E-22: a change of names does not wait for the pace of a refusal, and carries it: a request with the nonce and without
        // the refusal would accept the response. An ACK is the same request as a change of names.
        let refusal = self.answers.take_any(now).and_then(|answer| answer.refusal);
        let joined = if std::mem::take(&mut self.repeat) {
            Vec::new()
        } else {
            let changed = self.changed();
            let joined = self.turn(legacy);
            // Some servers do not look at the names of a refusal.
            self.repeat = changed && refusal.is_some();
            joined
        };
        let names = if self.legacy { Vec::new() } else { texts(&self.told) };
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
        let join = std::mem::take(&mut self.join).into_iter();
        let (again, joined): (BTreeSet<Name>, BTreeSet<Name>) = join.partition(|name| leave.contains(name));
        // B-15: what is to be sent again must be missing in one request and come back in the next.
        self.join = again;
        let first = !joined.is_empty() && !std::mem::replace(&mut self.opened, true);
        self.told.extend(joined.iter().cloned());
        if first {
            self.legacy = legacy && is_wildcard(&self.told);
        }
        joined.into_iter().collect()
    }
}

fn is_wildcard(names: &BTreeSet<Name>) -> bool {
    names.len() == 1 && names.contains(Name::WILDCARD)
}

fn texts(names: &BTreeSet<Name>) -> Vec<String> {
    names.iter().map(|name| name.as_str().to_owned()).collect()
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
