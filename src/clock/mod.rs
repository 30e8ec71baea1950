//! The relay's own time, and the waits that follow it.
//!
//! Owns that no time passes while the process is suspended, and none before it has read what arrived meanwhile (K-27). Code that
//! computes a time with [`now`] must wait for it here, not with the runtime's timers, which follow the machine's clock. Does not
//! know what the time is for.

mod awake;
mod sleep;
mod wall;

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use awake::Awake;
use awake::LATE;
pub use sleep::{OwnTimer, Sleep, sleep, sleep_until, timeout};
pub use wall::{WallClock, date_and_time};

/// The time, while somebody keeps it, and the number of keepers.
static KEPT: Mutex<Option<(Awake, usize)>> = Mutex::new(None);
/// The values that all threads read without that lock, in nanoseconds from [`BASE`]: when the process was last seen to run (0:
/// nobody keeps the time), until when its time stands still, and how far that is behind. `SEEN` is written last and read first.
static SEEN: AtomicU64 = AtomicU64::new(0);
static UNTIL: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
static BASE: LazyLock<Instant> = LazyLock::new(|| {
    let real = real();
    // A second earlier, so that `SEEN` is never 0 by chance.
    real.checked_sub(Duration::from_secs(1)).unwrap_or(real)
});

thread_local! {
    /// Until then this thread need not look again: it has just seen that the relay's time is the clock's, and a process that was
    /// suspended since then wakes up later.
    static FRESH: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// How often the keeper notes that the process runs.
const TICK: Duration = Duration::from_millis(250);
/// Other calls note that it runs no more often than this.
const STEP: Duration = Duration::from_millis(1);
/// The log gets at most one line about it in this time.
const LINE: Duration = Duration::from_secs(60);

/// The relay's time now.
#[must_use]
pub fn now() -> Instant {
    let real = real();
    if FRESH.get().is_some_and(|until| real < until) {
        return real;
    }
    let seen = SEEN.load(Ordering::Acquire);
    if seen == 0 {
        return real;
    }
    let at = nanos(real);
    if at.saturating_sub(seen) > span(LATE) || at < UNTIL.load(Ordering::Relaxed) {
        return look(real);
    }
    if at > seen + span(STEP) {
        SEEN.fetch_max(at, Ordering::Release);
    }
    let own = of(real);
    FRESH.set((own == real).then(|| real + STEP));
    own
}

/// Returns the relay's time at a moment of the machine's clock.
#[must_use]
pub fn of(real: Instant) -> Instant {
    match lost() {
        // Nearly always the case, and needed for every change, so it must be cheap.
        Duration::ZERO => real,
        lost => real.checked_sub(lost).unwrap_or(real),
    }
}

/// Returns when the relay's time will be `at`, by the clock of the runtime's timers.
#[must_use]
pub fn due(at: Instant) -> tokio::time::Instant {
    match lost() {
        Duration::ZERO => at,
        lost => at + lost,
    }
    .into()
}

/// Returns the earliest of these times, of which each may be missing.
pub fn earliest(times: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
    times.into_iter().fold(None, |first, time| match (first, time) {
        (Some(first), Some(time)) => Some(first.min(time)),
        (first, time) => first.or(time),
    })
}

/// Keeps the time for as long as it is polled.
pub async fn keep() {
    let _keeper = Keeper::new();
    let mut written: Option<Instant> = None;
    loop {
        let before = lost();
        tokio::time::sleep(TICK).await;
        let now = now();
        let stood = lost().saturating_sub(before);
        if !stood.is_zero() && written.is_none_or(|written| now >= written + LINE) {
            written = Some(now);
            tracing::warn!(
                ?stood,
                "the process did not run; what arrived meanwhile is read before any timer counts"
            );
        }
    }
}

/// Somebody who keeps the time.
struct Keeper;

impl Keeper {
    fn new() -> Self {
        let mut kept = KEPT.lock();
        let (awake, keepers) = kept.get_or_insert_with(|| (Awake::new(real()), 0));
        *keepers += 1;
        show(awake, real());
        Self
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let mut kept = KEPT.lock();
        if let Some((_, keepers)) = &mut *kept {
            *keepers -= 1;
            if *keepers == 0 {
                *kept = None;
                SEEN.store(0, Ordering::Release);
                LOST.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Looks closely: the process may have been suspended.
fn look(real: Instant) -> Instant {
    let mut kept = KEPT.lock();
    let Some((awake, _)) = &mut *kept else { return real };
    // What other threads have seen since.
    let seen = *BASE + Duration::from_nanos(SEEN.load(Ordering::Acquire));
    let _ = awake.at(seen);
    let own = awake.at(real);
    show(awake, real.max(seen));
    own
}

fn show(awake: &Awake, seen: Instant) {
    UNTIL.store(nanos(awake.until()), Ordering::Relaxed);
    LOST.store(span(awake.lost()), Ordering::Relaxed);
    SEEN.store(nanos(seen), Ordering::Release);
}

fn lost() -> Duration {
    match LOST.load(Ordering::Relaxed) {
        0 => Duration::ZERO,
        lost => Duration::from_nanos(lost),
    }
}

fn nanos(at: Instant) -> u64 {
    span(at.saturating_duration_since(*BASE))
}

/// In nanoseconds, which suffice for 584 years.
const fn span(time: Duration) -> u64 {
    time.as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(time.subsec_nanos() as u64)
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

    #[test]
    fn times_that_are_missing_are_not_the_earliest() {
        let first = real();
        let second = first + Duration::from_secs(1);
        assert_eq!(earliest([None, Some(second), None, Some(first)]), Some(first));
        assert_eq!(earliest([Some(first), Some(second)]), Some(first));
        assert_eq!(earliest([None; 2]), None);
    }

    /// The first call of `now` sees that the process did not run for too long; without a keeper, no call does.
    #[test]
    fn whoever_looks_first_sees_it() {
        let start = now();
        assert!(real().saturating_duration_since(start) < LATE);
        let keeper = Keeper::new();
        let before = now();
        // As if the process had been suspended: it was last seen long ago.
        {
            let mut kept = KEPT.lock();
            let (awake, _) = kept.as_mut().unwrap();
            *awake = Awake::new(real().checked_sub(Duration::from_secs(30)).unwrap());
            SEEN.store(
                nanos(real()).saturating_sub(span(Duration::from_secs(30))).max(1),
                Ordering::Release,
            );
            FRESH.set(None);
        }
        let after = now();
        assert!(after < before, "it is as late as when it was last seen");
        assert!(now() == after, "and stays so for a while");
        assert!(due(after) > real().into());
        drop(keeper);
        assert!(now() >= before);
    }
}
