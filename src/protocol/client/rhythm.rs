//! What a server has shown of how it answers for a wildcard.
//!
//! Owns how long it must be quiet from then on. Refuses to know one view or stream: what one has seen is good for all of a server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Client;
use super::awaited::Patience;
use super::feed::Feed;
use crate::xds::TypeUrl;

/// The longest pause within an answer, for each type of which the end of an answer was seen.
///
/// A type that is not there is waited for as long as for a server of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rhythm {
    pauses: BTreeMap<TypeUrl, Duration>,
}

/// The pauses of so many types are remembered.
const TYPES_MAX: usize = 64;
/// A server that never paused must be quiet for this long, and any other for this longer than twice its longest pause: networks
/// are not even.
const MARGIN: Duration = Duration::from_millis(30);
/// A server may wait for our answer before it goes on: so many round trips of quiet show that one that is known, and one that is
/// not, has nothing more to say.
const ROUND_TRIPS: u32 = 2;
const ROUND_TRIPS_UNKNOWN: u32 = 4;

impl Rhythm {
    /// Whether nothing was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pauses.is_empty()
    }

    /// Adds what others have seen of the same server.
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

    /// How long the server must be quiet until its answer counts as complete, if it has shown that.
    pub(super) fn quiet(&self, type_url: &TypeUrl, round_trip: Duration) -> Option<Duration> {
        let pause = self.pauses.get(type_url)?;
        Some((*pause * 2 + MARGIN).max(round_trip * ROUND_TRIPS))
    }
}

impl Client {
    /// What was seen of the same server so far. It counts for what is asked for from now on.
    pub fn handle_rhythm(&mut self, rhythm: Arc<Rhythm>) {
        self.rhythm = rhythm;
    }

    /// What was seen here of how the server answers, for all its clients.
    pub fn take_rhythm(&mut self) -> Option<Rhythm> {
        (!self.seen.is_empty()).then(|| std::mem::take(&mut self.seen))
    }

    pub(super) fn note_pause(&mut self, type_url: &TypeUrl) {
        if let Some(pause) = self.feeds.get_mut(type_url).and_then(Feed::take_pause) {
            self.seen.note(type_url, pause);
        }
    }

    /// How long the server has for what.
    pub(super) fn patience(&self, type_url: &TypeUrl) -> Patience {
        // G-14: a server that reports errors itself has twice the time.
        let times = 1 + u32::from(self.settings.features.resource_timer_is_transient_error);
        let round_trip = self.stream.as_ref().map_or(Duration::ZERO, |stream| stream.round_trip);
        Patience {
            does_not_exist: self.settings.does_not_exist * times,
            quiet: self.settings.wildcard_quiet.max(round_trip * ROUND_TRIPS_UNKNOWN),
            learned: self.rhythm.quiet(type_url, round_trip),
        }
    }
}
