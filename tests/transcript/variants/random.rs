//! Random changes of resources, of a client's parameters, and of what it asks for, against a naive model.

use std::collections::{BTreeMap, BTreeSet};

use super::stage::{CDS, EDS, Stage};
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, ResourceLocator};
use distributary::xds::{Dialect, Reason, Update};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// The constraint of a variant; without one it is for all clients.
const ENVS: [&str; 4] = ["", "prod", "test", "new"];
const STEPS: usize = 60;

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A client, and the true state.
struct World {
    stage: Stage,
    random: Random,
    there: BTreeMap<(&'static str, &'static str), u32>,
    env: Option<&'static str>,
    /// The parameters that it sends with single names and with `*`.
    with: BTreeMap<&'static str, &'static str>,
    asked: BTreeSet<&'static str>,
    /// What it holds: by name, the constraint and the content.
    holds: BTreeMap<String, (String, String)>,
    body: u32,
    started: bool,
}

impl World {
    fn new(seed: u64, type_url: &str, dialect: Dialect) -> Self {
        let mut stage = Stage::of(type_url, dialect).reading("xds.config.resource-in-sotw");
        if seed.is_multiple_of(2) {
            stage = stage.in_chunks();
        }
        Self {
            stage,
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            there: BTreeMap::new(),
            env: None,
            with: BTreeMap::new(),
            asked: BTreeSet::new(),
            holds: BTreeMap::new(),
            body: 0,
            started: false,
        }
    }

    /// A change of one name, or of two at once.
    fn news(&mut self) {
        let mut updates = Vec::new();
        for _ in 0..self.random.below(2) + 1 {
            let (name, env) = (self.random.pick(&NAMES), self.random.pick(&ENVS));
            if self.there.contains_key(&(name, env)) && self.random.below(5) < 2 {
                self.there.remove(&(name, env));
                let called = if env.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name}[{env}]")
                };
                updates.push(self.stage.withdraw(&called));
            } else {
                self.body += 1;
                self.there.insert((name, env), self.body);
                updates.push(self.stage.put(&format!("{name}[{env}]={name}.{}", self.body)));
            }
        }
        self.stage.cover(updates.clone());
        // By name, the client is told that something does not exist.
        let gone = NAMES.iter().filter(|name| !self.there.contains_key(&(**name, "")));
        updates.extend(gone.map(|name| Update::Absent((*name).into(), Reason::Said)));
        self.stage.publish(updates);
    }

    fn locators(&self) -> Vec<ResourceLocator> {
        let one = |(name, env): (&&str, &&str)| ResourceLocator {
            name: (*name).to_owned(),
            dynamic_parameters: [("env".to_owned(), (*env).to_owned())].into_iter().collect(),
        };
        self.with.iter().map(one).collect()
    }

    /// The client changes what it asks for, or the parameters that it sends with that.
    fn asks(&mut self) {
        let name = self.random.pick(&["a", "b", "*"]);
        let ends = self.asked.contains(name) && self.random.below(2) == 0;
        let own = Some(self.random.pick(&ENVS[1..])).filter(|_| self.random.below(2) == 0);
        if ends {
            self.asked.remove(name);
            self.with.remove(name);
        } else {
            self.asked.insert(name);
            self.with.extend(own.map(|env| (name, env)));
        }
        let bare: Vec<String> = match ends || self.with.contains_key(name) {
            true => Vec::new(),
            false => vec![name.to_owned()],
        };
        let located = self.locators().into_iter().filter(|locator| locator.name == name);
        let request = DeltaDiscoveryRequest {
            resource_names_unsubscribe: if ends { vec![name.to_owned()] } else { Vec::new() },
            resource_names_subscribe: bare,
            resource_locators_subscribe: located.collect(),
            ..Default::default()
        };
        self.started = true;
        self.stage.says(self.env, request);
        // It forgets what it no longer asks for, except what its wildcard may have brought as well.
        if name == "*" && ends {
            let asked = &self.asked;
            self.holds.retain(|name, _| asked.contains(name.as_str()));
        } else if ends && !self.asked.contains("*") {
            self.holds.remove(name);
        }
    }

    fn becomes(&mut self) {
        self.env = self.random.pick(&[None, Some("prod"), Some("test"), Some("other")]);
        // A first request that names nothing asks for everything.
        if self.started {
            self.stage.becomes(self.env);
        }
    }

    /// It applies what it is sent. C-19, C-23, C-26: it never holds one name twice, and only what it holds is removed.
    fn hears(&mut self) {
        for words in self.stage.hears(self.env) {
            let mut withdrawn = BTreeSet::new();
            for word in words.split_whitespace().filter_map(|word| word.strip_prefix('-')) {
                let (name, env) = word.trim_end_matches(']').split_once('[').unwrap_or((word, ""));
                let held = self.holds.get(name).map(|(env, _)| env.clone());
                assert!(
                    held.is_none() || held.as_deref() == Some(env),
                    "{words}: of {name} it holds {held:?}"
                );
                withdrawn.insert(name.to_owned());
                self.holds.remove(name);
            }
            for word in words.split_whitespace().filter(|word| !word.starts_with('-')) {
                let (called, body) = word.split_once('=').expect("a body");
                let (name, env) = called.trim_end_matches(']').split_once('[').unwrap_or((called, ""));
                let before = self.holds.insert(name.to_owned(), (env.to_owned(), body.to_owned()));
                let other = before.is_some_and(|(before, _)| before != env && !before.is_empty());
                assert!(!other, "{words}: what was held of {name} was not taken away");
            }
        }
    }

    /// What the client must hold in the end.
    fn expected(&self) -> BTreeMap<String, (String, String)> {
        let mut expected = BTreeMap::new();
        for name in NAMES {
            let wanted = if self.asked.contains(name) { name } else { "*" };
            if !self.asked.contains(wanted) {
                continue;
            }
            let own = self.with.get(wanted).copied().or(self.env);
            let variant = own.filter(|env| self.there.contains_key(&(name, *env)));
            let env = variant.unwrap_or_default();
            if let Some(body) = self.there.get(&(name, env)) {
                expected.insert(name.to_owned(), (env.to_owned(), format!("{name}.{body}")));
            }
        }
        expected
    }
}

