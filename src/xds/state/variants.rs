//! The variants of resources with constraints (TP2), beside the unconstrained resources.
//!
//! Owns which of them a client gets. Does not know which clients there are.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::{Expiry, Known, Reason, State};
use crate::{Choice, Constraints, Name, Parameters, Resource, Version};

/// The constrained variants, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Variants {
    by_name: OrdMap<Name, Arc<Group>>,
    count: usize,
    bytes: usize,
}

/// The variants of one name, in the order of their versions; at least one.
#[derive(Clone, Debug)]
pub(super) struct Group {
    all: Arc<[Variant]>,
    /// A bundle of all of them and the unconstrained resource, once a relay has asked for it.
    whole: OnceLock<Option<Variant>>,
}

/// One variant.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    resource: Arc<Resource>,
    /// The same resource, as what is known of its name for clients that get it.
    pub(super) known: Known,
    pub(super) expiry: Option<Expiry>,
}

/// For a name that has variants, but none for this client.
static NOT_FOR_YOU: Known = Known::Absent(Reason::Said);

impl State {
    /// Returns the variant of a name for a client with these parameters, if any matches.
    #[must_use]
    pub fn variant(&self, name: &Name, own: &Choice) -> Option<&Known> {
        self.choose(name, own).map(|found| &found.known)
    }

    /// F-16: of several that match, takes the one with the lowest version, so that every replica takes the same.
    pub(super) fn choose(&self, name: &Name, own: &Choice) -> Option<&Variant> {
        let group = self.variants.by_name.get(name)?;
        match own {
            Choice::One(own) => group.all.iter().find(|variant| variant.allows(own)),
            Choice::All => group.whole.get_or_init(|| self.whole_of(name, &group.all)).as_ref(),
        }
    }

    fn whole_of(&self, name: &Name, variants: &[Variant]) -> Option<Variant> {
        let everybody = self.entries.get(name).and_then(Known::resource);
        let everybody = everybody.map(|resource| (resource, self.expiry(name)));
        let all = || everybody.into_iter().chain(variants.iter().map(Variant::read));
        let parts = all().map(|(part, _)| (part.clone(), None));
        let resource = Arc::new(Resource::bundle(parts.collect())?);
        Some(Variant {
            known: Known::Present(resource.clone()),
            resource,
            expiry: Expiry::of_all(all().filter_map(|(_, expiry)| expiry)),
        })
    }

    /// Whether a client with these parameters matches several variants of a name (F-16).
    #[must_use]
    pub fn ambiguous(&self, name: &Name, own: &Choice) -> bool {
        let Choice::One(own) = own else { return false };
        let all = self.variants.of(name).iter();
        all.filter(|variant| variant.allows(own)).nth(1).is_some()
    }

    /// Returns that a name does not exist for a client that matches none of its variants; `None` if it has no variants.
    #[must_use]
    pub fn not_for_you(&self, name: &Name) -> Option<&'static Known> {
        (!self.variants.of(name).is_empty()).then_some(&NOT_FOR_YOU)
    }

    /// All constrained variants.
    pub fn variants(&self) -> impl Iterator<Item = (&Arc<Resource>, Option<Expiry>)> {
        self.variants
            .by_name
            .values()
            .flat_map(|group| group.all.iter())
            .map(Variant::read)
    }

    /// The constrained variants of one name.
    pub fn variants_of(&self, name: &Name) -> impl Iterator<Item = (&Arc<Resource>, Option<Expiry>)> {
        self.variants.of(name).iter().map(Variant::read)
    }

    /// The members of a collection that are only variants, as a client with these parameters gets them (F-10).
    pub fn varying_members<'a>(
        &'a self,
        collection: &'a Name,
        own: &'a Choice,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        let from = (Bound::Included(collection.prefix()), Bound::Unbounded);
        let all = self.variants.by_name.range::<_, str>(from);
        let all = all.take_while(|(name, _)| name.as_str().starts_with(collection.prefix()));
        let others = all.filter(|(name, _)| collection.covers(name) && self.resource(name).is_none());
        others.filter_map(|(name, _)| Some(&self.choose(name, own)?.resource))
    }

    /// The variants that a later state does not have with the same name and constraints.
    pub fn lost<'a>(&'a self, later: &'a Self) -> impl Iterator<Item = &'a Arc<Resource>> {
        let changed = self.variants.by_name.diff(&later.variants.by_name);
        let before = changed.filter_map(|item| match item {
            DiffItem::Remove(_, all) | DiffItem::Update { old: (_, all), .. } => Some(all),
            DiffItem::Add(..) => None,
        });
        let before = before.flat_map(|group| group.all.iter()).map(|one| &one.resource);
        before.filter(|one| later.like(one).is_none())
    }

    /// Returns the resource with the same name and the same constraints.
    #[must_use]
    pub fn like(&self, resource: &Resource) -> Option<(&Arc<Resource>, Option<Expiry>)> {
        let name = resource.name();
        if resource.constraints().is_some() {
            let mut all = self.variants_of(name);
            return all.find(|(other, _)| other.constraints() == resource.constraints());
        }
        let found = self.entries.get(name)?.resource()?;
        Some((found, self.expiry(name)))
    }

    /// Returns the constraints of the variant of a name with this version.
    #[must_use]
    pub fn demands(&self, name: &Name, version: Version) -> Option<&Constraints> {
        let mut all = self.variants_of(name);
        let (found, _) = all.find(|(variant, _)| variant.version() == version)?;
        found.constraints()
    }
}

