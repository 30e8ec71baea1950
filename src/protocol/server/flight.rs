//! A response: on its way, acknowledged, or rejected.
//!
//! Owns what must be remembered of a response until the client has acknowledged or rejected it. Does not build responses.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::name_faults::NameFaults;
use super::nonce::{Nonce, Nonces};
use super::subscription::Subscription;
use proto::google::rpc::Status as Detail;
use xds::{Answers, Baselines, Batch, Dialect, Held, Name, Objection, Resource, TypeUrl, Version};

/// A response for the transport to encode.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its dialect.
    pub dialect: Dialect,
    /// Its nonce.
    pub nonce: Nonce,
    /// SotW: the version of the set that the client then holds. Delta: only for people who debug.
    pub version: Version,
    /// Its resources and removals.
    pub batch: Arc<Batch>,
    /// When the oldest content in it that is new to the client was received from upstream, if it has any.
    pub since: Option<Instant>,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The request's type.
    pub type_url: TypeUrl,
    /// The kind of the request.
    pub kind: ReceiptKind,
    /// What was wrong with single names.
    pub faults: NameFaults,
}

/// The kind of a request (B-05).
#[derive(Clone, Debug)]
pub enum ReceiptKind {
    /// The first request of its type on the stream.
    First,
    /// A change of the subscription, or nothing new.
    Update,
    /// The client accepted a response. Has its changes, if it had any.
    Ack(Option<Changed>),
    /// The client rejected a response.
    Nack {
        /// What was rejected: the first names with their versions, and how many more there are.
        response: String,
        /// The client's error message.
        message: String,
    },
    /// The nonce is not that of a response on its way.
    Stale,
}

/// What changed at a client with a response: content that is new to it, and that came after it had asked for it.
#[derive(Clone, Debug)]
pub struct Changed {
    /// When the oldest change in the response was received from upstream.
    pub since: Instant,
}

/// A response that was sent, and not acknowledged or rejected yet.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) nonce: u64,
    pub(super) batch: Arc<Batch>,
    /// Full state: the version of the set.
    pub(super) set: Option<Box<Version>>,
    /// When the oldest change in it was received from upstream, if it has a change.
    pub(super) since: Option<Instant>,
    pub(super) sent: Instant,
    /// The names of resources in it that a later response has removed, and the removed names of which a later response has brought
    /// something. Nearly always there are none, and then nothing is allocated.
    #[expect(clippy::box_collection, reason = "a flight must stay small, and very few have any")]
    pub(super) undone: Option<Box<BTreeSet<Name>>>,
}

/// How many names of a rejected response are shown, and how much of each.
const SHOWN_MAX: usize = 5;
const SHOWN_CHARS_MAX: usize = 200;

impl Flight {
    /// Returns how many entries the response has.
    pub(super) fn len(&self) -> usize {
        self.batch.items().len() + self.batch.removed().len()
    }

    /// Returns its resources that no later response has removed.
    pub(super) fn arriving(&self) -> impl Iterator<Item = &Resource> {
        let resources = self.batch.items().iter().map(|item| &*item.resource);
        resources.filter(|resource| !self.is_undone(resource.name()))
    }

    /// A later response removes what this one brings, or brings what this one removes.
    pub(super) fn note_later(&mut self, later: &Batch) {
        let gone = later.removed().iter().filter(|name| self.batch.item(name).is_some());
        let back = self.batch.removed().iter().filter(|name| later.brings(name));
        for name in gone.chain(back) {
            self.undone.get_or_insert_default().insert(name.clone());
        }
    }

    /// Returns whether a later response has removed this resource in it, or has brought this removed name.
    pub(super) fn is_undone(&self, name: &Name) -> bool {
        self.undone.as_ref().is_some_and(|undone| undone.contains(name))
    }

    /// Returns its first names with their versions, removed names with a minus, and how many more there are.
    fn summary(&self) -> String {
        let items = self.batch.items().iter().map(|item| {
            let resource = &item.resource;
            (resource.name(), format!("@{}", resource.version()))
        });
        let removed = self.batch.removed().iter().map(|name| (name, String::new()));
        let shown = items.chain(removed).take(SHOWN_MAX).map(|(name, version)| {
            let minus = if version.is_empty() { "-" } else { "" };
            let name: String = name.as_str().chars().take(SHOWN_CHARS_MAX).collect();
            format!("{minus}{name}{version}")
        });
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if let Some(more @ 1..) = self.len().checked_sub(SHOWN_MAX) {
            text.push_str(&format!(" and {more} more"));
        }
        text
    }

    /// Drops everything that is not needed when the client answers.
    pub(super) fn lighten(&mut self, baselines: &mut Baselines) {
        self.batch = baselines.batch(&self.batch);
    }
}

impl Subscription {
    /// B-05, C-02: the nonce says which response is meant, and only `error_detail` says that it was rejected (B-06, B-07).
    pub(super) fn settle(
        &mut self,
        nonce: &str,
        error: Option<&Detail>,
        nonces: Nonces,
        answers: &impl Answers,
        now: Instant,
    ) -> ReceiptKind {
        if nonce.is_empty() {
            return ReceiptKind::Update;
        }
        let Some(number) = nonces.number(nonce.as_bytes()) else {
            return ReceiptKind::Stale;
        };
        let Some(flight) = self.flights.settle(number) else {
            // B-08: this is neither an ACK nor a NACK, and needs no answer of its own.
            let again = self.flights.is_last(number) && error.is_none();
            return if again { ReceiptKind::Update } else { ReceiptKind::Stale };
        };
        let kind = match error {
            None => ReceiptKind::Ack(self.accept(&flight)),
            Some(detail) => {
                let response = flight.summary();
                self.asked.interrupted(now);
                let objection = Objection::new(&detail.message, flight.sent);
                self.park(flight, answers.objection(objection));
                ReceiptKind::Nack {
                    response,
                    message: detail.message.clone(),
                }
            }
        };
        if self.flights.is_empty() {
            self.cold.rest();
        }
        kind
    }

    /// The client has accepted a response. Returns its changes.
    pub(super) fn accept(&mut self, flight: &Flight) -> Option<Changed> {
        self.absolve(flight);
        if flight.set.is_some() {
            self.cold.forget_refused_set();
        }
        flight.since.map(|since| Changed { since })
    }

    /// Whether the client holds exactly this content. It may hold a resource that it does not want any more: a full state lists
    /// such a resource while its removal waits.
    fn keeps(&self, resource: &Resource) -> bool {
        let wanted = self.wanted(resource.name(), resource.aliases());
        self.held(wanted.unwrap_or(resource.name())).is(resource.version())
    }

    /// B-22, C-25: what the client holds of a rejected response is unknown, and it is not sent again unchanged.
    fn park(&mut self, flight: Flight, objection: Arc<Objection>) {
        if let Some(set) = flight.set {
            // K-08: the client gave up a part of the set before it rejected the set.
            let divided = !flight.batch.items().iter().all(|item| self.keeps(&item.resource));
            self.cold.refuse_set(*set, objection);
            if divided {
                self.cold.divide_refused_set();
            }
            let held = self.names.iter().filter(|(_, held)| held.perhaps());
            let unsure: Vec<Name> = held.map(|(name, _)| name.clone()).collect();
            unsure.into_iter().for_each(|name| self.names.set(name, Held::Unknown));
            return;
        }
        self.refuse(&flight, objection);
    }
}
