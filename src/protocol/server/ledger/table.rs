// SPDX-License-Identifier: Apache-2.0
//! The rows of one client: the names that it asks for, and those in which it differs from others.
//!
//! Owns how they are stored: content under its own name takes a pointer. Does not know the map that the client shares with others.

use std::sync::Arc;

use super::row::Row;
use crate::sorted::{Named, Sorted};
use xds::{Name, Resource};

/// The rows of one type on one stream. No name has two.
#[derive(Debug, Default)]
pub(in crate::server) struct RowTable {
    /// Content that was sent under its own name to a client that asks for the name. Nearly all rows are such.
    asked: Sorted<Arc<Resource>>,
    /// All other rows. Most clients have none, and then nothing is allocated.
    rest: Option<Box<FurtherRows>>,
}

#[derive(Debug, Default)]
struct FurtherRows {
    /// Content that was sent under its own name, although the client does not ask for the name itself.
    unasked: Sorted<Arc<Resource>>,
    others: Sorted<Other>,
    /// How many of the others the client asks for.
    asked_len: u32,
    /// How many rows wait for an answer.
    waiting: u32,
    /// How many versions the client brought of names that it does not ask for (B-34).
    brought: u32,
}

/// A row that is not content under its own name.
#[derive(Debug)]
struct Other {
    name: Name,
    row: Row,
    asked: bool,
}

impl Other {
    /// B-34: whether the client brought a version of a name that it does not ask for.
    const fn is_brought(&self) -> bool {
        !self.asked && matches!(self.row, Row::Brought(_))
    }
}

/// One row, where it is stored.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct Entry<'a>(Stored<'a>);

#[derive(Clone, Copy, Debug)]
enum Stored<'a> {
    Asked(&'a Arc<Resource>),
    Unasked(&'a Arc<Resource>),
    Other(&'a Other),
}

impl Named for Arc<Resource> {
    const STAYS: bool = true;

    fn name(&self) -> &Name {
        Resource::name(self)
    }
}

impl Named for Other {
    const STAYS: bool = false;

    fn name(&self) -> &Name {
        &self.name
    }
}

impl<'a> Entry<'a> {
    pub(in crate::server) fn name(self) -> &'a Name {
        match self.0 {
            Stored::Asked(resource) | Stored::Unasked(resource) => resource.name(),
            Stored::Other(other) => &other.name,
        }
    }

    pub(in crate::server) fn row(self) -> Row {
        match self.0 {
            Stored::Asked(resource) | Stored::Unasked(resource) => Row::Sent(resource.clone()),
            Stored::Other(other) => other.row.clone(),
        }
    }

    /// Whether the client asks for the name itself.
    pub(in crate::server) const fn is_asked(self) -> bool {
        match self.0 {
            Stored::Asked(_) => true,
            Stored::Unasked(_) => false,
            Stored::Other(other) => other.asked,
        }
    }

    /// See [`Row::perhaps`].
    pub(in crate::server) const fn perhaps(self) -> bool {
        match self.0 {
            Stored::Asked(_) | Stored::Unasked(_) => true,
            Stored::Other(other) => other.row.perhaps(),
        }
    }
}

impl RowTable {
    pub(in crate::server) const fn is_empty(&self) -> bool {
        self.asked.is_empty() && self.rest.is_none()
    }

    /// Whether any row is not content under its own name.
    pub(in crate::server) fn has_others(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| !rest.others.is_empty())
    }

    /// Returns the number of rows; takes longer the more there are.
    pub(in crate::server) fn len(&self) -> usize {
        let rest = self.rest.as_ref();
        self.asked.len() + rest.map_or(0, |rest| rest.unasked.len() + rest.others.len())
    }

    /// Returns the number of rows that the client asks for; takes longer the more there are.
    pub(in crate::server) fn asked_len(&self) -> usize {
        self.asked.len() + self.rest.as_ref().map_or(0, |rest| rest.asked_len as usize)
    }

    /// Whether the client asks for any name.
    pub(in crate::server) fn asks_any(&self) -> bool {
        !self.asked.is_empty() || self.rest.as_ref().is_some_and(|rest| rest.asked_len > 0)
    }

    /// Returns how many rows wait for an answer.
    pub(in crate::server) fn waiting(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.waiting as usize)
    }

    /// B-34: returns how many versions the client brought of names that it does not ask for.
    pub(in crate::server) fn brought(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.brought as usize)
    }

    pub(in crate::server) fn get(&self, text: &str) -> Option<Entry<'_>> {
        let found = self.asked.get(text).map(Stored::Asked);
        let rest = || {
            let rest = self.rest.as_ref()?;
            let unasked = rest.unasked.get(text).map(Stored::Unasked);
            unasked.or_else(|| rest.others.get(text).map(Stored::Other))
        };
        found.or_else(rest).map(Entry)
    }

    /// Adds a row, or replaces the one with this name.
    pub(super) fn put(&mut self, name: &Name, row: Row, asked: bool) {
        let own = row
            .sent()
            .filter(|resource| !row.waits() && resource.name() == name)
            .cloned();
        if let Some(resource) = own.clone().filter(|_| asked) {
            // Nearly always content replaces other content, or comes for a name that had none.
            if self.asked.insert(resource).is_none() {
                self.remove_rest(name);
            }
            return;
        }
        self.remove(name);
        let rest = self.rest.get_or_insert_default();
        if let Some(resource) = own {
            rest.unasked.insert(resource);
            return;
        }
        let name = name.clone();
        let other = Other { name, row, asked };
        rest.asked_len += u32::from(asked);
        rest.waiting += u32::from(other.row.waits());
        rest.brought += u32::from(other.is_brought());
        rest.others.insert(other);
    }

    pub(super) fn remove(&mut self, name: &Name) {
        if self.asked.remove(name.as_str()).is_none() {
            self.remove_rest(name);
        }
    }

    fn remove_rest(&mut self, name: &Name) {
        let Some(rest) = &mut self.rest else { return };
        if rest.unasked.remove(name.as_str()).is_none()
            && let Some(other) = rest.others.remove(name.as_str())
        {
            rest.asked_len -= u32::from(other.asked);
            rest.waiting -= u32::from(other.row.waits());
            rest.brought -= u32::from(other.is_brought());
        }
        self.rest
            .take_if(|rest| rest.unasked.is_empty() && rest.others.is_empty());
    }

    /// Returns all rows in order, from the first name that is not less than this text.
    pub(in crate::server) fn from(&self, text: &str) -> impl Iterator<Item = Entry<'_>> {
        let asked = self.asked.from(text).map(Stored::Asked);
        let rest = self.rest.as_ref();
        let unasked = rest.into_iter().flat_map(|rest| rest.unasked.from(text));
        let others = rest.into_iter().flat_map(|rest| rest.others.from(text));
        merged(
            asked.map(Entry),
            merged(
                unasked.map(Stored::Unasked).map(Entry),
                others.map(Stored::Other).map(Entry),
            ),
        )
    }
}

