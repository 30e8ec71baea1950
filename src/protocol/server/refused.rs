//! What the client has rejected, and when it may be sent again (B-22).
//!
//! Owns the groups of names that were rejected together, and when they are owed again. Does not know how they are sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::flight::Flight;
use super::subscription::{Current, Subscription};
use xds::{Dialect, Form, Held, Known, Name, Objection, Reason, Resource, TypeSight, Version};

/// The rejected responses of one type on one stream, as groups of names. No member of a group is sent again unchanged until any
/// member changes, because a rejection does not say which member was bad (M-02).
///
/// Invariant: no name is in two groups, so rejections take no more memory than interest (K-21).
#[derive(Debug, Default)]
pub(super) struct Refusals(Vec<Group>);

/// Names that were rejected together.
#[derive(Debug)]
pub(super) struct Group {
    /// The members by canonical name.
    members: BTreeMap<Name, Member>,
    /// Whether a member has changed already, so that the others may be sent again.
    freed: bool,
    /// Why the last of them were rejected.
    objection: Arc<Objection>,
}

#[derive(Debug)]
struct Member {
    /// The rejected version; `None` for a removal.
    version: Option<Version>,
    /// Whether the client held nothing of it.
    missing: bool,
    aliases: Box<[Name]>,
}

impl Refusals {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many names there are.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|group| group.members.len()).sum()
    }

    /// Returns whether this version was rejected under this canonical name; `None` stands for a removal.
    pub(super) fn has(&self, name: &Name, version: Option<Version>) -> bool {
        self.0.iter().any(|group| group.has(name, version))
    }

    /// Returns why this version was rejected under this canonical name.
    pub(super) fn objection(&self, name: &Name, version: Option<Version>) -> Option<&Arc<Objection>> {
        let group = self.0.iter().find(|group| group.has(name, version));
        group.map(|group| &group.objection)
    }

    /// Returns the canonical names of all that was rejected.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().flat_map(|group| group.members.keys())
    }

    /// Returns why clients reject what they reject now, once for each group.
    pub(super) fn objections(&self) -> impl Iterator<Item = &Arc<Objection>> {
        self.0.iter().map(|group| &group.objection)
    }

    /// Adds a rejected response, of which there are members. Groups that share a member with it are merged with it.
    fn add(&mut self, mut group: Group) {
        let shares = |other: &mut Group| group.members.keys().any(|name| other.members.contains_key(name));
        let sharing: Vec<Group> = self.0.extract_if(.., shares).collect();
        for other in sharing {
            group.freed |= other.freed;
            // The last rejection counts.
            let newer = std::mem::replace(&mut group.members, other.members);
            group.members.extend(newer);
        }
        self.0.push(group);
    }

    /// The client has accepted this version under this canonical name, so it was not the bad one. Returns whether it was rejected
    /// before.
    fn accept(&mut self, name: &Name, version: Option<Version>) -> bool {
        let Some(at) = self.0.iter().position(|group| group.has(name, version)) else {
            return false;
        };
        self.remove(at, name);
        true
    }

    /// A rejected name is not wanted any more: that frees the other members.
    fn give_up(&mut self, name: &Name) {
        let found = self.0.iter().position(|group| group.members.contains_key(name));
        if let Some(group) = found.and_then(|at| self.0.get_mut(at)) {
            group.freed = true;
        }
        found.into_iter().for_each(|at| self.remove(at, name));
    }

    fn remove(&mut self, at: usize, name: &Name) {
        let Some(group) = self.0.get_mut(at) else { return };
        group.members.remove(name);
        if group.members.is_empty() {
            self.0.swap_remove(at);
        }
    }

    /// Whether content of this name was rejected.
    pub(super) fn has_content(&self, name: &Name) -> bool {
        let mut members = self.0.iter().filter_map(|group| group.members.get(name));
        members.any(|member| member.version.is_some())
    }

    /// Returns the rejected resources that have this name or alias.
    fn called<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = (&'a Name, &'a [Name])> {
        let members = self.0.iter().flat_map(Group::members);
        members.filter(move |(own, aliases)| *own == name || aliases.contains(name))
    }
}

impl Group {
    const fn new(objection: Arc<Objection>) -> Self {
        Self {
            members: BTreeMap::new(),
            freed: false,
            objection,
        }
    }

    fn members(&self) -> impl Iterator<Item = (&Name, &[Name])> {
        self.members.iter().map(|(name, member)| (name, &*member.aliases))
    }

    fn has(&self, name: &Name, version: Option<Version>) -> bool {
        self.members.get(name).is_some_and(|member| member.version == version)
    }

    fn add(&mut self, resource: &Resource) {
        let member = Member {
            version: Some(resource.version()),
            missing: false,
            aliases: resource.aliases().into(),
        };
        self.members.insert(resource.name().clone(), member);
    }

    fn add_removal(&mut self, name: &Name, missing: bool) {
        let member = Member {
            version: None,
            missing,
            aliases: Box::default(),
        };
        self.members.insert(name.clone(), member);
    }
}

