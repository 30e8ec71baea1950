//! What the relay has learned about how a server answers for a wildcard.
//!
//! Owns how long the server must be quiet from then on. Knows no single view or stream: what one stream learns holds for the
//! whole server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::awaited::Patience;
use super::{Client, ClientSettings};
use xds::TypeUrl;

/// The longest pause within an answer, for each type of which the end of an answer was seen.
///
/// For a type that is not in it, the relay waits as long as for an unknown server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rhythm {
    pauses: BTreeMap<TypeUrl, Duration>,
}

/// The pauses of this many types are remembered.
const TYPES_MAX: usize = 64;
/// A known server must be quiet for twice its longest pause and this margin; a server that never paused, for the margin alone.
/// Network delays vary.
const MARGIN: Duration = Duration::from_millis(30);
/// A server may wait for the relay's ACK before it goes on. So many round trips of quiet show that a known server, or an unknown
/// one, has nothing more to send.
const ROUND_TRIPS: u32 = 2;
const ROUND_TRIPS_UNKNOWN: u32 = 4;

impl Rhythm {
    /// Returns whether nothing was learned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pauses.is_empty()
    }

    /// Adds what other streams have learned of the same server.
    pub fn merge(&mut self, other: &Self) {
        for (type_url, pause) in &other.pauses {
            self.note(type_url, *pause);
        }
    }

    pub(super) fn note(&mut self, type_url: &TypeUrl, pause: Duration) {
        if let Some(longest) = self.pauses.get_mut(type_url) {
            *longest = pause.max(*longest);
        } else if self.pauses.len() < TYPES_MAX {
            self.pauses.insert(type_url.clone(), pause);
        }
    }

    /// Returns how long the server must be quiet until its answer counts as complete, if that was learned.
    pub(super) fn quiet(&self, type_url: &TypeUrl, round_trip: Duration) -> Option<Duration> {
        let pause = self.pauses.get(type_url)?;
        Some((*pause * 2 + MARGIN).max(round_trip * ROUND_TRIPS))
    }
}

impl Client {
    /// Takes what was learned of the same server so far. It holds for what is requested from now on.
    pub fn handle_rhythm(&mut self, rhythm: Arc<Rhythm>) {
        self.rhythm = rhythm;
    }

    /// Takes what this stream has learned of the server, to be shared with the server's other streams.
    pub fn take_rhythm(&mut self) -> Option<Rhythm> {
        (!self.seen.is_empty()).then(|| std::mem::take(&mut self.seen))
    }

    /// The server has shown this pause, if any, in an answer.
    pub(super) fn note_pause(&mut self, type_url: &TypeUrl, pause: Option<Duration>) {
        if let Some(pause) = pause {
            self.seen.note(type_url, pause);
        }
    }

    /// There are new settings, for what is asked for from now on.
    pub fn handle_settings(&mut self, settings: Arc<ClientSettings>) {
        self.settings = settings;
    }

    /// Returns how long the relay waits for this server's answers for a type.
    pub(super) fn patience(&self, type_url: &TypeUrl) -> Patience {
        // G-14: a server that reports errors itself has twice the time.
        let times = 1 + u32::from(self.settings.features.resource_timer_is_transient_error);
        let round_trip = self.stream.as_ref().map_or(Duration::ZERO, |stream| stream.round_trip);
        Patience {
            does_not_exist: self.settings.does_not_exist * times,
            quiet: self.settings.wildcard_quiet.max(round_trip * ROUND_TRIPS_UNKNOWN),
            learned: self.rhythm.quiet(type_url, round_trip),
            steady: MARGIN.max(round_trip * ROUND_TRIPS),
        }
    }
}