impl Variants {
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) const fn by_name(&self) -> &OrdMap<Name, Arc<Group>> {
        &self.by_name
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops the bundle of this name, because a part of it has changed.
    pub(super) fn renew(&mut self, name: &Name) {
        if let Some(group) = self.by_name.get(name).filter(|group| group.whole.get().is_some()) {
            let group = Group::new(group.all.clone());
            self.by_name.insert(name.clone(), Arc::new(group));
        }
    }

    /// Adds a variant, in place of one with the same constraints. Returns whether that is a change.
    pub(super) fn put(&mut self, new: &Arc<Resource>, expiry: Option<Expiry>) -> bool {
        let same = |one: &Variant| one.resource.version() == new.version() && one.expiry == expiry;
        if self.of(new.name()).iter().any(same) {
            return false;
        }
        let mut all = self.others(new);
        all.push(Variant {
            resource: new.clone(),
            known: Known::Present(new.clone()),
            expiry,
        });
        all.sort_by_key(|one| one.resource.version());
        self.set(new.name(), all);
        true
    }

    /// Removes the variant with the same constraints. Returns whether there was one.
    pub(super) fn withdraw(&mut self, old: &Resource) -> bool {
        let others = self.others(old);
        let changed = others.len() < self.of(old.name()).len();
        if changed {
            self.set(old.name(), others);
        }
        changed
    }

    /// Removes all variants of a name. Returns whether there were any.
    pub(super) fn forget(&mut self, name: &Name) -> bool {
        let any = !self.of(name).is_empty();
        if any {
            self.set(name, Vec::new());
        }
        any
    }

    pub(super) fn of(&self, name: &Name) -> &[Variant] {
        self.by_name.get(name).map_or(&[], |group| &group.all)
    }

    fn set(&mut self, name: &Name, all: Vec<Variant>) {
        let weight = |all: &[Variant]| all.iter().map(|one| one.resource.weight()).sum::<usize>();
        let (count, bytes) = (self.of(name).len(), weight(self.of(name)));
        self.count = self.count + all.len() - count;
        self.bytes = self.bytes + weight(&all) - bytes;
        if all.is_empty() {
            self.by_name.remove(name);
        } else {
            self.by_name.insert(name.clone(), Arc::new(Group::new(all.into())));
        }
    }

    fn others(&self, like: &Resource) -> Vec<Variant> {
        let all = self.of(like.name()).iter();
        let others = all.filter(|one| one.resource.constraints() != like.constraints());
        others.cloned().collect()
    }
}

impl Group {
    const fn new(all: Arc<[Variant]>) -> Self {
        Self {
            all,
            whole: OnceLock::new(),
        }
    }
}

impl PartialEq for Group {
    /// Compares the variants only: the unconstrained resource is an entry of the state, and is compared there.
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl PartialEq for Variant {
    /// Equal content with the same expiry.
    fn eq(&self, other: &Self) -> bool {
        self.known == other.known && self.expiry == other.expiry
    }
}

impl Variant {
    fn allows(&self, own: &Parameters) -> bool {
        self.resource.constraints().is_some_and(|demands| demands.allow(own))
    }

    const fn read(&self) -> (&Arc<Resource>, Option<Expiry>) {
        (&self.resource, self.expiry)
    }
}
