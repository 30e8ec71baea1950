//! The names that a client asked for, and what it holds under each.
//!
//! Owns the table and the running version of its contents. Refuses to know what is current.

use std::sync::Arc;

use crate::xds::{Baselines, Held, Name, Resource, Version};

/// Explicit subscriptions of one type on one stream. `sum` is always the sum over the contents that the client surely holds.
///
/// Most of the memory of a session is here, so it is sorted lists without room to spare. None of them becomes long, or what comes
/// out of order would have much to move.
#[derive(Debug, Default)]
pub(super) struct HeldNames {
    lists: Vec<Vec<Entry>>,
    len: usize,
    /// How many are wanted only as members of collections.
    members: usize,
    sum: Version,
}

/// One name and what is held under it.
#[derive(Debug)]
pub(super) enum Entry {
    /// The content that has this very name, and so says both. Nearly always it is that.
    Own(Arc<Resource>),
    /// The same, of a name that is wanted only as a member of a collection.
    Member(Arc<Resource>),
    /// Anything else.
    Other(Box<Other>),
}

/// What the content does not say by itself.
#[derive(Debug)]
pub(super) struct Other {
    name: Name,
    held: Held,
    member: bool,
}

/// The longest list.
const LIST_MAX: usize = 512;

impl Entry {
    fn new(name: Name, held: Held, member: bool) -> Self {
        match held.content().filter(|resource| *resource.name() == name) {
            Some(resource) if member => Self::Member(resource.clone()),
            Some(resource) => Self::Own(resource.clone()),
            None => Self::Other(Box::new(Other { name, held, member })),
        }
    }

    fn name(&self) -> &Name {
        match self {
            Self::Own(resource) | Self::Member(resource) => resource.name(),
            Self::Other(other) => &other.name,
        }
    }

    /// What is held.
    pub(super) fn held(&self) -> Held {
        match self {
            Self::Own(resource) | Self::Member(resource) => Held::Content(resource.clone()),
            Self::Other(other) => other.held.clone(),
        }
    }

    /// Whether it is wanted only as a member of a collection.
    pub(super) const fn is_member(&self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Member(_) => true,
            Self::Other(other) => other.member,
        }
    }

    /// As [`Held::is`].
    pub(super) fn is(&self, version: Version) -> bool {
        match self {
            Self::Own(resource) | Self::Member(resource) => resource.version() == version,
            Self::Other(other) => other.held.is(version),
        }
    }

    /// As [`Held::perhaps`].
    pub(super) fn perhaps(&self) -> bool {
        match self {
            Self::Own(_) | Self::Member(_) => true,
            Self::Other(other) => other.held.perhaps(),
        }
    }

    /// As [`Held::content`].
    pub(super) fn content(&self) -> Option<&Arc<Resource>> {
        match self {
            Self::Own(resource) | Self::Member(resource) => Some(resource),
            Self::Other(other) => other.held.content(),
        }
    }

    fn version(&self) -> Version {
        self.content().map_or(Version::EMPTY, |content| content.version())
    }
}

impl HeldNames {
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Entry> {
        self.by_text(name.as_str())
    }

    /// The name that is in the table by this text.
    pub(super) fn name(&self, text: &str) -> Option<&Name> {
        self.by_text(text).map(Entry::name)
    }

    /// The names that a collection covers (F-10).
    pub(super) fn within<'a>(&'a self, collection: &'a Name) -> impl Iterator<Item = &'a Name> {
        let (list, at) = self.place(collection.prefix());
        let rest = self.lists.iter().skip(list).flatten();
        let names = rest.skip(at.unwrap_or_else(|at| at)).map(Entry::name);
        let names = names.take_while(|name| name.as_str().starts_with(collection.prefix()));
        names.filter(|name| collection.covers(name))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Entry)> {
        self.lists.iter().flatten().map(|entry| (entry.name(), entry))
    }

    /// How many names are wanted only as members of collections.
    pub(super) const fn members_len(&self) -> usize {
        self.members
    }

    /// Whether a name is wanted only as a member of a collection.
    pub(super) fn has_member(&self, name: &Name) -> bool {
        self.get(name).is_some_and(Entry::is_member)
    }

    /// From now on a name that is in the table is wanted only as a member of a collection, or for itself.
    pub(super) fn mark(&mut self, name: &Name, member: bool) {
        let (list, Ok(at)) = self.place(name.as_str()) else {
            return;
        };
        let Some(place) = self.lists.get_mut(list).and_then(|list| list.get_mut(at)) else {
            return;
        };
        self.members = self.members + usize::from(member) - usize::from(place.is_member());
        *place = Entry::new(place.name().clone(), place.held(), member);
    }

