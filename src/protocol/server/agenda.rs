//! Which names must be looked at for the next response, and in which order.
//!
//! Owns the list and the place at which the last response ended. Does not know what is due of a name.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::sorted::Sorted;
use xds::{Difference, Name, State};

/// What may have to be sent of one type on one stream.
///
/// Invariant: a name is listed, or differs between what the client was sent and the state, or nothing is due of it.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    lists: Option<Box<Lists>>,
    /// Where the last response ended. Names that change all the time would otherwise hold up those behind them.
    cursor: Option<Name>,
    /// What is left of the difference of which a part was sent.
    rest: Option<Arc<Difference>>,
    /// Whether the wildcard must be answered, even if it is empty (B-20, C-17).
    hello: bool,
    /// Whether a walk of this turn stopped short, so that names are left that were not looked at.
    short: bool,
    /// The wildcard's state when it was last looked at, and whether it was certain.
    state: (u64, bool),
}

#[derive(Debug, Default)]
struct Lists {
    look: Sorted<Name>,
    /// Names of which a removal is due.
    gone: Sorted<Name>,
    /// Names that wait until more is known of an alias (C-20).
    waits: BTreeSet<Name>,
    /// Collections of which all members must be looked at.
    stirred: BTreeSet<Name>,
    sweep: Option<Sweep>,
}

/// All rows must be looked at, some in each turn.
#[derive(Debug, Default)]
struct Sweep {
    /// The first row that was not listed yet; `None`: the first of all.
    from: Option<Name>,
    /// Whether all must be looked at once more.
    again: bool,
}

/// A walk over all names that must be looked at, once around from the cursor.
#[derive(Debug)]
pub(super) struct Walk {
    start: Option<Name>,
    at: Option<Name>,
    around: bool,
    /// How many names may still be passed.
    left: usize,
}

/// How many names one walk passes at most, because others have their turn then. That many take some milliseconds.
pub(super) const PASSED_MAX: usize = 4096;
/// How many rows one turn lists at most, when all must be looked at: fewer than it can pass.
pub(super) const SWEPT_MAX: usize = PASSED_MAX / 2;

impl Lists {
    fn is_idle(&self) -> bool {
        self.look.is_empty() && self.gone.is_empty() && self.stirred.is_empty() && self.sweep.is_none()
    }
}

impl Agenda {
    /// This name must be looked at.
    pub(super) fn look(&mut self, name: Name) {
        let lists = self.lists.get_or_insert_default();
        lists.gone.remove(name.as_str());
        lists.look.insert(name);
    }

    /// Nothing is due of this name until something changes. Returns whether it was listed.
    pub(super) fn pass(&mut self, name: &Name) -> bool {
        let lists = self.lists.as_mut();
        let listed = lists.and_then(|lists| lists.look.remove(name.as_str()).or(lists.gone.remove(name.as_str())));
        self.give_back();
        listed.is_some()
    }

    /// A removal is due of this name. Returns whether it was listed to be looked at.
    pub(super) fn leave(&mut self, name: &Name) -> bool {
        let lists = self.lists.get_or_insert_default();
        lists.gone.insert(name.clone());
        lists.look.remove(name.as_str()).is_some()
    }

    /// Returns the names of which a removal was due when they were last looked at.
    pub(super) fn gone(&self) -> impl Iterator<Item = &Name> {
        self.lists.iter().flat_map(|lists| lists.gone.iter())
    }

    /// The same, and it must be looked at when more is known of an alias.
    pub(super) fn wait(&mut self, name: &Name) -> bool {
        let listed = self.pass(name);
        self.lists.get_or_insert_default().waits.insert(name.clone());
        listed
    }

    /// More is known of an alias.
    pub(super) fn wake(&mut self) {
        if let Some(lists) = &mut self.lists {
            let waits = std::mem::take(&mut lists.waits);
            lists.look.extend(waits);
        }
    }

    /// All rows must be looked at.
    pub(super) fn sweep(&mut self) {
        let sweep = &mut self.lists.get_or_insert_default().sweep;
        match sweep {
            Some(sweep) => sweep.again |= sweep.from.is_some(),
            None => *sweep = Some(Sweep::default()),
        }
    }

    /// Returns the text from which on rows are to be listed.
    pub(super) fn sweeps_from(&self) -> Option<&str> {
        let sweep = self.lists.as_ref()?.sweep.as_ref()?;
        Some(sweep.from.as_ref().map_or("", Name::as_str))
    }

