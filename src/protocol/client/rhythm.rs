// SPDX-License-Identifier: Apache-2.0
//! What the relay has learned about how a server answers for a wildcard, and how long it waits for a server.
//!
//! Owns how long the server must be quiet from then on. Knows no single view or stream: what one stream learns holds for the
//! whole server.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ClientSettings;
use super::completeness::Quiet;
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

/// How long the relay waits for a server's answers for one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// How long a server may take to answer for a name.
    pub(super) answer: Duration,
    /// How long it must be quiet before a wildcard is complete.
    pub(super) quiet: Quiet,
}

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
    fn quiet(&self, type_url: &TypeUrl, round_trip: Duration) -> Option<Duration> {
        let pause = self.pauses.get(type_url)?;
        Some((*pause * 2 + MARGIN).max(round_trip * ROUND_TRIPS))
    }
}

impl Patience {
    /// How long it waits for a server of this rhythm.
    pub(super) fn new(settings: &ClientSettings, rhythm: &Rhythm, type_url: &TypeUrl, round_trip: Duration) -> Self {
        let learned = rhythm.quiet(type_url, round_trip);
        // G-14: a server that reports errors itself has twice the time.
        let times = 1 + u32::from(settings.features.resource_timer_is_transient_error);
        let unknown = settings.wildcard_quiet.max(round_trip * ROUND_TRIPS_UNKNOWN);
        Self {
            answer: settings.does_not_exist * times,
            quiet: Quiet {
                needed: learned.map_or(unknown, |learned| learned.min(unknown)),
                unknown,
                overtaken: MARGIN.max(round_trip * ROUND_TRIPS),
            },
        }
    }
}
