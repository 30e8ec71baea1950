// SPDX-License-Identifier: Apache-2.0
//! Control planes that forget, by seed: what is served is what they say, or a hold names it, and every hold ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds::{Dialect, GuardSettings, HoldAction, HoldReason, HoldTarget, HoldTimes, Within};

use super::plane::{Content, cluster, endpoints, listener, route};
use super::stage::{Stage, USUAL};
use crate::{CDS, EDS, LDS, RDS, ms};

const KINDS: [&str; 4] = [LDS, RDS, CDS, EDS];
const CLUSTERS: usize = 8;
const ROUTES: usize = 3;
/// How long it may take until a removal that is not held is passed on: the bound of the quiet time, and before that the time until a
/// name that a delta server does not mention counts as gone.
const SETTLED: Duration = Duration::from_secs(18);

pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.below(2);
        rng
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

/// A world, and what must hold in it.
struct World {
    rng: Rng,
    stage: Stage,
    /// Every content that the control plane ever had.
    ever: BTreeMap<(String, String), BTreeSet<Bytes>>,
    /// Since when something is served that the control plane does not have, and no hold names.
    strays: BTreeMap<(String, String), Instant>,
    /// The clusters that were served at the last look.
    clusters: BTreeSet<String>,
    /// Something was let go although it is referred to: by a clock, an order, or because the rule is off.
    forced: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let dialect = if rng.one_in(2) { Dialect::Sotw } else { Dialect::Delta };
        let clusters: Vec<String> = (0..CLUSTERS).flat_map(|n| [format!("c{n}"), format!("g{n}")]).collect();
        let routes: Vec<String> = (0..ROUTES).map(|n| format!("r{n}")).collect();
        let mut wants = vec![(LDS, "*"), (CDS, "*")];
        wants.extend(routes.iter().map(|name| (RDS, name.as_str())));
        wants.extend(clusters.iter().map(|name| (EDS, name.as_str())));
        let settings = settings(&mut rng);
        let mut stage = Stage::new(dialect, settings, &wants);
        // Some routes are in use although no listener names them.
        stage.wanted.extend(routes.iter().filter(|_| rng.one_in(2)).cloned());
        let mut world = Self {
            rng,
            stage,
            ever: BTreeMap::new(),
            strays: BTreeMap::new(),
            clusters: BTreeSet::new(),
            forced: !settings.references,
        };
        world.fill();
        world.pass(Duration::from_secs(20));
        world
    }

    /// The control plane has everything.
    fn fill(&mut self) {
        let stage = &mut self.stage;
        stage.plane.content.clear();
        for n in 0..ROUTES {
            let (name, route_name) = (format!("l{n}"), format!("r{n}"));
            stage.put(LDS, &name, listener(&name, &route_name, 80 + u32::try_from(n).unwrap()));
            let (one, other) = (self.rng.below(CLUSTERS), self.rng.below(CLUSTERS));
            stage.put(
                RDS,
                &route_name,
                route(&route_name, &[&format!("c{one}"), &format!("c{other}")]),
            );
        }
        for n in 0..CLUSTERS {
            let name = format!("c{n}");
            stage.put(CDS, &name, cluster(&name));
            stage.put(EDS, &name, endpoints(&name, 1 + self.rng.below(3)));
        }
        self.remember();
    }

    fn remember(&mut self) {
        for (kind, all) in &self.stage.plane.content {
            for (name, body) in all {
                self.ever
                    .entry((kind.clone(), name.clone()))
                    .or_default()
                    .insert(body.clone());
            }
        }
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0..=2 => self.change(),
            3..=6 => {
                let before = self.stage.plane.content.clone();
                self.forget();
                self.remember();
                self.stage.restart();
                if self.rng.one_in(3) {
                    // It flaps.
                    let time = ms(self.rng.below(3000) as u64);
                    self.pass(time);
                    self.stage.plane.content = before;
                    self.stage.restart();
                }
            }
            7 => self.fill(),
            8 => self.order(),
            9 if self.rng.one_in(4) => {
                let settings = settings(&mut self.rng);
                self.forced |= !settings.references;
                self.stage.set(settings);
            }
            _ => {}
        }
        self.remember();
        let time = ms([0, 50, 100, 1000, 10_000, 40_000][self.rng.below(6)]);
        self.pass(time);
    }

    /// The control plane changes something on purpose.
    fn change(&mut self) {
        let (n, m) = (self.rng.below(CLUSTERS), self.rng.below(CLUSTERS));
        let (name, at) = (format!("c{n}"), format!("r{}", self.rng.below(ROUTES)));
        match self.rng.below(4) {
            0 => self.stage.put(RDS, &at, route(&at, &[&name, &format!("c{m}")])),
            1 => {
                for kind in [CDS, EDS] {
                    self.stage
                        .plane
                        .content
                        .entry(kind.to_owned())
                        .or_default()
                        .remove(&name);
                }
            }
            2 => {
                self.stage.put(CDS, &name, cluster(&name));
                self.stage.put(EDS, &name, endpoints(&name, m));
            }
            _ => {
                let listeners = self.stage.plane.content.entry(LDS.to_owned()).or_default();
                listeners.remove(&format!("l{}", n % ROUTES));
            }
        }
    }

    /// The control plane forgets a part, all, or the names of what it had.
    fn forget(&mut self) {
        let kind = self.rng.below(5);
        let mut renamed = Content::new();
        for (type_url, all) in &mut self.stage.plane.content {
            match kind {
                0 => all.clear(),
                1 | 2 => all.retain(|_, _| !self.rng.one_in(2)),
                3 if type_url == EDS => {
                    for (name, body) in all {
                        *body = endpoints(name, 0);
                    }
                }
                4 if type_url == CDS || type_url == EDS => {
                    let into = renamed.entry(type_url.clone()).or_default();
                    for name in std::mem::take(all).into_keys() {
                        let name = name.replace('c', "g");
                        let body = if type_url == CDS {
                            cluster(&name)
                        } else {
                            endpoints(&name, 1)
                        };
                        into.insert(name, body);
                    }
                }
                _ => {}
            }
        }
        for (type_url, all) in renamed {
            self.stage.plane.content.insert(type_url, all);
        }
    }

    fn order(&mut self) {
        let Some(hold) = self.stage.holds.first() else { return };
        let target = HoldTarget::Hold(hold.type_url.clone(), hold.reason, hold.judgement);
        let action = if self.rng.one_in(2) {
            self.forced = true;
            HoldAction::Release
        } else {
            HoldAction::Extend(Duration::from_secs(20))
        };
        assert!(self.stage.order(target, action) > 0);
    }

    /// Lets time pass, and looks after each part of it.
    fn pass(&mut self, time: Duration) {
        let end = self.stage.upstream.now + time;
        loop {
            let left = end - self.stage.upstream.now;
            self.stage.pass(left.min(ms(500)));
            self.look();
            if self.stage.upstream.now >= end {
                return;
            }
        }
    }

    fn look(&mut self) {
        let now = self.stage.upstream.now;
        for hold in &self.stage.holds {
            for (name, removal) in &hold.removals {
                let late = removal.until.is_some_and(|until| until < now);
                assert!(!late, "{:?} {name} is held for too long", hold.type_url);
                let ends = removal.until.is_some() || removal.by.is_some();
                assert!(ends, "{:?} {name} is held for ever", hold.type_url);
                if let (HoldReason::Referenced, Some(by)) = (hold.reason, &removal.by) {
                    let served = self.stage.served(by.type_url.url());
                    assert!(
                        served.split(' ').any(|one| one == by.name.as_str()),
                        "{name} is held by {}, which is gone",
                        by.name
                    );
                }
                let served = self.stage.served(hold.type_url.url());
                assert!(
                    served.split(' ').any(|one| one == name.as_str()),
                    "{name} is held and not served"
                );
            }
        }
        let mut strays = BTreeMap::new();
        for kind in KINDS {
            for name in self.stage.served(kind).split(' ').filter(|name| !name.is_empty()) {
                let key = (kind.to_owned(), name.to_owned());
                let body = self.stage.body(kind, name).unwrap();
                assert!(
                    self.ever.get(&key).is_some_and(|all| all.contains(&body)),
                    "{kind} {name} was never said"
                );
                let said = self.stage.plane.content.get(kind).and_then(|all| all.get(name)) == Some(&body);
                if said || !self.stage.why(kind, name).is_empty() {
                    continue;
                }
                // SotW has no removal of what was requested by name.
                if self.stage.dialect == Dialect::Sotw && [RDS, EDS].contains(&kind) {
                    continue;
                }
                let since = *self.strays.get(&key).unwrap_or(&now);
                assert!(now - since <= SETTLED, "{kind} {name} is served, and nobody knows why");
                strays.insert(key, since);
            }
        }
        self.strays = strays;
        self.look_for_holes();
    }

    /// No cluster goes while a route in use leads to it.
    fn look_for_holes(&mut self) {
        let of = |kind: &str| -> BTreeSet<String> {
            let served = self.stage.served(kind);
            served
                .split(' ')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let clusters = of(CDS);
        let mut used: BTreeSet<String> = self.stage.wanted.clone();
        used.extend(of(LDS).iter().map(|listener| listener.replace('l', "r")));
        for at in of(RDS).intersection(&used) {
            let body = self.stage.body(RDS, at).unwrap();
            for cluster in self.clusters.difference(&clusters) {
                let named = body.windows(cluster.len()).any(|part| part == cluster.as_bytes());
                assert!(self.forced || !named, "{at} leads to {cluster}, which is gone");
            }
        }
        self.clusters = clusters;
    }

    /// The control plane is whole again, and what is held has had its time.
    fn heal(&mut self) {
        self.fill();
        self.stage.restart();
        self.pass(Duration::from_secs(150));
        for kind in [LDS, CDS] {
            let all = self.stage.plane.content.get(kind);
            let said: Vec<&str> = all.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            assert_eq!(self.stage.served(kind), said.join(" "));
        }
        assert!(self.stage.holds.is_empty(), "{:?}", self.stage.holds);
        assert!(self.stage.guard.poll_timeout().is_none());
    }
}

