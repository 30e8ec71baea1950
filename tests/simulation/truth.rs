// SPDX-License-Identifier: Apache-2.0
//! The content of a control plane, and how it changes: a cluster is created before a route leads to it, and removed after.
//!
//! Owns the resources of one origin. Does not know who asks for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use peers::session::State;

use super::body::{Content, Type};
use super::names::{self, anywhere, cluster, name, under};
use super::rng::Rng;

/// One change that an operator makes in one go.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A cluster and its endpoints appear.
    AddCluster(String),
    /// The route begins or ceases to lead to this cluster.
    Point(String, String, bool),
    DropCluster(String),
    /// A cluster goes although routes lead to it.
    Forsake(String),
    DropEndpoints(String),
    /// An assignment loses all its endpoints.
    Empty(String),
    /// New content of an existing resource.
    Touch(Type, String),
    Put(Type, String),
    Drop(Type, String),
    /// An older content comes back.
    Rollback(Type, String),
    /// New content that picky clients reject.
    Spoil(Type, String),
    /// Content that nobody rejects and that has no time to live.
    Mend(Type, String),
    /// A wildcard begins or ceases to cover it.
    Flip(Type, String),
    /// A cluster begins to use other endpoints.
    Rewire(String),
}

pub(crate) type Key = (Type, String);

/// The resources of one origin.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    resources: BTreeMap<Key, Arc<Content>>,
    /// The same as its control plane has it.
    state: State,
    past: BTreeMap<Key, Vec<Arc<Content>>>,
    revision: u64,
    ttls: bool,
    /// Whether endpoints are in lists of their own (LEDS).
    listed: bool,
    /// Whether clusters go before the routes that lead to them (D-03).
    hasty: bool,
    /// Whether wildcards cover everything, as at java-control-plane.
    whole: bool,
    /// The authorities under which it has names as well.
    authorities: &'static [&'static str],
}

const CLUSTERS: usize = 7;
const SHARED: &str = "shared";

impl Truth {
    /// `first` begins the origin's revisions, so that no two origins have equal content.
    pub(crate) fn new(first: u64, rng: &mut Rng) -> Self {
        let truth = Self {
            resources: BTreeMap::new(),
            state: State::new(),
            past: BTreeMap::new(),
            revision: first,
            ttls: rng.chance(20),
            listed: false,
            hasty: false,
            whole: false,
            authorities: &[],
        };
        truth.filled(rng)
    }