/// F-16, C-23, C-26: after any changes, in any order, a client holds exactly what is for it, and it never holds a name twice.
#[test]
fn delta() {
    for seed in 0..300_u64 {
        let type_url = if seed.is_multiple_of(3) { EDS } else { CDS };
        let mut world = World::new(seed, type_url, Dialect::Delta);
        world.stage.cover(Vec::new());
        for step in 0..STEPS {
            match world.random.below(4) {
                0 => world.asks(),
                1 => world.becomes(),
                _ => world.news(),
            }
            if world.random.below(10) < 7 || step + 1 == STEPS {
                world.hears();
                assert_eq!(world.holds, world.expected(), "seed {seed}, step {step}");
            }
        }
    }
}

/// B-16, F-16: the same for full states: the last one has everything that is for the client.
#[test]
fn full_states() {
    for seed in 0..200 {
        let mut world = World::new(seed, CDS, Dialect::Sotw);
        world.asked.insert("*");
        world.stage.cover(Vec::new());
        world.started = true;
        world.stage.becomes(None);
        for step in 0..STEPS {
            match world.random.below(3) {
                0 => world.becomes(),
                _ => world.news(),
            }
            let heard = world.stage.hears(world.env);
            if let Some(words) = heard.last() {
                world.holds.clear();
                for word in words.split_whitespace() {
                    let (called, body) = word.split_once('=').expect("a body");
                    let (_, env) = called.trim_end_matches(']').split_once('[').unwrap_or((called, ""));
                    let (name, _) = body.split_once('.').expect("a name");
                    world.holds.insert(name.to_owned(), (env.to_owned(), body.to_owned()));
                }
            }
            assert_eq!(world.holds, world.expected(), "seed {seed}, step {step}");
        }
    }
}
