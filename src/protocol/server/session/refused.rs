//! A full state that the client has rejected (B-22).
//!
//! It is not sent again until something differs, with one exception: listeners that take addresses of others may have been rejected
//! because the others were not ready to give them up. Owns that second try. Does not know what else is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Subscription;
use crate::server::flights::Flight;
use crate::server::notes::Again;
use xds::{Batch, Objection};

/// After so long an address that a listener has given up is free.
const FREE_AFTER: Duration = Duration::from_secs(1);

impl Subscription {
    /// The client has rejected a full state. The rows stay, so that the next one goes when something is due.
    pub(super) fn refuse(&mut self, flight: &Flight, objection: &Arc<Objection>, now: Instant) {
        let notes = &mut self.notes;
        notes.note_refused(objection.clone());
        let tried = matches!(notes.again(), Some(Again::Tried(id)) if *id == flight.batch.id());
        if !flight.batch.last().is_empty() && !tried {
            notes.note_again(Again::At(now + FREE_AFTER, flight.batch.clone()));
        }
    }

    /// Returns a rejected full state whose time has come, if it is still all that the client should have been sent.
    pub(super) fn second_try(&mut self) -> Option<Arc<Batch>> {
        let Some(Again::Due(batch)) = self.notes.again() else {
            return None;
        };
        let (batch, ledger) = (batch.clone(), self.books.ledger());
        let items = batch.items().iter();
        let same = items.filter(|item| ledger.get(item.name()).is(item.resource.version()));
        let all = batch.items().len();
        let same = same.count() == all && ledger.held().count() == all;
        self.notes.note_again(Again::Tried(batch.id()));
        same.then_some(batch)
    }

    /// Notes that the time of a second try has come.
    pub(super) fn ripen_second_try(&mut self, now: Instant) {
        if let Some(Again::At(at, batch)) = self.notes.again()
            && *at <= now
        {
            let due = Again::Due(batch.clone());
            self.notes.note_again(due);
        }
    }
}