    /// One that also has names under authorities; no client rejects its content.
    pub(crate) fn under(authorities: &'static [&'static str], first: u64, rng: &mut Rng) -> Self {
        let truth = Self {
            resources: BTreeMap::new(),
            state: State::new(),
            past: BTreeMap::new(),
            revision: first,
            ttls: rng.chance(20),
            listed: false,
            hasty: false,
            whole: false,
            authorities,
        };
        let mut truth = truth.filled(rng);
        for authority in authorities {
            for kind in Type::ALL {
                for at in 0..rng.range(0, 3) {
                    truth.apply(&Step::Put(kind, under(authority, kind, at)), rng);
                }
            }
        }
        truth
    }

    /// The same with endpoints in lists of their own (LEDS), to which assignments refer.
    pub(crate) fn listing(mut self, rng: &mut Rng) -> Self {
        self.listed = true;
        let old: Vec<String> = self.of(Type::Eds).map(|content| content.name.clone()).collect();
        let anew = old.into_iter().map(|name| Step::Put(Type::Eds, name));
        let steps: Vec<Step> = anew.chain(self.list(30, rng)).collect();
        for step in steps {
            self.apply(&step, rng);
        }
        self
    }

    /// Plans changes of assignments and of the lists of endpoints to which they refer.
    fn list(&self, most: usize, rng: &mut Rng) -> Vec<Step> {
        let one = |rng: &mut Rng| {
            let kind = if rng.chance(25) { Type::Eds } else { Type::Leds };
            let name = match rng.pick(self.authorities) {
                Some(authority) if kind == Type::Leds => under(authority, kind, rng.below(12)),
                _ => anywhere(self.authorities, kind, rng.below(CLUSTERS), rng),
            };
            match rng.below(10) {
                0..=5 => Step::Put(kind, name),
                6 | 7 => Step::Touch(kind, name),
                _ => Step::Drop(kind, name),
            }
        };
        (0..rng.range(1, most)).map(|_| one(rng)).collect()
    }

    /// The same with times to live.
    pub(crate) fn mortal(mut self, rng: &mut Rng) -> Self {
        self.ttls = true;
        self.each(|content| content.ttl = rng.chance(40).then(|| Duration::from_secs(rng.range(5, 30) as u64)));
        self
    }

    /// The same, but the removal of a cluster is said before the routes that leave it, as by go-control-plane (D-03).
    pub(crate) fn hasty(mut self) -> Self {
        self.hasty = true;
        self
    }

    /// The same, but wildcards cover everything, as at java-control-plane.
    pub(crate) fn whole(mut self) -> Self {
        self.whole = true;
        self.each(|content| content.covered = true);
        self
    }

    fn each(&mut self, mut change: impl FnMut(&mut Content)) {
        for ((kind, _), mut content) in self.resources.clone() {
            change(Arc::make_mut(&mut content));
            self.insert(kind, content);
        }
    }

    /// Returns the content for another control plane, whose own changes begin with this revision.
    pub(crate) fn replica(&self, first: u64) -> Self {
        Self {
            revision: first,
            ..self.clone()
        }
    }

    /// Takes over all content that another control plane has now.
    pub(crate) fn adopt(&mut self, other: &Self) {
        self.resources.clone_from(&other.resources);
        self.state.clone_from(&other.state);
    }

    fn filled(self, rng: &mut Rng) -> Self {
        let mut truth = self;
        for at in 0..rng.below(CLUSTERS) {
            truth.apply(&Step::AddCluster(cluster(at)), rng);
        }
        for kind in [Type::Rds, Type::Lds, Type::Sds, Type::Odd] {
            for at in 0..rng.range(0, 3) {
                truth.apply(&Step::Put(kind, name(kind, at)), rng);
            }
        }
        truth
    }

    pub(crate) fn get(&self, kind: Type, name: &str) -> Option<&Arc<Content>> {
        self.resources.get(&(kind, name.to_owned()))
    }

    /// The members of a collection.
    pub(crate) fn members(&self, kind: Type, collection: &str) -> impl Iterator<Item = &Arc<Content>> {
        let all = names::is_collection(collection)
            .then(|| self.of(kind))
            .into_iter()
            .flatten();
        all.filter(move |content| names::covers(collection, &content.name))
    }

    pub(crate) fn of(&self, kind: Type) -> impl Iterator<Item = &Arc<Content>> {
        let from = (kind, String::new());
        self.resources
            .range(from..)
            .take_while(move |((other, _), _)| *other == kind)
            .map(|(_, content)| content)
    }

    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.resources.keys()
    }

    /// A random name; its resource may exist or not.
    fn any(&self, rng: &mut Rng) -> (Type, String) {
        let kind = *rng.pick(&Type::ALL).unwrap_or(&Type::Cds);
        let at = rng.below(CLUSTERS);
        match self.authorities {
            [] => (kind, name(kind, at)),
            authorities => (kind, anywhere(authorities, kind, at, rng)),
        }
    }

    /// Plans a change: its steps, each with its pause after the step before.
    pub(crate) fn plan(&self, rng: &mut Rng) -> Vec<(Duration, Step)> {
        let route = name(Type::Rds, rng.below(4));
        let some = cluster(rng.below(CLUSTERS));
        if self.hasty && rng.chance(50) {
            return self.leave(some, rng);
        }
        let steps = match self.listed && rng.chance(40) {
            true => self.list(6, rng),
            false => self.change(route, some, rng),
        };
        paced(steps, rng)
    }

    /// Plans the end of a cluster: first the cluster goes, then at once the routes that lead to it, and later it comes back.
    fn leave(&self, some: String, rng: &mut Rng) -> Vec<(Duration, Step)> {
        let routes = self.of(Type::Rds).filter(|content| content.refers.contains(&some));
        let routes = routes.map(|content| content.name.clone()).collect::<Vec<_>>();
        let back = routes.first().cloned().unwrap_or_else(|| name(Type::Rds, rng.below(4)));
        let points = routes.into_iter().map(|route| Step::Point(route, some.clone(), false));
        let mut steps = vec![(rng.millis(50, 3000), Step::Forsake(some.clone()))];
        steps.extend(points.map(|step| (rng.millis(0, 80), step)));
        steps.push((rng.millis(0, 5000), Step::AddCluster(some.clone())));
        steps.push((rng.millis(0, 300), Step::Point(back, some, true)));
        steps
    }

    fn change(&self, route: String, some: String, rng: &mut Rng) -> Vec<Step> {
        let any = |rng: &mut Rng| self.any(rng);
        match rng.below(16) {
            0..=2 => {
                let mut steps = vec![Step::AddCluster(some.clone()), Step::Point(route, some.clone(), true)];
                if rng.chance(40) {
                    steps.push(Step::Touch(Type::Cds, some));
                }
                steps
            }
            3..=5 => {
                let mut steps: Vec<Step> = self
                    .of(Type::Rds)
                    .filter(|content| content.refers.contains(&some))
                    .map(|content| Step::Point(content.name.clone(), some.clone(), false))
                    .collect();
                steps.push(Step::DropCluster(some.clone()));
                if rng.chance(40) {
                    steps.push(Step::Touch(Type::Rds, route));
                }
                if rng.chance(70) {
                    steps.push(Step::DropEndpoints(some));
                }
                steps
            }
            6 | 7 => (0..rng.range(2, 12))
                .map(|_| {
                    let (kind, name) = any(rng);
                    Step::Touch(kind, name)
                })
                .collect(),
            8 => {
                let (kind, name) = any(rng);
                vec![Step::Drop(kind, name.clone()), Step::Put(kind, name)]
            }
            9 => {
                let (kind, name) = any(rng);
                let cure = match rng.below(3) {
                    0 => Step::Drop(kind, name.clone()),
                    1 => Step::Rollback(kind, name.clone()),
                    _ => Step::Mend(kind, name.clone()),
                };
                let harm = if self.authorities.is_empty() {
                    Step::Spoil(kind, name)
                } else {
                    Step::Touch(kind, name)
                };
                vec![harm, cure]
            }
            10 => {
                let (kind, name) = any(rng);
                vec![Step::Rollback(kind, name)]
            }
            11 => {
                let (kind, name) = any(rng);
                vec![Step::Flip(kind, name)]
            }
            12 => vec![Step::Rewire(some)],
            13 => vec![Step::Touch(Type::Cds, some)],
            14 => {
                let (kind, name) = any(rng);
                vec![Step::Put(kind, name)]
            }
            _ => {
                let (kind, name) = any(rng);
                vec![Step::Drop(kind, name)]
            }
        }
    }

    /// Carries out one step; returns whether it changed anything.
    pub(crate) fn apply(&mut self, step: &Step, rng: &mut Rng) -> bool {
        match step {
            Step::AddCluster(name) => {
                self.put(Type::Cds, name, rng);
                let endpoints = self.get(Type::Cds, name).and_then(|content| content.endpoints.clone());
                if let Some(endpoints) = endpoints.filter(|name| self.get(Type::Eds, name).is_none()) {
                    self.put(Type::Eds, &endpoints, rng);
                }
                true
            }
            Step::Point(route, cluster, on) => self.point(route, cluster, *on),
            Step::DropCluster(name) | Step::Drop(Type::Cds, name) => {
                let used = self.of(Type::Rds).any(|content| content.refers.contains(name));
                !used && self.drop_key(Type::Cds, name)
            }
            Step::Forsake(name) => self.drop_key(Type::Cds, name),
            Step::DropEndpoints(name) => {
                let used = self
                    .of(Type::Cds)
                    .any(|content| content.endpoints.as_ref() == Some(name));
                !used && self.drop_key(Type::Eds, name)
            }
            Step::Empty(name) => self.edit(Type::Eds, name, |content| content.empty = true),
            Step::Drop(kind, name) => self.drop_key(*kind, name),
            Step::Put(kind, name) => self.put(*kind, name, rng),
            Step::Touch(kind, name) => self.edit(*kind, name, |_| {}),
            Step::Spoil(kind, name) => self.edit(*kind, name, |content| content.bad = true),
            Step::Mend(kind, name) => match self.get(*kind, name) {
                Some(content) if content.bad || content.ttl.is_some() => self.edit(*kind, name, |content| {
                    (content.bad, content.ttl) = (false, None);
                }),
                Some(_) | None => false,
            },
            // A wildcard covers only names of old style.
            Step::Flip(_, name) if self.whole || name.starts_with("xdstp:") => false,
            Step::Flip(kind, name) => self.edit(*kind, name, |content| content.covered = !content.covered),
            Step::Rewire(name) => {
                let shared = rng.chance(50);
                self.edit(Type::Cds, name, |content| {
                    content.endpoints = match content.endpoints {
                        Some(_) if !shared => None,
                        Some(_) => Some(SHARED.to_owned()),
                        None => Some(content.name.clone()),
                    };
                })
            }
            Step::Rollback(kind, name) => self.rollback(*kind, name, rng),
        }
    }

    fn put(&mut self, kind: Type, name: &str, rng: &mut Rng) -> bool {
        let clusters: Vec<String> = self.of(Type::Cds).map(|content| content.name.clone()).collect();
        let refers = match kind {
            Type::Lds => vec![names::name(Type::Rds, rng.below(4))],
            Type::Rds => rng.pick(&clusters).cloned().into_iter().collect(),
            Type::Eds if self.listed && rng.chance(80) => {
                let at = rng.below(3);
                let authority = rng.pick(self.authorities);
                authority
                    .map(|authority| names::endpoints(authority, at))
                    .into_iter()
                    .collect()
            }
            Type::Cds | Type::Eds | Type::Leds | Type::Sds | Type::Odd => Vec::new(),
        };
        let endpoints = (kind == Type::Cds && rng.chance(80)).then(|| {
            let own = rng.chance(80);
            match name.strip_prefix("xdstp://").and_then(|rest| rest.split_once('/')) {
                Some((authority, _)) => under(authority, Type::Eds, rng.below(CLUSTERS)),
                None if own => name.to_owned(),
                None => SHARED.to_owned(),
            }
        });
        let content = Content {
            name: name.to_owned(),
            revision: 0,
            covered: (rng.chance(85) || self.whole) && !name.starts_with("xdstp:"),
            ttl: (self.ttls && rng.chance(40)).then(|| Duration::from_secs(rng.range(5, 30) as u64)),
            bad: false,
            empty: false,
            refers,
            endpoints,
        };
        self.set(kind, content)
    }

    fn edit(&mut self, kind: Type, name: &str, change: impl FnOnce(&mut Content)) -> bool {
        let Some(old) = self.get(kind, name) else {
            return false;
        };
        let mut content = (**old).clone();
        change(&mut content);
        self.set(kind, content)
    }

    fn point(&mut self, route: &str, cluster: &str, on: bool) -> bool {
        let exists = self.get(Type::Cds, cluster).is_some();
        let leads = self
            .get(Type::Rds, route)
            .is_some_and(|content| content.refers.iter().any(|name| name == cluster));
        if leads == on || on && !exists {
            return false;
        }
        self.edit(Type::Rds, route, |content| {
            content.refers.retain(|name| name != cluster);
            if on {
                content.refers.push(cluster.to_owned());
            }
        })
    }

    fn rollback(&mut self, kind: Type, name: &str, rng: &mut Rng) -> bool {
        let key = (kind, name.to_owned());
        let past = self.past.get(&key).map_or(&[][..], Vec::as_slice);
        let Some(old) = rng.pick(past).cloned() else {
            return false;
        };
        let now = self.resources.get(&key);
        // All clusters of a route must exist.
        let sound = kind != Type::Rds || old.refers.iter().all(|name| self.get(Type::Cds, name).is_some());
        if now.is_none() || !sound || now.is_some_and(|now| now.revision == old.revision) {
            return false;
        }
        self.insert(kind, old);
        true
    }

    fn set(&mut self, kind: Type, content: Content) -> bool {
        self.revision += 1;
        let content = Content {
            revision: self.revision,
            ..content
        };
        let key = (kind, content.name.clone());
        if let Some(old) = self.insert(kind, Arc::new(content)) {
            self.past.entry(key).or_default().push(old);
        }
        true
    }

    fn insert(&mut self, kind: Type, content: Arc<Content>) -> Option<Arc<Content>> {
        let of_kind = self.state.entry(kind.url().to_owned()).or_default();
        of_kind.insert(content.name.clone(), content.resource(kind));
        self.resources.insert((kind, content.name.clone()), content)
    }

    fn drop_key(&mut self, kind: Type, name: &str) -> bool {
        if let Some(of_kind) = self.state.get_mut(kind.url()) {
            of_kind.remove(name);
        }
        self.resources.remove(&(kind, name.to_owned())).is_some()
    }
}

/// Adds the pauses between the steps; some operators are in a hurry.
fn paced(steps: Vec<Step>, rng: &mut Rng) -> Vec<(Duration, Step)> {
    let hasty = rng.chance(50);
    let pause = |rng: &mut Rng| if hasty { rng.millis(0, 30) } else { rng.millis(50, 3000) };
    steps.into_iter().map(|step| (pause(rng), step)).collect()
}
