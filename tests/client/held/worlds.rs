// SPDX-License-Identifier: Apache-2.0
//! Two sources in which anything happens, by seed, one of which may have a second server for some of the clients (a canary): what clients
//! are served of one leads to nothing that they are not served of the other (D-11, D-12). Control planes that forget are in the simulation.
//!
//! `DISTRIBUTARY_SEEDS=N` plays more worlds, `DISTRIBUTARY_SEED=S` one of them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds::{Dialect, HoldReason, ServerState};

use super::pair::Pair;
use super::plane::{cluster, endpoints, route};
use super::stage::Stage;
use crate::{CDS, EDS, RDS, ms};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Which types come from the source beside.
const SPLITS: [&[&str]; 5] = [&[EDS], &[CDS, EDS], &[CDS], &[RDS], &[RDS, EDS]];
const SEEDS: u64 = 300;
const STEPS: usize = 30;
/// How often both look at each other.
const TICK: Duration = ms(50);

/// What a seed decides.
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.below(2);
        rng
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

struct World {
    pair: Pair,
    split: &'static [&'static str],
    rng: Rng,
    /// To which clusters the route leads that clients are served.
    leads: BTreeSet<&'static str>,
    /// The clusters that they are served, by each of the servers.
    clusters: Vec<BTreeSet<&'static str>>,
    /// Since when the server beside is there.
    there: Instant,
    /// What has happened, for who reads a failure.
    log: Vec<String>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let split = SPLITS[rng.below(5)];
        let dialect = [Dialect::Delta, Dialect::Sotw][rng.below(2)];
        let mut pair = Pair::new(dialect, split, &[(CDS, "*"), (EDS, "c"), (EDS, "d")]);
        if !split.contains(&RDS) && rng.below(3) == 0 {
            pair.begin_canary();
        }
        pair.lead(&["a", "a"]);
        let there = pair.main.upstream.now;
        let mut world = Self {
            pair,
            split,
            rng,
            leads: BTreeSet::new(),
            clusters: Vec::new(),
            there,
            log: vec![format!("{dialect:?} {split:?}")],
        };
        (world.leads, world.clusters) = world.served();
        world
    }

    /// Whether something of a cluster comes from another source than the route.
    fn crosses(&self) -> bool {
        let beside = |kind| self.split.contains(&kind);
        beside(CDS) != beside(RDS) || beside(EDS) != beside(RDS)
    }

    /// The clusters to which the served route leads, and those that are served by each server.
    fn served(&mut self) -> (BTreeSet<&'static str>, Vec<BTreeSet<&'static str>>) {
        let body = self.pair.of(RDS).body(RDS, "r");
        let pairs = NAMES.into_iter().flat_map(|one| NAMES.map(|other| [one, other]));
        let mut routes = pairs.filter(|pair| body.as_ref().is_some_and(|body| *body == route("r", pair)));
        let leads = routes.next().map(BTreeSet::from).unwrap_or_default();
        let served = |stage: &mut Stage| {
            let served = stage.served(CDS);
            let names = NAMES.into_iter();
            names.filter(|name| served.split(' ').any(|one| one == *name)).collect()
        };
        (leads, self.pair.all_of(CDS).into_iter().map(served).collect())
    }

    /// Whether all servers have endpoints of a cluster.
    fn has_endpoints(&mut self, name: &str) -> bool {
        self.pair
            .all_of(EDS)
            .iter()
            .all(|stage| stage.body(EDS, name).is_some())
    }

    /// Something happens in one of the sources.
    fn step(&mut self) {
        let (name, other) = (NAMES[self.rng.below(4)], NAMES[self.rng.below(4)]);
        let away = self.pair.state != ServerState::Up;
        let what = self.rng.below(8);
        let kind = [RDS, RDS, CDS, CDS, EDS, EDS, "", ""][what];
        // Who is away says nothing.
        if away && self.split.contains(&kind) {
            return;
        }
        self.log.push(format!("{what} {name} {other}"));
        // Two servers of one source mostly say the same.
        let several = self.pair.canary.is_some() && self.split.contains(&kind);
        let left_out = Some(self.rng.below(4)).filter(|_| several);
        let count = 1 + self.rng.below(2);
        for (at, stage) in self.pair.all_of(kind).into_iter().enumerate() {
            if Some(at) == left_out {
                continue;
            }
            let has = stage
                .plane
                .content
                .get(kind)
                .is_some_and(|of_kind| of_kind.contains_key(name));
            match what {
                0 | 1 => stage.put(RDS, "r", route("r", &[name, other])),
                2 => stage.put(CDS, name, cluster(name)),
                4 => stage.put(EDS, name, endpoints(name, count)),
                3 | 5 if has => stage.remove(kind, name),
                _ => {}
            }
        }
        if what == 6 {
            self.there = self.pair.main.upstream.now;
            self.pair.state = if away { ServerState::Up } else { ServerState::Failing };
        }
        self.pair.exchange();
        self.check();
    }

    fn pass(&mut self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            self.pair.tick(left.min(TICK));
            left = left.saturating_sub(TICK);
            self.check();
        }
    }

    fn check(&mut self) {
        let (leads, clusters) = self.served();
        let mut heard = format!("{}, {}", self.pair.main.heard(), self.pair.aside.heard());
        heard.extend(self.pair.canary.iter_mut().map(|canary| canary.heard()));
        if heard.len() > 2 {
            self.log.push(heard.clone());
        }
        let (log, crosses) = (self.log.clone(), self.crosses());
        let waited = heard.contains("-rds unready clock");
        for name in leads.difference(&self.leads.clone()).filter(|_| crosses && !waited) {
            let ready = clusters.iter().all(|of_one| of_one.contains(name)) && self.has_endpoints(name);
            assert!(ready, "the route leads to {name}, which is not there: {log:#?}");
        }
        for name in leads.intersection(&self.leads) {
            let mut servers = self.clusters.iter().zip(&clusters);
            let lost = servers.any(|(before, now)| before.contains(name) && !now.contains(name));
            assert!(!lost, "the route still leads to {name}, which has gone: {log:#?}");
        }
        let now = self.pair.main.upstream.now;
        for hold in self.pair.main.holds.iter().chain(&self.pair.aside.holds) {
            if hold.reason != HoldReason::Unready {
                continue;
            }
            let since = hold.since().unwrap();
            let bound = match self.pair.state == ServerState::Up {
                true => self.there.max(since) + ms(2000),
                false => since + Duration::from_secs(60),
            };
            assert!(now <= bound + TICK, "it waits for too long: {log:#?}");
        }
        (self.leads, self.clusters) = (leads, clusters);
    }

    /// Nothing happens any more: clients are served what the control planes say, and what that leads to.
    fn rest(&mut self) {
        self.pair.state = ServerState::Up;
        self.there = self.pair.main.upstream.now;
        self.pass(Duration::from_secs(4));
        let said: Option<Bytes> = self.pair.of(RDS).plane.content[RDS].get("r").cloned();
        assert_eq!(self.pair.of(RDS).body(RDS, "r"), said, "{:#?}", self.log);
        let (leads, clusters) = (self.leads.clone(), self.clusters.clone());
        for (stage, served) in self.pair.all_of(CDS).into_iter().zip(&clusters) {
            for name in NAMES {
                let has = stage.plane.content[CDS].contains_key(name);
                let wanted = has || served.contains(name) && leads.contains(name);
                assert_eq!(served.contains(name), wanted, "cluster {name}: {:#?}", self.log);
            }
        }
        for hold in self.pair.main.holds.iter().chain(&self.pair.aside.holds) {
            assert_eq!(hold.reason, HoldReason::Referenced, "{:#?}", self.log);
        }
    }
}

#[test]
fn worlds_of_two_sources() {
    let number = |key: &str| std::env::var(key).ok().and_then(|text| text.parse::<u64>().ok());
    let only = number("DISTRIBUTARY_SEED").map(|seed| seed..seed + 1);
    for seed in only.unwrap_or(0..number("DISTRIBUTARY_SEEDS").unwrap_or(SEEDS)) {
        let mut world = World::new(seed);
        world.log.push(format!("seed {seed}"));
        for _ in 0..STEPS {
            world.step();
            let time = [0, 50, 150, 700, 2500][world.rng.below(5)];
            world.pass(ms(time));
        }
        world.rest();
    }
}
