// SPDX-License-Identifier: Apache-2.0
//! The course of a world: its time, its chance, its trace, and what was counted. All parts of a world share it.
//!
//! Owns what comes next. Knows nothing of what is in the world.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::besides::Besides;
use super::clock::Clock;
use super::event::{Agenda, Event};
use super::rng::Rng;
use super::tally::Tally;

/// How a world goes on.
pub(crate) struct Course {
    pub(crate) clock: Clock,
    agenda: Agenda,
    pub(crate) rng: Rng,
    pub(crate) tally: Tally,
    pub(crate) besides: Besides,
    /// Whether all participants behave by now.
    pub(crate) calm: bool,
    /// Slowest delivery of the links, in milliseconds.
    slowness: usize,
    last_stream: u64,
    lines: VecDeque<String>,
    /// How many lines of the trace are kept.
    kept: usize,
}

/// When a task of the relay runs, if nothing happens before.
#[derive(Default)]
pub(crate) struct Alarm(Option<Duration>);

impl Alarm {
    /// Sets it, unless it is set for an earlier time.
    pub(crate) fn set(&mut self, due: Option<Instant>, event: Event, course: &mut Course) {
        let Some(due) = due else { return };
        let (due, now) = (course.clock.time(due).max(course.clock.now()), course.clock.now());
        if self.0.is_none_or(|set| due < set || set <= now) {
            self.0 = Some(due);
            course.at(due, event);
        }
    }
}

impl Course {
    pub(crate) fn new(seed: u64, base: Instant, kept: usize) -> Self {
        Self {
            clock: Clock::new(base),
            agenda: Agenda::default(),
            rng: Rng::new(seed),
            tally: Tally::default(),
            besides: Besides::of(seed),
            calm: false,
            slowness: 0,
            last_stream: 0,
            lines: VecDeque::new(),
            kept,
        }
    }

    /// Decides how slow the links are.
    pub(crate) fn set_slowness(&mut self) {
        self.slowness = *self.rng.pick(&[2, 30, 400, 3000]).expect("there are some");
    }

    pub(crate) fn at(&mut self, time: Duration, event: Event) {
        self.agenda.add(time.max(self.clock.now()), event);
    }

    pub(crate) fn after(&mut self, pause: Duration, event: Event) {
        self.at(self.clock.now() + pause, event);
    }

    pub(crate) fn at_once(&mut self, event: Event) {
        self.at(self.clock.now(), event);
    }

    /// Something happens after a random time in milliseconds.
    pub(crate) fn soon(&mut self, low: usize, high: usize, event: Event) {
        let pause = self.rng.millis(low, high);
        self.after(pause, event);
    }

    /// Something arrives over a link.
    pub(crate) fn deliver(&mut self, event: Event) {
        let delay = self.delay();
        self.after(delay, event);
    }

    /// How long a message takes.
    pub(crate) fn delay(&mut self) -> Duration {
        let most = if self.rng.chance(10) {
            self.slowness * 4
        } else {
            self.slowness
        };
        self.rng.millis(0, most)
    }

    /// The id of a new stream.
    pub(crate) const fn next_stream(&mut self) -> u64 {
        self.last_stream += 1;
        self.last_stream
    }

    pub(crate) const fn last_stream(&self) -> u64 {
        self.last_stream
    }

    /// Adds a line to the trace, if one is kept.
    pub(crate) fn log(&mut self, line: impl FnOnce() -> String) {
        if self.kept == 0 {
            return;
        }
        if self.lines.len() == self.kept {
            self.lines.pop_front();
        }
        self.lines
            .push_back(format!("{:>9.3}  {}", self.clock.now().as_secs_f64(), line()));
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &String> {
        self.lines.iter()
    }

    /// Goes on to the next event; `None` if there is none.
    pub(crate) fn step(&mut self) -> Option<Event> {
        let (time, event) = self.agenda.take()?;
        self.clock.advance(time);
        self.tally.steps += 1;
        Some(event)
    }

    /// When the next event happens.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.agenda.next()
    }

    /// Delays what the relay would do now until it goes on; returns what it has no part in.
    pub(crate) fn defer(&mut self, event: Event) -> Option<Event> {
        let lag = self.clock.thaws().map(|thaws| Some(thaws + event.lag(&mut self.rng)?));
        match lag.flatten() {
            None => Some(event),
            Some(time) => {
                self.at(time, event);
                None
            }
        }
    }
}
