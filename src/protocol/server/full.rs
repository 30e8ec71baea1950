//! SotW responses that list all resources: the client deletes what is missing in one (B-16).
//!
//! Owns the rule that nothing is left out because the relay does not know it. Knows nothing of partial answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::asked_collections::Extent;
use super::compose::{Allowed, Composed, Step};
use super::subscription::{Current, Subscription};
use xds::{
    Answers, Batch, Difference, Errors, Extra, Held, Item, Known, Name, Reason, Resource, Seen, State, TypeSight,
    Version,
};

/// The part of a full state for names that the client asked for.
#[derive(Default)]
struct Named {
    listed: BTreeMap<Name, Arc<Resource>>,
    /// Resources that are gone, but listed until other types do not need them any more.
    going: Vec<Arc<Resource>>,
    holds: Vec<(Name, Held)>,
    changed: bool,
    removed: bool,
    unknown: bool,
    /// G-20: whether anything that the client may hold is unknown.
    unsure: bool,
    /// Whether a heartbeat must be sent.
    beat: bool,
    since: Option<Instant>,
}

/// The difference between the current full state and what the client holds.
pub(super) struct FullChanges<'a> {
    state: Option<&'a Arc<State>>,
    difference: Arc<Difference>,
    named: Named,
    errors: Errors,
    /// Whether the state is sent whatever the client holds.
    forced: bool,
    /// Resources that the wildcard lost, if that takes anything from the client.
    lost: Option<Arc<Extra>>,
    changed: bool,
    /// Whether nothing can be sent yet, because the state is not completely known.
    waits: bool,
}

impl FullChanges<'_> {
    /// Whether it adds, changes or answers anything.
    pub(super) fn adds(&self) -> bool {
        self.forced || self.changed || !self.errors.is_empty()
    }

    /// Whether it takes anything from the client.
    fn removes(&self) -> bool {
        self.lost.is_some() || self.named.removed
    }
}

