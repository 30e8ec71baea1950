//! The responses of one type that are on their way.
//!
//! Owns which of them the client has not acknowledged or rejected, and when the last one was sent. Does not know what an
//! acknowledgement changes.

use std::time::Instant;

use super::flight::Flight;
use xds::{Baselines, Form, Item, Name, Resource};

/// The responses that were sent and not acknowledged or rejected yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Flights {
    open: Vec<Flight>,
    /// The number of the last response that was sent; 0 before the first.
    last: u64,
    sent: Option<Instant>,
}

/// With this many responses on their way, even requested names wait.
const OPEN_MAX: usize = 64;

impl Flights {
    pub(super) const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.open.iter()
    }

    /// Returns the resources on their way that no later response removes.
    pub(super) fn arriving(&self) -> impl Iterator<Item = &Resource> {
        self.open.iter().flat_map(Flight::arriving)
    }

    /// Returns how many entries the responses have.
    pub(super) fn entries(&self) -> usize {
        self.open.iter().map(Flight::len).sum()
    }

    /// K-21: returns whether so much is unacknowledged that even requested names wait: many responses, or far more entries than
    /// the client can hold.
    pub(super) fn is_crowded(&self, holds: usize) -> bool {
        self.open.len() >= OPEN_MAX || self.entries() > 2 * holds + OPEN_MAX
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
        for older in &mut self.open {
            older.note_later(&flight.batch);
        }
        // There is nearly always only one.
        self.open.reserve_exact(1);
        self.open.push(flight);
    }

    /// Takes the response with this number, if it is on its way.
    pub(super) fn settle(&mut self, number: u64) -> Option<Flight> {
        let at = self.open.iter().position(|flight| flight.nonce == number)?;
        let flight = self.open.remove(at);
        if self.open.is_empty() {
            // Most types of most streams are quiet most of the time, and need no capacity for the next one.
            self.open = Vec::new();
        }
        Some(flight)
    }

    /// Returns whether a response on its way, with a number above `after`, may still give the client something of this name.
    pub(super) fn carries(&self, name: &Name, after: u64) -> bool {
        self.open
            .iter()
            .any(|flight| flight.nonce > after && flight.batch.brings(name))
    }

    /// Returns whether a response on its way has this resource, and not only because it lists everything.
    pub(super) fn brings_news(&self, resource: &Resource) -> bool {
        let same = |item: &Item| item.form != Form::Repeated && item.resource.version() == resource.version();
        self.open
            .iter()
            .any(|flight| flight.batch.item(resource.name()).is_some_and(same))
    }

    /// Drops everything that is not needed when the client answers.
    pub(super) fn lighten(&mut self, baselines: &mut Baselines) {
        self.open.iter_mut().for_each(|flight| flight.lighten(baselines));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use xds::Batch;

    /// B-05, K-21: each response is answered once, in any order; too many make the next ones wait.
    #[test]
    fn settled_once() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let sent = Instant::now();
        let mut flights = Flights::default();
        assert!(flights.is_empty() && flights.is_last(0) && flights.sent().is_none());
        for nonce in 1..=OPEN_MAX as u64 {
            assert!(!flights.is_crowded(OPEN_MAX));
            let batch = Arc::new(Batch::new(Vec::new(), vec![Name::from("gone")]));
            flights.send(Flight {
                nonce,
                batch,
                set: None,
                since: None,
                sent,
                undone: None,
            });
        }
        assert!(flights.is_crowded(OPEN_MAX) && flights.is_last(OPEN_MAX as u64));
        assert_eq!((flights.entries(), flights.sent()), (OPEN_MAX, Some(sent)));
        assert!(flights.settle(0).is_none() && flights.settle(2).is_some() && flights.settle(2).is_none());
        assert!(!flights.is_crowded(OPEN_MAX) && !flights.carries(&Name::from("gone"), 0));
        for nonce in 1..=OPEN_MAX as u64 {
            assert_eq!(flights.settle(nonce).is_some(), nonce != 2);
        }
        assert!(flights.is_empty() && flights.is_last(OPEN_MAX as u64));
    }
}
