// SPDX-License-Identifier: Apache-2.0
//! What a view of the relay knows: the origin's content, brought into a `Cut` by the same `Changes` that an upstream stream
//! makes.
//!
//! Owns what the origin has, what it sends and when. Knows nothing of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use distributary::xds::{
    Changes, Cut, Expiry, Known, Name, Phase, Reason, Resource, ResourceError, ResourceParts, ServerState, State,
    Target, TypeUrl, Update,
};

use crate::text::{Spec, type_url};
use crate::wire::Body;

/// How long the relay waits for an origin that does not say that a name does not exist (E-08).
const DOES_NOT_EXIST: Duration = Duration::from_secs(15);

/// One origin and what the relay has heard from it.
pub(crate) struct Origin {
    truth: BTreeMap<TypeUrl, BTreeMap<String, Truth>>,
    cut: Cut,
    wanted: BTreeMap<(TypeUrl, Target), Instant>,
    silent: BTreeSet<TypeUrl>,
    /// Types whose wildcard is older than what is sent by name.
    late: BTreeSet<TypeUrl>,
    /// Types whose names are older than what the wildcard brings.
    behind: BTreeSet<TypeUrl>,
    /// Types whose wildcard is still coming in.
    open: BTreeSet<TypeUrl>,
    /// The errors of names: their codes.
    errors: BTreeMap<(TypeUrl, String), i32>,
    /// Whether it speaks SotW: then it never reports that a name does not exist.
    sotw: bool,
    /// Whether it was lost since it was last looked at.
    fell: bool,
}

struct Truth {
    resource: Arc<Resource>,
    expiry: Option<Expiry>,
    aside: bool,
}

/// Names of one type for which something changed.
pub(crate) type Changed = (TypeUrl, Vec<Name>);

/// gRPC's UNAVAILABLE.
const UNAVAILABLE: i32 = 14;

impl Origin {
    pub(crate) fn new() -> Self {
        Self {
            truth: BTreeMap::new(),
            cut: Cut::default().with_server_state(ServerState::Up),
            wanted: BTreeMap::new(),
            silent: BTreeSet::new(),
            late: BTreeSet::new(),
            behind: BTreeSet::new(),
            open: BTreeSet::new(),
            errors: BTreeMap::new(),
            sotw: false,
            fell: false,
        }
    }

    pub(crate) const fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The relay starts anew: it knows nothing and asks for nothing.
    pub(crate) fn forget(&mut self) {
        self.cut = Cut::default().with_server_state(self.cut.server_state());
        self.wanted.clear();
    }

    /// A client wants this.
    pub(crate) fn want(&mut self, type_url: TypeUrl, target: Target, now: Instant) {
        self.wanted.entry((type_url, target)).or_insert(now);
    }

    /// One clause of a line: `put cds a@1`, `drop cds a`, `silent cds`, `speaks`, `late cds`, `behind cds`, `punctual cds`, `open cds`,
    /// `complete cds`, `lost`, `trying`, `back`, `talks sotw`, `fails cds a=5`.
    pub(crate) fn clause(&mut self, words: &[&str], now: Instant) {
        let (verb, words) = words.split_first().expect("a verb");
        let topic = words.first().copied();
        let named = || type_url(topic.expect("a type"));
        match *verb {
            "put" => words[1..]
                .iter()
                .for_each(|word| self.put(named(), &Spec::parse(word), now)),
            "drop" => {
                let all = self.truth.entry(named()).or_default();
                words[1..]
                    .iter()
                    .for_each(|name| assert!(all.remove(*name).is_some(), "there is no `{name}`"));
            }
            "fails" => words[1..].iter().for_each(|word| {
                let (name, code) = word.rsplit_once('=').expect("a name and a code");
                self.errors
                    .insert((named(), name.to_owned()), code.parse().expect("a code"));
            }),
            "silent" => drop(self.silent.insert(named())),
            "speaks" => self
                .silent
                .retain(|silent| topic.is_some_and(|topic| *silent != type_url(topic))),
            "late" => drop(self.late.insert(named())),
            "behind" => drop(self.behind.insert(named())),
            "punctual" => drop((self.late.remove(&named()), self.behind.remove(&named()))),
            "open" => drop(self.open.insert(named())),
            "complete" => drop(self.open.remove(&named())),
            "lost" => (self.cut, self.fell) = (self.cut.with_server_state(ServerState::Failing), true),
            "trying" => self.cut = self.cut.with_server_state(ServerState::Trying),
            "back" => self.cut = self.cut.with_server_state(ServerState::Up),
            "talks" => self.sotw = topic == Some("sotw"),
            other => panic!("an origin does not know `{other}`"),
        }
    }

