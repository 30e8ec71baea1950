//! Worlds of clients of two versions, of which one rejects what the other takes: contents cross their rejections, answers come late,
//! clients and the relay restart, and people release verdicts. A seed decides what happens, a naive model judges it:
//!
//! - what is condemned was rejected, and not accepted, by clients of the kind;
//! - a newcomer of the kind is not sent what is condemned when it comes and when it is answered;
//! - nobody is sent over delta what he holds already;
//! - at rest each client has accepted what the control plane says, or rejects it and has what was before, or has what stands in for it;
//!   and nothing is condemned for those whom it suits.
//!
//! `DISTRIBUTARY_SEEDS=N` plays more worlds, `DISTRIBUTARY_SEED=S` one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use distributary::xds::{Condemned, Dialect, TypeUrl, Update, Version};

use super::agent::{Agent, Software, is_bad};
use crate::support::{CDS, Relay, resource, spawn, until};

const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const VERSIONS: [&str; 2] = ["1.37.0", "1.38.0"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const CLIENTS_MAX: usize = 8;
const SEEDS: u64 = 12;
/// Seeds that have found something once.
const KEPT: [u64; 1] = [44];
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
    /// All that it ever said.
    said: BTreeMap<Version, String>,
    /// What those who have gone have rejected: each with the version of the software.
    rejected: BTreeSet<(String, &'static str)>,
    number: u64,
    verdicts: u64,
}

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn start() -> Relay {
    Relay::with(|plan| plan.verdict_after = 2)
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
        self.relay.publish(&of, vec![Update::Put(new, None)]);
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
                let gone = self.agents.swap_remove(at);
                self.remember(&gone);
            }
            75..85 => self.some(Agent::wait),
            85..92 => self.some(Agent::answer),
            92..95 => {
                let view = self.relay.view();
                if let Some(one) = view.head().condemned().first() {
                    view.release_condemned(one.clone());
                }
            }
            95..97 => self.restart(),
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
        let all = self.relay.view().head().condemned();
        let of_kind = |one: &&Arc<Condemned>| one.kind() == format!("envoy {version}");
        all.iter().filter(of_kind).cloned().collect()
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
        let known = self.relay.view().head().knowledge().whole();
        self.relay = start();
        self.relay.view().set_restored((*known).clone());
        for (name, content) in self.current.clone() {
            self.publish(name, content);
        }
    }

    /// What is condemned was rejected by clients of the kind, and suits none of them.
    fn judge(&self) {
        for one in &*self.relay.view().head().condemned() {
            let content = &self.said[&one.version];
            let version = VERSIONS
                .into_iter()
                .find(|version| one.kind() == format!("envoy {version}"));
            let version = version.unwrap_or_else(|| panic!("{}", one.kind()));
            assert!(is_bad(content, version), "{content} is condemned for {version}");
            let gone = self.rejected.contains(&(content.clone(), version));
            let rejects = |agent: &Agent| agent.version == version && agent.held.lock().all_rejected.contains(content);
            assert!(gone || self.agents.iter().any(rejects), "nobody has rejected {content}");
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
        self.verdicts += self.relay.view().head().condemned().len() as u64;
        self.judge();
        for agent in &self.agents {
            assert_eq!(agent.held.lock().repeated, [""; 0], "{}", agent.id);
        }
    }

    /// Returns what a client lacks at rest, if anything.
    fn wrong(&self, agent: &Agent) -> Option<String> {
        let held = agent.held.lock();
        let condemned = self.condemned_for(agent.version);
        let spared = |content: &String| {
            let one = condemned.iter().find(|one| self.said[&one.version] == *content);
            one.is_some_and(|one| !is_bad(&self.said[&one.stands_in.version()], agent.version))
        };
        // Who rejects all as a whole has nothing new until all that is bad is condemned.
        let whole = self.software.dialect == Dialect::Sotw && self.software.type_url == CDS;
        if whole
            && self
                .current
                .values()
                .any(|content| is_bad(content, agent.version) && !spared(content))
        {
            return None;
        }
        for (name, content) in &self.current {
            let (has, rejects) = (held.accepted.get(*name), held.rejected.get(*name) == Some(content));
            if !is_bad(content, agent.version) {
                if has != Some(content) {
                    return Some(format!("{content} wanted"));
                }
                continue;
            }
            if has == Some(content) {
                return Some(format!("{content} was accepted"));
            }
            if has.is_none() && spared(content) {
                return Some(format!(
                    "{content} is condemned, and a client that holds nothing is not served what stands in"
                ));
            }
            let stands_in = condemned.iter().find(|one| one.name().as_str() == *name);
            let served_older = stands_in.is_some_and(|one| has == self.said.get(&one.stands_in.version()));
            // Older content that is bad as well is rejected; the verdict is over when that is known.
            let rejects_older =
                stands_in.is_some_and(|one| held.rejected.get(*name) == self.said.get(&one.stands_in.version()));
            if !(rejects || served_older || rejects_older) {
                return Some(format!("{content} is not rejected, and nothing stands in for it"));
            }
        }
        None
    }
}

fn same(one: &Condemned, other: &Condemned) -> bool {
    one.kind == other.kind && one.is(&other.type_url, other.name(), other.version)
}

/// Returns how many contents were condemned at rest.
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
    assert!(verdicts > SEEDS / 2, "{verdicts} contents were condemned at rest");
}
