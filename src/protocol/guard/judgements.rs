//! The judgements: which losses of a first whole state are held, and until when.
//!
//! Owns their numbers, names and clocks, and what a person said of them. Does not decide what is much.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::removal::Item;
use xds::{HoldTimes, TypeUrl};

/// How long a judgement holds removals in all, whatever the control plane does.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// All judgements that hold anything.
///
/// Invariant: none is without names.
#[derive(Debug, Default)]
pub(super) struct Judgements {
    all: BTreeMap<(TypeUrl, u32), Judgement>,
    /// The newest number of each type. No number is given twice.
    newest: BTreeMap<TypeUrl, u32>,
    times: Option<HoldTimes>,
    /// Whether the control plane is there; `None` before that was said.
    there: Option<bool>,
}

/// What was judged once. Later messages add names of the same first state, and take none away.
#[derive(Debug)]
struct Judgement {
    names: BTreeSet<Item>,
    made: Instant,
    clock: Instant,
    /// Until when a person holds it.
    ordered: Option<Instant>,
}

impl Judgements {
    /// Sets how long losses are held from now on; what is held keeps its clock.
    pub(super) const fn set(&mut self, times: HoldTimes) {
        self.times = Some(times);
    }

    fn time(&self, type_url: &TypeUrl) -> Duration {
        self.times.map_or(Duration::ZERO, |times| times.of(type_url.kind()))
    }

    /// Holds these names. They join a judgement that was made of the same first state, if it still holds anything.
    pub(super) fn hold(&mut self, type_url: &TypeUrl, number: Option<u32>, names: Vec<Item>, now: Instant) -> u32 {
        let known = number.and_then(|number| {
            self.all
                .get_mut(&(type_url.clone(), number))
                .map(|known| (number, known))
        });
        if let Some((number, known)) = known {
            known.names.extend(names);
            return number;
        }
        let newest = self.newest.entry(type_url.clone()).or_default();
        *newest += 1;
        let number = *newest;
        let clock = match self.there {
            Some(false) => now + LONGEST,
            Some(true) | None => now + self.time(type_url),
        };
        let judgement = Judgement {
            names: names.into_iter().collect(),
            made: now,
            clock,
            ordered: None,
        };
        self.all.insert((type_url.clone(), number), judgement);
        number
    }

    /// An earlier run has held these names since `made` and until then.
    pub(super) fn remember(
        &mut self,
        type_url: &TypeUrl,
        number: u32,
        names: BTreeSet<Item>,
        (made, until): (Instant, Instant),
        now: Instant,
    ) {
        let newest = self.newest.entry(type_url.clone()).or_default();
        *newest = number.max(*newest);
        let judgement = Judgement {
            names,
            made: made.min(now),
            clock: until.min(now + self.time(type_url)),
            ordered: None,
        };
        self.all.insert((type_url.clone(), number), judgement);
    }

    /// A judgement does not hold this any more.
    pub(super) fn drop_name(&mut self, number: u32, item: &Item) {
        let key = (item.0.0.clone(), number);
        if let Some(judgement) = self.all.get_mut(&key) {
            judgement.names.remove(item);
            if judgement.names.is_empty() {
                self.all.remove(&key);
            }
        }
    }

    /// The clocks stand while the control plane is away, and begin anew when it is back. Returns the names whose time has changed.
    pub(super) fn handle_server(&mut self, there: bool, now: Instant) -> Vec<Item> {
        let before = self.there.replace(there);
        if before == Some(there) || before.is_none() && there {
            return Vec::new();
        }
        let times = self.times;
        let mut changed = Vec::new();
        for ((type_url, _), judgement) in &mut self.all {
            let time = times.map_or(Duration::ZERO, |times| times.of(type_url.kind()));
            let longest = judgement.made + LONGEST;
            judgement.clock = if there { (now + time).min(longest) } else { longest };
            changed.extend(judgement.names.iter().cloned());
        }
        changed
    }

    /// A person holds these judgements until then. Returns their names.
    pub(super) fn extend(&mut self, type_url: &TypeUrl, number: Option<u32>, until: Instant) -> Vec<Item> {
        let mut names = Vec::new();
        for ((of, own), judgement) in &mut self.all {
            if of == type_url && number.is_none_or(|number| number == *own) {
                judgement.ordered = judgement.ordered.max(Some(until));
                names.extend(judgement.names.iter().cloned());
            }
        }
        names
    }

    /// Returns what these judgements hold.
    pub(super) fn names(&self, type_url: &TypeUrl, number: Option<u32>) -> Vec<Item> {
        let chosen = self.all.iter().filter(|((of, own), _)| {
            let meant = number.is_none_or(|number| number == *own);
            of == type_url && meant
        });
        chosen
            .flat_map(|(_, judgement)| judgement.names.iter().cloned())
            .collect()
    }

    /// When a judgement ends.
    pub(super) fn until(&self, type_url: &TypeUrl, number: u32) -> Option<Instant> {
        self.all.get(&(type_url.clone(), number)).map(Judgement::until)
    }

    /// Ends the judgements whose time is over; `ordered`: until when a person holds a single name. Returns the names that end.
    pub(super) fn end(&mut self, ordered: impl Fn(&Item) -> Option<Instant>, now: Instant) -> Vec<Item> {
        let mut ended = Vec::new();
        self.all.retain(|_, judgement| {
            if judgement.until() > now {
                return true;
            }
            let until = |item: &Item| ordered(item).filter(|until| *until > now);
            judgement.ordered = judgement.names.iter().filter_map(until).max();
            let names = std::mem::take(&mut judgement.names).into_iter();
            let (held, over): (BTreeSet<Item>, BTreeSet<Item>) = names.partition(|item| until(item).is_some());
            judgement.names = held;
            ended.extend(over);
            !judgement.names.is_empty()
        });
        ended
    }

    /// Ends all judgements. Returns their names.
    pub(super) fn end_all(&mut self) -> Vec<Item> {
        let all = std::mem::take(&mut self.all);
        all.into_values().flat_map(|judgement| judgement.names).collect()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.all.values().map(Judgement::until).min()
    }
}

impl Judgement {
    fn until(&self) -> Instant {
        self.ordered.map_or(self.clock, |ordered| self.clock.max(ordered))
    }
}