impl Subscription {
    /// Returns whether the client has rejected exactly this content.
    pub(super) fn refuses(&self, resource: &Resource) -> bool {
        self.cold.refusals().has(resource.name(), Some(resource.version()))
    }

    /// B-22, C-25: the client rejected a partial answer. What it holds of its names is then unknown, and they are not sent again
    /// unchanged.
    pub(super) fn refuse(&mut self, flight: &Flight, objection: Arc<Objection>) {
        let mut group = Group::new(objection);
        for item in flight.batch.items() {
            // What was only listed beside the news, the client accepted before.
            if self.lists_all() && item.form == Form::Repeated {
                continue;
            }
            let resource = &item.resource;
            let wanted = self.wanted(resource.name(), resource.aliases()).cloned();
            match wanted {
                // K-17: an Envoy rejects the heartbeat of what has just expired there. It gets the resource itself.
                Some(name) if item.form == Form::Heartbeat && self.held(&name).is(resource.version()) => {
                    self.names.note(&name, Held::Unknown);
                    self.owed.insert(name);
                }
                Some(name) if self.held(&name).is(resource.version()) => {
                    self.names.note(&name, Held::Unknown);
                    group.add(resource);
                }
                // It was also rejected in another response.
                Some(_) if self.refuses(resource) => group.add(resource),
                // It was given up since, and is wanted for another reason: nothing else was sent of it.
                Some(name) if self.is_unsent(&name, resource, flight) => group.add(resource),
                // It was sent in another form since.
                Some(_) => group.freed = true,
                None => {
                    group.freed = true;
                    // C-20: the client keeps what it held before, because it asks for one of its aliases.
                    if self.dialect == Dialect::Delta && self.cold.is_renamed(resource.name()) {
                        self.note_covered(vec![(resource.name().clone(), Held::Unknown)]);
                    }
                }
            }
        }
        for name in flight.batch.removed() {
            // C-08: a removal that answered an unsubscription is not needed any more. C-20: the name has changed if a later response
            // brought it for an alias.
            if self.wanted(name, &[]).is_none() {
                group.freed |= flight.is_undone(name) && self.names.by_alias(name).is_some();
                continue;
            }
            // B-16: what an earlier response brought, and the client perhaps holds, is no change.
            let changed = self.held(name).content().is_some() || flight.is_undone(name);
            if changed && !self.cold.refusals().has(name, None) {
                group.freed = true;
                continue;
            }
            // Of a name that never existed the client holds nothing, even if it rejects the removal.
            let missing = flight.batch.is_missing(name);
            if !missing {
                self.names.note(name, Held::Unknown);
            }
            group.add_removal(name, missing);
        }
        if !group.members.is_empty() {
            self.cold.refusals_mut().add(group);
        }
    }

    /// Whether it is not known what the client holds of a resource, nothing else of it was rejected, and no later response has removed
    /// it.
    fn is_unsent(&self, wanted: &Name, resource: &Resource, flight: &Flight) -> bool {
        let unknown = matches!(self.held(wanted), Held::Unknown);
        unknown && self.cold.refusals().called(resource.name()).next().is_none() && !flight.is_undone(resource.name())
    }

    /// What the client accepts now was not the bad part of what it rejected before. After the rejection it was unknown whether
    /// the client holds it; now it does, unless a later response is on its way with it.
    pub(super) fn absolve(&mut self, flight: &Flight) {
        if self.cold.refusals().is_empty() {
            return;
        }
        for item in flight.batch.items() {
            let resource = &item.resource;
            let refused = self
                .cold
                .refusals_mut()
                .accept(resource.name(), Some(resource.version()));
            let wanted = self.wanted(resource.name(), resource.aliases()).cloned();
            if let Some(name) = wanted.filter(|name| refused && matches!(self.held(name), Held::Unknown))
                && !self.flights.carries(resource.name(), flight.nonce)
            {
                self.names.note(&name, Held::Content(resource.clone()));
            }
        }
        for name in flight.batch.removed() {
            let refused = self.cold.refusals_mut().accept(name, None);
            if refused && matches!(self.held(name), Held::Unknown) && !self.flights.carries(name, flight.nonce) {
                self.names.note(name, Held::Nothing);
            }
        }
    }

    /// A name is not asked for any more. C-20: its rejection still counts while the client asks for the resource by another name.
    pub(super) fn give_up(&mut self, name: &Name) {
        let called = self.cold.refusals().called(name);
        let unwanted = called.filter(|(own, aliases)| self.wanted(own, aliases).is_none());
        let unwanted: Vec<Name> = unwanted.map(|(own, _)| own.clone()).collect();
        unwanted.iter().for_each(|own| self.cold.refusals_mut().give_up(own));
    }

    /// Many names are not asked for any more: gives up every rejected one that is not wanted.
    pub(super) fn give_up_unwanted(&mut self) {
        let members = self.cold.refusals().0.iter().flat_map(Group::members);
        let unwanted = members.filter(|(own, aliases)| self.wanted(own, aliases).is_none());
        let unwanted: Vec<Name> = unwanted.map(|(own, _)| own.clone()).collect();
        unwanted.iter().for_each(|own| self.cold.refusals_mut().give_up(own));
    }