/// Returns two lists of rows as one.
fn merged<'a>(
    one: impl Iterator<Item = Entry<'a>>,
    other: impl Iterator<Item = Entry<'a>>,
) -> impl Iterator<Item = Entry<'a>> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || {
        let first = one.peek().map(|entry| entry.name());
        other
            .next_if(|entry| first.is_none_or(|first| entry.name() < first))
            .or_else(|| one.next())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use xds::{ResourceParts, TypeUrl, Version};

    /// The same as a plain map, whatever the order of the names: the rows, their order, and the counts.
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
        for scattered in [false, true] {
            let (mut table, mut naive) = (RowTable::default(), BTreeMap::new());
            for step in 0..6000_u64 {
                let number = if scattered { step * 7919 % 3001 } else { step / 2 };
                let name = Name::from(format!("xdstp://a/t/{number:05}"));
                let asked = step % 3 > 0;
                let row = match step % 5 {
                    4 => {
                        table.remove(&name);
                        naive.remove(&name);
                        continue;
                    }
                    3 => Row::Asked,
                    2 => Row::Brought(Version::from_bits(u128::from(step)).into()),
                    _ => Row::Sent(content(&name, step)),
                };
                table.put(&name, row.clone(), asked);
                naive.insert(name, (format!("{row:?}"), asked));
            }
            assert_eq!(table.len(), naive.len());
            let asked = naive.values().filter(|(_, asked)| *asked).count();
            let waiting = naive.values().filter(|(row, _)| row == "Asked").count();
            assert_eq!((table.asked_len(), table.waiting()), (asked, waiting));
            assert!(table.asks_any());
            let all = table
                .from("")
                .map(|entry| (entry.name().clone(), (format!("{:?}", entry.row()), entry.is_asked())));
            assert!(all.eq(naive.clone()));
            let (first, _) = naive.iter().nth(naive.len() / 2).unwrap();
            assert_eq!(table.from(first.as_str()).count(), naive.len() - naive.len() / 2);
            naive.keys().for_each(|name| table.remove(name));
            assert!(table.is_empty() && table.rest.is_none());
        }
    }
}