    /// These rows must be looked at, and later those from `next` on.
    pub(super) fn swept(&mut self, rows: Vec<Name>, next: Option<Name>) {
        for name in rows {
            if name.is_collection() {
                self.stir(name);
            } else {
                self.look(name);
            }
        }
        if let Some(lists) = &mut self.lists
            && let Some(Sweep { from, again }) = &mut lists.sweep
        {
            let more = next.is_some() || std::mem::take(again);
            *from = next;
            lists.sweep.take_if(|_| !more);
        }
        self.give_back();
    }

    /// All members of this collection must be looked at.
    pub(super) fn stir(&mut self, collection: Name) {
        self.lists.get_or_insert_default().stirred.insert(collection);
    }

    pub(super) fn unstir(&mut self, collection: &Name) {
        if let Some(lists) = &mut self.lists {
            lists.stirred.remove(collection);
        }
        self.give_back();
    }

    /// Returns the next collection of which all members must be looked at.
    pub(super) fn pop_stirred(&mut self) -> Option<Name> {
        let next = self.lists.as_mut()?.stirred.pop_first();
        self.give_back();
        next
    }

    /// Nothing is due of any listed name.
    pub(super) fn clear(&mut self) {
        self.lists = None;
    }

    /// Returns the listed names.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.lists.iter().flat_map(|lists| lists.look.iter())
    }

    fn give_back(&mut self) {
        self.lists.take_if(|lists| lists.is_idle() && lists.waits.is_empty());
    }

    /// Whether nothing is due or must be looked at.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.as_ref().is_none_or(|lists| lists.is_idle())
    }

    /// Returns how many names are listed; takes longer the more there are.
    pub(super) fn len(&self) -> usize {
        self.lists
            .as_ref()
            .map_or(0, |lists| lists.look.len() + lists.gone.len() + lists.waits.len())
    }

    pub(super) const fn cursor(&self) -> Option<&Name> {
        self.cursor.as_ref()
    }

    pub(super) fn set_cursor(&mut self, cursor: Option<Name>) {
        self.cursor = cursor;
    }

    /// Returns what is left of the difference that leads to this state.
    pub(super) fn rest(&self, to: &State) -> Option<&Arc<Difference>> {
        self.rest.as_ref().filter(|rest| rest.leads_to(to))
    }

    pub(super) fn set_rest(&mut self, rest: Option<Arc<Difference>>) {
        self.rest = rest;
    }

    pub(super) const fn hello(&self) -> bool {
        self.hello
    }

    pub(super) const fn set_hello(&mut self, hello: bool) {
        self.hello = hello;
    }

    /// Notes the wildcard's state. Returns whether it is another than before, and whether it has become certain.
    pub(super) const fn note_state(&mut self, id: u64, certain: bool) -> (bool, bool) {
        let before = std::mem::replace(&mut self.state, (id, certain));
        (before.0 != id, certain && !before.1)
    }

    /// Whether names are left that this turn does not look at.
    pub(super) fn is_short(&self) -> bool {
        self.short || self.sweeps_from().is_some()
    }

    pub(super) const fn set_short(&mut self, short: bool) {
        self.short = short;
    }

    /// Begins a walk.
    pub(super) fn walk(&self) -> Walk {
        Walk {
            start: self.cursor.clone(),
            at: self.cursor.clone(),
            around: false,
            left: PASSED_MAX,
        }
    }

    fn after<'a>(&'a self, after: Bound<&str>, difference: Option<&'a Difference>) -> Option<&'a Name> {
        let look = self.lists.as_ref().and_then(|lists| match after {
            Bound::Excluded(text) => lists.look.from(text).find(|name| name.as_str() != text),
            Bound::Included(text) => lists.look.from(text).next(),
            Bound::Unbounded => lists.look.iter().next(),
        });
        let differs = difference.and_then(|difference| difference.next(after));
        look.into_iter().chain(differs).min()
    }
}

impl Walk {
    /// A listed name is passed. Each is passed once, so that the next walk gets further.
    pub(super) const fn count(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Whether it has passed so many names that it must stop.
    pub(super) const fn is_short(&self) -> bool {
        self.left == 0
    }

    /// Returns the next name that is listed or differs.
    pub(super) fn next(&mut self, agenda: &Agenda, difference: Option<&Difference>) -> Option<Name> {
        let after = |at: &Option<Name>| {
            let bound = at.as_ref().map_or(Bound::Unbounded, |at| Bound::Excluded(at.as_str()));
            agenda.after(bound, difference).cloned()
        };
        let mut found = after(&self.at);
        if found.is_none() && !self.around && self.start.is_some() {
            self.around = true;
            found = after(&None);
        }
        let over = |name: &Name| self.around && self.start.as_ref().is_some_and(|start| name > start);
        let found = found.filter(|name| !over(name))?;
        self.at = Some(found.clone());
        Some(found)
    }
}
