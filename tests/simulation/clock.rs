// SPDX-License-Identifier: Apache-2.0
//! The time of a world, and the relay's own time, which stands still while the relay's process does (K-27).
//!
//! Owns both times, and judges the relay's: nothing that is due by it is later by the world's time than its length plus what the relay stood
//! still and a second. Does not know what happens at which time.

use std::time::{Duration, Instant};

use distributary::clock::{OwnClock, TICK};

use super::tally::{Broken, Rule};

/// The time of a world and of its relay.
pub(crate) struct Clock {
    base: Instant,
    now: Duration,
    clock: OwnClock,
    /// The relay's time.
    own: Instant,
    /// Until when the relay does not run.
    until: Option<Duration>,
    /// When the relay last ran.
    ticked: Duration,
    /// The relay's time when it last stopped, and when it went on.
    stood: Option<(Instant, Duration)>,
    /// From when to when the relay's time may stand still.
    lost: (Duration, Duration),
    broken: Option<Broken>,
}

/// How long it may read what has arrived meanwhile, at the most.
const READING: Duration = Duration::from_secs(1);
/// For at least this long its responses may lack what it has not read yet.
const FRESH: Duration = READING.saturating_sub(TICK);

impl Clock {
    pub(crate) fn new(base: Instant) -> Self {
        let clock = OwnClock::new(base);
        clock.begin(base);
        Self {
            base,
            now: Duration::ZERO,
            clock,
            own: base,
            until: None,
            ticked: Duration::ZERO,
            stood: None,
            lost: (Duration::ZERO, Duration::ZERO),
            broken: None,
        }
    }

    pub(crate) const fn now(&self) -> Duration {
        self.now
    }

    /// The relay's time.
    pub(crate) const fn instant(&self) -> Instant {
        self.own
    }

    /// Converts an instant of the relay to the world's time, rounded up as timers do.
    pub(crate) fn time(&self, instant: Instant) -> Duration {
        self.clock.due(instant).saturating_duration_since(self.base)
    }

    /// The relay stops for this time.
    pub(crate) fn freeze(&mut self, pause: Duration) {
        self.until = Some(self.now + pause);
        self.lost = (self.now, self.now + pause + READING);
    }

    pub(crate) const fn is_frozen(&self) -> bool {
        self.until.is_some()
    }

    /// When the relay goes on, if it stands still now.
    pub(crate) fn thaws(&self) -> Option<Duration> {
        self.until.filter(|until| self.now < *until)
    }

    /// The world's time goes on to this time, and the relay's if it runs.
    pub(crate) fn advance(&mut self, time: Duration) {
        let before = self.now;
        // Events that time was skipped over happen late.
        let time = time.max(before);
        self.now = time;
        match self.until {
            Some(until) if time < until => return,
            Some(until) => {
                self.until = None;
                self.stood = Some((self.own, until));
                self.ticked = until;
                let _ = self.clock.at(self.base + until);
            }
            None => {}
        }
        while self.ticked + TICK < time {
            self.ticked += TICK;
            let _ = self.clock.at(self.base + self.ticked);
        }
        self.ticked = self.ticked.max(time);
        let own = self.clock.at(self.base + time);
        self.check(before, own);
        self.own = own;
    }

    /// The relay's time goes on as the world's does, but for what it may lose. Then each of its waits ends as early as it must.
    fn check(&mut self, before: Duration, own: Instant) {
        let (from, to) = self.lost;
        let lost = self.now.min(to).saturating_sub(before.max(from));
        let passed = own.checked_duration_since(self.own);
        if passed.is_none_or(|passed| passed + lost < self.now - before) {
            let went = self.now - before;
            let what = format!("of {went:?}, {passed:?} passed for the relay, which lost {lost:?}");
            self.broken.get_or_insert(Broken::new(Rule::K27, what));
        }
    }

    /// Time passes in which nothing happens.
    pub(crate) fn skip(&mut self, time: Duration) {
        self.advance(self.now + time);
    }

    /// A timer of the relay that was set for then changes something now.
    pub(crate) fn late(&mut self, due: Option<Instant>, what: &str) {
        let fresh = self.stood.filter(|(_, thawed)| self.now < *thawed + FRESH);
        if let (Some((stood, _)), Some(due)) = (fresh, due)
            && due > stood
        {
            let what = format!("{what}, before the relay has read what came while it stood still");
            self.broken.get_or_insert(Broken::new(Rule::K27, what));
        }
    }

    /// What the relay did too late, if anything.
    pub(crate) fn verdict(&mut self) -> Result<(), Broken> {
        self.broken.take().map_or(Ok(()), Err)
    }
}
