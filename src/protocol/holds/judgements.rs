//! The judgements: until when the losses of a first whole state are held.
//!
//! Owns their numbers and clocks, and what a person said of them. Does not know what they hold, nor what is much.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ground::Order;
use xds::{HoldTimes, TypeUrl};

/// How long a judgement holds removals in all, whatever the control plane does.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The type and the number of a judgement.
pub(super) type Key = (TypeUrl, u32);

/// All judgements that hold anything.
#[derive(Debug, Default)]
pub(super) struct Judgements {
    all: BTreeMap<Key, Judgement>,
    /// The newest number of each type. No number is given twice.
    newest: BTreeMap<TypeUrl, u32>,
    times: HoldTimes,
    /// Whether the control plane is away.
    away: bool,
}

/// What was judged once.
#[derive(Debug)]
struct Judgement {
    made: Instant,
    clock: Instant,
    /// Until when a person holds it, and why.
    order: Option<Order>,
}

impl Judgements {
    /// Sets how long losses are held from now on; what is held keeps its clock.
    pub(super) const fn set(&mut self, times: HoldTimes) {
        self.times = times;
    }

    /// Returns this judgement, if it holds anything still, else a new one.
    pub(super) fn make(&mut self, type_url: &TypeUrl, number: Option<u32>, now: Instant) -> u32 {
        let known = number.filter(|number| self.all.contains_key(&(type_url.clone(), *number)));
        known.unwrap_or_else(|| {
            let newest = self.newest.entry(type_url.clone()).or_default();
            *newest += 1;
            let number = *newest;
            let time = if self.away {
                LONGEST
            } else {
                self.times.of(type_url.kind())
            };
            self.enter((type_url.clone(), number), now, now + time);
            number
        })
    }

    /// An earlier run has made this one at `made`, and it held until then.
    pub(super) fn remember(&mut self, key: Key, (made, until): (Instant, Instant), now: Instant) {
        let newest = self.newest.entry(key.0.clone()).or_default();
        *newest = key.1.max(*newest);
        let clock = until.min(now + self.times.of(key.0.kind()));
        self.enter(key, made.min(now), clock);
    }

    fn enter(&mut self, key: Key, made: Instant, clock: Instant) {
        let judgement = Judgement {
            made,
            clock,
            order: None,
        };
        self.all.insert(key, judgement);
    }

    /// The clocks stand while the control plane is away, and begin anew when it is back. Returns whether any has changed.
    pub(super) fn handle_server(&mut self, there: bool, now: Instant) -> bool {
        if std::mem::replace(&mut self.away, !there) != there {
            return false;
        }
        for ((type_url, _), judgement) in &mut self.all {
            let longest = judgement.made + LONGEST;
            let anew = now + self.times.of(type_url.kind());
            judgement.clock = if there { anew.min(longest) } else { longest };
        }
        !self.all.is_empty()
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
        self.all.get(key).map(Judgement::until)
    }

    /// Returns one whose time is over.
    pub(super) fn over(&self, now: Instant) -> Option<Key> {
        let mut over = self.all.iter().filter(|(_, judgement)| judgement.until() <= now);
        over.next().map(|(key, _)| key.clone())
    }

    /// The time of a judgement is over, but for names that a person holds until `longer`.
    pub(super) fn end(&mut self, key: &Key, longer: Option<Instant>) {
        match (self.all.get_mut(key), longer) {
            (Some(judgement), Some(longer)) => judgement.clock = longer,
            (_, None) => drop(self.all.remove(key)),
            (None, Some(_)) => {}
        }
    }

    /// Ends those that hold nothing any more.
    pub(super) fn retain(&mut self, holds: impl Fn(&Key) -> bool) {
        self.all.retain(|key, _| holds(key));
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.all.values().map(Judgement::until).min()
    }
}

impl Judgement {
    fn until(&self) -> Instant {
        let ordered = self.order.as_ref().map(|(until, _)| *until);
        ordered.map_or(self.clock, |ordered| self.clock.max(ordered))
    }
}
