// SPDX-License-Identifier: Apache-2.0
//! Two sources in which anything happens, by seed. One of them may have a second server: for some of the clients (a canary), while the first
//! one is away, or because some clients read everything from the other source; and another relay may be between. Control planes end their
//! streams, are away, come back with a part of what they had, and answer types late, in any order; clients start at every step. What must
//! hold is in `judge` and `ledger`.
//!
//! `DISTRIBUTARY_SEEDS=N` plays more worlds, `DISTRIBUTARY_SEED=S` one of them.

mod client;
mod judge;
mod ledger;
mod rng;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use xds::{Dialect, GuardSettings, HoldTimes, ServerState};

use super::pair::Pair;
use super::plane::{cluster, endpoints, listener, route};
use super::stage::{Stage, USUAL};
use crate::{CDS, EDS, LDS, RDS, ms};
use client::Client;
use ledger::Ledger;
use rng::Rng;
use server::{Absence, Server, Ways};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
/// Which types come from the source beside.
const SPLITS: [&[&str]; 6] = [&[EDS], &[CDS, EDS], &[CDS], &[RDS], &[RDS, EDS], &[RDS, CDS, EDS]];
const SEEDS: u64 = 200;
const STEPS: usize = 30;
/// How many clients there are at most.
const CLIENTS: usize = 5;

/// Who reads what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    /// All read both sources, each of which has one server.
    Alike,
    /// Some read another server of the source beside.
    Canary,
    /// All read another server of the source beside while the first one is away.
    Fallback,
    /// Some read everything from the first source.
    Fallen,
}

