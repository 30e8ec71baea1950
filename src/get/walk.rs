// SPDX-License-Identifier: Apache-2.0
//! What a client would come to know of a server: from all listeners and clusters, or from some listeners, to what they name.
//!
//! Owns the way from one resource to the next. Routes, clusters and endpoints are found by the relay's own reading of references; what it
//! has no use for itself (secrets, extensions, scopes, virtual hosts) by how the API writes that it is discovered. Compares nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::peer::{AskedPeer, PeerLine};
use crate::cache::Full;
use crate::json::{Schemas, Secrets};
use crate::xds::{Cut, Known, Name, Resource, Target, TypeUrl, Version};

/// A resource, by its type and its name.
pub type ReadKey = (TypeUrl, Name);
type WantedTarget = (TypeUrl, Target);
/// What the server has said, and what it is not asked for.
type SeenNames = (Arc<Cut>, BTreeMap<TypeUrl, Arc<str>>);

/// What is known at one moment.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// What was asked for; `None`: it does not exist.
    known: BTreeMap<ReadKey, Option<Arc<Resource>>>,
    wanted: BTreeSet<WantedTarget>,
    /// What has no answer so far.
    open: BTreeSet<WantedTarget>,
}

/// What resources name, so that each content is read once.
pub struct Ways {
    schemas: Schemas,
    named: BTreeMap<Version, Arc<[WantedTarget]>>,
    follows: bool,
}

/// A server that is walked.
pub struct Walk {
    server: String,
    line: PeerLine,
    patience: Duration,
    roots: Vec<WantedTarget>,
    seen: Option<SeenNames>,
    reached: Reached,
    moved: Instant,
}

/// More contents than that are read anew.
const WAYS_MAX: usize = 1 << 20;

impl Ways {
    /// Creates what has read nothing.
    #[must_use]
    pub const fn new(schemas: Schemas) -> Self {
        Self {
            schemas,
            named: BTreeMap::new(),
            follows: true,
        }
    }

    /// Creates what leads nowhere: nothing is asked for but what a walk begins with.
    #[must_use]
    pub fn nowhere() -> Self {
        Self {
            follows: false,
            ..Self::new(Schemas::standard())
        }
    }

    fn of(&mut self, type_url: &TypeUrl, resource: &Resource) -> Arc<[WantedTarget]> {
        if !self.follows {
            return Arc::default();
        }
        if let Some(named) = self.named.get(&resource.version()) {
            return named.clone();
        }
        if self.named.len() >= WAYS_MAX {
            self.named.clear();
        }
        let mut named = Vec::new();
        let mut put = |short: &str, name: &Name| {
            named.extend(TypeUrl::called(short).map(|of| (of, Target::Name(name.clone()))));
        };
        if let Some(found) = resource.references(type_url.kind()) {
            found.routes.iter().for_each(|name| put("rds", name));
            found.clusters.iter().for_each(|name| put("cds", name));
        }
        resource.endpoints().into_iter().for_each(|name| put("eds", name));
        if !type_url.kind().is_leaf() {
            let read = self
                .schemas
                .resource_json(type_url.url(), &resource.body(), Secrets::Redact);
            let value = read.ok().and_then(|json| serde_json::from_slice(&json.text).ok());
            discovered(&value.unwrap_or(Value::Null), &mut named);
        }
        let named: Arc<[WantedTarget]> = named.into();
        self.named.insert(resource.version(), named.clone());
        named
    }
}

