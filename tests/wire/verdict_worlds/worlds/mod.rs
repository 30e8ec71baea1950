//! Worlds of clients of two versions, of which one rejects what the other takes: contents cross their rejections, answers come late,
//! clients and the relay restart, control planes fail and return, and people release verdicts. A seed decides what happens, a naive model
//! judges it:
//!
//! - what is condemned was rejected, and not accepted, by clients of the kind;
//! - a newcomer of the kind is not sent what is condemned when it comes and when it is answered;
//! - nobody is sent over delta what he holds already, unless he has rejected something else of that name since;
//! - at rest each client has accepted what the control plane says, or rejects it and has what was before, or has what stands in for it;
//!   and nothing is condemned for those whom it suits, or that a person has released.
//!
//! `DISTRIBUTARY_SEEDS=N` plays more worlds, `DISTRIBUTARY_SEED=S` one.

mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use distributary::cache::View;
use distributary::xds::{Condemned, Dialect, ServerState, TypeUrl, Update, Version};

use super::agent::{Agent, Software, is_bad};
use super::chance::Chance;
use crate::support::{CDS, Relay, resource, spawn, until};

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const VERSIONS: [&str; 2] = ["1.37.0", "1.38.0"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const CLIENTS_MAX: usize = 8;
const SEEDS: u64 = 12;
/// Seeds that have found something once.
const KEPT: [u64; 5] = [23, 44, 54, 79, 88];
const STEPS: u64 = 40;

/// A relay of two control planes that say the same, clients, and what has happened to them.
struct World {
    chance: Chance,
    relay: Relay,
    software: Software,
    asked: &'static [&'static str],
    agents: Vec<Agent>,
    /// What the control plane says.
    current: BTreeMap<&'static str, String>,
    /// All that it ever said.
    said: BTreeMap<Version, String>,
    /// What those who have gone have rejected: each with the version of the software.
    rejected: BTreeSet<(String, &'static str)>,
    number: u64,
    verdicts: u64,
    /// What people have released, and for which kind.
    released: BTreeSet<(Version, String)>,
    /// Whether the first control plane has failed, and clients read the second one.
    fails: bool,
}

fn start() -> Relay {
    Relay::with(|plan| {
        plan.verdict_after = 2;
        plan.servers = 2;
    })
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
        // What is rejected as a whole, without words, is one verdict.
        let whole = dialect == Dialect::Sotw && type_url == CDS;
        let software = Software {
            dialect,
            type_url,
            version: VERSIONS[0],
            blames: whole || chance.below(2) > 0,
        };
        let mut world = Self {
            chance,
            relay: start(),
            software,
            asked,
            agents: Vec::new(),
            current: BTreeMap::new(),
            said: BTreeMap::new(),
            rejected: BTreeSet::new(),
            number: 0,
            verdicts: 0,
            released: BTreeSet::new(),
            fails: false,
        };
        NAMES.iter().for_each(|name| world.say(name, ""));
        world
    }

    /// The control plane says another content of a name.
    fn say(&mut self, name: &'static str, bad: &str) {
        self.number += 1;
        let content = format!("{name} {}{bad}", self.number);
        self.publish(name, content);
    }

    fn publish(&mut self, name: &'static str, content: String) {
        let of = TypeUrl::new(self.software.type_url);
        let new = resource(&of, name, content.as_bytes());
        self.said.insert(new.version(), content.clone());
        self.current.insert(name, content);
        if let Some(view) = self.read() {
            Relay::publish_in(&view, &of, vec![Update::Put(new, None)]);
        }
    }

    /// The view that clients read, if it is there.
    fn read(&self) -> Option<Arc<View>> {
        let views = self.relay.shared.scopes.all();
        views.into_iter().find(|view| view.server() == usize::from(self.fails))
    }

    /// The control plane says all that it has.
    fn say_all(&self) {
        let of = TypeUrl::new(self.software.type_url);
        let contents = self.current.iter();
        let updates = contents.map(|(name, content)| Update::Put(resource(&of, name, content.as_bytes()), None));
        if let Some(view) = self.read() {
            Relay::publish_in(&view, &of, updates.collect());
        }
    }

    /// The first control plane fails, or returns: what clients reject has not changed, and what is condemned neither.
    async fn turn_over(&mut self) {
        let before: Vec<_> = VERSIONS
            .iter()
            .flat_map(|version| self.condemned_for(version))
            .collect();
        self.verdicts += before.len() as u64;
        let state = if self.fails {
            ServerState::Up
        } else {
            ServerState::Failing
        };
        self.relay.view().publish_server_state(state);
        self.fails = !self.fails;
        until(
            || self.read().is_some(),
            || "nobody reads the second control plane".to_owned(),
        )
        .await;
        if let Some(view) = self.read().filter(|_| self.fails) {
            view.publish_server_state(ServerState::Up);
        }
        self.say_all();
        // What stands in may be rejected, too, and then the verdict is over.
        let suits = |one: &Condemned| {
            let content = &self.said[&one.stands_in.version()];
            !VERSIONS
                .into_iter()
                .any(|version| one.kind().ends_with(version) && is_bad(content, version))
        };
        let stays = |one: &Condemned| {
            self.current.values().any(|now| *now == self.said[&one.version]) && !self.is_released(one) && suits(one)
        };
        let moved = || {
            let after: Vec<_> = VERSIONS
                .iter()
                .flat_map(|version| self.condemned_for(version))
                .collect();
            let mut stay = before.iter().filter(|one| stays(one));
            stay.all(|one| after.iter().any(|other| same(one, other)))
        };
        until(moved, || {
            format!(
                "condemned before: {before:?}, now {:?}",
                VERSIONS
                    .iter()
                    .flat_map(|version| self.condemned_for(version))
                    .collect::<Vec<_>>()
            )
        })
        .await;
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
            40..63 if self.agents.len() < CLIENTS_MAX => self.come().await,
            65..75 if !self.agents.is_empty() => {
                let at = self.chance.below(self.agents.len() as u64) as usize;
                let gone = self.agents.swap_remove(at);
                self.remember(&gone);
            }
            75..85 => self.some(Agent::wait),
            85..92 => self.some(Agent::answer),
            92..95 => {
                if let Some(view) = self.read()
                    && let Some(one) = view.head().condemned().first()
                {
                    view.release_condemned(one.clone());
                    self.released.insert((one.version, one.kind()));
                }
            }
            95..97 => self.restart(),
            63..65 if !self.agents.is_empty() => self.turn_over().await,
            _ => self.rest().await,
        }
        tokio::time::sleep(Duration::from_millis(self.chance.below(4))).await;
        self.judge();
    }

    fn some(&mut self, act: fn(&Agent)) {
        if !self.agents.is_empty() {
            let at = self.chance.below(self.agents.len() as u64) as usize;
            act(&self.agents[at]);
        }
    }

    /// A client comes; mostly one of the older version.
    async fn come(&mut self) {
        let version = VERSIONS[usize::from(self.chance.below(3) == 0)];
        let software = Software {
            version,
            ..self.software
        };
        self.number += 1;
        let before = self.condemned_for(version);
        let agent = Agent::come(&self.relay, software, &format!("client {}", self.number), self.asked).await;
        until(
            || !agent.held.lock().got.is_empty(),
            || format!("{} got nothing", agent.id),
        )
        .await;
        let after = self.condemned_for(version);
        for one in before {
            let stays = after
                .iter()
                .any(|other| same(one.as_ref(), other) && one.since == other.since);
            let content = &self.said[&one.version];
            let got = &agent.held.lock().got;
            assert!(
                !(stays && got.contains(content)),
                "{} got {content}, which is condemned",
                agent.id
            );
        }
        self.agents.push(agent);
    }

    fn condemned_for(&self, version: &str) -> Vec<Arc<Condemned>> {
        let Some(all) = self.read().map(|view| view.head().condemned()) else {
            return Vec::new();
        };
        let of_kind = |one: &&Arc<Condemned>| one.kind() == format!("envoy {version}");
        all.iter().filter(of_kind).cloned().collect()
    }

    fn is_released(&self, one: &Condemned) -> bool {
        self.released.contains(&(one.version, one.kind()))
    }

    fn remember(&mut self, agent: &Agent) {
        let held = agent.held.lock();
        let rejected = held.all_rejected.iter().cloned();
        self.rejected.extend(rejected.map(|content| (content, agent.version)));
    }

    /// The relay starts again, with what it has on disk.
    fn restart(&mut self) {
        let gone: Vec<Agent> = std::mem::take(&mut self.agents);
        gone.iter().for_each(|agent| self.remember(agent));
        let known = self
            .read()
            .map(|view| view.head().knowledge().whole())
            .unwrap_or_default();
        self.relay = start();
        self.fails = false;
        self.released.clear();
        self.relay.view().set_restored((*known).clone());
        for (name, content) in self.current.clone() {
            self.publish(name, content);
        }
    }

    /// All clients answer, and everything comes to rest.
    async fn rest(&mut self) {
        self.agents.iter().for_each(Agent::answer);
        for agent in &self.agents {
            let wrong = || self.wrong(agent);
            until(
                || wrong().is_none(),
                || format!("{}: {:?}: {:?}", agent.id, wrong(), agent.held.lock()),
            )
            .await;
        }
        let condemned = || VERSIONS.iter().flat_map(|version| self.condemned_for(version));
        let ended = || condemned().all(|one| !self.is_released(&one));
        until(ended, || "what was released is condemned again".to_owned()).await;
        let condemned = VERSIONS.iter().map(|version| self.condemned_for(version).len() as u64);
        self.verdicts += condemned.sum::<u64>();
        self.judge();
        for agent in &self.agents {
            assert_eq!(agent.held.lock().repeated, [""; 0], "{}", agent.id);
        }
    }
}

fn same(one: &Condemned, other: &Condemned) -> bool {
    one.kind == other.kind && one.is(&other.type_url, other.name(), other.version)
}

/// Returns how many contents were condemned at rest, and when a control plane failed or returned.
async fn play(seed: u64) -> u64 {
    let counted = Arc::new(AtomicU64::new(0));
    let count = counted.clone();
    let world = spawn(async move {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step().await;
        }
        world.rest().await;
        count.store(world.verdicts, Ordering::Relaxed);
    });
    world.await.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    counted.load(Ordering::Relaxed)
}

#[tokio::test]
async fn worlds_of_two_versions() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("DISTRIBUTARY_SEED") {
        play(seed).await;
        return;
    }
    let mut verdicts = 0;
    for seed in (0..number("DISTRIBUTARY_SEEDS").unwrap_or(SEEDS)).chain(KEPT) {
        verdicts += play(seed).await;
    }
    assert!(verdicts > SEEDS / 2, "{verdicts} contents were condemned");
}