    /// Returns whether a rejected resource would be sent again now.
    pub(super) fn releases(&self, slot: TypeSight<'_>) -> bool {
        let comes = |(name, aliases): (&Name, &[Name])| {
            let wanted = self.wanted(name, aliases);
            wanted.is_some_and(|name| matches!(self.current(name, slot), Current::Known(Known::Present(_))))
        };
        self.freed(slot).any(|group| group.members().any(comes))
    }

    /// Returns whether a rejected resource would be sent again or removed now.
    pub(super) fn frees(&self, slot: TypeSight<'_>) -> bool {
        self.freed(slot).next().is_some()
    }

    fn freed<'a>(&'a self, slot: TypeSight<'a>) -> impl Iterator<Item = &'a Group> {
        let groups = self.cold.refusals().0.iter();
        groups.filter(move |group| self.is_free(group, slot))
    }

    /// Whether a member has changed, has gone or is not wanted any more.
    fn is_free(&self, group: &Group, slot: TypeSight<'_>) -> bool {
        let differs = |(name, member): (&Name, &Member)| {
            let Some(wanted) = self.wanted(name, &member.aliases) else {
                return true;
            };
            match self.current(wanted, slot) {
                Current::Known(Known::Present(resource)) => member.version != Some(resource.version()),
                Current::Known(Known::Absent(Reason::TimedOut)) | Current::Unknown | Current::Unwanted => false,
                Current::Known(Known::Absent(_)) | Current::Uncovered => member.version.is_some(),
            }
        };
        group.freed || group.members.iter().any(differs)
    }

    /// B-22: if a member of a rejected response changes, goes or is given up, all members that are still wanted are owed again.
    pub(super) fn release(&mut self, slot: TypeSight<'_>) {
        for at in (0..self.cold.refusals().0.len()).rev() {
            let group = self.cold.refusals().0.get(at);
            if group.is_some_and(|group| self.is_free(group, slot)) {
                let group = self.cold.refusals_mut().0.swap_remove(at);
                self.owe_group(&group, slot);
            }
        }
    }

    fn owe_group(&mut self, group: &Group, slot: TypeSight<'_>) {
        let (mut covered, mut owed, mut unsure) = (Vec::new(), Vec::new(), Vec::new());
        for (own, member) in &group.members {
            let Some(name) = self.wanted(own, &member.aliases) else {
                continue;
            };
            match self.current(name, slot) {
                Current::Known(Known::Absent(_)) | Current::Uncovered => {
                    unsure.extend(self.names.contains(name).then(|| name.clone()));
                    // C-20: a client that asked by an alias holds the resource under its own name. What it rejected of the
                    // wildcard, it may hold: that must be sent again if it comes back before it was removed.
                    let held = self.covered.held(own);
                    let doubtful = !held.perhaps() || member.version.is_some_and(|version| held.is(version));
                    if !member.missing && !self.names.contains(own) && doubtful {
                        covered.push((own.clone(), Held::Unknown));
                    }
                }
                Current::Unknown if self.names.contains(name) => unsure.push(name.clone()),
                Current::Known(Known::Present(_)) | Current::Unknown | Current::Unwanted => {
                    owed.push(name.clone());
                }
            }
        }
        // D-03: a name that has gone, or may have, waits like any removal, unless the client holds nothing of it.
        let (waits, moot): (Vec<Name>, Vec<Name>) = unsure.into_iter().partition(|name| self.held(name).perhaps());
        self.owed.extend(owed.into_iter().chain(moot));
        waits.into_iter().for_each(|name| self.look_at(name));
        self.note_covered(covered);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn removals(names: &[&str]) -> Group {
        let mut group = Group::new(Arc::new(Objection::new("no", Instant::now())));
        names
            .iter()
            .for_each(|name| group.add_removal(&Name::from(*name), false));
        group
    }

    /// B-22: no name is in two groups. An accepted member frees no other; one that is given up does.
    #[test]
    fn groups() {
        let [a, b, c] = ["a", "b", "c"].map(Name::from);
        let mut refusals = Refusals::new();
        refusals.add(removals(&["a"]));
        refusals.add(removals(&["b", "c"]));
        assert_eq!((refusals.0.len(), refusals.len()), (2, 3));
        refusals.add(removals(&["a", "b"]));
        assert_eq!((refusals.0.len(), refusals.len()), (1, 3), "they share members");
        assert!(refusals.has(&a, None) && !refusals.has(&a, Some(Version::EMPTY)));
        assert!(refusals.accept(&a, None) && !refusals.accept(&a, None));
        assert!(refusals.0.iter().all(|group| !group.freed));
        refusals.give_up(&b);
        assert!(refusals.0.iter().all(|group| group.freed));
        assert_eq!(refusals.called(&c).count(), 1);
        refusals.give_up(&c);
        assert!(refusals.is_empty());
    }
}
