//! Collections that a client asked for as a whole (C-22): their members are held like names that it asked for.
//!
//! Owns which collections are wanted, and which names join them. Does not know how a member is sent.

use std::collections::BTreeSet;

use super::entry::Entry;
use super::stream::Server;
use super::subscription::Subscription;
use crate::end::End;
use xds::{Answers, Dialect, Held, Known, Name, Reason, Resource, Sight, Target, TypeSight};

/// The collections of one type on one stream. Most clients have none, and then nothing is allocated.
///
/// Invariant: every member in the table of names is covered by a collection in `asked`, and is not wanted for another reason.
#[derive(Debug, Default)]
pub(super) struct AskedCollections(Option<Box<Lists>>);

#[derive(Debug)]
struct Lists {
    asked: BTreeSet<Name>,
    /// Names that may be new members.
    arrivals: BTreeSet<Name>,
    /// Collections of which all members must be compared again.
    stirred: BTreeSet<Name>,
    /// Collections that must be answered.
    owed: BTreeSet<Name>,
}

/// With more single names than this, comparing the whole collection is cheaper.
const ARRIVALS_MAX: usize = 4096;

/// What is known of a collection's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Unknown,
    /// The collection certainly has no members.
    Empty,
    /// The collection has members.
    Some,
}

impl AskedCollections {
    pub(super) fn is_empty(&self) -> bool {
        self.lists().asked.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.lists().asked.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.lists().asked.iter()
    }

    pub(super) fn contains(&self, collection: &Name) -> bool {
        self.lists().asked.contains(collection)
    }

    /// Returns whether a collection that the client asked for covers the name.
    pub(super) fn covers(&self, name: &Name) -> bool {
        !self.is_empty() && name.collection().is_some_and(|all| self.contains(&all))
    }

    /// Returns whether any collection must be answered.
    pub(super) fn owes(&self) -> bool {
        !self.lists().owed.is_empty()
    }

    /// Returns whether the table of names may differ from what is known.
    pub(super) fn restless(&self) -> bool {
        let lists = self.lists();
        !lists.stirred.is_empty() || !lists.arrivals.is_empty() || !lists.owed.is_empty()
    }

    /// All members of all collections may have changed.
    pub(super) fn stir_all(&mut self) {
        if let Some(lists) = &mut self.0 {
            lists.stirred.clone_from(&lists.asked);
        }
    }

    /// A name that is not in the table may have changed.
    pub(super) fn note(&mut self, name: Name) {
        if self.contains(&name) {
            self.lists_mut().stirred.insert(name);
        } else if self.covers(&name) {
            let Lists { arrivals, stirred, .. } = self.lists_mut();
            arrivals.insert(name);
            if arrivals.len() > ARRIVALS_MAX {
                let arrivals = std::mem::take(arrivals);
                stirred.extend(arrivals.iter().filter_map(Name::collection));
            }
        }
    }

    /// A response is sent. A collection is answered if one of its members is added, or if it is reported as empty.
    pub(super) fn settle<'a>(&mut self, come: impl Iterator<Item = &'a Name>, removed: &BTreeSet<Name>) {
        let Some(lists) = self.0.as_mut().filter(|lists| !lists.owed.is_empty()) else {
            return;
        };
        lists.owed.retain(|collection| !removed.contains(collection));
        for collection in come.filter_map(Name::collection) {
            lists.owed.remove(&collection);
        }
    }

    /// A full state is sent: it answers all collections.
    pub(super) fn settle_all(&mut self) {
        if let Some(lists) = &mut self.0 {
            lists.owed.clear();
        }
    }

    fn lists(&self) -> &Lists {
        static NONE: Lists = Lists::new();
        self.0.as_deref().unwrap_or(&NONE)
    }

    fn lists_mut(&mut self) -> &mut Lists {
        self.0.get_or_insert_with(|| Box::new(Lists::new()))
    }
}

impl Lists {
    const fn new() -> Self {
        Self {
            asked: BTreeSet::new(),
            arrivals: BTreeSet::new(),
            stirred: BTreeSet::new(),
            owed: BTreeSet::new(),
        }
    }
}

impl Subscription {
    pub(super) fn add_collection(&mut self, collection: Name) {
        let lists = self.collections.lists_mut();
        lists.asked.insert(collection.clone());
        lists.owed.insert(collection.clone());
        lists.stirred.insert(collection.clone());
        // F-09: members that were sent only in other spellings are now sent by their own names too.
        let within = self.names.within(&collection);
        let came = |name: &Name| self.names.get(name).is_some_and(Entry::perhaps);
        let spelled = within.filter(|name| self.spellings.contains(name) && came(name));
        self.owed.extend(spelled.cloned());
        self.admit_owed(&collection);
        self.admit_flying(&collection);
        self.want(Target::Name(collection), true);
    }