/// Adds what the API writes as discovered: beside a source of configuration stands a name, or it is about all of a type.
fn discovered(value: &Value, into: &mut Vec<WantedTarget>) {
    match value {
        Value::Object(members) => {
            let name = members.get("name").and_then(Value::as_str).unwrap_or_default();
            for (key, short, named) in [
                ("sds_config", "sds", true),
                ("config_discovery", "ecds", true),
                ("scoped_rds", "srds", false),
                ("vhds", "vhds", false),
            ] {
                let Some((source, of)) = members.get(key).zip(TypeUrl::called(short)) else {
                    continue;
                };
                let source = source.get("config_source").unwrap_or(source);
                let is_file = ["path", "path_config_source"]
                    .iter()
                    .any(|key| source.get(key).is_some());
                match named {
                    _ if is_file => {}
                    true if name.is_empty() => {}
                    true => into.push((of.clone(), Target::Name(Name::read(name, &of)))),
                    false => into.push((of, Target::Wildcard)),
                }
            }
            members.values().for_each(|member| discovered(member, into));
        }
        Value::Array(items) => items.iter().for_each(|item| discovered(item, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl Reached {
    /// Follows what is known of a server from these roots on. `unserved`: what the server has no answer for.
    #[must_use]
    pub fn of(cut: &Cut, roots: &[WantedTarget], unserved: &BTreeMap<TypeUrl, Arc<str>>, ways: &mut Ways) -> Self {
        let mut reached = Self::default();
        let mut queue = roots.to_vec();
        while let Some(wanted) = queue.pop() {
            let (type_url, target) = &wanted;
            let all = (type_url.clone(), Target::Wildcard);
            // A client that asks for all of a type asks for none of it by name.
            if roots.contains(&all) && *target != Target::Wildcard || !reached.wanted.insert(wanted.clone()) {
                continue;
            }
            let slot = cut.slot(type_url);
            let mut found: Vec<&Arc<Resource>> = Vec::new();
            let mut is_open = false;
            match target {
                Target::Wildcard => {
                    let state = slot.and_then(|slot| slot.wildcard.as_ref());
                    found.extend(state.iter().flat_map(|state| state.resources()));
                    is_open = !state.is_some_and(|state| state.complete());
                }
                Target::Name(name) => match slot.and_then(|slot| slot.known(name)) {
                    Some(Known::Present(resource)) => found.push(resource),
                    Some(Known::Absent(_)) => drop(reached.known.insert((type_url.clone(), name.clone()), None)),
                    None | Some(Known::Held(_)) => is_open = true,
                },
            }
            if is_open && !unserved.contains_key(type_url) {
                reached.open.insert(wanted.clone());
            }
            for resource in found {
                let key = (type_url.clone(), resource.name().clone());
                let before = reached.known.insert(key, Some(resource.clone()));
                if before.is_none_or(|before| before.is_none()) {
                    queue.extend(ways.of(type_url, resource).iter().cloned());
                }
            }
        }
        reached
    }

    /// The keys that are known, and those of which it is known that they do not exist.
    pub fn keys(&self) -> impl Iterator<Item = &ReadKey> {
        self.known.keys()
    }

    /// Returns what is known of a key: `None` if nothing is, because nothing that is there names it.
    #[must_use]
    pub fn known(&self, key: &ReadKey) -> Option<Option<&Arc<Resource>>> {
        let whole = || self.wanted.contains(&(key.0.clone(), Target::Wildcard)).then_some(None);
        self.known.get(key).map(Option::as_ref).or_else(whole)
    }

    /// Returns the types of which not all resources have come.
    pub fn unfinished(&self) -> impl Iterator<Item = &TypeUrl> {
        let all = self.open.iter().filter(|(_, target)| *target == Target::Wildcard);
        all.map(|(type_url, _)| type_url)
    }

    /// Whether there is a resource of this type.
    #[must_use]
    pub fn has_any(&self, type_url: &TypeUrl) -> bool {
        let known = self.known.iter().filter(|((of, _), _)| of == type_url);
        known.into_iter().any(|(_, resource)| resource.is_some())
    }
}

impl Walk {
    /// Begins to walk from these roots. The server is asked while the future runs.
    pub fn begin(
        peer: &AskedPeer,
        roots: Vec<(TypeUrl, Target)>,
        patience: Duration,
        now: Instant,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let (line, writer) = peer.call(patience);
        let walk = Self {
            server: peer.server.clone(),
            line,
            patience,
            roots,
            seen: None,
            reached: Reached::default(),
            moved: now,
        };
        (walk, writer.run())
    }

    /// Goes on with what the server has said meanwhile. Returns whether that was anything.
    ///
    /// # Errors
    /// There are too many names.
    pub fn look(&mut self, ways: &mut Ways, now: Instant) -> Result<bool, Full> {
        let (cut, unserved) = (self.line.cut(), self.line.unserved());
        let is_seen = |seen: &SeenNames| Arc::ptr_eq(&seen.0, &cut) && seen.1 == unserved;
        if self.seen.as_ref().is_some_and(is_seen) {
            return Ok(false);
        }
        let reached = Reached::of(&cut, &self.roots, &unserved, ways);
        for (type_url, target) in reached.wanted.difference(&self.reached.wanted) {
            self.line.want(type_url, target.clone(), true)?;
        }
        for (type_url, target) in self.reached.wanted.difference(&reached.wanted) {
            self.line.want(type_url, target.clone(), false)?;
        }
        if reached.wanted != self.reached.wanted || reached.open != self.reached.open {
            self.moved = now;
        }
        self.reached = reached;
        self.seen = Some((cut, unserved));
        Ok(true)
    }

    /// The server, as it was written.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What is known now.
    #[must_use]
    pub const fn reached(&self) -> &Reached {
        &self.reached
    }

    /// Whether the server has answered all, or is silent about the rest.
    #[must_use]
    pub fn is_settled(&self, now: Instant) -> bool {
        self.seen.is_some() && (self.reached.open.is_empty() || self.is_silent(now))
    }

    fn is_silent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.moved) > self.patience
    }

    /// Returns why nothing can be said of the server, if that is so.
    #[must_use]
    pub fn trouble(&self, now: Instant) -> Option<String> {
        let silent = || {
            let within = self.patience;
            let words = || format!("it did not answer within {within:?}; raise --timeout if it needs longer");
            let is_deaf = self.is_silent(now) && !self.line.is_answering();
            is_deaf.then(|| self.line.unanswered(within).unwrap_or_else(words))
        };
        let words = self.line.error().or_else(silent)?;
        Some(format!("{}: {words}", self.server))
    }

    /// Returns why responses were rejected as invalid, by their types.
    #[must_use]
    pub fn rejected(&self) -> BTreeMap<String, String> {
        self.line.rejected()
    }
}

/// Returns where a client begins: an Envoy with all listeners and clusters, gRPC with the listeners of its targets.
#[must_use]
pub fn roots(listeners: &[String]) -> Vec<WantedTarget> {
    let lds = TypeUrl::called("lds");
    let named = |name: &String| Some((lds.clone()?, Target::Name(Name::read(name, lds.as_ref()?))));
    let all = ["lds", "cds"].into_iter().filter_map(TypeUrl::called);
    match listeners {
        [] => all.map(|type_url| (type_url, Target::Wildcard)).collect(),
        listeners => listeners.iter().filter_map(named).collect(),
    }
}
