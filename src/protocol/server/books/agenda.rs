// SPDX-License-Identifier: Apache-2.0
//! Which names must be looked at for the next response, and in which order.
//!
//! Owns the list and the place at which the last response ended. Only the books take names from the list: whoever else has it can only
//! add to it. Does not know what is due of a name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::sorted::Sorted;
use xds::{Difference, Name, State};

/// What may have to be sent of one type on one stream.
///
/// Invariant: a name is listed, or differs between what the client was sent and the state, or nothing is due of it.
#[derive(Debug, Default)]
pub(in crate::server) struct Agenda {
    lists: Option<Box<NameLists>>,
    reached: Option<Box<Headway>>,
}

/// How far a client has come that was sent a part of what is due. Others have none.
#[derive(Debug)]
struct Headway {
    /// Where the last response ended. Names that change all the time would otherwise hold up those behind them.
    cursor: Option<Name>,
    /// What is left of the difference of which a part was sent.
    rest: Option<Arc<Difference>>,
}

#[derive(Debug, Default)]
struct NameLists {
    look: Sorted<Name>,
    /// Names of which a removal is due.
    gone: Sorted<Name>,
    /// Names that wait until more is known of an alias (C-20).
    waits: BTreeSet<Name>,
    /// All members of these collections must be looked at, and if `None` is one of them, all rows.
    sweeps: BTreeMap<Option<Name>, Sweep>,
}

/// Names that must be looked at, some in each turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweep {
    /// The first name that was not listed yet; `None`: the first of all.
    pub(super) from: Option<Name>,
    /// Whether the client must be told again of what it may hold.
    pub(super) asks: bool,
    /// Whether all must be looked at once more, and whether the client must be told again then.
    again: Option<bool>,
}

/// A walk over all names that must be looked at, once around from the cursor.
#[derive(Debug)]
pub(in crate::server) struct AgendaWalk {
    start: Option<Name>,
    at: Option<Name>,
    around: bool,
}

impl NameLists {
    fn is_idle(&self) -> bool {
        self.look.is_empty() && self.gone.is_empty() && self.sweeps.is_empty()
    }
}