    fn put(&mut self, type_url: TypeUrl, spec: &Spec, now: Instant) {
        self.errors.remove(&(type_url.clone(), spec.name.clone()));
        let all = self.truth.entry(type_url.clone()).or_default();
        let beat = all
            .get(&spec.name)
            .and_then(|old| old.expiry)
            .map_or(0, |expiry| expiry.beat + 1);
        let truth = Truth {
            resource: Arc::new(resource(&type_url, spec, now)),
            expiry: spec.ttl.map(|ttl| Expiry { at: now + ttl, beat }),
            aside: spec.aside,
        };
        all.insert(spec.name.clone(), truth);
    }

    /// When the next timer is due.
    pub(crate) fn events(&self) -> Vec<Instant> {
        let expiries = self.truth.values().flat_map(|all| all.values());
        let expiries = expiries.filter_map(|truth| Some(truth.expiry?.at));
        let silences = self
            .wanted
            .values()
            .filter(|_| self.sotw)
            .map(|since| *since + DOES_NOT_EXIST);
        expiries.chain(silences).collect()
    }

    /// Sends the relay, in one message per type and in one cut, everything that the relay asked for and was not sent yet.
    pub(crate) fn tell(&mut self, now: Instant) -> Vec<Changed> {
        if std::mem::take(&mut self.fell) {
            return self.lacking();
        }
        if !self.cut.server_state().reachable() {
            return Vec::new();
        }
        let types: BTreeSet<TypeUrl> = self.wanted.keys().map(|(type_url, _)| type_url.clone()).collect();
        let mut changed = Vec::new();
        for type_url in types.into_iter().filter(|type_url| !self.silent.contains(type_url)) {
            for part in [Self::covered, Self::named] {
                let Some(changes) = part(self, &type_url, now) else {
                    continue;
                };
                let (cut, names) = self.cut.with(&changes);
                self.cut = cut;
                if !changes.updates.is_empty() || changes.complete.is_some() {
                    changed.push((type_url.clone(), names));
                }
            }
        }
        changed
    }

    /// What is wanted and unknown: who wants it is woken when the server fails.
    fn lacking(&self) -> Vec<Changed> {
        let unknown = |(type_url, target): &(TypeUrl, Target)| {
            let slot = self.cut.slot(type_url);
            match target {
                Target::Wildcard => slot.is_none_or(|slot| slot.wildcard.is_none()).then(Vec::new),
                Target::Name(name) => slot
                    .is_none_or(|slot| slot.known(name).is_none())
                    .then(|| vec![name.clone()]),
            }
        };
        let all = self.wanted.keys();
        all.filter_map(|key| Some((key.0.clone(), unknown(key)?))).collect()
    }

