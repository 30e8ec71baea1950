//! A relay whose process stands still for a while: messages that arrive meanwhile wait in the pipes.
//!
//! Owns the relay's own time, and that the relay looks at its timers first when it runs again (K-27). Does not know what the
//! timers are for.

use std::time::{Duration, Instant};

use distributary::clock::Awake;

use super::lists::Pass;
use super::tally::{Broken, Rule};
use super::upstream::Hop;
use super::world::{Event, World};

/// The time of the relay.
pub(crate) struct Own {
    awake: Awake,
    now: Instant,
    /// Until when it does not run.
    until: Option<Duration>,
    /// When it last ran.
    ticked: Duration,
    /// Its time when it last stopped, and when it went on.
    stood: Option<(Instant, Duration)>,
    pub(crate) broken: Option<Broken>,
}

/// How often a running relay looks at the clock.
const TICK: Duration = Duration::from_millis(250);
/// For this long its responses may lack what it has not read yet.
const FRESH: Duration = Duration::from_secs(1);

impl Own {
    pub(crate) const fn new(base: Instant) -> Self {
        Self {
            awake: Awake::new(base),
            now: base,
            until: None,
            ticked: Duration::ZERO,
            stood: None,
            broken: None,
        }
    }

    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Converts a time of the relay to the clock of the world.
    pub(crate) fn real(&self, own: Instant) -> Instant {
        self.awake.real(own)
    }

    /// The world's clock goes on.
    pub(crate) fn advance(&mut self, base: Instant, time: Duration) {
        match self.until {
            Some(until) if time < until => return,
            Some(until) => {
                self.until = None;
                self.stood = Some((self.now, until));
                self.ticked = until;
            }
            None => {
                while self.ticked + TICK < time {
                    self.ticked += TICK;
                    let _ = self.awake.at(base + self.ticked);
                }
            }
        }
        self.ticked = self.ticked.max(time);
        self.now = self.awake.at(base + time);
    }

    /// A timer that was set for then changes something, at this time of the world.
    pub(crate) fn late(&mut self, due: Option<Instant>, time: Duration, what: &str) {
        let fresh = self.stood.filter(|(_, thawed)| time < *thawed + FRESH);
        if let (Some((stood, _)), Some(due)) = (fresh, due)
            && due > stood
        {
            let what = format!("{what}, before the relay has read what came while it stood still");
            self.broken.get_or_insert(Broken::new(Rule::K27, what));
        }
    }
}

impl World {
    /// The relay stops for a while.
    pub(crate) fn freeze(&mut self) {
        let pause = self.rng.millis(1200, 40_000);
        self.log(|| format!("the relay stands still for {pause:?}"));
        self.tally.hit(Rule::K27);
        self.own.until = Some(self.now + pause);
        self.after(pause, Event::Sweep);
    }

    pub(crate) const fn is_frozen(&self) -> bool {
        self.own.until.is_some()
    }

    /// Delays what the relay would do now until it goes on: first its timers, then what has arrived meanwhile.
    pub(crate) fn defer(&mut self, event: Event) -> Option<Event> {
        let Some(until) = self.own.until.filter(|until| self.now < *until) else {
            return Some(event);
        };
        let pause = match &event {
            Event::Upstream(_)
            | Event::Look(_)
            | Event::Poll(Pass::Due(_))
            | Event::Turn(_)
            | Event::Timer(_)
            | Event::Sweep
            | Event::Silence(..)
            | Event::Guard
            | Event::Decree => Duration::ZERO,
            Event::Hop(Hop::Request(_)) => return Some(event),
            Event::Forget(_)
            | Event::Recall(..)
            | Event::Hop(_)
            | Event::Poll(Pass::Answered(..))
            | Event::ToRelay(_)
            | Event::EndAtRelay(_)
            | Event::Credit(_) => self.rng.millis(1, 50),
            Event::Plan(_)
            | Event::Step(..)
            | Event::Utter(..)
            | Event::ToClient(_)
            | Event::EndAtClient(_)
            | Event::Heal(_)
            | Event::Act(..)
            | Event::Fault
            | Event::Reach(_)
            | Event::Sway(_)
            | Event::Adopt
            | Event::Poll(Pass::Asked(..)) => return Some(event),
        };
        self.at(until + pause, event);
        None
    }
}