fn settings(rng: &mut Rng) -> GuardSettings {
    let within = [Within::FirstState, Within::FirstState, Within::Always, Within::Never][rng.below(4)];
    let references = rng.below(6) > 0;
    GuardSettings {
        references,
        within,
        hold: HoldTimes::all(Duration::from_secs([5, 60][rng.below(2)])),
        ..USUAL
    }
}

/// `DISTRIBUTARY_SEEDS=N` plays more worlds, `DISTRIBUTARY_SEED=S` one of them.
#[test]
fn worlds() {
    let number = |key: &str| std::env::var(key).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("DISTRIBUTARY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DISTRIBUTARY_SEEDS").unwrap_or(150),
    };
    let (mut held, mut ended) = (BTreeMap::new(), BTreeMap::new());
    for seed in seeds {
        let played = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            (0..25).for_each(|_| world.step());
            world.heal();
            world.stage.events
        });
        let Ok(events) = played else { panic!("seed {seed}") };
        for event in events {
            let words: Vec<&str> = event.split(' ').collect();
            match words[..] {
                [what, reason, by] if what.starts_with('-') => *ended.entry(format!("{reason} {by}")).or_insert(0) += 1,
                [what, reason, _] => *held.entry(format!("{what} {reason}")).or_insert(0) += 1,
                _ => {}
            }
        }
    }
    // A rule that is never at stake proves nothing.
    if number("DISTRIBUTARY_SEED").is_none() {
        for expected in [
            "+lds mass",
            "+rds mass",
            "+cds mass",
            "+eds mass",
            "+cds referenced",
            "+rds referenced",
        ] {
            assert!(held.contains_key(expected), "{expected} not in {held:?}");
        }
        for expected in ["mass clock", "mass server", "mass person", "referenced free"] {
            assert!(ended.contains_key(expected), "{expected} not in {ended:?}");
        }
    }
}
