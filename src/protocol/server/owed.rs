//! Names that must be answered whatever the client holds (K-12).
//!
//! Owns which of them are looked at for the next response: those that could not be answered are not, until something changes. Does
//! not know why a name cannot be answered.

use super::sorted::Sorted;
use xds::Name;

/// The names of one type on one stream that are owed an answer. Most clients are owed nothing, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Owed(Option<Box<Lists>>);

#[derive(Debug, Default)]
struct Lists {
    due: Sorted<Name>,
    /// Names that could not be answered when they were last looked at.
    waiting: Sorted<Name>,
}

impl Owed {
    /// Adds a name. It is due.
    pub(super) fn insert(&mut self, name: Name) {
        let lists = self.0.get_or_insert_default();
        lists.waiting.remove(&name);
        lists.due.insert(name);
    }

    /// Removes a name. Returns whether it was owed.
    pub(super) fn remove(&mut self, name: &Name) -> bool {
        let Some(lists) = &mut self.0 else { return false };
        let owed = lists.due.remove(name).is_some() || lists.waiting.remove(name).is_some();
        self.give_back();
        owed
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Name) -> bool) {
        let Some(lists) = &mut self.0 else { return };
        lists.due.retain(&mut keep);
        lists.waiting.retain(keep);
        self.give_back();
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.lists().any(|list| list.contains(name))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the number of names; takes longer the more there are.
    pub(super) fn len(&self) -> usize {
        self.lists().map(Sorted::len).sum()
    }

    /// Returns all names: those that are due, and then the others.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Name> {
        self.lists().flat_map(Sorted::iter)
    }

    /// Returns the names that the next response may answer.
    pub(super) fn due(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().flat_map(|lists| lists.due.iter())
    }

    /// Returns whether no name can be answered before something changes.
    pub(super) fn rests(&self) -> bool {
        self.0.as_ref().is_none_or(|lists| lists.due.is_empty())
    }

    /// This name cannot be answered. It must be woken when something changes.
    pub(super) fn put_off(&mut self, name: &Name) {
        let Some(lists) = &mut self.0 else { return };
        let due = lists.due.remove(name);
        lists.waiting.extend(due);
    }

    /// What is known of this name may have changed.
    pub(super) fn wake(&mut self, name: &Name) {
        let Some(lists) = &mut self.0 else { return };
        let woken = lists.waiting.remove(name);
        lists.due.extend(woken);
    }

    /// What is known of any name may have changed.
    pub(super) fn wake_all(&mut self) {
        let Some(lists) = &mut self.0 else { return };
        let woken = std::mem::take(&mut lists.waiting);
        lists.due.extend(woken);
    }

    fn lists(&self) -> impl Iterator<Item = &Sorted<Name>> {
        self.0.iter().flat_map(|lists| [&lists.due, &lists.waiting])
    }

    fn give_back(&mut self) {
        self.0.take_if(|lists| lists.due.is_empty() && lists.waiting.is_empty());
    }
}

impl Extend<Name> for Owed {
    fn extend<I: IntoIterator<Item = Name>>(&mut self, names: I) {
        names.into_iter().for_each(|name| self.insert(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that cannot be answered is owed. It is due again when it is woken, asked for again, or anything may have changed.
    #[test]
    fn a_name_that_cannot_be_answered_is_not_due() {
        let [a, b, c] = ["a", "b", "c"].map(Name::from);
        let due = |owed: &Owed| owed.due().map(ToString::to_string).collect::<String>();
        let mut owed = Owed::default();
        owed.extend([a.clone(), b.clone(), c.clone()]);
        for name in [&a, &c, &Name::from("never owed")] {
            owed.put_off(name);
        }
        assert_eq!((due(&owed).as_str(), owed.len(), owed.rests()), ("b", 3, false));
        assert!(owed.contains(&a) && !owed.contains(&Name::from("never owed")));
        owed.wake(&c);
        owed.wake(&Name::from("never owed"));
        assert_eq!(due(&owed), "bc");
        owed.insert(a.clone());
        assert_eq!((due(&owed).as_str(), owed.len()), ("abc", 3));
        for name in [&a, &b, &c] {
            owed.put_off(name);
        }
        assert!(owed.rests() && !owed.is_empty() && owed.iter().count() == 3);
        assert!(owed.remove(&a) && !owed.remove(&a));
        owed.wake_all();
        assert_eq!(due(&owed), "bc");
        for name in [&b, &c] {
            owed.put_off(name);
        }
        owed.retain(|_| false);
        assert!(owed.is_empty());
    }
}