impl Subscription {
    /// Compares everything that the client asks for with what it holds.
    pub(super) fn look_at_all<'a>(&self, slot: TypeSight<'a>, answers: &impl Answers) -> FullChanges<'a> {
        let state = slot.wildcard().filter(|_| self.wildcard);
        // B-20, G-20: an empty or incomplete state is sent only once it is certain that nothing is missing. K-16: content from an
        // earlier run of the relay deletes nothing at a client whose first request has another version.
        let state = state.filter(|state| state.complete() && !(state.stale() && self.brought_other(state)));
        let difference = state.map_or_else(
            || Arc::new(Difference::nothing()),
            |state| answers.difference(self.covered.seen(), state),
        );
        let named = self.look_at_names(slot);
        // K-05: a resource that the wildcard lost stays if the client asked for it by name.
        let stays = |name: &Name| named.listed.contains_key(name);
        let lost = difference.removed().filter(|extra| !extra.names().keys().all(stays));
        let mut errors = self.due_errors(slot);
        errors.retain(|name, _| slot.resource(name).is_none());
        FullChanges {
            state,
            errors,
            forced: state.is_some() && self.covered.is_owed()
                || self.owed.due().any(|name| slot.resource(name).is_some())
                || self.owes_known_collection(slot),
            lost: lost.cloned(),
            // A resource that was sent by name is already held when the wildcard brings it as well.
            changed: named.changed || !difference.changed().iter().all(|resource| self.holds_by_name(resource)),
            waits: self.wildcard && state.is_none() || named.unsure,
            difference,
            named,
        }
    }

    pub(super) fn compose_full(&mut self, slot: TypeSight<'_>, answers: &impl Answers, allowed: Allowed) -> Composed {
        if self.settled() && self.is_compared(slot) && !self.first {
            return Composed::Not(Step::Idle);
        }
        let found = self.look_at_all(slot, answers);
        if found.waits {
            // D-01: a route may lead to a resource that waits, also to one that is known while others are not.
            let partly = |state: &Arc<State>| !state.complete() && state.present() > 0;
            let waits = found.adds() || self.wildcard && slot.wildcard().is_some_and(partly);
            return Composed::Not(if waits { Step::Blocked } else { Step::Idle });
        }
        let gone = found.removes();
        let beats = !found.difference.beats().is_empty() && self.reads_ttl() || found.named.beat;
        if !(found.adds() || self.first || beats || gone && allowed.removals) {
            if !gone {
                self.note_set(&self.answered(false, slot), found.named.holds, found.state, None);
            }
            return Composed::Not(if gone { Step::Removals } else { Step::Idle });
        }
        // If none of the names is known to exist, and some may, a first answer would tell the client nothing.
        if found.state.is_none() && found.named.unknown && found.named.listed.is_empty() && !gone {
            return Composed::Not(Step::Idle);
        }
        self.say_all(found, slot, answers, allowed)
    }

    fn say_all(
        &mut self,
        found: FullChanges<'_>,
        slot: TypeSight<'_>,
        answers: &impl Answers,
        allowed: Allowed,
    ) -> Composed {
        let (forced, removed) = (found.forced, found.named.removed);
        // Removals come last: removed resources are still listed until the other types do not need them any more (D-03). What
        // cannot be listed, because its body is not there or it was rejected, goes with the additions.
        let kept = found
            .lost
            .as_ref()
            .filter(|_| !allowed.removals)
            .and_then(Extra::listed);
        let going = if allowed.removals { &[][..] } else { &found.named.going };
        let (batch, set) = self.full_batch(&found, kept.clone(), going, slot, answers, allowed.now);
        let since = found.difference.oldest().into_iter().chain(found.named.since).min();
        let clusters = self.changed_clusters(&found.difference, &found.named, &batch);
        self.cold.note_clusters(clusters);
        let holds = if allowed.removals {
            found.named.holds
        } else {
            keep(found.named.holds, &found.named.going, kept.as_deref())
        };
        self.note_set(&self.answered(true, slot), holds, found.state, kept);
        self.collections.settle_all();
        if !allowed.removals && removed {
            self.dirty.add_all();
        }
        // K-08: exactly the set that was rejected is not sent again unless the client asks for it.
        if self.cold.refuses_set(set) && !forced && !self.first {
            return Composed::Not(Step::Idle);
        }
        Composed::Batch {
            batch,
            since,
            set: Some(set),
        }
    }

    /// B-14: returns the owed names that are settled by this, without those whose answer must wait. If a response is sent, it
    /// lists everything that the client holds, even names that are unknown now.
    fn answered(&self, says: bool, slot: TypeSight<'_>) -> BTreeSet<Name> {
        let answered = |name: &&Name| match slot.known(name).filter(|_| self.names.contains(name)) {
            Some(Known::Absent(reason)) => !self.unsayable(name, *reason),
            Some(Known::Present(_)) => true,
            None => !self.names.contains(name) || says && self.held(name).whole().is_some(),
        };
        self.owed.iter().filter(answered).cloned().collect()
    }

    /// Whether the client's first request had the version of another state, and nothing was sent since.
    fn brought_other(&self, state: &State) -> bool {
        let brought = self.cold.brought().filter(|_| self.first);
        brought.is_some_and(|brought| *brought != *state.sum().to_string())
    }

    /// Looks up the requested names. While a name is unknown that the client may hold, nothing can be sent, because a full state
    /// must not leave it out (G-20).
    fn look_at_names(&self, slot: TypeSight<'_>) -> Named {
        let mut named = Named {
            unknown: self.collections.owes() && self.owed_collections(slot).any(|(_, known)| known == Extent::Unknown),
            ..Named::default()
        };
        for (name, entry) in self.names.iter() {
            let held = &entry.held();
            match slot.known(name) {
                None | Some(Known::Absent(_)) if self.is_replaced(name, held, slot) => {
                    named.holds.push((name.clone(), Held::Nothing));
                }
                Some(Known::Present(resource)) => {
                    if !held.is(resource.version()) {
                        named.changed = true;
                        named.since = named.since.into_iter().chain([resource.received()]).min();
                    }
                    named.beat |= self.reads_ttl() && !self.knows_beat(resource, slot);
                    named.holds.push((name.clone(), Held::Content(resource.clone())));
                    named.listed.insert(resource.name().clone(), resource.clone());
                }
                Some(Known::Absent(reason)) => match (held, held.whole()) {
                    // K-16: a server that did not answer in time is no reason to delete what the client holds.
                    (_, Some(content)) if *reason == Reason::TimedOut => {
                        drop(named.listed.insert(content.name().clone(), content.clone()));
                    }
                    (Held::Nothing, _) if self.names.has_member(name) => {
                        named.holds.push((name.clone(), Held::Nothing))
                    }
                    (Held::Nothing, _) => {}
                    (Held::Content(_) | Held::Unknown | Held::Version(_), content) => {
                        named.removed = true;
                        named.going.extend(content.cloned());
                        named.holds.push((name.clone(), Held::Nothing));
                    }
                },
                None => match (held, held.whole()) {
                    (_, Some(content)) => drop(named.listed.insert(content.name().clone(), content.clone())),
                    (Held::Content(_) | Held::Unknown | Held::Version(_), None)
                        if !(self.asked.is_waived() && slot.past(name)) =>
                    {
                        named.unsure = true;
                    }
                    (Held::Content(_) | Held::Unknown | Held::Version(_), None) => {
                        named.unknown = true;
                        named.removed = true;
                        named.holds.push((name.clone(), Held::Nothing));
                    }
                    (Held::Nothing, None) => named.unknown = true,
                },
            }
        }
        named
    }

    /// C-20: whether a resource that was sent under an alias is now listed under its own name, and does not have that alias any
    /// more.
    fn is_replaced(&self, asked: &Name, held: &Held, slot: TypeSight<'_>) -> bool {
        held.own_name(asked).is_some_and(|own| match self.current(own, slot) {
            Current::Known(Known::Present(new)) => new.name() == own && !new.aliases().contains(asked),
            Current::Known(Known::Absent(_)) | Current::Unwanted | Current::Uncovered | Current::Unknown => false,
        })
    }

    /// Creates the full set: the found resources, the kept ones, and those that go later.
    fn full_batch(
        &mut self,
        found: &FullChanges<'_>,
        kept: Option<Arc<Extra>>,
        going: &[Arc<Resource>],
        slot: TypeSight<'_>,
        answers: &impl Answers,
        now: Instant,
    ) -> (Arc<Batch>, Version) {
        let (state, listed, errors) = (found.state, &found.named.listed, &found.errors);
        let wrapped = self.wrapped() && !state.is_some_and(|state| state.is_nameless());
        let mortal = state.is_some_and(|state| self.tells_ttl(state)) || self.keeps_mortal(kept.as_deref(), slot);
        let private = wrapped || mortal || !self.spellings.is_empty();
        if let Some(state) = state.filter(|_| listed.is_empty() && going.is_empty() && errors.is_empty() && !private) {
            let kept_sum = kept.as_ref().map_or(Version::EMPTY, |extra| extra.sum());
            let batch = answers.full(state, kept.as_ref());
            return (batch, state.sum().plus(kept_sum));
        }
        let mut items: BTreeMap<Name, Item> = BTreeMap::new();
        let covered = state.into_iter().flat_map(|state| state.resources());
        let kept = kept
            .iter()
            .flat_map(|extra| extra.names().values().filter_map(Held::whole));
        for resource in covered.chain(listed.values()).chain(kept).chain(going) {
            items
                .entry(resource.name().clone())
                .or_insert_with(|| self.item(resource, slot, now));
        }
        self.forget_beats(|name| !items.contains_key(name));
        self.note_beats(&items, slot);
        // B-31: a listed resource has no error.
        let (errors, _) = self.tell_errors(errors.clone(), &items, slot);
        let batch = self
            .batch(items.into_values().collect(), Vec::new(), &errors)
            .with_errors(errors);
        let set = batch.sum();
        (Arc::new(batch), set)
    }

    /// K-17: whether the client must be told of the time to live of a resource that is gone and still listed.
    fn keeps_mortal(&self, kept: Option<&Extra>, slot: TypeSight<'_>) -> bool {
        let kept = kept.filter(|_| self.reads_ttl()).map(Extra::names);
        let mut listed = kept.into_iter().flatten().filter_map(|(_, held)| held.whole());
        listed.any(|resource| slot.expiry(resource).is_some())
    }

    pub(super) fn holds_by_name(&self, resource: &Resource) -> bool {
        let held = self.names.get(resource.name());
        held.is_some_and(|held| held.is(resource.version()))
    }

    /// K-13: returns the EDS names of the clusters that change. After a rejection, the client may have none of the rejected
    /// changes, so all clusters count as changed.
    fn changed_clusters(&self, difference: &Difference, named: &Named, batch: &Batch) -> Vec<Name> {
        let all = if self.cold.has_refused_set() {
            batch.items()
        } else {
            &[]
        };
        let by_name = named.holds.iter().filter(|(name, held)| match held {
            Held::Content(content) => !self.held(name).is(content.version()),
            Held::Nothing | Held::Unknown | Held::Version(_) => false,
        });
        // A resource that was sent by name is already held when the wildcard brings it as well.
        let covered = difference.changed().iter();
        let covered = covered.filter(|resource| !self.holds_by_name(resource));
        let resources = covered.chain(by_name.filter_map(|(_, held)| held.content()));
        let resources = resources.chain(all.iter().map(|item| &item.resource));
        resources.filter_map(|resource| resource.endpoints().cloned()).collect()
    }

    /// Notes that the client holds what it is sent.
    fn note_set(
        &mut self,
        settled: &BTreeSet<Name>,
        holds: Vec<(Name, Held)>,
        state: Option<&Arc<State>>,
        kept: Option<Arc<Extra>>,
    ) {
        self.owed.retain(|name| !settled.contains(name));
        for (name, held) in holds {
            self.note_held(&name, held);
        }
        let waiting = self.owed.due().filter(|name| self.names.contains(name));
        for name in waiting.cloned().collect::<Vec<_>>() {
            self.owed.put_off(&name);
        }
        self.covered.arrive(Seen {
            state: state.cloned(),
            extra: kept,
        });
        self.dirty.clear();
    }
}

/// Returns what the client holds while removed resources are still listed. K-16: it holds what it is sent again, even if it
/// rejected that before.
fn keep(holds: Vec<(Name, Held)>, going: &[Arc<Resource>], kept: Option<&Extra>) -> Vec<(Name, Held)> {
    let stays = |name: &Name| {
        going
            .iter()
            .any(|resource| resource.name() == name || resource.aliases().contains(name))
    };
    let sent = |name: &Name| kept?.names().get(name)?.content().cloned();
    holds
        .into_iter()
        .filter(|(name, held)| held.perhaps() || !stays(name))
        .map(|(name, held)| match sent(&name).filter(|_| !held.perhaps()) {
            Some(content) => (name, Held::Content(content)),
            None => (name, held),
        })
        .collect()
}