struct World {
    pair: Pair,
    split: &'static [&'static str],
    readers: Readers,
    rng: Rng,
    servers: Vec<Server>,
    /// For each server two: of the view, and of that of the relay above.
    ledgers: Vec<Ledger>,
    /// The first one of each place stays; the others start at any time.
    clients: Vec<Client>,
    /// Clients are about to move from one server of the source beside to the other one.
    moving: Option<(usize, usize)>,
    /// All routes that were ever said, and the clusters to which they lead.
    routes: BTreeMap<Bytes, BTreeSet<&'static str>>,
    /// Whether a server is away, or has come back with so little that its removals are held; and since when none is.
    away: bool,
    there: Instant,
    began: Instant,
    /// How much was published when clients read last.
    read: usize,
    /// What has happened, for who reads a failure.
    log: Vec<String>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let split = rng.of(&SPLITS);
        let dialect = [Dialect::Delta, Dialect::Sotw][rng.below(2)];
        let readers = rng.of(&[Readers::Alike, Readers::Canary, Readers::Fallback, Readers::Fallen]);
        let wants: Vec<_> = NAMES[2..].iter().map(|name| (EDS, *name)).chain([(CDS, "*")]).collect();
        let mut pair = Pair::new(dialect, split, &wants);
        if readers == Readers::Fallen {
            pair.fall_back_to_main(&[None, Some(1)]);
            let theirs = wants.iter().chain(&[(RDS, "r"), (EDS, "a"), (EDS, "b")]);
            let theirs = theirs.filter(|(kind, _)| split.contains(kind));
            theirs.for_each(|(kind, name)| pair.main.upstream.want(kind, name));
        }
        let between = pair
            .stages()
            .map(|stage| rng.one_in(4).then(|| stage.put_between()).is_some());
        let between: Vec<bool> = between.collect();
        let hold = HoldTimes::all(Duration::from_secs(rng.of(&[60, 100])));
        pair.stages()
            .for_each(|stage| stage.top().set(GuardSettings { hold, ..USUAL }));
        let there = pair.main.upstream.now;
        let mut world = Self {
            pair,
            split,
            readers,
            rng,
            servers: Vec::new(),
            ledgers: Vec::new(),
            clients: Vec::new(),
            moving: None,
            routes: BTreeMap::new(),
            away: false,
            there,
            began: there,
            read: 0,
            log: vec![format!(
                "seed {seed}: {dialect:?} {split:?} {readers:?}, relays between: {between:?}"
            )],
        };
        let calm = world.rng.one_in(3);
        for number in 0..2 {
            let ways = if calm { Ways::CALM } else { Ways::new(&mut world.rng) };
            world.note(format!("server {number}: {ways:?}"));
            let stage = world.pair.stages().nth(number).unwrap();
            world.servers.push(Server::new(ways, stage));
            world.begin_ledgers();
        }
        world.change(LDS, "l", Some(listener("l", "r", 80)), None);
        world.lead("a", "a");
        for name in NAMES.into_iter().filter(|name| *name < "c" || !calm) {
            world.change(CDS, name, Some(cluster(name)), None);
            world.change(EDS, name, Some(endpoints(name, 1)), None);
        }
        world.pair.pass(ms(500));
        let at = if readers == Readers::Fallen {
            vec![1, 0]
        } else {
            vec![1]
        };
        world.clients = at.into_iter().map(Client::new).collect();
        world.pass(Duration::from_secs(20));
        if readers == Readers::Canary {
            world.clients.push(world.clients[0].clone());
            world.begin_moving(1, 2);
        }
        world
    }

    fn begin_ledgers(&mut self) {
        let now = self.pair.main.upstream.now;
        self.ledgers.extend([Ledger::new(now), Ledger::new(now)]);
    }

    /// A stream of this server ends.
    fn end_stream(&mut self, number: usize) {
        self.ledgers[2 * number..][..2].iter_mut().for_each(Ledger::end_stream);
    }

    /// Notes what happens.
    fn note(&mut self, what: String) {
        let time = self.pair.main.upstream.now - self.began;
        self.log.push(format!("{:.2} {what}", time.as_secs_f64()));
    }

    /// The number of the server at which a client at this place reads a type.
    fn number(&self, at: usize, kind: &str) -> usize {
        if self.split.contains(&kind) { at } else { 0 }
    }

    fn stage(&self, at: usize, kind: &str) -> &Stage {
        self.pair.stage(self.number(at, kind))
    }

    /// The operators of all servers of a type, but for this one, give them something, or take it away.
    fn change(&mut self, kind: &str, name: &str, body: Option<Bytes>, but: Option<usize>) {
        let beside = self.split.contains(&kind);
        let all = self.servers.iter_mut().zip(self.pair.stages()).enumerate();
        for (number, (server, stage)) in all {
            let has = beside == (number > 0) || number == 0 && self.readers == Readers::Fallen;
            if has && but != Some(number) {
                server.change(stage, kind, name, body.clone());
            }
        }
    }

    fn lead(&mut self, name: &'static str, other: &'static str) {
        let body = route("r", &[name, other]);
        self.routes.insert(body.clone(), [name, other].into());
        let but = self.left_out();
        self.change(RDS, "r", Some(body), but);
    }

    /// Two servers of one source mostly are to have the same.
    fn left_out(&mut self) -> Option<usize> {
        let several = self.servers.len() > 2 || self.readers == Readers::Fallen;
        let number = self.rng.below(8);
        Some(number).filter(|_| several)
    }

    /// Something happens in one of the sources.
    fn step(&mut self) {
        let (name, other) = (self.rng.of(&NAMES), self.rng.of(&NAMES));
        let what = self.rng.below(9);
        self.note(format!("{what} {name} {other}"));
        let count = 1 + self.rng.below(2);
        let but = self.left_out();
        match what {
            0 | 1 => self.lead(name, other),
            2 => self.change(CDS, name, Some(cluster(name)), but),
            3 => self.change(CDS, name, None, but),
            4 => self.change(EDS, name, Some(endpoints(name, count)), but),
            5 => self.change(EDS, name, None, but),
            6 => self.go_away(),
            _ => {}
        }
        self.pair.exchange();
        self.start_client();
        self.check();
    }

    /// A client starts, where others are.
    fn start_client(&mut self) {
        let at = self.rng.below(self.clients.len());
        let at = self.clients[at].at();
        if self.clients.len() == CLIENTS {
            self.clients.remove(CLIENTS - 1 - self.rng.below(2));
        }
        self.clients.push(Client::new(at));
        self.read = 0;
    }

    /// A server is away for a while.
    fn go_away(&mut self) {
        let number = self.rng.below(self.servers.len());
        if self.servers[number].is_away() {
            return;
        }
        let time = self.rng.millis(&[1_000, 12_000, 100_000]);
        let how = self.rng.of(&[Absence::Alone, Absence::All, Absence::Counted]);
        self.note(format!("server {number} is away for {time:?}: {how:?}"));
        self.end_stream(number);
        let stage = self.pair.stages().nth(number).unwrap();
        self.servers[number].go(stage, time, how);
        self.fall_back(number);
    }

    /// The clients of a server that is away move to the other one.
    fn fall_back(&mut self, number: usize) {
        let stage = self.pair.stage(number);
        let is_lost = number == 1 && stage.state != ServerState::Up;
        if self.readers == Readers::Fallback && is_lost && self.moving.is_none() && self.clients[0].at() == 1 {
            self.begin_moving(1, 2);
        }
    }

    /// Clients of one server of the source beside are about to read the other one.
    fn begin_moving(&mut self, from: usize, to: usize) {
        self.note(format!("clients move from {from} to {to}"));
        if to == self.servers.len() {
            self.pair.begin_canary();
            self.servers.push(self.servers[from].replica());
            self.begin_ledgers();
        }
        if to == 2 {
            let stage = self.pair.canary.as_deref_mut().unwrap();
            self.servers[to].go(stage, Duration::ZERO, Absence::All);
            self.end_stream(to);
        }
        self.moving = Some((from, to));
        self.pair.standby = Some(to);
        self.follow();
        let stage = self.pair.stages().nth(to).unwrap();
        if to == 2 {
            self.servers[to].begin(stage, &mut self.rng);
            self.note(format!("{to} begins a stream: {}", self.servers[to]));
        }
    }

    /// Clients that are about to move do so a second after the other server has answered first (G-11).
    fn follow(&mut self) {
        let Some((from, to)) = self.moving else { return };
        let served = self.pair.stage(from).upstream.cut.clone();
        let stays = self.clients.iter().any(|client| client.at() == to);
        let stage = self.pair.stages().nth(to).unwrap();
        (stage.elsewhere, stage.some_stayed) = (Some(served.into()), stays);
        let first = stage.answered.values().min().copied();
        if first.is_some_and(|first| first + ms(1_000) <= stage.upstream.now) {
            stage.elsewhere = None;
            self.note(format!("clients have moved from {from} to {to}"));
            let canary = self.readers == Readers::Canary;
            let moved = self.clients.iter_mut().skip(usize::from(canary));
            let moved = moved.filter(|client| client.at() == from);
            moved.for_each(|client| client.move_to(to));
            (self.moving, self.read) = (None, 0);
            self.pair.standby = (!canary).then_some(from);
            self.pair.look();
        }
    }

    /// Lets time pass, from one thing that happens to the next.
    fn pass(&mut self, time: Duration) {
        let end = self.pair.main.upstream.now + time;
        loop {
            let now = self.pair.main.upstream.now;
            let soon = now + ms(10);
            let moves = self
                .moving
                .and_then(|(_, to)| self.pair.stage(to).answered.values().min());
            let moves = moves.map(|first| *first + ms(1_000));
            let due = self.servers.iter().filter_map(Server::due).chain(moves);
            let due = due.chain(self.pair.due());
            let at = due.map(|at| at.max(soon)).chain([end]).min().unwrap();
            self.pair.tick(at.min(end).saturating_duration_since(now));
            self.check();
            self.live();
            if at >= end {
                return;
            }
        }
    }

    /// What happens to servers by itself.
    fn live(&mut self) {
        let now = self.pair.main.upstream.now;
        let mut any = false;
        for number in 0..self.servers.len() {
            let server = &mut self.servers[number];
            if server.due().is_none_or(|due| due > now) {
                continue;
            }
            any = true;
            let returns = server.is_back(now);
            if returns && number == 1 && self.readers == Readers::Fallback {
                if self.moving.take().is_some() {
                    self.pair.stages().for_each(|stage| stage.elsewhere = None);
                    self.pair.standby = Some(2);
                }
                if self.clients[0].at() == 2 {
                    self.begin_moving(2, 1);
                }
            }
            let stage = self.pair.stages().nth(number).unwrap();
            let ends = self.servers[number].pass(stage, &mut self.rng);
            if ends {
                self.end_stream(number);
                self.fall_back(number);
            }
            if ends || returns {
                self.note(format!("{number} begins a stream: {}", self.servers[number]));
            }
        }
        if self.moving.is_some() {
            any = true;
            self.follow();
        }
        if any {
            self.pair.exchange();
            self.check();
        }
    }
}

#[test]
fn worlds_of_two_sources() {
    let number = |key: &str| std::env::var(key).ok().and_then(|text| text.parse::<u64>().ok());
    let only = number("DISTRIBUTARY_SEED").map(|seed| seed..seed + 1);
    for seed in only.unwrap_or(0..number("DISTRIBUTARY_SEEDS").unwrap_or(SEEDS)) {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
            let time = world.rng.millis(&[0, 50, 150, 700, 2_500, 12_000, 40_000]);
            world.pass(time);
        }
        world.rest();
    }
}
