//! The names that a client asked for and does not simply hold under their own names.
//!
//! Owns their tables. Does not know the other names.

use std::sync::Arc;

use super::entry::{Entry, Other};
use super::sorted::{Named, Sorted};
use xds::{Held, Name, Resource};

/// Such names of one type on one stream. No name is in both tables.
#[derive(Debug, Default)]
pub(super) struct OtherNames {
    /// Contents under their own names, which are wanted only as members of collections.
    members: Sorted<Member>,
    /// All others: names without content (usually for a short time), and contents under an alias.
    others: Sorted<Other>,
    /// How many names of both tables are wanted only as members of collections.
    members_len: u32,
    /// Under how many names of `others` content is held.
    aliased: u32,
}

#[derive(Debug)]
struct Member(Arc<Resource>);

impl Named for Member {
    const STAYS: bool = true;

    fn name(&self) -> &Name {
        self.0.name()
    }
}

impl OtherNames {
    pub(super) const fn is_empty(&self) -> bool {
        self.members.is_empty() && self.others.is_empty()
    }

    /// Returns the number of names; takes longer the more there are.
    pub(super) fn len(&self) -> usize {
        self.members.len() + self.others.len()
    }

    /// Returns how many names are wanted only as members of collections.
    pub(super) const fn members_len(&self) -> usize {
        self.members_len as usize
    }

    /// Returns content with its alias. A client may wait for very many names of which nothing is known: then there is none.
    pub(super) fn aliased(&self) -> impl Iterator<Item = (&Name, &Arc<Resource>)> {
        let others = (self.aliased > 0).then(|| self.others.iter());
        let others = others.into_iter().flatten();
        others.filter_map(|other| Some((&other.name, other.held.content()?)))
    }

    /// Adds a name that is not there.
    pub(super) fn add(&mut self, name: Name, held: Held, member: bool) {
        self.members_len += u32::from(member);
        match held {
            Held::Content(resource) if member && *resource.name() == name => {
                drop(self.members.insert(Member(resource)));
            }
            Held::Nothing | Held::Unknown | Held::Version(_) | Held::Content(_) => {
                self.aliased += u32::from(held.content().is_some());
                self.others.insert(Other { name, held, member });
            }
        }
    }

    pub(super) fn remove(&mut self, name: &Name) -> Option<Held> {
        if let Some(Member(resource)) = self.members.remove(name) {
            self.members_len -= 1;
            return Some(Held::Content(resource));
        }
        let other = self.others.remove(name)?;
        self.members_len -= u32::from(other.member);
        self.aliased -= u32::from(other.held.content().is_some());
        Some(other.held)
    }

    pub(super) fn get(&self, text: &str) -> Option<Entry<'_>> {
        let member = self.members.get(text).map(|Member(held)| Entry::Member(held));
        member.or_else(|| self.others.get(text).map(Entry::Other))
    }

    /// Returns the members in order, from the first name that is not less than this text.
    pub(super) fn members_from(&self, text: &str) -> impl Iterator<Item = &Arc<Resource>> {
        self.members.from(text).map(|Member(held)| held)
    }

    /// Returns all that are not in that table, in the same way.
    pub(super) fn others_from(&self, text: &str) -> impl Iterator<Item = &Other> {
        self.others.from(text)
    }
}