impl Agenda {
    /// These names must be looked at.
    pub(in crate::server) fn look(&mut self, names: impl IntoIterator<Item = Name>) {
        for name in names {
            let lists = self.lists.get_or_insert_default();
            lists.gone.remove(name.as_str());
            lists.look.insert(name);
        }
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
    pub(in crate::server) fn gone(&self) -> impl Iterator<Item = &Name> {
        self.lists.iter().flat_map(|lists| lists.gone.iter())
    }

    /// The same, and it must be looked at when more is known of an alias, or errors need not wait any more.
    pub(super) fn wait(&mut self, name: &Name) -> bool {
        let listed = self.pass(name);
        self.lists.get_or_insert_default().waits.insert(name.clone());
        listed
    }

    /// More is known of an alias, or errors need not wait any more. Returns whether anything has waited for that.
    pub(in crate::server) fn wake(&mut self) -> bool {
        let Some(lists) = &mut self.lists else {
            return false;
        };
        let waits = std::mem::take(&mut lists.waits);
        let any = !waits.is_empty();
        lists.look.extend(waits);
        any
    }

    /// All members of a collection must be looked at; `None`: all rows. `asks`: the client must be told again of what it may hold.
    pub(in crate::server) fn sweep(&mut self, of: Option<Name>, asks: bool) {
        let sweep = self.lists.get_or_insert_default().sweeps.entry(of).or_default();
        if sweep.from.is_some() {
            sweep.again = Some(asks || sweep.again == Some(true));
        } else {
            sweep.asks |= asks;
        }
    }

    /// Returns what must be swept next. Collections come first, so that a sweep of all rows, which may begin again and again, never holds
    /// them up.
    pub(super) fn next_sweep(&self) -> Option<(Option<Name>, Sweep)> {
        let (of, sweep) = self.lists.as_ref()?.sweeps.last_key_value()?;
        Some((of.clone(), sweep.clone()))
    }

    /// Names were listed, and later those from `next` on must be. Returns whether it is over.
    pub(super) fn swept(&mut self, of: &Option<Name>, next: Option<Name>) -> bool {
        if let Some(lists) = &mut self.lists
            && let Some(sweep) = lists.sweeps.get_mut(of)
        {
            if next.is_none()
                && let Some(asks) = sweep.again.take()
            {
                *sweep = Sweep {
                    asks,
                    ..Sweep::default()
                };
                return false;
            }
            sweep.from = next;
            if sweep.from.is_some() {
                return false;
            }
            lists.sweeps.remove(of);
        }
        self.give_back();
        true
    }

    /// Nothing is due of any listed name.
    pub(super) fn clear(&mut self) {
        self.lists = None;
    }

    /// Returns the listed names.
    pub(in crate::server) fn names(&self) -> impl Iterator<Item = &Name> {
        self.lists.iter().flat_map(|lists| lists.look.iter())
    }

    fn give_back(&mut self) {
        self.lists.take_if(|lists| lists.is_idle() && lists.waits.is_empty());
    }

    /// Whether nothing is due or must be looked at.
    pub(in crate::server) fn is_empty(&self) -> bool {
        self.lists.as_ref().is_none_or(|lists| lists.is_idle())
    }

    /// Returns how many names are listed; takes longer the more there are.
    pub(in crate::server) fn len(&self) -> usize {
        self.lists
            .as_ref()
            .map_or(0, |lists| lists.look.len() + lists.gone.len() + lists.waits.len())
    }

    pub(in crate::server) fn cursor(&self) -> Option<&Name> {
        self.reached.as_ref()?.cursor.as_ref()
    }

    /// The next walk begins behind this name.
    pub(in crate::server) fn set_cursor(&mut self, cursor: Option<Name>) {
        let rest = self.reached.take().and_then(|reached| reached.rest);
        self.put(cursor, rest);
    }

    /// Returns what is left of the difference that leads to this state.
    pub(in crate::server) fn rest(&self, to: &State) -> Option<&Arc<Difference>> {
        let rest = self.reached.as_ref()?.rest.as_ref();
        rest.filter(|rest| rest.leads_to(to))
    }

    /// The client has come this far.
    #[inline]
    pub(super) fn put(&mut self, cursor: Option<Name>, rest: Option<Arc<Difference>>) {
        let any = cursor.is_some() || rest.is_some();
        self.reached = any.then(|| Box::new(Headway { cursor, rest }));
    }

    /// What is left of the difference must be found anew.
    pub(in crate::server) fn forget_rest(&mut self) {
        let cursor = self.reached.take().and_then(|reached| reached.cursor);
        self.put(cursor, None);
    }

    /// Whether names are still to be listed.
    pub(in crate::server) fn is_late(&self) -> bool {
        self.lists.as_ref().is_some_and(|lists| !lists.sweeps.is_empty())
    }

    /// Whether names are still to be listed that one answer has: all members of a collection, or all that the client asks for again.
    pub(in crate::server) fn gathers(&self) -> bool {
        let last = self.lists.as_ref().and_then(|lists| lists.sweeps.last_key_value());
        last.is_some_and(|(of, sweep)| of.is_some() || sweep.asks)
    }

    /// A walk has stopped: the next one begins there.
    pub(in crate::server) fn stop(&mut self, walk: &AgendaWalk) {
        self.set_cursor(walk.at.clone());
    }

    /// Begins a walk.
    pub(in crate::server) fn walk(&self) -> AgendaWalk {
        AgendaWalk {
            start: self.cursor().cloned(),
            at: self.cursor().cloned(),
            around: false,
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

impl AgendaWalk {
    /// Returns the next name that is listed or differs.
    pub(in crate::server) fn next(&mut self, agenda: &Agenda, difference: Option<&Difference>) -> Option<Name> {
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