    /// Adds a name, or notes what the client holds under it now.
    pub(super) fn set(&mut self, name: Name, held: Held) {
        let (list, at) = self.place(name.as_str());
        let place = at
            .ok()
            .and_then(|at| self.lists.get_mut(list).and_then(|list| list.get_mut(at)));
        let entry = Entry::new(name, held, place.as_ref().is_some_and(|place| place.is_member()));
        self.sum = self.sum.plus(entry.version());
        match (place, at) {
            (Some(place), _) => {
                self.sum = self.sum.minus(place.version());
                *place = entry;
            }
            (None, Ok(at) | Err(at)) => self.insert(list, at, entry),
        }
    }

    /// Notes what the client holds under a name, if it asked for that name.
    pub(super) fn note(&mut self, name: &Name, held: Held) {
        if let Some(name) = self.name(name.as_str()).cloned() {
            self.set(name, held);
        }
    }

    /// Keeps no bodies of what the client holds.
    pub(super) fn lighten(&mut self, baselines: &Baselines) {
        for entry in self.lists.iter_mut().flatten() {
            *entry = Entry::new(entry.name().clone(), baselines.held(&entry.held()), entry.is_member());
        }
    }

    pub(super) fn remove(&mut self, name: &Name) -> Option<Held> {
        let (at_list, Ok(at)) = self.place(name.as_str()) else {
            return None;
        };
        let list = self.lists.get_mut(at_list)?;
        let entry = list.remove(at);
        if list.is_empty() {
            self.lists.remove(at_list);
        } else if list.len() * 2 < list.capacity() {
            list.shrink_to_fit();
        }
        self.len -= 1;
        self.members -= usize::from(entry.is_member());
        self.sum = self.sum.minus(entry.version());
        Some(entry.held())
    }

    /// The version of what the client holds by name.
    pub(super) const fn sum(&self) -> Version {
        self.sum
    }

    fn by_text(&self, text: &str) -> Option<&Entry> {
        let (list, at) = self.place(text);
        self.lists.get(list)?.get(at.ok()?)
    }

    /// The list in which a name is, or belongs, and where in it.
    fn place(&self, text: &str) -> (usize, Result<usize, usize>) {
        let begins = |list: &Vec<Entry>| list.first().is_some_and(|first| first.name().as_str() <= text);
        let list = self.lists.partition_point(begins).saturating_sub(1);
        let at = self.lists.get(list).map_or(Err(0), |list| {
            list.binary_search_by(|entry| entry.name().as_str().cmp(text))
        });
        (list, at)
    }

    fn insert(&mut self, at_list: usize, at: usize, entry: Entry) {
        self.len += 1;
        let Some(list) = self.lists.get_mut(at_list) else {
            self.lists.reserve_exact(1);
            return self.lists.push(vec![entry]);
        };
        if list.len() == list.capacity() {
            list.reserve_exact((list.len() / 8).max(1));
        }
        list.insert(at, entry);
        if list.len() > LIST_MAX {
            // Names often come in order: what comes next then finds room behind.
            let rest = list.split_off(if at == LIST_MAX { LIST_MAX } else { LIST_MAX / 2 });
            list.shrink_to_fit();
            self.lists.insert(at_list + 1, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Against a plain map, whatever the order: what is there, in which order, and the sum.
    #[test]
    fn the_same_as_a_map() {
        let name = |number: u64| Name::from(format!("xdstp://a/t/{number:05}"));
        for scattered in [false, true] {
            let (mut names, mut naive) = (HeldNames::default(), BTreeMap::new());
            for step in 0..6000_u64 {
                let number = if scattered { step * 7919 % 3001 } else { step / 2 };
                let name = name(number);
                if step % 5 == 4 {
                    assert_eq!(names.remove(&name).is_some(), naive.remove(&name).is_some());
                } else {
                    let version = Version::from_bits(u128::from(step) << 60);
                    names.set(name.clone(), Held::Version(version));
                    naive.insert(name.clone(), version);
                }
                if step % 3 == 0 {
                    names.mark(&name, step % 2 == 0);
                }
            }
            assert_eq!(names.len(), naive.len());
            let members = naive.keys().filter(|name| names.has_member(name)).count();
            assert!(members > 0 && members == names.members_len());
            assert!(names.iter().map(|(name, _)| name).eq(naive.keys()));
            assert!(
                naive
                    .iter()
                    .all(|(name, version)| names.get(name).is_some_and(|it| it.is(*version)))
            );
            assert!(names.lists.iter().all(|list| (1..=LIST_MAX).contains(&list.len())));
            let (all, some) = (Name::from("xdstp://a/t/*"), Name::from("xdstp://a/t/0"));
            assert_eq!(names.within(&all).count(), naive.len());
            assert_eq!(names.name("xdstp://a/t/"), None);
            assert!(!names.contains(&some));
            naive.keys().for_each(|name| drop(names.remove(name)));
            assert!(names.is_empty() && names.lists.is_empty() && names.members_len() == 0);
        }
    }
}
