//! SotW responses that list all resources: the client deletes what is missing in one (B-16).
//!
//! Owns the rule that nothing is left out because the relay does not know it. Knows nothing of partial answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::due::Say;
use super::lens::{Extent, Look};
use super::{Attempt, Step, Subscription};
use crate::server::ledger::Row;
use xds::{Addresses, Answers, Batch, Difference, Errors, Name, Resource, State, TypeSight};

/// What a full state differs in from the last one.
#[derive(Debug, Default)]
struct News {
    /// Whether it adds, changes or answers anything.
    adds: bool,
    removes: bool,
    /// Whether a heartbeat must be sent.
    beats: bool,
    since: Option<Instant>,
}

/// All that a full state lists.
#[derive(Debug, Default)]
struct Listing {
    listed: BTreeMap<Name, Arc<Resource>>,
    /// The names that the client does not hold afterwards.
    gone: Vec<Name>,
    /// Names that are answered by the resource of another name.
    answered: Vec<Name>,
    /// Whether something is unknown that the client may hold: then nothing can be sent.
    waits: bool,
    /// Whether anything that the client asks for is unknown.
    unknown: bool,
}

impl Subscription {
    /// Returns the next step.
    pub(super) fn poll_full(&mut self, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        let slot = attempt.slot;
        // B-20, G-20: an empty or incomplete state is sent only once it is certain that nothing is missing. K-16: content from an
        // earlier run of the relay deletes nothing at a client whose first request has another version.
        let known = |state: &&Arc<State>| state.complete() && !(state.stale() && self.brought_other(state));
        let state = slot.wildcard().filter(|_| self.want.wildcard());
        let Some(state) = state.filter(known) else {
            if !self.want.wildcard() {
                return self.poll_listing(None, attempt);
            }
            // D-01: a route may lead to a resource that waits.
            let partly = slot.wildcard().is_some_and(|state| state.present() > 0);
            let waits = partly || self.is_pending(slot, attempt.answers);
            return Step::held(waits);
        };
        if !self.is_plain(state) {
            return self.poll_listing(Some(state), attempt);
        }
        self.agenda.clear();
        let difference = self.difference(slot, attempt.answers);
        let difference = difference.as_deref();
        let adds = difference.is_some_and(Difference::adds) || self.agenda.hello();
        let removes = difference.is_some_and(Difference::removes);
        if !adds && !removes {
            self.arrive(state.clone(), None);
            return Step::Idle;
        }
        if !adds && !attempt.removals {
            return Step::Removals;
        }
        // D-03: removed resources are still listed until the other types do not need them any more.
        let base = self.ledger.base().cloned();
        let keeps = removes && !attempt.removals && self.rare.refused().is_none();
        let kept = difference.filter(|_| keeps);
        let next = kept
            .map_or(state, |difference| difference.kept(base.as_ref(), state))
            .clone();
        let changed = difference.into_iter().flat_map(Difference::changed);
        let clusters = match self.rare.refused() {
            // K-13: the client may have none of the changes that it rejected.
            Some(_) => Self::endpoints(next.resources()),
            None => Self::endpoints(changed),
        };
        let since = difference.and_then(Difference::oldest);
        let batch = attempt.answers.full(&next);
        self.arrive(next, None);
        self.agenda.set_hello(false);
        self.send_with(batch, since, false, clusters, attempt)
    }

    /// Whether the client's first request had the version of another state, and nothing was sent since.
    fn brought_other(&self, state: &State) -> bool {
        let brought = self.rare.brought().filter(|_| self.agenda.hello());
        brought.is_some_and(|brought| *brought != *state.sum().to_string())
    }

    /// Returns the next step of a client that is not like others.
    fn poll_listing(&mut self, state: Option<&Arc<State>>, attempt: &mut Attempt<'_, impl Answers>) -> Step {
        let slot = attempt.slot;
        let difference = self.difference(slot, attempt.answers);
        let difference = difference.as_deref();
        let News {
            adds,
            removes,
            beats,
            since,
        } = self.news(difference, slot);
        if self.agenda.is_short() && !adds {
            return Step::Blocked;
        }
        if !(adds || beats || removes && attempt.removals) {
            if removes {
                return Step::Removals;
            }
            self.meet(difference, slot);
            return Step::Idle;
        }
        // What the client has rejected is not listed again for the sake of other types.
        let removals = attempt.removals || self.rare.refused().is_some();
        let listing = self.list(state, removals, difference, slot);
        if listing.waits {
            return Step::held(adds);
        }
        // If none of the names is known to exist, and some may, a first answer would tell the client nothing.
        if state.is_none() && listing.unknown && listing.listed.is_empty() && !removes {
            return Step::Idle;
        }
        let clusters = self.changed_clusters(&listing);
        let items = listing
            .listed
            .iter()
            .map(|(name, resource)| self.reader.item(name, resource, slot, attempt.now));
        let items = items.filter(|item| !self.reader.cannot_read(&item.resource)).collect();
        let errors = self.errors(&listing, slot);
        let batch = Batch::new(items, Vec::new()).alone().with_errors(errors);
        self.note_listed(listing, difference, slot);
        self.agenda.set_hello(false);
        self.send_with(Arc::new(batch), since, false, clusters, attempt)
    }

