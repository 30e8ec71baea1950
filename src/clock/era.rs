// SPDX-License-Identifier: Apache-2.0
//! A stretch of time in which the process was not suspended.
//!
//! Owns how the relay's time follows from the machine's meanwhile, and until when others have seen that the process ran. Does not read
//! a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::TICK;

/// From one suspension to the next. All but `seen` never changes.
#[derive(Debug)]
pub(super) struct Era {
    /// When it began, by the machine's clock.
    began: Instant,
    /// The relay's time stands still until then.
    until: Instant,
    /// How far the relay's time is behind the machine's from then on.
    lost: Duration,
    /// Whether somebody notes regularly that the process runs: otherwise silence means nothing.
    kept: bool,
    stalls: Stalls,
    /// The relay's time at the end of each of the last eras that a suspension ended, and how far it was behind until then; the oldest first.
    past: Vec<(Instant, Duration)>,
    /// Until when the process was seen to run, in nanoseconds since this began, which suffice for 584 years; [`OVER`] in the end.
    seen: AtomicU64,
}

/// How often the process was suspended, and for how long altogether.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// How often.
    pub count: u64,
    /// For how long it was not seen to run.
    pub stood: Duration,
}

/// Whoever finds this looks for the era that has begun meanwhile.
const OVER: u64 = u64::MAX;
/// A process that stood still for no longer than this was not suspended: that may happen to anybody.
const LATE: Duration = Duration::from_secs(1);
/// It may have run for this long after it was seen to run.
const UNSEEN: Duration = TICK;
/// How long a process that was suspended reads what arrived meanwhile, before its time goes on: a second, of which a part is already lost
/// if it was suspended some time after it was seen.
const GRACE: Duration = Duration::from_secs(1).saturating_sub(UNSEEN);
/// Nobody notes more often than this that the process runs. A suspension counts from so long after it was seen.
const STEP: Duration = Duration::from_millis(1);
/// What happened before so many suspensions is shown as later than it was.
const PAST: usize = 64;

impl Era {
    /// The first era, which nobody keeps.
    pub(super) const fn first(real: Instant) -> Self {
        Self {
            began: real,
            until: real,
            lost: Duration::ZERO,
            kept: false,
            stalls: Stalls {
                count: 0,
                stood: Duration::ZERO,
            },
            past: Vec::new(),
            seen: AtomicU64::new(0),
        }
    }

    /// Notes that the process runs at this moment of the machine's clock, and returns the relay's time. `None` if the process was
    /// suspended before, or if another era has begun.
    pub(super) fn at(&self, real: Instant) -> Option<Instant> {
        let at = self.nanos(real);
        let mut seen = self.seen.load(Ordering::Acquire);
        loop {
            if seen == OVER {
                return None;
            }
            if at <= seen.saturating_add(STEP.as_nanos() as u64) {
                break;
            }
            if self.is_late(at, seen) {
                return None;
            }
            // If the era ends now, this fails: what is returned was always noted before, or follows from what was.
            let noted = self
                .seen
                .compare_exchange_weak(seen, at, Ordering::AcqRel, Ordering::Acquire);
            match noted {
                Ok(_) => break,
                Err(meanwhile) => seen = meanwhile,
            }
        }
        Some(self.of(real))
    }

    /// Returns until when [`Self::at`] notes nothing, and how far the relay's time is behind; `None` while that stands still, or if another
    /// era has begun. Nobody who goes by that is told a later time than the one at which this era ends.
    pub(super) fn fresh(&self, real: Instant) -> Option<(Instant, Duration)> {
        let seen = self.seen.load(Ordering::Acquire);
        let stands = real < self.until || seen == OVER;
        (!stands).then(|| (self.began + Duration::from_nanos(seen) + STEP, self.lost))
    }

    /// Returns the relay's time at a moment of the machine's clock.
    pub(super) fn of(&self, real: Instant) -> Instant {
        let real = real.max(self.until);
        real.checked_sub(self.lost).unwrap_or(real)
    }

    /// Returns when the relay's time will be `own`, unless the process is suspended before that.
    pub(super) fn due(&self, own: Instant) -> Instant {
        own.checked_add(self.lost).unwrap_or(own)
    }

    /// Returns when the relay's time was `own`, or will be.
    pub(super) fn real(&self, own: Instant) -> Instant {
        let then = self.past.iter().find(|(ended, _)| own <= *ended);
        then.map_or_else(|| self.due(own), |(_, lost)| own.checked_add(*lost).unwrap_or(own))
    }

    pub(super) const fn lost(&self) -> Duration {
        self.lost
    }

    pub(super) const fn until(&self) -> Instant {
        self.until
    }

    pub(super) const fn stalls(&self) -> Stalls {
        self.stalls
    }

    /// Ends it because the process was suspended, and returns the era that follows. `None` if it was not.
    pub(super) fn end_late(&self, real: Instant) -> Option<Self> {
        let at = self.nanos(real);
        let late = |seen| (seen != OVER && self.is_late(at, seen)).then_some(OVER);
        let ended = self.seen.fetch_update(Ordering::AcqRel, Ordering::Acquire, late);
        let seen = self.began + Duration::from_nanos(ended.ok()?);
        // Nobody was told a later time than this one.
        let stands = self.of(seen + STEP);
        let until = real + GRACE;
        let recent = self.past.len().saturating_sub(PAST - 1);
        let past = self.past.iter().skip(recent).copied().chain([(stands, self.lost)]);
        Some(Self {
            began: real,
            until,
            lost: until.saturating_duration_since(stands),
            kept: true,
            stalls: Stalls {
                count: self.stalls.count + 1,
                stood: self.stalls.stood + real.saturating_duration_since(seen),
            },
            past: past.collect(),
            seen: AtomicU64::new(0),
        })
    }

    /// Ends it because from now on it is kept, or not kept any more, and returns the era that follows.
    pub(super) fn end_kept(&self, kept: bool, real: Instant) -> Self {
        let seen = self.began + Duration::from_nanos(self.seen.swap(OVER, Ordering::AcqRel));
        Self {
            began: real.max(seen),
            until: self.until,
            lost: self.lost,
            kept,
            stalls: self.stalls,
            past: self.past.clone(),
            seen: AtomicU64::new(0),
        }
    }

    fn is_late(&self, at: u64, seen: u64) -> bool {
        self.kept && Duration::from_nanos(at.saturating_sub(seen)) > LATE + UNSEEN
    }

    fn nanos(&self, real: Instant) -> u64 {
        let nanos = real.saturating_duration_since(self.began).as_nanos();
        u64::try_from(nanos).unwrap_or(OVER - 1)
    }
}