    /// What the wildcard of the type covers, as a difference from what the relay knows.
    fn covered(&self, type_url: &TypeUrl, now: Instant) -> Option<Changes> {
        self.wanted.get(&(type_url.clone(), Target::Wildcard))?;
        if self.late.contains(type_url) {
            return None;
        }
        let known = self.cut.slot(type_url).and_then(|slot| slot.wildcard.clone());
        let known = known.unwrap_or_else(|| Arc::new(State::new(type_url.clone())));
        // A type that the server refuses.
        if let Some(code) = self.errors.get(&(type_url.clone(), Name::WILDCARD.to_owned())) {
            let error = Arc::new(ResourceError::new(*code, "it is wrong"));
            let update = Update::Error(Name::from(Name::WILDCARD), Some(error));
            return Some(Changes::of((type_url.clone(), true), vec![update]));
        }
        let members = self
            .truth
            .get(type_url)
            .into_iter()
            .flatten()
            .filter(|(_, truth)| !truth.aside);
        let members: BTreeMap<Name, &Truth> = members.map(|(name, truth)| (name.as_str().into(), truth)).collect();
        let mut updates = Vec::new();
        for (name, truth) in &members {
            updates.extend(update(truth, true, known.known(name), known.expiry(name), now));
        }
        for resource in known
            .resources()
            .filter(|resource| !members.contains_key(resource.name()))
        {
            // K-05: a name that leaves the wildcard is no longer covered by it, and nothing else is known of it.
            updates.push(Update::Forget(resource.name().clone()));
        }
        let complete = !self.open.contains(type_url);
        let message = Changes {
            type_url: type_url.clone(),
            wildcard: true,
            updates,
            complete: (known.complete() != complete).then_some(complete),
            answered: Some(true),
            phase: Phase::Steady,
        };
        Some(message)
    }

    /// The resources of the names that were asked for, as a difference from what the relay knows.
    fn named(&self, type_url: &TypeUrl, now: Instant) -> Option<Changes> {
        if self.behind.contains(type_url) {
            return None;
        }
        let slot = self.cut.slot(type_url);
        let complete = slot
            .and_then(|slot| slot.wildcard.clone())
            .filter(|state| state.complete());
        let mut updates = Vec::new();
        let mut asked = false;
        for ((_, target), since) in self.wanted.iter().filter(|((of, _), _)| of == type_url) {
            let Target::Name(name) = target else { continue };
            asked = true;
            let wrong = self.errors.get(&(type_url.clone(), name.to_string()));
            let error = wrong.map(|code| Arc::new(ResourceError::new(*code, "it is wrong")));
            // E-09: that a server is unavailable says nothing about the resource.
            let unavailable = wrong == Some(&UNAVAILABLE);
            let told = slot.and_then(|slot| slot.named.error(name));
            if told != error.as_ref() {
                let over = error.is_none();
                let absent = self.find(type_url, name).is_none() && !unavailable;
                updates.extend(absent.then(|| Update::Absent(name.clone(), Reason::Said)));
                updates.push(Update::Error(name.clone(), error));
                if !over {
                    continue;
                }
            }
            if unavailable && self.find(type_url, name).is_none() {
                continue;
            }
            if name.is_collection() {
                updates.extend(self.collected(type_url, name, *since, now));
                continue;
            }
            let known = slot.and_then(|slot| slot.named.known(name));
            // Coverage: a name that a complete wildcard covers is not asked for by name.
            if known.is_none() && complete.as_ref().is_some_and(|state| state.resource(name).is_some()) {
                continue;
            }
            match self.find(type_url, name) {
                Some(truth) => {
                    let expiry = slot.and_then(|slot| slot.named.expiry(truth.resource.name()));
                    updates.extend(update(truth, false, known, expiry, now));
                    // The resource that the name meant before is removed in the same message.
                    if let Some(Known::Present(before)) = known
                        && before.name() != truth.resource.name()
                        && self.find(type_url, before.name()).is_none()
                    {
                        updates.push(Update::Forget(before.name().clone()));
                    }
                }
                None => updates.extend(self.missing(type_url, name, known, *since, now)),
            }
        }
        // E-07: in SotW an answer for a type without full states says nothing about the names that it omits.
        asked.then(|| Changes {
            type_url: type_url.clone(),
            wildcard: false,
            updates,
            complete: None,
            answered: Some(true),
            phase: Phase::Steady,
        })
    }

