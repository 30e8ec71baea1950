//! The time of a world, and the relay's own time, which stands still while the relay's process does (K-27).
//!
//! Owns both times. Does not know what happens at which time.

use std::time::{Duration, Instant};

use distributary::clock::Awake;

use super::tally::{Broken, Rule};

/// The time of a world and of its relay.
pub(crate) struct Clock {
    base: Instant,
    now: Duration,
    awake: Awake,
    /// The relay's time.
    own: Instant,
    /// Until when the relay does not run.
    until: Option<Duration>,
    /// When the relay last ran.
    ticked: Duration,
    /// The relay's time when it last stopped, and when it went on.
    stood: Option<(Instant, Duration)>,
    broken: Option<Broken>,
}

/// How often a running relay looks at the clock.
const TICK: Duration = Duration::from_millis(250);
/// For this long its responses may lack what it has not read yet.
const FRESH: Duration = Duration::from_secs(1);

impl Clock {
    pub(crate) const fn new(base: Instant) -> Self {
        Self {
            base,
            now: Duration::ZERO,
            awake: Awake::new(base),
            own: base,
            until: None,
            ticked: Duration::ZERO,
            stood: None,
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
        self.awake.real(instant).saturating_duration_since(self.base)
    }

    /// The relay stops for this time.
    pub(crate) fn freeze(&mut self, pause: Duration) {
        self.until = Some(self.now + pause);
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
        self.now = time;
        match self.until {
            Some(until) if time < until => return,
            Some(until) => {
                self.until = None;
                self.stood = Some((self.own, until));
                self.ticked = until;
            }
            None => {
                while self.ticked + TICK < time {
                    self.ticked += TICK;
                    let _ = self.awake.at(self.base + self.ticked);
                }
            }
        }
        self.ticked = self.ticked.max(time);
        self.own = self.awake.at(self.base + time);
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
