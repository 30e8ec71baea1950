// SPDX-License-Identifier: Apache-2.0
//! The relay's own time, for all threads.
//!
//! Owns the one value from which it follows, and who may replace it. Does not read a clock: the machine's time is an argument.

use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::era::{Era, Stalls};

/// K-27: a process that did not run does not know whether its peers were silent. So no time passes for it meanwhile, and none
/// until it has read what arrived meanwhile.
///
/// All of it is in one value, the era, which never changes but for the moment until which the process was seen to run. Whoever notices
/// a suspension closes that moment first, so that nobody else can go on with the old era, and then puts the next era in its place. So what
/// all threads have seen and what was lost are never from two eras. As long as nothing happens, no thread waits for another one.
///
/// Invariant: as long as the machine's clock goes on, so does this time; it never goes back, and it loses at most what the process stood
/// still and a second for each suspension that was noticed.
#[derive(Debug)]
pub struct OwnClock {
    era: ArcSwap<Era>,
    /// How many keepers there are. Locked by whoever replaces the era.
    keepers: Mutex<usize>,
}

impl OwnClock {
    /// Creates the time of a process that runs at this moment.
    #[must_use]
    pub fn new(real: Instant) -> Self {
        Self {
            era: ArcSwap::from_pointee(Era::first(real)),
            keepers: Mutex::new(0),
        }
    }

    /// From now on somebody asks for the time at least every [`TICK`](super::TICK), as long as the process runs.
    pub fn begin(&self, real: Instant) {
        let mut keepers = self.keepers.lock();
        *keepers += 1;
        if *keepers == 1 {
            self.replace(|era| Some(era.end_kept(true, real)));
        }
    }

    /// One of these goes.
    pub fn leave(&self, real: Instant) {
        let mut keepers = self.keepers.lock();
        *keepers = keepers.saturating_sub(1);
        if *keepers == 0 {
            self.replace(|era| Some(era.end_kept(false, real)));
        }
    }

    /// Notes that the process runs at this moment of the machine's clock, and returns its own time.
    pub fn at(&self, real: Instant) -> Instant {
        let noted = self.era.load().at(real);
        noted.unwrap_or_else(|| self.suspended(real))
    }

    /// Returns until when nobody needs to note again that the process runs, and how far its own time is behind until then. `None` while it
    /// stands still.
    pub(super) fn fresh(&self, real: Instant) -> Option<(Instant, Duration)> {
        self.era.load().fresh(real)
    }

    /// Returns its own time at a moment of the machine's clock.
    pub fn of(&self, real: Instant) -> Instant {
        self.era.load().of(real)
    }

    /// Returns when its own time will be `own`, unless the process is suspended before that.
    pub fn due(&self, own: Instant) -> Instant {
        self.era.load().due(own)
    }

    /// Returns when its own time was `own`, or will be.
    pub fn real(&self, own: Instant) -> Instant {
        self.era.load().real(own)
    }

    /// Returns when a wait of this length that begins now ends, and how far its own time is behind then.
    pub(super) fn after(&self, real: Instant, length: Duration) -> (Option<Instant>, Duration) {
        let era = self.era.load();
        (real.max(era.until()).checked_add(length), era.lost())
    }

    /// The same for a wait until a moment of its own time.
    pub(super) fn until(&self, own: Instant) -> (Instant, Duration) {
        let era = self.era.load();
        (era.due(own), era.lost())
    }

    /// How far its own time is behind.
    pub fn lost(&self) -> Duration {
        self.era.load().lost()
    }

    /// How often the process was suspended, and for how long.
    pub fn stalls(&self) -> Stalls {
        self.era.load().stalls()
    }

    #[cold]
    fn suspended(&self, real: Instant) -> Instant {
        let _turn = self.keepers.lock();
        loop {
            // Another thread may have noticed it first, or have seen the process run later than this one.
            if let Some(own) = self.era.load().at(real) {
                return own;
            }
            self.replace(|era| era.end_late(real));
        }
    }

    fn replace(&self, next: impl FnOnce(&Era) -> Option<Era>) {
        if let Some(next) = next(&self.era.load()) {
            self.era.store(next.into());
        }
    }
}