    /// Compares everything that may have changed.
    fn news(&mut self, difference: Option<&Difference>, slot: TypeSight<'_>) -> News {
        let mut news = News {
            adds: self.agenda.hello(),
            ..News::default()
        };
        for collection in self.ledger.asked().filter(|name| name.is_collection()) {
            let waits = matches!(self.ledger.get(collection), Row::Asked | Row::Perhaps);
            news.adds |= waits && self.lens(slot).extent(collection) != Extent::Unknown;
        }
        let mut walk = self.agenda.walk();
        while let Some((name, say)) = self.next_due(&mut walk, difference, slot) {
            match say {
                Say::Put(resource) | Say::Other(resource) => {
                    news.adds = true;
                    if !self.ledger.get(&name).was_sent(resource.version()) {
                        news.since = news.since.into_iter().chain([resource.received()]).min();
                    }
                }
                Say::Beat(_) => news.beats = true,
                Say::Missing | Say::Error => news.adds = true,
                // Nothing is on its way, so removals are listed as such.
                Say::Remove => {}
            }
        }
        news.removes = self.removes(slot);
        news
    }

    /// B-31: returns the errors of names that are not listed, and notes that they are sent.
    fn errors(&mut self, listing: &Listing, slot: TypeSight<'_>) -> Errors {
        if !self.reader.reads_errors() {
            return Errors::new();
        }
        let lens = self.lens(slot);
        let exists = |name: &Name| lens.known(name).is_some_and(|known| known.resource().is_some());
        let names = self
            .ledger
            .asked()
            .filter(|name| !listing.listed.contains_key(*name) && !exists(name));
        let errors = names.filter_map(|name| Some((name.clone(), self.due_error(name, slot)?)));
        let errors: Errors = errors.collect();
        for (name, error) in &errors {
            self.rare.note_error(name.clone(), error.clone());
        }
        errors
    }

    /// Returns everything that the client should hold, and what it holds while the relay does not know better.
    fn list(
        &self,
        state: Option<&Arc<State>>,
        removals: bool,
        difference: Option<&Difference>,
        slot: TypeSight<'_>,
    ) -> Listing {
        let lens = self.lens(slot);
        let mut listing = Listing::default();
        let mut going = Vec::new();
        for name in self.all_names(difference, slot) {
            let row = self.ledger.get(&name);
            if self.want.has_collection(&name) {
                listing.unknown |= lens.extent(&name) == Extent::Unknown;
                listing.answered.push(name);
                continue;
            }
            match lens.look(&name, &row) {
                Look::Put(found) if found.name() != self.want.meaning(&name) => {
                    listing.listed.insert(found.name().clone(), found.clone());
                    listing.answered.push(name);
                }
                Look::Put(found) => drop(listing.listed.insert(name, found.clone())),
                Look::Gone => match row.whole().filter(|_| !removals) {
                    Some(held) => going.push((name, held.clone())),
                    None => listing.gone.push(name),
                },
                Look::Unknown => match row.whole() {
                    Some(held) => drop(listing.listed.insert(name, held.clone())),
                    // K-16: a full state waits for what is unknown only for a time.
                    None if row.perhaps() && !(self.asked.is_waived() && slot.past(&name)) => listing.waits = true,
                    None => {
                        listing.unknown = true;
                        if row.perhaps() {
                            listing.gone.push(name);
                        }
                    }
                },
            }
        }
        let resources = state.into_iter().flat_map(|state| state.resources());
        for resource in resources.filter(|resource| self.ledger.own(resource.name().as_str()).is_none()) {
            listing
                .listed
                .entry(resource.name().clone())
                .or_insert_with(|| resource.clone());
        }
        self.keep_going(going, &mut listing);
        listing
    }

    /// D-03: what goes is still listed until the other types do not need it any more, unless a listener takes its address.
    fn keep_going(&self, going: Vec<(Name, Arc<Resource>)>, listing: &mut Listing) {
        if going.is_empty() {
            return;
        }
        let lds = self.reader.traits().kind == xds::Kind::Lds;
        let new = listing
            .listed
            .iter()
            .filter(|(name, new)| lds && !self.ledger.get(name).is(new.version()));
        let taken = Addresses::of(new.map(|(_, new)| new));
        for (name, held) in going {
            if self.gives(&name, &taken) {
                listing.gone.push(name);
            } else {
                listing.listed.entry(name).or_insert(held);
            }
        }
    }

    /// Returns all names that a full state may list, but those of which the client was sent nothing but the state's map.
    fn all_names(&self, difference: Option<&Difference>, slot: TypeSight<'_>) -> BTreeSet<Name> {
        let own = self.ledger.rows("").map(|entry| entry.name().clone());
        let differs = difference.into_iter().flat_map(Difference::names).cloned();
        let members = self
            .want
            .collections()
            .flat_map(|all| slot.members(all).map(|member| member.name().clone()));
        own.chain(differs).chain(members).collect()
    }

    /// K-13: returns the endpoints of the clusters that change. After a rejection the client may have none of the rejected changes.
    fn changed_clusters(&self, listing: &Listing) -> Vec<Name> {
        let all = self.rare.refused().is_some();
        let changed = listing
            .listed
            .iter()
            .filter(|(name, new)| all || !self.ledger.get(name).is(new.version()));
        Self::endpoints(changed.map(|(_, new)| new))
    }

    /// Notes that the client is sent what a full state lists.
    fn note_listed(&mut self, listing: Listing, difference: Option<&Difference>, slot: TypeSight<'_>) {
        self.meet(difference, slot);
        for (name, resource) in &listing.listed {
            if self.ledger.own(name.as_str()).is_some() || !self.ledger.get(name).is(resource.version()) {
                self.note_sent(name, resource, slot);
            } else if self.reader.reads_ttl() {
                self.rare.note_beat(resource.name(), slot.beat(resource));
            }
        }
        listing.gone.iter().for_each(|name| self.note_gone(name));
        listing
            .answered
            .iter()
            .for_each(|name| self.ledger.put(name, Row::Told));
    }
}