    /// The members of a collection (C-22).
    fn collected(&self, type_url: &TypeUrl, collection: &Name, since: Instant, now: Instant) -> Vec<Update> {
        let nothing = State::new(type_url.clone());
        let known = self.cut.slot(type_url).map_or(&nothing, |slot| &slot.named);
        let all = self.truth.get(type_url).into_iter().flatten();
        let covers = collection.coverage();
        let members: BTreeMap<Name, &Truth> = all
            .map(|(name, truth)| (Name::from(name.as_str()), truth))
            .filter(|(name, _)| covers(name))
            .collect();
        let mut updates = Vec::new();
        for (name, truth) in &members {
            updates.extend(update(truth, true, known.known(name), known.expiry(name), now));
        }
        let gone = known.members(collection).map(|resource| resource.name());
        let gone = gone.filter(|name| !members.contains_key(*name));
        updates.extend(gone.cloned().map(Update::Forget));
        if !known.whole(collection) && !self.open.contains(type_url) {
            updates.push(Update::Whole(collection.clone()));
        } else if members.is_empty() && known.known(collection).is_none() && now >= since + DOES_NOT_EXIST {
            updates.push(Update::Absent(collection.clone(), Reason::TimedOut));
        }
        updates
    }

    fn missing(
        &self,
        type_url: &TypeUrl,
        name: &Name,
        known: Option<&Known>,
        since: Instant,
        now: Instant,
    ) -> Vec<Update> {
        let reason = match known {
            Some(Known::Absent(_) | Known::Held(_)) => return Vec::new(),
            Some(Known::Present(_)) if !self.sotw || type_url.traits().full_state => Reason::Said,
            Some(Known::Present(_)) => return Vec::new(),
            None if !self.sotw => Reason::Said,
            None if now >= since + DOES_NOT_EXIST => Reason::TimedOut,
            None => return Vec::new(),
        };
        let mut updates = vec![Update::Absent(name.clone(), reason)];
        if let Some(Known::Present(resource)) = known
            && resource.name() != name
            && !self.asked(type_url, resource.name())
        {
            updates.insert(0, Update::Forget(resource.name().clone()));
        }
        updates
    }

    /// Whether the resource under this name was asked for, by any of its names.
    fn asked(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let found = self.find(type_url, name).map(|truth| &truth.resource);
        let mut names = found.into_iter().flat_map(|it| it.aliases().iter().chain([it.name()]));
        names.any(|name| {
            self.wanted
                .contains_key(&(type_url.clone(), Target::Name(name.clone())))
        })
    }

    fn find(&self, type_url: &TypeUrl, name: &Name) -> Option<&Truth> {
        let all = self.truth.get(type_url)?;
        let aka = |truth: &&Truth| truth.resource.aliases().contains(name);
        // a resource without a name matches all names.
        let nameless = || all.get("").filter(|_| type_url.traits().nameless);
        all.get(name.as_str())
            .or_else(|| all.values().find(aka))
            .or_else(nameless)
    }
}

fn update(truth: &Truth, wildcard: bool, known: Option<&Known>, old: Option<Expiry>, now: Instant) -> Option<Update> {
    let resource = &truth.resource;
    if truth.expiry.is_some_and(|expiry| expiry.at <= now) {
        let gone = match known {
            Some(Known::Absent(Reason::Expired)) => return None,
            None if wildcard => return None,
            Some(_) | None => resource.name().clone(),
        };
        return Some(if wildcard {
            Update::Forget(gone)
        } else {
            Update::Absent(gone, Reason::Expired)
        });
    }
    let same = known == Some(&Known::Present(resource.clone())) && old == truth.expiry;
    (!same).then(|| Update::Put(resource.clone(), truth.expiry))
}

pub(crate) fn resource(type_url: &TypeUrl, spec: &Spec, now: Instant) -> Resource {
    let mut aliases: Vec<Name> = spec.aliases.iter().map(|alias| alias.as_str().into()).collect();
    aliases.sort();
    let parts = ResourceParts {
        type_url,
        name: spec.name.as_str().into(),
        aliases,
        passed_on: &[],
        body: &Body::bytes(spec),
        endpoints: spec.endpoints.as_deref().map(Name::from),
        received: now,
    };
    Resource::new(parts, 0)
}
