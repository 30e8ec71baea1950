//! What few types of few streams need to remember of their responses.
//!
//! Owns its storage, so that it takes no memory where it is not needed. Does not know what follows from it, and knows no names.

use std::sync::Arc;
use std::time::Instant;

use xds::{Batch, Objection};

/// The notes on a type of a stream. Most types have none, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Notes(Option<Box<Written>>);

#[derive(Debug, Default)]
struct Written {
    /// Why the client rejected the last full state, if it has accepted none since.
    refused: Option<Arc<Objection>>,
    /// When that one is tried once more.
    again: Option<Again>,
    /// E-24: what the client, a relay, says that its own clients reject, if it has accepted no response since.
    relayed: Option<Arc<Objection>>,
    /// Since when removals wait while other names are added.
    removals: Option<Instant>,
    /// Until when changed endpoints wait for the routes of the same burst.
    endpoints: Option<Instant>,
}

/// The second try of a rejected full state.
#[derive(Clone, Debug)]
pub(super) enum Again {
    /// It is due then, unless something else is sent before.
    At(Instant, Arc<Batch>),
    Due(Arc<Batch>),
    /// The one with this id was tried once more.
    Tried(u64),
}

impl Written {
    fn is_empty(&self) -> bool {
        let Self {
            refused,
            again,
            relayed,
            removals,
            endpoints,
        } = self;
        let waits = removals.is_some() || endpoints.is_some();
        refused.is_none() && again.is_none() && relayed.is_none() && !waits
    }
}

impl Notes {
    fn add(&mut self) -> &mut Written {
        self.0.get_or_insert_default()
    }

    /// Takes something away, if there is anything. Frees the storage if nothing is left in it.
    fn take(&mut self, take: impl FnOnce(&mut Written)) {
        if let Some(written) = &mut self.0 {
            take(written);
            self.0.take_if(|written| written.is_empty());
        }
    }

    /// Returns why the client rejected the last full state, if it has accepted none since.
    pub(super) fn refused(&self) -> Option<&Arc<Objection>> {
        self.0.as_ref()?.refused.as_ref()
    }

    pub(super) fn note_refused(&mut self, objection: Arc<Objection>) {
        self.add().refused = Some(objection);
    }

    pub(super) fn forget_refused(&mut self) {
        self.take(|written| (written.refused, written.again) = (None, None));
    }

    /// Returns when the last full state is tried once more, if that was rejected.
    pub(super) fn again(&self) -> Option<&Again> {
        self.0.as_ref()?.again.as_ref()
    }

    pub(super) fn note_again(&mut self, again: Again) {
        self.add().again = Some(again);
    }

    /// E-24: returns what the client, a relay, says that its own clients reject, if it has accepted no response since.
    pub(super) fn relayed(&self) -> Option<&Arc<Objection>> {
        self.0.as_ref()?.relayed.as_ref()
    }

    pub(super) fn note_relayed(&mut self, objection: Arc<Objection>) {
        self.add().relayed = Some(objection);
    }

    pub(super) fn forget_relayed(&mut self) {
        self.take(|written| written.relayed = None);
    }

    /// Returns until when changed endpoints wait.
    pub(super) fn endpoints_wait_until(&self) -> Option<Instant> {
        self.0.as_ref()?.endpoints
    }

    /// Notes until when changed endpoints wait, if they do.
    pub(super) fn note_endpoints(&mut self, until: Option<Instant>) {
        match until {
            Some(_) => self.add().endpoints = until,
            None => self.take(|written| written.endpoints = None),
        }
    }

    /// Returns since when removals wait while other names are added.
    pub(super) fn removals_wait_since(&self) -> Option<Instant> {
        self.0.as_ref()?.removals
    }

    /// Notes whether removals wait while other names are added.
    pub(super) fn note_removals(&mut self, wait: bool, now: Instant) {
        if wait {
            self.add().removals.get_or_insert(now);
        } else {
            self.take(|written| written.removals = None);
        }
    }
}
