// SPDX-License-Identifier: Apache-2.0
//! One type on one client stream: the heart of the relay, the same for both dialects.
//!
//! `want` is what the client asks for, `books` what it was sent; the lens says what it should hold. What differs is due, and a
//! writer turns as much of that as fits into the next response. `waits` has what is sent later.
//! Owns these parts; knows nothing of other types and other clients.

mod answer;
mod changes;
mod draft;
mod due;
mod facts;
mod full;
mod lens;
mod portrait;
mod reader;
mod requests;
mod settling;
mod shared;
mod wants;
mod writer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::server::asked::OpenRequests;
use crate::server::books::{Agenda, Books};
use crate::server::caller::Caller;
use crate::server::flights::Flights;
use crate::server::nonce::Nonces;
use crate::server::response::Response;
use crate::server::turn::TypeTurn;
use crate::server::waits::{Wait, Waits};
use crate::server::want::TypeWant;
use crate::settings::StreamSettings;
use reader::Reader;
pub(super) use requests::Entries;
use xds::{Difference, Kind, Name, Rights, TypeSight, TypeUrl};

/// One type on one client stream.
///
/// Invariant: of every name that the agenda does not list, and that does not differ between the ledger's map and the state,
/// nothing is due.
#[derive(Debug)]
pub(super) struct Subscription {
    reader: Reader,
    want: TypeWant,
    books: Books,
    waits: Waits,
    turn: TypeTurn,
    asked: OpenRequests,
    /// What the views must be told. Nearly always there is nothing, and then nothing is allocated.
    #[expect(clippy::box_collection, reason = "a subscription must stay small")]
    wants: Option<Box<VecDeque<xds::Want>>>,
}

/// What it takes to compose a response, and what was decided for that: whoever writes it only obeys.
#[derive(Debug)]
pub(super) struct Attempt<'a, A> {
    pub(super) slot: TypeSight<'a>,
    pub(super) answers: &'a A,
    pub(super) nonces: &'a mut Nonces,
    pub(super) settings: &'a StreamSettings,
    /// Whether removals may be sent now: other types do not need the removed resources any more.
    pub(super) removals: bool,
    /// Until when changes of what the client has wait for other types.
    pub(super) changes: Option<Instant>,
    pub(super) now: Instant,
    /// Whether an answer is due even if it is empty.
    pub(super) greets: bool,
    /// What the wildcard has to send or remove.
    pub(super) difference: Option<Arc<Difference>>,
}

/// A response, and the names of the endpoints that new or changed clusters in it wait for (K-13).
pub(super) type Composed = (Response, Vec<Name>);

impl Subscription {
    /// `rights` is what the client may have of the type; `None`: everything.
    pub(super) fn new(type_url: TypeUrl, caller: &Caller, rights: Option<Arc<Rights>>, now: Instant) -> Self {
        let reader = Reader::new(type_url, caller, rights);
        Self {
            books: Books::new(reader.lists_all()),
            reader,
            want: TypeWant::default(),
            waits: Waits::default(),
            turn: TypeTurn::default(),
            asked: OpenRequests::new(now),
            wants: None,
        }
    }

    /// Returns when the client has waited for this long, or what waits is looked at again.
    pub(in crate::server) fn poll_timeout(&self, bound: Duration) -> Option<Instant> {
        let ends = self.asked.ends(bound);
        ends.into_iter().chain(self.waits.get(Wait::Again)).min()
    }

    /// Takes note of the time.
    pub(in crate::server) fn handle_timeout(&mut self, bound: Duration, now: Instant) {
        if self.waits.is_over(Wait::Again, now) && self.kind().listens() {
            self.books.try_again(false);
        }
        self.asked.waive(bound, now);
    }

    pub(in crate::server) const fn type_url(&self) -> &TypeUrl {
        self.reader.type_url()
    }

    pub(in crate::server) fn kind(&self) -> Kind {
        self.reader.traits().kind
    }

    /// Returns the responses that were sent.
    pub(in crate::server) const fn flights(&self) -> &Flights {
        self.books.flights()
    }

    /// Returns what may have to be sent.
    pub(in crate::server) const fn agenda(&self) -> &Agenda {
        self.books.agenda()
    }

    /// Returns how long it has waited for an answer.
    pub(in crate::server) const fn asked(&self) -> &OpenRequests {
        &self.asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream has one subscription for each of its types. If one grows by 64 bytes, it falls into the next size class of the
    /// allocator, for every client.
    #[test]
    fn what_every_type_of_every_client_takes() {
        assert!(size_of::<Subscription>() <= 256, "{}", size_of::<Subscription>());
    }
}
