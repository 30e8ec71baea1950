// SPDX-License-Identifier: Apache-2.0
//! Worlds of clients of three versions, of which two reject what others take: contents cross their rejections, answers come late, clients
//! and the relay restart, and people release older content. A seed decides what happens, a naive model judges it:
//!
//! - nobody is sent what the control plane had replaced when it came, unless it has rejected something of that name: so who rejects nothing
//!   is sent the same, whatever others reject;
//! - nobody is sent over delta what he holds already, unless he has rejected something else of that name since;
//! - at rest each client was sent what the control plane says, and has accepted it; or it rejects that, and has what it had or older
//!   content; or it has nothing, and nobody has anything that it would take.
//!
//! `DISTRIBUTARY_SEEDS=N` plays more worlds, `DISTRIBUTARY_SEED=S` one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use distributary::xds::{Dialect, TypeUrl};

use super::agent::{Agent, Software, is_bad, name};
use super::chance::Chance;
use super::{CDS, RDS};
use crate::support::{Relay, now, spawn, until};

/// The last one rejects nothing.
const VERSIONS: [&str; 3] = ["1.37.0", "1.38.0", "1.39.0"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const CLIENTS_MAX: usize = 8;
const SEEDS: u64 = 24;
const STEPS: u64 = 40;

/// A relay, clients, and what has happened to them.
struct World {
    chance: Chance,
    relay: Relay,
    software: Software,
    asked: &'static [&'static str],
    agents: Vec<Agent>,
    /// What the control plane says.
    current: BTreeMap<&'static str, String>,
    /// All that it said before.
    replaced: BTreeSet<String>,
    number: u64,
    /// How many clients had older content at rest.
    older: u64,
    /// Whether a person has released anything, so that something may be missing.
    released: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let dialect = [Dialect::Sotw, Dialect::Delta][usize::from(chance.below(2) > 0)];
        let (type_url, asked): (_, &'static [&'static str]) = match chance.below(3) {
            0 => (CDS, &["*"]),
            1 => (CDS, &NAMES),
            _ => (RDS, &NAMES),
        };
        let software = Software {
            dialect,
            type_url,
            version: VERSIONS[0],
            blames: chance.below(2) > 0,
        };
        let mut world = Self {
            chance,
            relay: Relay::start(),
            software,
            asked,
            agents: Vec::new(),
            current: BTreeMap::new(),
            replaced: BTreeSet::new(),
            number: 0,
            older: 0,
            released: false,
        };
        NAMES.iter().for_each(|name| world.say(name, ""));
        world
    }

    /// The control plane says another content of a name.
    fn say(&mut self, name: &'static str, bad: &str) {
        self.number += 1;
        let content = format!("{name} {}{bad}", self.number);
        self.relay.put(self.software.type_url, &[name], &content);
        self.replaced.extend(self.current.insert(name, content));
    }

    async fn step(&mut self) {
        match self.chance.below(100) {
            0..40 => {
                let name = NAMES[self.chance.below(3) as usize];
                let bad = match self.chance.below(10) {
                    0..5 => String::new(),
                    5..9 => format!(" !{}", VERSIONS[0]),
                    _ => format!(" !{} !{}", VERSIONS[0], VERSIONS[1]),
                };
                self.say(name, &bad);
            }
            40..65 if self.agents.len() < CLIENTS_MAX => self.come().await,
            65..75 if !self.agents.is_empty() => {
                let at = self.chance.below(self.agents.len() as u64) as usize;
                drop(self.agents.swap_remove(at));
            }
            75..85 => self.some(Agent::wait),
            85..92 => self.some(Agent::answer),
            92..94 => {
                let name = NAMES[self.chance.below(3) as usize];
                let of = TypeUrl::new(self.software.type_url);
                self.released |= self.relay.view().release_older(&of, &name.into());
            }
            94..97 => self.restart(),
            _ => self.rest().await,
        }
        tokio::time::sleep(Duration::from_millis(self.chance.below(4))).await;
    }

    fn some(&mut self, act: fn(&Agent)) {
        if !self.agents.is_empty() {
            let at = self.chance.below(self.agents.len() as u64) as usize;
            act(&self.agents[at]);
        }
    }

    /// A client comes; mostly one of the oldest version.
    async fn come(&mut self) {
        let version = VERSIONS[(self.chance.below(5) as usize).saturating_sub(2)];
        let software = Software {
            version,
            ..self.software
        };
        self.number += 1;
        let id = format!("client {}", self.number);
        let agent = Agent::come(&self.relay, software, &id, self.asked, self.replaced.clone()).await;
        let got = || !agent.held.lock().got.is_empty();
        until(got, || format!("{} got nothing", agent.id)).await;
        self.agents.push(agent);
    }

    /// The relay starts again, with what it has on disk.
    fn restart(&mut self) {
        self.agents.clear();
        let known = self.relay.view().knowledge(now()).whole();
        self.relay = Relay::start();
        self.relay.view().set_restored((*known).clone());
        for (name, content) in &self.current {
            self.relay.put(self.software.type_url, &[name], content);
        }
    }

    /// Returns what is wrong with a client at rest.
    fn wrong(&self, agent: &Agent) -> Option<String> {
        let held = agent.held.lock();
        let wrong = |(name, current): (&&str, &String)| {
            let accepted = held.accepted.get(*name);
            if !held.got.contains(current) {
                return Some(format!("it was not sent {current}"));
            }
            if !is_bad(current, agent.version) {
                return (accepted != Some(current)).then(|| format!("it has {accepted:?}, not {current}"));
            }
            let others = self.agents.iter().filter(|other| other.id != agent.id);
            let takes = |content: &String| !is_bad(content, agent.version);
            let mut has = others.filter_map(|other| other.held.lock().accepted.get(*name).cloned().filter(takes));
            let lacks = accepted.is_none() && !self.released && has.next().is_some();
            lacks.then(|| format!("it has no {name}, and others have"))
        };
        self.current.iter().find_map(wrong)
    }

    /// All clients answer, and everything comes to rest.
    async fn rest(&mut self) {
        self.agents.iter().for_each(Agent::answer);
        for agent in &self.agents {
            let wrong = || self.wrong(agent);
            let why = || format!("{} {}: {:?}: {:?}", agent.id, agent.version, wrong(), agent.held.lock());
            until(|| wrong().is_none(), why).await;
        }
        for agent in &self.agents {
            let held = agent.held.lock();
            assert_eq!(held.repeated, [""; 0], "{}", agent.id);
            assert_eq!(held.uncalled, [""; 0], "{}", agent.id);
            let older = held
                .accepted
                .values()
                .filter(|content| self.current.get(name(content)) != Some(content));
            self.older += older.count() as u64;
        }
    }
}

/// Returns how many older contents clients had at rest.
async fn play(seed: u64) -> u64 {
    let counted = Arc::new(AtomicU64::new(0));
    let count = counted.clone();
    let world = spawn(async move {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step().await;
        }
        world.rest().await;
        count.store(world.older, Ordering::Relaxed);
    });
    world.await.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    counted.load(Ordering::Relaxed)
}

#[tokio::test]
async fn worlds_of_three_versions() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("DISTRIBUTARY_SEED") {
        play(seed).await;
        return;
    }
    let mut older = 0;
    for seed in 0..number("DISTRIBUTARY_SEEDS").unwrap_or(SEEDS) {
        older += play(seed).await;
    }
    assert!(older > SEEDS / 2, "clients had older content {older} times");
}