    /// C-08: names that were given up under the wildcard and not answered yet now belong to the collection that covers them.
    fn admit_owed(&mut self, collection: &Name) {
        let owed = self.owed.iter().filter(|name| collection.covers(name));
        let owed: Vec<Name> = owed.filter(|name| !self.names.contains(name)).cloned().collect();
        for name in owed {
            self.names.set(name.clone(), self.covered.held(&name));
            self.names.mark(&name, true);
            // F-09: the collection brings it by its own name.
            self.spellings.forget(&name);
        }
    }

    /// B-15: names that were given up while a response with them is on its way become members, because the collection covers
    /// them.
    fn admit_flying(&mut self, collection: &Name) {
        let names = self.flights.arriving().map(Resource::name);
        let names = names.filter(|_| self.dialect == Dialect::Delta);
        let flying = names.filter(|name| collection.covers(name) && !self.names.contains(name));
        let flying: Vec<Name> = flying.cloned().collect();
        for name in flying {
            self.names.set(name.clone(), Held::Unknown);
            self.names.mark(&name, true);
            self.look_at(name);
        }
    }

    /// C-11: a client that subscribes again may have forgotten what it was sent. C-15: a name that does not exist was no part of
    /// that.
    pub(super) fn repeat_collection(&mut self, collection: &Name) {
        self.collections.lists_mut().owed.insert(collection.clone());
        let came = |name: &&Name| self.names.get(name).is_some_and(Entry::perhaps);
        let members: Vec<Name> = self.names.within(collection).filter(came).cloned().collect();
        self.owed.extend(members);
    }

    /// B-15: dropping a collection forgets that its members were sent.
    pub(super) fn drop_collection(&mut self, collection: &Name) {
        if !self.collections.contains(collection) {
            return;
        }
        let lists = self.collections.lists_mut();
        lists.asked.remove(collection);
        lists.stirred.remove(collection);
        lists.owed.remove(collection);
        lists.arrivals.retain(|name| !collection.covers(name));
        let within = self.names.within(collection);
        let members: Vec<Name> = within.filter(|name| self.names.has_member(name)).cloned().collect();
        for name in &members {
            self.forget_member(name);
            self.owed.remove(name);
            self.forget_beat(name);
        }
        members.iter().for_each(|name| self.give_up(name));
        self.forget_covered(&members);
        self.want(Target::Name(collection.clone()), false);
        if self.collections.is_empty() {
            self.collections = AskedCollections::default();
        }
    }

    /// C-08: what the client gave up under a wildcard, and then held as a member, it does not hold by the wildcard.
    fn forget_covered(&mut self, members: &[Name]) {
        if self.dialect == Dialect::Delta {
            let held = members.iter().filter(|name| self.covered.held(name).perhaps());
            let held = held.map(|name| (name.clone(), Held::Nothing)).collect();
            self.note_covered(held);
        }
    }

    fn forget_member(&mut self, name: &Name) {
        self.owed.wake(name);
        self.names.remove(name);
        self.dirty.remove(name);
    }

    /// Notes what the client holds under a name, if it asked for the name. A member that it no longer holds leaves the table.
    pub(super) fn note_held(&mut self, name: &Name, held: Held) {
        if !held.perhaps() && self.names.has_member(name) {
            return self.forget_member(name);
        }
        if !held.perhaps() {
            self.owed.wake(name);
        }
        self.names.note(name, held);
    }

    /// Updates the table to the known members of the collections. Returns whether there was room for all of them.
    pub(super) fn admit(&mut self, slot: TypeSight<'_>, room: usize) -> bool {
        if self.collections.is_empty() {
            return true;
        }
        for collection in std::mem::take(&mut self.collections.lists_mut().stirred) {
            let held: Vec<Name> = self.names.within(&collection).cloned().collect();
            held.into_iter().for_each(|name| self.look_at(name));
            for resource in slot.members(&collection) {
                if !self.admit_one(resource.name(), room) {
                    return false;
                }
            }
        }
        for name in std::mem::take(&mut self.collections.lists_mut().arrivals) {
            let there = slot.resource(&name).is_some_and(|resource| *resource.name() == name);
            if there && !self.admit_one(&name, room) {
                return false;
            }
        }
        // B-14: for a client that asks for the collection, a full state also lists the members that the client holds already.
        let full = self.full_state();
        let current = |name: &Name, held: &Held| slot.resource(name).is_some_and(|now| held.is(now.version()));
        let answered = |collection: &Name| match extent(collection, slot) {
            Extent::Unknown => false,
            Extent::Empty | Extent::Some if full => false,
            Extent::Empty => self.dialect == Dialect::Sotw,
            // Only a member that the client holds as it is now answers: all others may go before they are sent.
            Extent::Some => self.has_of(collection, current),
        };
        let lists = self.collections.lists();
        let owed = lists.owed.iter().filter(|collection| !answered(collection));
        self.collections.lists_mut().owed = owed.cloned().collect();
        true
    }

    fn admit_one(&mut self, name: &Name, room: usize) -> bool {
        if !self.names.contains(name) {
            self.names.set(name.clone(), self.covered.held(name));
            self.names.mark(name, true);
            self.look_at(name.clone());
        }
        self.names.len() <= room
    }

