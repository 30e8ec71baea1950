// SPDX-License-Identifier: Apache-2.0
//! The responses of one type that are on their way.
//!
//! Owns which of them the client has not acknowledged or rejected, and how many there may be (B-24). Does not know what an
//! acknowledgement changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::ledger::Row;
use xds::{Batch, Form, Item, Name, Resource, State};

/// The responses that were sent and not acknowledged or rejected yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Flights {
    open: Vec<Flight>,
    /// The number of the last response that was sent; 0 before the first.
    last: u64,
    sent: Option<Instant>,
}

/// A response that was sent, and not acknowledged or rejected yet.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) nonce: u64,
    pub(super) batch: Arc<Batch>,
    pub(super) before: Before,
    /// When the oldest content in it that is new to the client was received from upstream, if it has any.
    pub(super) since: Option<Instant>,
    /// Whether that came after the client had asked, was answered, or had rejected something.
    pub(super) news: bool,
    pub(super) sent: Instant,
}

/// What the client held of what a response brings.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// All that it was sent, if it is like others.
    pub(super) shared: Option<Arc<State>>,
    /// These, if it is not.
    #[expect(
        clippy::box_collection,
        reason = "every client has responses on their way, and few of them have rows"
    )]
    pub(super) rows: Option<Box<BTreeMap<Name, Row>>>,
}

/// So many responses may be on their way in delta.
const OPEN_MAX: usize = 64;

impl Flight {
    /// Returns what is new to the client; it accepted before what is only listed beside that.
    pub(super) fn fresh(&self) -> impl Iterator<Item = &Item> {
        self.batch.items().iter().filter(|item| item.form != Form::Repeated)
    }

    /// Returns what the client held under a name.
    pub(super) fn before(&self, name: &Name) -> Row {
        let own = self.before.rows.as_ref().and_then(|rows| rows.get(name));
        let shared = || self.before.shared.as_ref()?.entries().get(name).map(Row::from);
        own.cloned().or_else(shared).unwrap_or_default()
    }

    /// Returns how many entries the response has.
    fn len(&self) -> usize {
        self.batch.items().len() + self.batch.removed().len()
    }
}

impl Flights {
    pub(super) const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.open.iter()
    }

    /// Returns how many entries the responses have.
    pub(super) fn entries(&self) -> usize {
        self.open.iter().map(Flight::len).sum()
    }

    /// B-24: returns whether nothing more may be sent in delta before the client has answered: there are too many responses, or too
    /// many bytes; 0: any number of bytes.
    pub(super) fn is_full(&self, bytes: usize) -> bool {
        let weight = |flight: &Flight| flight.batch.weight();
        self.open.len() >= OPEN_MAX
            || bytes > 0 && self.open.len() > 1 && self.open.iter().map(weight).sum::<usize>() >= bytes
    }

    /// Returns whether this number is that of the last response.
    pub(super) const fn is_last(&self, number: u64) -> bool {
        self.last == number
    }

    /// Returns when the last response was sent.
    pub(super) const fn sent(&self) -> Option<Instant> {
        self.sent
    }

    pub(super) fn send(&mut self, flight: Flight) {
        self.last = flight.nonce;
        self.sent = Some(flight.sent);
        // There is nearly always only one.
        self.open.reserve_exact(1);
        self.open.push(flight);
    }

    /// Takes the response with this number, if it is on its way.
    #[inline]
    pub(super) fn settle(&mut self, number: u64) -> Option<Flight> {
        let at = self.open.iter().position(|flight| flight.nonce == number)?;
        let flight = self.open.remove(at);
        if self.open.is_empty() {
            // Most types of most streams are quiet most of the time, and need no capacity for the next one.
            self.open = Vec::new();
        }
        Some(flight)
    }

    /// Returns whether a response on its way brings this name.
    pub(super) fn brings(&self, name: &Name) -> bool {
        self.open.iter().any(|flight| flight.batch.item(name).is_some())
    }

    /// Returns whether a response on its way brings or removes this name.
    pub(super) fn has(&self, name: &Name) -> bool {
        self.open.iter().any(|flight| {
            let (items, removed) = (flight.batch.items(), flight.batch.removed());
            spans(items, Item::name, name) && flight.batch.item(name).is_some()
                || spans(removed, |removed| removed, name) && removed.binary_search(name).is_ok()
        })
    }

    /// Returns how many responses are on their way.
    pub(super) const fn count(&self) -> usize {
        self.open.len()
    }

    /// Returns the names that responses on their way bring.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.open.iter().flat_map(|flight| flight.batch.items()).map(Item::name)
    }

    /// Returns whether a response on its way has this resource, and not only because it lists everything.
    pub(super) fn brings_news(&self, resource: &Resource) -> bool {
        let same = |item: &Item| item.form != Form::Repeated && item.resource.version() == resource.version();
        self.open
            .iter()
            .any(|flight| flight.batch.item(resource.name()).is_some_and(same))
    }
}

/// Returns whether a name is between the ends of a list. Each of many responses has a stretch of the names, where others have none.
fn spans<T>(list: &[T], of: impl Fn(&T) -> &Name, name: &Name) -> bool {
    list.first().is_some_and(|first| of(first) <= name) && list.last().is_some_and(|last| name <= of(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B-05, B-24: each response is answered once, in any order; too many make the next ones wait.
    #[test]
    fn settled_once() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let sent = Instant::now();
        let mut flights = Flights::default();
        assert!(flights.is_empty() && flights.is_last(0) && flights.sent().is_none());
        for nonce in 1..=OPEN_MAX as u64 {
            assert!(!flights.is_full(0));
            let batch = Batch::new(Vec::new(), vec![Name::from("gone")]);
            let batch = Arc::new(batch);
            flights.send(Flight {
                nonce,
                batch,
                before: Before::default(),
                since: None,
                news: false,
                sent,
            });
        }
        assert!(flights.is_full(0) && flights.is_last(OPEN_MAX as u64));
        assert_eq!((flights.entries(), flights.sent()), (OPEN_MAX, Some(sent)));
        assert!(flights.settle(0).is_none() && flights.settle(2).is_some() && flights.settle(2).is_none());
        assert!(!flights.is_full(0) && flights.has(&Name::from("gone")) && !flights.brings(&Name::from("gone")));
        assert!(!flights.has(&Name::from("gone2")) && !flights.has(&Name::from("a")));
        for nonce in 1..=OPEN_MAX as u64 {
            assert_eq!(flights.settle(nonce).is_some(), nonce != 2);
        }
        assert!(flights.is_empty() && flights.is_last(OPEN_MAX as u64));
        assert!(size_of::<Flight>() <= 80, "{}", size_of::<Flight>());
    }
}
