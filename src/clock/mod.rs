// SPDX-License-Identifier: Apache-2.0
//! The relay's own time, and the waits that follow it.
//!
//! Owns that no time passes while the process is suspended, and none before it has read what arrived meanwhile (K-27). Code that
//! computes a time with [`now`] must wait for it here, not with the runtime's timers, which follow the machine's clock. Does not
//! know what the time is for.

mod era;
mod own_clock;
mod sleep;
mod wall;

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

pub use era::Stalls;
pub use own_clock::OwnClock;
pub use sleep::{OwnTimer, Sleep, sleep, sleep_if, sleep_until, timeout};
pub use wall::{WallClock, date_and_time};

/// The time of this process.
static OWN: LazyLock<OwnClock> = LazyLock::new(|| OwnClock::new(real()));

/// How often a keeper notes that the process runs.
pub const TICK: Duration = Duration::from_millis(100);
/// The log gets at most one line about it in this time.
const LINE: Duration = Duration::from_secs(60);

thread_local! {
    /// Until when this thread need not ask again, and how far the relay's time is behind: it has just seen the process run, and a process
    /// that is suspended wakes up later than that. Each change asks for the time often.
    static FRESH: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// The relay's time now.
#[must_use]
pub fn now() -> Instant {
    let real = real();
    if let Some((until, lost)) = FRESH.get()
        && real <= until
    {
        // Most processes never stood.
        return if lost.is_zero() {
            real
        } else {
            real.checked_sub(lost).unwrap_or(real)
        };
    }
    let own = OWN.at(real);
    FRESH.set(OWN.fresh(real));
    own
}

/// Returns the relay's time at a moment of the machine's clock.
#[must_use]
pub fn of(real: Instant) -> Instant {
    OWN.of(real)
}

/// Returns when the relay's time will be `at`, by the clock of the runtime's timers.
#[must_use]
pub fn due(at: Instant) -> tokio::time::Instant {
    OWN.due(at).into()
}

/// How often the process was suspended, and for how long altogether.
#[must_use]
pub fn stalls() -> Stalls {
    OWN.stalls()
}

/// Returns the earliest of these times, of which each may be missing.
pub fn earliest(times: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
    times.into_iter().fold(None, |first, time| match (first, time) {
        (Some(first), Some(time)) => Some(first.min(time)),
        (first, time) => first.or(time),
    })
}

/// Keeps the time for as long as it is polled, and tells each suspension.
pub async fn keep(mut tell: impl FnMut(Stalls)) {
    let _keeper = Keeper::new();
    let mut written: Option<Instant> = None;
    let mut said = stalls();
    loop {
        tokio::time::sleep(TICK).await;
        let (now, stalls) = (now(), stalls());
        tell(stalls);
        if stalls != said && written.is_none_or(|written| now >= written + LINE) {
            let times = stalls.count - said.count;
            let stood = stalls.stood.saturating_sub(said.stood);
            (written, said) = (Some(now), stalls);
            tracing::warn!(
                times,
                ?stood,
                "the process did not run: its container is throttled, its machine was paused or has too much to do; what arrived meanwhile is \
                 read before any timer counts"
            );
        }
    }
}

/// Somebody who keeps the time.
struct Keeper;

impl Keeper {
    fn new() -> Self {
        OWN.begin(real());
        Self
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        OWN.leave(real());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place to read the clock for all that waits"
)]
fn real() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    mod worlds;

    #[test]
    fn times_that_are_missing_are_not_the_earliest() {
        let first = real();
        let second = first + Duration::from_secs(1);
        assert_eq!(earliest([None, Some(second), None, Some(first)]), Some(first));
        assert_eq!(earliest([Some(first), Some(second)]), Some(first));
        assert_eq!(earliest([None; 2]), None);
    }
}
