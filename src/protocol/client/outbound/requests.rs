// SPDX-License-Identifier: Apache-2.0
//! The requests of a subscription, in both dialects.
//!
//! Owns what goes into one request, and the order of requests. Does not know when the transport takes them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::Outbound;
use crate::client::Request;
use crate::client::refusals::Refusal;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use proto::google::rpc::Status;
use xds::{Dialect, Name, TypeUrl};

/// How many bytes of names a delta request carries. This stays well below the limits of common servers.
const REQUEST_BYTES: usize = 1024 * 1024;
/// gRPC's INVALID_ARGUMENT.
const REFUSED: i32 = 3;

/// The first request of a type.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) struct Opening {
    /// Whether the wildcard may be requested in its legacy form, by an empty list; once it was sent: whether it was.
    pub(in crate::client) legacy: bool,
    /// The place of the type among those that are requested on this stream.
    pub(in crate::client) place: u32,
    /// Whether the server is made to answer if something is held. Polls are answered anyway.
    pub(in crate::client) urges: bool,
    /// When it is sent.
    pub(in crate::client) at: Instant,
}

impl Outbound {
    /// Returns a request that changes nothing (C-04). E-24: it may tell the server what clients reject. In SotW it is the last one of the type
    /// once more: a server takes missing names for given up.
    pub(in crate::client) fn again(&self, type_url: &TypeUrl, dialect: Dialect, rejected: Option<Status>) -> Request {
        let nonce = rejected.as_ref().map_or("", |_| self.acks.nonce());
        match dialect {
            Dialect::Sotw => Request::Sotw(self.sotw_request(type_url, rejected)),
            Dialect::Delta => Request::Delta(delta_request(type_url, nonce, rejected)),
        }
    }

    /// Returns the next delta answer. E-16: an answer never shares its request with a change of the subscription, and goes first.
    pub(in crate::client) fn delta_answer(
        &mut self,
        type_url: &TypeUrl,
        now: Instant,
    ) -> Option<DeltaDiscoveryRequest> {
        let ack = self.acks.take(false, now)?;
        Some(delta_request(type_url, &ack.nonce, ack.refusal.map(status)))
    }

    /// Returns the next change of the subscription in delta, and the names that are new in it. `held` returns the versions of the
    /// held content; E-04: they go with the first request.
    pub(in crate::client) fn delta_change(
        &mut self,
        type_url: &TypeUrl,
        opening: Opening,
        held: impl FnOnce(&BTreeSet<Name>) -> BTreeMap<String, String>,
    ) -> Option<(DeltaDiscoveryRequest, Vec<Name>)> {
        let mut request = delta_request(type_url, "", None);
        // E-16, E-17: a name that must be sent again is first unsubscribed, in a request of its own.
        if !self.leave.is_empty() {
            let leave = portion(&mut self.leave);
            request.resource_names_unsubscribe = texts(&leave);
            self.untell(leave);
            return Some((request, Vec::new()));
        }
        let (join, first) = (portion(&mut self.join), !self.is_opened());
        let joined = self.tell(&join, opening)?;
        if first {
            request.initial_resource_versions = held(&joined);
        }
        // E-20: the wildcard's legacy form is a first request without names.
        if !(first && self.is_legacy()) {
            request.resource_names_subscribe = texts(&join);
        }
        Some((request, joined.into_iter().collect()))
    }

    /// Returns the next SotW request, and the names that are new in it. It has all wanted names, and the answer that is due.
    pub(in crate::client) fn sotw(
        &mut self,
        type_url: &TypeUrl,
        opening: Opening,
    ) -> Option<(DiscoveryRequest, Vec<Name>)> {
        if !self.changed() && !self.acks.due(opening.at) {
            return None;
        }
        // E-22: a change of names does not wait until its refusal may be sent again, but carries the refusal: a request with the
        // nonce and without a refusal would accept the response. An ACK is the same request as a change of names.
        let refusal = self.acks.take(true, opening.at).and_then(|ack| ack.refusal);
        let again = std::mem::take(&mut self.again);
        let joined = if std::mem::take(&mut self.repeat) {
            Vec::new()
        } else {
            let changed = self.changed();
            let joined = self.turn(type_url, opening);
            // Some servers ignore the names in a NACK.
            self.repeat = changed && refusal.is_some();
            joined
        };
        let mut request = self.sotw_request(type_url, refusal.map(status));
        if again {
            request.version_info.clear();
        }
        Some((request, joined))
    }

    /// Returns the last SotW request once more.
    fn sotw_request(&self, type_url: &TypeUrl, error_detail: Option<Status>) -> DiscoveryRequest {
        let names = if self.is_legacy() {
            Vec::new()
        } else {
            self.told.iter().map(Name::to_string).collect()
        };
        DiscoveryRequest {
            version_info: self.acks.version().to_string(),
            resource_names: names,
            type_url: type_url.url().to_owned(),
            response_nonce: self.acks.nonce().to_owned(),
            error_detail,
            ..DiscoveryRequest::default()
        }
    }

    /// Moves `told` towards what is wanted; returns the names that are new in it.
    fn turn(&mut self, type_url: &TypeUrl, opening: Opening) -> Vec<Name> {
        let leave = match self.leaves() {
            true => std::mem::take(&mut self.leave),
            false => BTreeSet::new(),
        };
        let join = std::mem::take(&mut self.join).into_iter();
        let (again, join): (BTreeSet<Name>, BTreeSet<Name>) = join.partition(|text| leave.contains(text));
        // B-14: a name that must be sent again is missing in one request and comes back in the next.
        self.join = again;
        let first = !self.is_opened();
        let joined: Vec<Name> = self.tell(&join, opening).into_iter().flatten().collect();
        self.untell(leave);
        if first && type_url.traits().full_state {
            self.first.clone_from(&joined);
        }
        joined
    }

    /// The server is asked for these. Returns the names, if there are any.
    fn tell(&mut self, join: &BTreeSet<Name>, opening: Opening) -> Option<BTreeSet<Name>> {
        let one = join.first()?;
        if !self.is_opened() {
            let legacy = opening.legacy && join.len() == 1 && one.as_str() == Name::WILDCARD;
            self.opened = Some(Opening { legacy, ..opening });
        }
        self.told.extend(join.iter().cloned());
        Some(join.iter().map(|text| self.ways.name(text).clone()).collect())
    }

    fn is_legacy(&self) -> bool {
        self.opened.is_some_and(|opening| opening.legacy)
    }

    /// The server is told that these are not wanted. Names that are wanted again keep their spellings.
    fn untell(&mut self, leave: BTreeSet<Name>) {
        for text in leave {
            self.told.remove(text.as_str());
            let name = self.ways.name(&text).clone();
            let mut texts = self.ways.texts(name.as_str()).into_iter().flatten();
            if !self.has_told(name.as_str()) && !texts.any(|text| self.join.contains(text)) {
                self.ways.forget(&name);
            }
        }
    }
}

fn texts(names: &BTreeSet<Name>) -> Vec<String> {
    names.iter().map(Name::to_string).collect()
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

fn delta_request(type_url: &TypeUrl, nonce: &str, error_detail: Option<Status>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        type_url: type_url.url().to_owned(),
        response_nonce: nonce.to_owned(),
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
