// SPDX-License-Identifier: Apache-2.0
//! A sorted list of things with names.
//!
//! Owns the order, and that memory is freed when entries are gone. Does not know how an entry stores its name.

use std::cmp::Ordering;

use xds::Name;

/// Entries sorted by name, each name once.
///
/// Most of the memory of a session is in these, so they are plain lists of limited length: an insertion in the middle moves few
/// entries.
#[derive(Debug)]
pub(super) struct Sorted<T> {
    /// None of them is empty.
    lists: Vec<Vec<T>>,
}

/// Something with a name.
pub(super) trait Named {
    /// Whether entries stay long. If so, their lists have almost no spare capacity. Other entries stay for a short time: beyond a
    /// few, a list takes a whole page at once, which leaves no hole in the heap between entries that stay.
    const STAYS: bool;

    fn name(&self) -> &Name;
}

impl Named for Name {
    const STAYS: bool = false;

    fn name(&self) -> &Name {
        self
    }
}

/// The size of the longest list with one entry more; at that size it is split in two.
const LIST_BYTES_MAX: usize = 4096;
/// A list of short-lived entries up to this length counts as a few.
const FEW: usize = 8;

impl<T: Named> Sorted<T> {
    const LIST_MAX: usize = LIST_BYTES_MAX / size_of::<T>() - 1;

    pub(super) const fn new() -> Self {
        Self { lists: Vec::new() }
    }

    /// Returns the number of entries; takes longer the more there are.
    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    pub(super) fn get(&self, text: &str) -> Option<&T> {
        let (list, at) = self.place(text);
        self.lists.get(list)?.get(at.ok()?)
    }

    /// Returns the entry with this name. Its name must not change.
    pub(super) fn get_mut(&mut self, text: &str) -> Option<&mut T> {
        let (list, at) = self.place(text);
        self.lists.get_mut(list)?.get_mut(at.ok()?)
    }

    /// Changes every entry. Their names must not change.
    pub(super) fn each_mut(&mut self, change: impl FnMut(&mut T)) {
        self.lists.iter_mut().flatten().for_each(change);
    }

    pub(super) fn contains(&self, text: &str) -> bool {
        self.get(text).is_some()
    }

    /// Adds an entry. Returns the one that it replaces.
    pub(super) fn insert(&mut self, entry: T) -> Option<T> {
        let (at_list, at) = self.place(entry.name().as_str());
        let Some(list) = self.lists.get_mut(at_list) else {
            self.lists.reserve_exact(1);
            self.lists.push(vec![entry]);
            return None;
        };
        let at = match at {
            Ok(at) => return list.get_mut(at).map(|place| std::mem::replace(place, entry)),
            Err(at) => at,
        };
        if list.len() == list.capacity() {
            if T::STAYS {
                list.reserve_exact((list.len() / 8).max(1));
            } else if list.len() >= FEW {
                list.reserve_exact(Self::LIST_MAX + 1 - list.len());
            }
        }
        list.insert(at, entry);
        if list.len() > Self::LIST_MAX {
            // Names often come in order: then the next one finds room at the end.
            let in_order = at == Self::LIST_MAX;
            let rest = list.split_off(if in_order { Self::LIST_MAX } else { Self::LIST_MAX / 2 });
            list.shrink_to_fit();
            self.lists.insert(at_list + 1, rest);
        }
        None
    }

    pub(super) fn remove(&mut self, text: &str) -> Option<T> {
        let (at_list, Ok(at)) = self.place(text) else {
            return None;
        };
        let list = self.lists.get_mut(at_list)?;
        let entry = list.remove(at);
        if list.is_empty() {
            self.lists.remove(at_list);
        } else if list.len() * 2 < list.capacity() {
            list.shrink_to_fit();
        }
        self.give_back();
        Some(entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.lists.iter().flatten()
    }

    /// Returns all entries from the first name that is not less than this text.
    pub(super) fn from(&self, text: &str) -> impl Iterator<Item = &T> {
        let (list, at) = self.place(text);
        let rest = self.lists.iter().skip(list).flatten();
        rest.skip(at.unwrap_or_else(|at| at))
    }

    /// Returns the list in which a name is or belongs, and its place in that list.
    fn place(&self, text: &str) -> (usize, Result<usize, usize>) {
        let order = |entry: &T| text.cmp(entry.name().as_str());
        // Names often come and go in order, so that the place is at one of the ends.
        match self.lists.first().and_then(|list| list.first()).map(order) {
            None | Some(Ordering::Less) => return (0, Err(0)),
            Some(Ordering::Equal) => return (0, Ok(0)),
            Some(Ordering::Greater) => {}
        }
        let end = self
            .lists
            .last()
            .and_then(|list| Some((list.len(), order(list.last()?))));
        if let Some((end, Ordering::Greater)) = end {
            return (self.lists.len() - 1, Err(end));
        }
        let begins = |list: &Vec<T>| list.first().is_some_and(|first| order(first) != Ordering::Less);
        let list = match self.lists.len() {
            0 | 1 => 0,
            _ => self.lists.partition_point(begins).saturating_sub(1),
        };
        let at = self
            .lists
            .get(list)
            .map_or(Err(0), |list| list.binary_search_by(|entry| order(entry).reverse()));
        (list, at)
    }

    fn give_back(&mut self) {
        if self.lists.is_empty() {
            // Frees the memory of the outer list as well.
            self.lists = Vec::new();
        }
    }
}

impl<T: Named> Default for Sorted<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> IntoIterator for Sorted<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.lists.into_iter().flatten()
    }
}

impl<T: Named> Extend<T> for Sorted<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, entries: I) {
        for entry in entries {
            self.insert(entry);
        }
    }
}
