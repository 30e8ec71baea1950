// SPDX-License-Identifier: Apache-2.0
//! Random sessions against a naive model of which session waits for which name and what upstream was told.

use std::collections::{BTreeMap, BTreeSet};

use cache::Claims;

use super::random::Random;
use super::*;

const SEEDS: u64 = 300;
const STEPS: usize = 300;
const NAMES: usize = 12;
const LIMIT: usize = 9;

/// A naive view, and the real one.
struct World {
    random: Random,
    view: Arc<View>,
    now: Instant,
    seats: BTreeMap<u32, Seat>,
    /// The connections on which sessions come.
    connections: [Arc<Claims>; 3],
    /// Which session waits for which name.
    wanted: BTreeMap<(TypeUrl, Target), BTreeSet<u32>>,
    /// What upstream has been told, and since when the writer knows that a name is not wanted.
    told: BTreeMap<(TypeUrl, Target), Option<Instant>>,
    content: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            view: view_of(LIMIT),
            now: start(),
            seats: BTreeMap::new(),
            connections: Default::default(),
            wanted: BTreeMap::new(),
            told: BTreeMap::new(),
            content: 0,
        }
    }

    fn step(&mut self) {
        match self.random.below(13) {
            0 => {
                self.connections.rotate_left(self.random.below(2));
                let [connection, ..] = &self.connections;
                let seat = self.view.enter_by(connection);
                self.seats.insert(seat.number(), seat);
            }
            1 => {
                if let Some(number) = self.any_seat().filter(|_| self.random.below(3) == 0) {
                    self.seats.remove(&number);
                    for waiters in self.wanted.values_mut() {
                        waiters.remove(&number);
                    }
                }
            }
            2..=6 => self.want(),
            7 => self.now += LINGER / 4,
            8 => self.turn(),
            // Equal sets become one, and no session notices.
            9 | 10 => {
                self.view.settle();
                self.view.settle();
                self.check_sets();
            }
            11 => {
                let seat = self.any_seat().and_then(|number| self.seats.get(&number));
                seat.into_iter().for_each(Seat::rest);
            }
            _ => self.publish(),
        }
        let wanted = self.wanted.values().filter(|waiters| !waiters.is_empty()).count();
        let summary = self.view.summary();
        assert_eq!((summary.seats, summary.wanted), (self.seats.len(), wanted));
        assert!(summary.leased <= 2 * LIMIT);
        // Each name counts for exactly one connection.
        let claims = self.connections.iter().map(|claims| claims.names());
        assert_eq!(claims.sum::<usize>(), wanted);
    }

    /// No two sets of one type are equal once they are shared.
    fn check_sets(&self) {
        let mut sets = BTreeSet::new();
        for number in self.seats.keys() {
            for type_url in [eds(), cds()] {
                let waits = |(key, waiters): (&(TypeUrl, Target), &BTreeSet<u32>)| {
                    (key.0 == type_url && waiters.contains(number)).then(|| key.1.clone())
                };
                let set: Vec<Target> = self.wanted.iter().filter_map(waits).collect();
                sets.insert((type_url, set));
            }
        }
        sets.retain(|(_, set)| !set.is_empty());
        assert_eq!(self.view.summary().sets, sets.len());
    }

    fn any_seat(&mut self) -> Option<u32> {
        let count = self.seats.len();
        let at = self.random.below(count.max(1));
        self.seats.keys().nth(at).copied()
    }

    fn any_type(&mut self) -> TypeUrl {
        if self.random.below(2) == 0 { eds() } else { cds() }
    }

    fn any_target(&mut self) -> (TypeUrl, Target) {
        let type_url = self.any_type();
        match self.random.below(NAMES) {
            0 => (type_url, Target::Wildcard),
            n => (type_url, Target::Name(Name::from(format!("n{n}")))),
        }
    }

    fn want(&mut self) {
        let Some(number) = self.any_seat() else { return };
        let (type_url, target) = self.any_target();
        let wanted = self.random.below(5) < 3;
        let want = Want {
            type_url: type_url.clone(),
            target: target.clone(),
            wanted,
            written: None,
        };
        let others = self.wanted.values().filter(|waiters| !waiters.is_empty()).count();
        let key = (type_url, target);
        let waiters = self.wanted.entry(key.clone()).or_default();
        let room = !wanted || !waiters.is_empty() || others < LIMIT;
        let Some(answer) = self.seats.get(&number).map(|seat| seat.want(&want)) else {
            return;
        };
        assert!(room || answer.is_err(), "more than the limit");
        match (wanted, answer) {
            (true, Ok(())) => {
                waiters.insert(number);
                self.told.entry(key).and_modify(|since| *since = None);
            }
            (true, Err(full)) => assert_eq!(full.limit, "names_per_view"),
            (false, answer) => {
                assert_eq!(answer, Ok(()));
                waiters.remove(&number);
            }
        }
    }

    /// K-01, K-23: upstream is told what is wanted, once, and what was not wanted for the linger time.
    fn turn(&mut self) {
        let leased = self.view.summary().leased;
        let pressed = leased > LIMIT;
        for want in self.view.take_wants(self.now) {
            let key = (want.type_url.clone(), want.target.clone());
            let waited_for = self.wanted.get(&key).is_some_and(|waiters| !waiters.is_empty());
            assert_eq!(want.wanted, waited_for, "{want:?}");
            if want.wanted {
                assert_eq!(self.told.insert(key, None), None, "told twice");
            } else {
                let since = self.told.remove(&key);
                assert!(since.is_some(), "never told: {want:?}");
                let since = since.flatten();
                assert!(
                    pressed || since.is_some_and(|since| self.now - since >= LINGER * 8 / 10),
                    "too soon: {want:?}"
                );
                let slot = self.view.cut();
                let slot = slot.slot(&want.type_url);
                let known = match &want.target {
                    Target::Wildcard => slot.is_some_and(|slot| slot.wildcard.is_some()),
                    Target::Name(name) => slot.is_some_and(|slot| slot.named.known(name).is_some()),
                };
                assert!(!known, "what ends is forgotten");
            }
        }
        for (key, waiters) in &self.wanted {
            match self.told.get_mut(key) {
                Some(since) if waiters.is_empty() => {
                    let since = *since.get_or_insert(self.now);
                    assert!(self.now - since < LINGER * 12 / 10 && !pressed, "too late: {key:?}");
                }
                Some(since) => *since = None,
                None => assert!(waiters.is_empty(), "never told: {key:?}"),
            }
        }
    }

    /// Exactly the sessions that wait for one of the names are woken, or for the wildcard if it covers them.
    fn publish(&mut self) {
        self.content += 1;
        let type_url = self.any_type();
        let wildcard = self.random.below(2) == 0 && self.told.contains_key(&(type_url.clone(), Target::Wildcard));
        let names: BTreeSet<_> = (0..3)
            .map(|_| format!("n{}", 1 + self.random.below(NAMES - 1)))
            .collect();
        let leased = |name: &String| {
            self.told
                .contains_key(&(type_url.clone(), Target::Name(Name::from(name.as_str()))))
        };
        let names: Vec<_> = names.into_iter().filter(|name| wildcard || leased(name)).collect();
        let updates = names.iter().map(|name| put(&type_url, name, &self.content.to_string()));
        let changes = Changes {
            wildcard,
            ..named(&type_url, updates.collect())
        };
        for seat in self.seats.values() {
            let _ = seat.bell().take();
        }
        self.view.publish(&[changes]);
        for (number, seat) in &self.seats {
            let waits = |target| {
                let waiters = self.wanted.get(&(type_url.clone(), target));
                waiters.is_some_and(|waiters| waiters.contains(number))
            };
            let mine = names
                .iter()
                .filter(|name| waits(Target::Name(Name::from(name.as_str()))));
            let mine: Vec<_> = mine.map(|name| format!("{type_url:?} {name}")).collect();
            if mine.is_empty() && wildcard && waits(Target::Wildcard) {
                assert_eq!(heard(seat), [format!("{type_url:?} wildcard")]);
            } else {
                assert_eq!(heard(seat), mine);
            }
        }
    }

    /// After the last session has left, everything goes and nothing is left behind.
    fn end(mut self) {
        self.seats.clear();
        self.wanted.values_mut().for_each(BTreeSet::clear);
        self.turn();
        self.now += LINGER * 2;
        self.turn();
        assert!(self.told.is_empty() && self.view.demand().is_idle());
        assert!(self.connections.iter().all(|claims| claims.names() == 0));
        assert_eq!(self.view.cut().slots().count(), 0);
        assert_eq!(self.view.demand().poll_timeout(), None);
    }
}

/// K-01, K-23.
#[test]
fn leases_are_what_a_naive_model_says() {
    for seed in 0..SEEDS {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            (0..STEPS).for_each(|_| world.step());
            world.end();
        });
        assert!(run.is_ok(), "seed {seed}");
    }
}

/// A session that wants nothing of a view reads nothing of it.
#[test]
fn who_wants_nothing_does_not_read() {
    let view = view();
    let (seat, watcher) = (view.enter(), view.enter());
    watcher.watch(true);
    assert_eq!(view.demand().readers_of(None), (0, 1));
    let wants = |wanted| seat.want(&want(&TypeUrl::new("a.B"), "a", wanted));
    assert_eq!(wants(true), Ok(()));
    assert_eq!(view.demand().readers_of(None), (1, 1));
    assert_eq!(wants(false), Ok(()));
    assert_eq!(view.demand().readers_of(None), (0, 1));
}
