//! The names that a client asked for, and what it holds under each.
//!
//! Owns the tables and the version of their content. Does not know what is current.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::entry::Entry;
use super::other_names::OtherNames;
use super::sorted::{Named, Sorted};
use xds::{Baselines, Held, Item, Name, Resource, Version};

/// The names that one stream requests of one type. Invariant: `sum` is the sum over the contents that the client certainly holds.
#[derive(Debug, Default)]
pub(super) struct HeldNames {
    /// Contents that are held under their own names, so one pointer of eight bytes is enough for both. Nearly all are such.
    own: Sorted<Arc<Resource>>,
    /// All other names. Most clients have none, and then nothing is allocated.
    rest: Option<Box<OtherNames>>,
    sum: Version,
}

impl Named for Arc<Resource> {
    const STAYS: bool = true;

    fn name(&self) -> &Name {
        Resource::name(self)
    }
}

fn version(held: &Held) -> Version {
    held.content().map_or(Version::EMPTY, |content| content.version())
}

impl HeldNames {
    pub(super) const fn is_empty(&self) -> bool {
        self.own.is_empty() && self.rest.is_none()
    }

    /// Returns the number of names; takes longer the more there are.
    pub(super) fn len(&self) -> usize {
        self.own.len() + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn get(&self, name: &Name) -> Option<Entry<'_>> {
        self.by_text(name.as_str())
    }

    /// Returns the name in the table with this text.
    pub(super) fn name(&self, text: &str) -> Option<&Name> {
        self.by_text(text).map(Entry::name)
    }

    /// Returns the names that a collection covers (F-10).
    pub(super) fn within<'a>(&'a self, collection: &'a Name) -> impl Iterator<Item = &'a Name> {
        let names = self.from(collection.prefix()).map(|(name, _)| name);
        let names = names.take_while(|name| name.as_str().starts_with(collection.prefix()));
        names.filter(|name| collection.covers(name))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, Entry<'_>)> {
        self.from("")
    }