    /// Returns the collections that must be answered, and what is known of each.
    pub(super) fn owed_collections<'a>(&'a self, slot: TypeSight<'a>) -> impl Iterator<Item = (&'a Name, Extent)> {
        let owed = self.collections.lists().owed.iter();
        owed.map(move |collection| (collection, extent(collection, slot)))
    }

    /// B-14: whether anything is known of a collection that must be answered, even that it is empty.
    pub(super) fn owes_known_collection(&self, slot: TypeSight<'_>) -> bool {
        self.owed_collections(slot).any(|(_, known)| known != Extent::Unknown)
    }

    /// C-22: returns the empty collections that must be answered.
    pub(super) fn empty_collections<'a>(&'a self, slot: TypeSight<'a>) -> impl Iterator<Item = &'a Name> {
        let lists = self.collections.lists();
        let owed = lists.owed.iter().filter(|_| self.dialect == Dialect::Delta);
        let empty = owed.filter(move |collection| extent(collection, slot) == Extent::Empty);
        // K-16: a server that did not answer in time is no reason to take away members that the client may hold.
        let silent = move |collection: &Name| {
            let known = slot.known(collection);
            matches!(known, Some(Known::Absent(Reason::TimedOut))) && self.has_of(collection, |_, held| held.perhaps())
        };
        empty.filter(move |collection| !silent(collection))
    }

    /// Returns whether `counts` is true for a member of a collection that was sent, or that the first request declared.
    fn has_of(&self, collection: &Name, counts: impl Fn(&Name, &Held) -> bool) -> bool {
        let mut sent = self.names.within(collection);
        let mut told = self.covered.seen().extra.iter().flat_map(|extra| extra.names());
        let told = told.any(|(name, held)| collection.covers(name) && counts(name, held));
        told || sent.any(|name| counts(name, &self.held(name)))
    }
}

impl Server {
    /// Updates the tables of names to the known members, and finds out what the client sees with its rights. Returns whether
    /// there is room for all names.
    pub(super) fn admit(&mut self, sight: &Sight, answers: &impl Answers) -> bool {
        let max = self.settings.limits.names_per_stream;
        for at in 0..self.types.len() {
            let subscription = self.types.get_mut(at).map(|one| one.look(sight, answers));
            if !subscription.is_some_and(|one| one.collections.restless()) {
                continue;
            }
            let count = self.names();
            let Some(subscription) = self.types.get_mut(at) else {
                continue;
            };
            let others = count - subscription.names.len();
            let room = if max > 0 {
                max.saturating_sub(others)
            } else {
                usize::MAX
            };
            let type_url = subscription.type_url.clone();
            let viewer = subscription.viewer.clone();
            let slot = sight.type_sight(&type_url).seen_by(&viewer);
            if !subscription.admit(slot, room) {
                let what = format_args!("a collection of {type_url} brings more than {max} names to one stream");
                self.end(End::limit("names_per_stream", what));
                return false;
            }
        }
        true
    }
}

/// Returns what is known of a collection's members.
pub(super) fn extent(collection: &Name, slot: TypeSight<'_>) -> Extent {
    if slot.members(collection).next().is_some() {
        return Extent::Some;
    }
    match slot.known(collection) {
        Some(Known::Absent(_)) => Extent::Empty,
        Some(Known::Present(_)) => Extent::Some,
        None => Extent::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K-21: a few new members are noted by name; a stream without collections notes nothing.
    #[test]
    fn what_comes_in() {
        let all = Name::from("xdstp://a/t/*");
        let member = |number: usize| Name::from(format!("xdstp://a/t/{number}"));
        let sizes = |all: &AskedCollections| (all.lists().arrivals.len(), all.lists().stirred.len());
        let mut collections = AskedCollections::default();
        collections.note(member(0));
        assert!(collections.is_empty() && collections.0.is_none());
        collections.lists_mut().asked.insert(all);
        assert!(collections.covers(&member(1)) && !collections.covers(&Name::from("xdstp://b/t/1")));
        collections.note(Name::from("xdstp://b/t/1"));
        assert!(!collections.restless());
        (0..ARRIVALS_MAX).for_each(|number| collections.note(member(number)));
        assert_eq!(sizes(&collections), (ARRIVALS_MAX, 0));
        collections.note(member(ARRIVALS_MAX));
        assert_eq!(sizes(&collections), (0, 1));
    }

    /// C-22: a collection is answered by one of its members or by a removal.
    #[test]
    fn what_answers() {
        let names = ["xdstp://a/t/*", "xdstp://b/t/*", "xdstp://c/t/*"].map(Name::from);
        let mut collections = AskedCollections::default();
        collections.lists_mut().owed.extend(names.clone());
        collections.settle(
            [Name::from("xdstp://a/t/x")].iter(),
            &BTreeSet::from([names[1].clone()]),
        );
        assert_eq!(collections.lists().owed, BTreeSet::from([names[2].clone()]));
        assert!(collections.owes());
    }
}
