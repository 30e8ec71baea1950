//! The variants of resources that are not meant for everybody (TP2), beside what is.
//!
//! Owns which of them a client gets. Refuses to know which clients there are.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::{Expiry, Known, Reason, State};
use crate::xds::{Choice, Constraints, Name, Parameters, Resource, Version};

/// By name, the variants that demand something of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Variants {
    by_name: OrdMap<Name, Arc<Group>>,
    count: usize,
    bytes: usize,
}

/// Those of one name, in the order of their versions; at least one.
#[derive(Clone, Debug)]
pub(super) struct Group {
    all: Arc<[Variant]>,
    /// All of them and what is for everybody as one thing, once a relay has asked for it.
    whole: OnceLock<Option<Variant>>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    resource: Arc<Resource>,
    /// The same, as what is known of its name to those who get it.
    pub(super) known: Known,
    pub(super) expiry: Option<Expiry>,
}

/// Of a name of which there are only variants for others.
static NOT_FOR_YOU: Known = Known::Absent(Reason::Said);

impl State {
    /// The variant of a name that a client gets that says this of itself, if it matches any.
    #[must_use]
    pub fn variant(&self, name: &Name, own: &Choice) -> Option<&Known> {
        self.choose(name, own).map(|found| &found.known)
    }

    /// F-16: of several that match, the first by its version, so that every replica takes the same.
    pub(super) fn choose(&self, name: &Name, own: &Choice) -> Option<&Variant> {
        let group = self.variants.by_name.get(name)?;
        match own {
            Choice::One(own) => group.all.iter().find(|variant| variant.allows(own)),
            Choice::All => group.whole.get_or_init(|| self.whole_of(name, &group.all)).as_ref(),
        }
    }

    fn whole_of(&self, name: &Name, variants: &[Variant]) -> Option<Variant> {
        let everybody = match self.entries.get(name) {
            Some(Known::Present(resource)) => Some((resource, self.expiry(name))),
            Some(Known::Absent(_)) | None => None,
        };
        let all = || everybody.into_iter().chain(variants.iter().map(Variant::read));
        let parts = all().map(|(part, _)| (part.clone(), None));
        let resource = Arc::new(Resource::bundle(parts.collect())?);
        Some(Variant {
            known: Known::Present(resource.clone()),
            resource,
            expiry: Expiry::of_all(all().filter_map(|(_, expiry)| expiry)),
        })
    }

    /// Whether a client that says this of itself matches several variants of a name (F-16).
    #[must_use]
    pub fn ambiguous(&self, name: &Name, own: &Choice) -> bool {
        let Choice::One(own) = own else { return false };
        let all = self.variants.of(name).iter();
        all.filter(|variant| variant.allows(own)).nth(1).is_some()
    }

    /// What a client is told of a name that matches none of its variants, where there is nothing else of it.
    #[must_use]
    pub fn not_for_you(&self, name: &Name) -> Option<&'static Known> {
        (!self.variants.of(name).is_empty()).then_some(&NOT_FOR_YOU)
    }

    /// All variants that are not for everybody.
    pub fn variants(&self) -> impl Iterator<Item = (&Arc<Resource>, Option<Expiry>)> {
        self.variants
            .by_name
            .values()
            .flat_map(|group| group.all.iter())
            .map(Variant::read)
    }

    /// The variants of one name that are not for everybody.
    pub fn variants_of(&self, name: &Name) -> impl Iterator<Item = (&Arc<Resource>, Option<Expiry>)> {
        self.variants.of(name).iter().map(Variant::read)
    }

    /// Of a collection the members that are not for everybody, and for a client that says this of itself (F-10).
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

    /// The variants of which there is none like them in a later state.
    pub fn lost<'a>(&'a self, later: &'a Self) -> impl Iterator<Item = &'a Arc<Resource>> {
        let changed = self.variants.by_name.diff(&later.variants.by_name);
        let before = changed.filter_map(|item| match item {
            DiffItem::Remove(_, all) | DiffItem::Update { old: (_, all), .. } => Some(all),
            DiffItem::Add(..) => None,
        });
        let before = before.flat_map(|group| group.all.iter()).map(|one| &one.resource);
        before.filter(|one| later.like(one).is_none())
    }

    /// What there is under the same name for the same clients.
    #[must_use]
    pub fn like(&self, resource: &Resource) -> Option<(&Arc<Resource>, Option<Expiry>)> {
        let name = resource.name();
        if resource.constraints().is_some() {
            let mut all = self.variants_of(name);
            return all.find(|(other, _)| other.constraints() == resource.constraints());
        }
        match self.entries.get(name)? {
            Known::Present(found) => Some((found, self.expiry(name))),
            Known::Absent(_) => None,
        }
    }

    /// What the variant of a name with this version demands.
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

    /// What is for everybody under this name has changed.
    pub(super) fn renew(&mut self, name: &Name) {
        if let Some(group) = self.by_name.get(name).filter(|group| group.whole.get().is_some()) {
            let group = Group::new(group.all.clone());
            self.by_name.insert(name.clone(), Arc::new(group));
        }
    }

    /// Adds a variant in the place of one with the same constraints. Whether that is a change.
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

    /// Removes the variant with the same constraints. Whether there was one.
    pub(super) fn withdraw(&mut self, old: &Resource) -> bool {
        let others = self.others(old);
        let changed = others.len() < self.of(old.name()).len();
        if changed {
            self.set(old.name(), others);
        }
        changed
    }

    /// Removes all variants of a name. Whether there were any.
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
    /// The same variants: what is for everybody is compared where it stands.
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl PartialEq for Variant {
    /// Equal content with the same life.
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
