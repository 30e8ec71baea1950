//! What few types of few streams need to remember of their responses.
//!
//! Owns its storage, so that it takes no memory where it is not needed. Does not know what follows from it, and knows no names.

use std::time::Instant;

/// The notes on a type of a stream. Most types have none, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Notes(Option<Box<Written>>);

#[derive(Debug, Default)]
struct Written {
    /// When rejected listeners are tried once more: by then an address is free that one of them takes.
    again: Option<Instant>,
    /// Since when removals wait while other names are added.
    removals: Option<Instant>,
    /// Until when changed endpoints wait for the routes of the same burst.
    endpoints: Option<Instant>,
}

impl Written {
    fn is_empty(&self) -> bool {
        let Self {
            again,
            removals,
            endpoints,
        } = self;
        let waits = removals.is_some() || endpoints.is_some();
        again.is_none() && !waits
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

    /// Returns when rejected listeners are tried once more.
    pub(super) fn again(&self) -> Option<Instant> {
        self.0.as_ref()?.again
    }

    /// Notes when rejected listeners are tried once more.
    pub(super) fn note_again(&mut self, at: Option<Instant>) {
        match at {
            Some(_) => self.add().again = at,
            None => self.take(|written| written.again = None),
        }
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
