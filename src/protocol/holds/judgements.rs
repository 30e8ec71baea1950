// SPDX-License-Identifier: Apache-2.0
//! The judgements: until when the losses of a first whole state are held.
//!
//! Owns their numbers and clocks, and what a person said of them. Does not know what they hold, nor what is much.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ground::Order;
use xds::{HoldClock, HoldTimes, TypeUrl};

/// After the control plane was away for longer than `AWAY`, a clock has this much left at least, so many times.
const LEAST: Duration = Duration::from_secs(60);
const AWAY: Duration = Duration::from_secs(10);
const ABSENCES: u8 = 5;

/// The type and the number of a judgement.
pub(super) type Key = (TypeUrl, u32);

/// All judgements that hold anything.
#[derive(Debug, Default)]
pub(super) struct Judgements {
    all: BTreeMap<Key, Judgement>,
    /// The newest number of each type. No number is given twice.
    newest: BTreeMap<TypeUrl, u32>,
}

/// What was judged once. Its clock counts only time in which the control plane was there and had said what it has: it never ends a hold
/// before that, and never begins anew.
#[derive(Debug)]
struct Judgement {
    clock: HoldClock,
    /// Since when it stands, if it does.
    stands: Option<Instant>,
    /// Until when a person holds it, and why.
    order: Option<Order>,
}

impl Judgements {
    /// Returns this judgement, if it holds anything still, else a new one that does so for this time.
    pub(super) fn make(&mut self, type_url: &TypeUrl, number: Option<u32>, time: Duration, now: Instant) -> u32 {
        let known = number.filter(|number| self.all.contains_key(&(type_url.clone(), *number)));
        known.unwrap_or_else(|| {
            let newest = self.newest.entry(type_url.clone()).or_default();
            *newest += 1;
            let number = *newest;
            self.enter((type_url.clone(), number), HoldClock::standing(time), now);
            number
        })
    }

    /// An earlier run has made this one, and this clock was left, at most for this time.
    pub(super) fn remember(&mut self, key: Key, mut clock: HoldClock, time: Duration, now: Instant) {
        let newest = self.newest.entry(key.0.clone()).or_default();
        *newest = key.1.max(*newest);
        (clock.left, clock.runs) = (clock.left(now).min(time), None);
        self.enter(key, clock, now);
    }

    fn enter(&mut self, key: Key, clock: HoldClock, now: Instant) {
        let judgement = Judgement {
            clock,
            stands: Some(now),
            order: None,
        };
        self.all.insert(key, judgement);
    }

    /// What this one holds was held elsewhere by that clock, which goes on here.
    pub(super) fn resume(&mut self, key: &Key, there: HoldClock, times: &HoldTimes, now: Instant) {
        let least = LEAST.min(times.of(key.0.kind()));
        if let Some(judgement) = self.all.get_mut(key) {
            judgement.resume(there, least, now);
        }
    }

    /// Returns all of a type.
    pub(super) fn of(&self, type_url: &TypeUrl) -> Vec<Key> {
        self.all.keys().filter(|(of, _)| of == type_url).cloned().collect()
    }

    /// A judgement's clock.
    pub(super) fn clock(&self, key: &Key) -> Option<HoldClock> {
        self.all.get(key).map(|judgement| judgement.clock)
    }

    /// The clocks of each type run from then on, or stand. Returns whether any has changed.
    pub(super) fn run(&mut self, from: impl Fn(&TypeUrl) -> Option<Instant>, times: &HoldTimes, now: Instant) -> bool {
        let mut any = false;
        for ((type_url, _), judgement) in &mut self.all {
            let least = LEAST.min(times.of(type_url.kind()));
            any |= judgement.run(from(type_url), least, now);
        }
        any
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A person holds these judgements until then.
    pub(super) fn extend(&mut self, type_url: &TypeUrl, number: Option<u32>, order: &Order) {
        let of_type = self.all.iter_mut().filter(|((of, _), _)| of == type_url);
        for (_, judgement) in of_type.filter(|((_, own), _)| number.is_none_or(|number| number == *own)) {
            judgement.order = judgement.order.take().max(Some(order.clone()));
        }
    }

    /// What a person said of a judgement.
    pub(super) fn order(&self, key: &Key) -> Option<&Order> {
        self.all.get(key)?.order.as_ref()
    }

    /// When a judgement ends.
    pub(super) fn until(&self, key: &Key) -> Option<Instant> {
        self.all.get(key)?.until()
    }

    /// Returns one whose time is over.
    pub(super) fn over(&self, now: Instant) -> Option<Key> {
        let mut over = self.all.iter().filter(|(_, judgement)| judgement.is_over(now));
        over.next().map(|(key, _)| key.clone())
    }

    /// The time of a judgement is over, but for names that a person holds until `longer`.
    pub(super) fn end(&mut self, key: &Key, longer: Option<Instant>) {
        match (self.all.get_mut(key), longer) {
            (Some(judgement), Some(longer)) => judgement.last_until(longer),
            (_, None) => drop(self.all.remove(key)),
            (None, Some(_)) => {}
        }
    }

    /// Ends those that hold nothing any more.
    pub(super) fn retain(&mut self, holds: impl Fn(&Key) -> bool) {
        self.all.retain(|key, _| holds(key));
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.all.values().filter_map(Judgement::until).min()
    }
}

impl Judgement {
    /// When it ends; `None`: its clock stands.
    fn until(&self) -> Option<Instant> {
        let clock = self.clock.runs? + self.clock.left;
        let ordered = self.order.as_ref().map(|(until, _)| *until);
        Some(ordered.map_or(clock, |ordered| clock.max(ordered)))
    }

    fn is_over(&self, now: Instant) -> bool {
        self.until().is_some_and(|until| until <= now)
    }

    fn last_until(&mut self, until: Instant) {
        let since = self.clock.runs;
        self.clock.left = since.map_or(self.clock.left, |since| until.saturating_duration_since(since));
    }

    /// Its clock runs from then on, or stands. Returns whether that is new.
    fn run(&mut self, from: Option<Instant>, least: Duration, now: Instant) -> bool {
        let from = from.map(|from| from.max(now));
        match self.clock.runs.filter(|since| *since <= now) {
            Some(_) if from == Some(now) => return false,
            Some(_) => {
                self.clock.left = self.clock.left(now);
                self.stands = Some(now);
            }
            None if from == self.clock.runs => return false,
            None => {}
        }
        if from == Some(now)
            && let Some(since) = self.stands.take()
            && now.saturating_duration_since(since) > AWAY
        {
            self.clock = prolonged(self.clock, least);
        }
        self.clock.runs = from;
        true
    }

    /// Of two clocks, the one with less left goes on. Absences are those of both servers.
    fn resume(&mut self, there: HoldClock, least: Duration, now: Instant) {
        let runs = self.clock.runs.map(|since| since.max(now));
        let left = there.left(now);
        let absences = self.clock.absences.max(there.absences);
        let there = prolonged(HoldClock { left, runs, absences }, least);
        if there.left < self.clock.left(now) {
            self.clock = there;
        }
        self.clock.absences = self.clock.absences.max(absences);
    }
}

/// Returns a clock with this much left at least, if it was not given more time too often.
fn prolonged(mut clock: HoldClock, least: Duration) -> HoldClock {
    if clock.left < least && clock.absences < ABSENCES {
        (clock.left, clock.absences) = (least, clock.absences + 1);
    }
    clock
}