    /// C-20: returns a function that finds content of a resource that is held under an alias and was received later.
    pub(super) fn newer_by_alias<'a>(&'a self) -> impl Fn(&Resource) -> Option<&'a Arc<Resource>> {
        let held: BTreeMap<_, _> = self.aliased().map(|(_, content)| (content.name(), content)).collect();
        move |resource| {
            let held = held.get(resource.name()).copied();
            held.filter(|held| held.received() > resource.received())
        }
    }

    /// C-20: returns the aliases that new resources have lost, with their names: the client may have lost what it held under them.
    pub(super) fn replaced_by(&self, items: &BTreeMap<Name, Item>) -> Vec<(Name, Name)> {
        let replaced = self.aliased().filter_map(|(alias, content)| {
            let lost = !items.get(content.name())?.resource.aliases().contains(alias);
            lost.then(|| (alias.clone(), content.name().clone()))
        });
        replaced.collect()
    }

    /// C-20: returns the aliases under which resources of these names are held.
    pub(super) fn aliases_of(&self, owns: &BTreeSet<Name>) -> Vec<Name> {
        let held = self.aliased().filter(|(_, content)| owns.contains(content.name()));
        held.map(|(alias, _)| alias.clone()).collect()
    }

    /// Returns what is held of the resource of this name under its aliases (C-20).
    pub(super) fn by_alias(&self, own: &Name) -> Option<&Arc<Resource>> {
        let mut held = self.aliased().map(|(_, content)| content);
        held.find(|content| content.name() == own)
    }

    /// Returns content with its alias.
    fn aliased(&self) -> impl Iterator<Item = (&Name, &Arc<Resource>)> {
        self.rest.iter().flat_map(|rest| rest.aliased())
    }

    /// Returns how many names are wanted only as members of collections.
    pub(super) fn members_len(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.members_len())
    }

    /// Returns whether a name is wanted only as a member of a collection.
    pub(super) fn has_member(&self, name: &Name) -> bool {
        self.members_len() > 0 && self.get(name).is_some_and(Entry::is_member)
    }

    /// Sets whether a name in the table is wanted only as a member of a collection.
    pub(super) fn mark(&mut self, name: &Name, member: bool) {
        if self.get(name).is_some_and(|entry| entry.is_member() != member)
            && let Some(held) = self.remove(name)
        {
            self.add(name.clone(), held, member);
        }
    }

    /// Adds a name, or notes what the client holds under it now.
    pub(super) fn set(&mut self, name: Name, held: Held) {
        let member = self.has_member(&name);
        match held {
            Held::Content(resource) if !member && *resource.name() == name => self.set_own(&name, resource),
            Held::Nothing | Held::Unknown | Held::Version(_) | Held::Content(_) => {
                self.remove(&name);
                self.add(name, held, member);
            }
        }
    }

    /// Nearly always, content with this very name replaces other content, or comes for a name that had none.
    fn set_own(&mut self, name: &Name, resource: Arc<Resource>) {
        self.sum = self.sum.plus(resource.version());
        if let Some(before) = self.own.insert(resource) {
            self.sum = self.sum.minus(before.version());
        } else if let Some(before) = self.remove_rest(name) {
            self.sum = self.sum.minus(version(&before));
        }
    }

    /// Adds a name that is not there.
    fn add(&mut self, name: Name, held: Held, member: bool) {
        self.sum = self.sum.plus(version(&held));
        match held {
            Held::Content(resource) if !member && *resource.name() == name => drop(self.own.insert(resource)),
            Held::Nothing | Held::Unknown | Held::Version(_) | Held::Content(_) => {
                self.rest.get_or_insert_default().add(name, held, member);
            }
        }
    }

    /// Notes what the client holds under a name, if it asked for that name.
    pub(super) fn note(&mut self, name: &Name, held: Held) {
        if let Some(name) = self.name(name.as_str()).cloned() {
            self.set(name, held);
        }
    }

    /// Drops the bodies of what the client holds.
    pub(super) fn lighten(&mut self, baselines: &mut Baselines) {
        let before = std::mem::take(self);
        for (name, entry) in before.iter() {
            self.add(name.clone(), baselines.held(&entry.held()), entry.is_member());
        }
    }

    pub(super) fn remove(&mut self, name: &Name) -> Option<Held> {
        let own = self.own.remove(name).map(Held::Content);
        let held = own.or_else(|| self.remove_rest(name))?;
        self.sum = self.sum.minus(version(&held));
        Some(held)
    }

    fn remove_rest(&mut self, name: &Name) -> Option<Held> {
        let held = self.rest.as_mut()?.remove(name);
        self.rest.take_if(|rest| rest.is_empty());
        held
    }

    /// Returns the version of what the client holds by name.
    pub(super) const fn sum(&self) -> Version {
        self.sum
    }

    fn by_text(&self, text: &str) -> Option<Entry<'_>> {
        let own = self.own.get(text).map(Entry::Own);
        own.or_else(|| self.rest.as_ref()?.get(text))
    }

    /// Returns all entries in order, from the first name that is not less than this text.
    pub(super) fn from(&self, text: &str) -> impl Iterator<Item = (&Name, Entry<'_>)> {
        let members = self.rest.iter().flat_map(|rest| rest.members_from(text));
        let mut own = self.own.from(text).map(Entry::Own).peekable();
        let mut members = members.map(Entry::Member).peekable();
        let other = self.rest.iter().flat_map(|rest| rest.others_from(text));
        let mut other = other.map(Entry::Other).peekable();
        std::iter::from_fn(move || {
            let firsts = [own.peek(), members.peek(), other.peek()];
            let first = firsts
                .map(|entry| entry.map(|entry| entry.name()))
                .into_iter()
                .enumerate();
            let (first, _) = first
                .filter_map(|(at, name)| Some((at, name?)))
                .min_by_key(|(_, name)| *name)?;
            let entry = match first {
                0 => own.next(),
                1 => members.next(),
                _ => other.next(),
            }?;
            Some((entry.name(), entry))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::{ResourceParts, TypeUrl};

    /// The same as a plain map, whatever the order of the names: the entries, their order, and the sum.
    #[test]
    fn the_same_as_a_map() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let received = std::time::Instant::now();
        let type_url = TypeUrl::new("t");
        let content = |name: &Name, step: u64| {
            let parts = ResourceParts {
                type_url: &type_url,
                name: name.clone(),
                aliases: Vec::new(),
                passed_on: &[],
                body: &step.to_be_bytes(),
                endpoints: None,
                received,
            };
            Arc::new(Resource::new(parts, 0))
        };
        let name = |number: u64| Name::from(format!("xdstp://a/t/{number:05}"));
        for scattered in [false, true] {
            let (mut names, mut naive) = (HeldNames::default(), BTreeMap::new());
            for step in 0..6000_u64 {
                let number = if scattered { step * 7919 % 3001 } else { step / 2 };
                let name = name(number);
                let resource = content(&name, step);
                let version = Version::from_bits(u128::from(step) << 60);
                let (held, version) = match step % 5 {
                    4 => {
                        assert_eq!(names.remove(&name).is_some(), naive.remove(&name).is_some());
                        continue;
                    }
                    3 => (Held::Version(version), version),
                    _ => (Held::Content(resource.clone()), resource.version()),
                };
                let sure = held.content().is_some();
                names.set(name.clone(), held);
                naive.insert(name.clone(), (version, sure));
                if step % 3 == 0 {
                    names.mark(&name, step % 2 == 0);
                }
            }
            assert_eq!(names.len(), naive.len());
            assert!(!names.own.is_empty() && names.rest.as_ref().is_some_and(|rest| rest.len() > rest.members_len()));
            let members = naive.keys().filter(|name| names.has_member(name)).count();
            assert!(members > 0 && members == names.members_len());
            assert!(names.iter().map(|(name, _)| name).eq(naive.keys()));
            let same =
                |(name, (version, _)): (&Name, &(Version, bool))| names.get(name).is_some_and(|it| it.is(*version));
            assert!(naive.iter().all(same));
            let sure = naive.values().filter(|(_, sure)| *sure);
            let sum = sure.fold(Version::EMPTY, |sum, (version, _)| sum.plus(*version));
            assert_eq!(names.sum(), sum);
            let (all, some) = (Name::from("xdstp://a/t/*"), Name::from("xdstp://a/t/0"));
            assert_eq!(names.within(&all).count(), naive.len());
            assert_eq!(names.name("xdstp://a/t/"), None);
            assert!(!names.contains(&some));
            naive.keys().for_each(|name| drop(names.remove(name)));
            assert!(names.is_empty() && names.own.is_empty() && names.rest.is_none());
            assert!(names.members_len() == 0 && names.sum() == Version::EMPTY);
        }
    }
}
