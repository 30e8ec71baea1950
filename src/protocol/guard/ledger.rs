//! The holds as operators see them, and when each began and ended.
//!
//! Owns the comparison with what was last told. Does not log.

use std::collections::BTreeMap;

use super::removal::{Half, Removals};
use xds::{HeldRemoval, Hold, HoldEnd, HoldEvent, HoldReason, Name, TypeUrl};

/// What was last told of the holds.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By hold: how many removals it had, and one of their names.
    told: BTreeMap<(TypeUrl, HoldReason), (usize, Name)>,
    /// By hold: why the last of its removals ended.
    ends: BTreeMap<(TypeUrl, HoldReason), HoldEnd>,
    /// Whether anything has changed since then.
    changed: bool,
}

impl Ledger {
    /// A removal is not held for this reason any more.
    pub(super) fn end(&mut self, type_url: &TypeUrl, reason: HoldReason, end: HoldEnd) {
        self.ends.insert((type_url.clone(), reason), end);
        self.changed = true;
    }

    /// Something may have changed.
    pub(super) const fn change(&mut self) {
        self.changed = true;
    }

    /// Returns all holds and what has begun and ended since the last call, if anything may have changed.
    pub(super) fn take(&mut self, held: &BTreeMap<Half, Removals>) -> Option<(Vec<Hold>, Vec<HoldEvent>)> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let holds = holds(held);
        let mut events = Vec::new();
        let now: BTreeMap<(TypeUrl, HoldReason), (usize, Name)> = holds
            .iter()
            .filter_map(|hold| {
                let (name, _) = hold.removals.first_key_value()?;
                Some((
                    (hold.type_url.clone(), hold.reason),
                    (hold.removals.len(), name.clone()),
                ))
            })
            .collect();
        for (key, (removals, name)) in &self.told {
            if !now.contains_key(key) {
                let ended = Some(self.ends.get(key).copied().unwrap_or(HoldEnd::Gone));
                events.push(event(key, *removals, name, ended));
            }
        }
        for (key, (removals, name)) in &now {
            if !self.told.contains_key(key) {
                events.push(event(key, *removals, name, None));
            }
        }
        self.ends.clear();
        self.told = now;
        Some((holds, events))
    }
}

fn event(
    (type_url, reason): &(TypeUrl, HoldReason),
    removals: usize,
    name: &Name,
    ended: Option<HoldEnd>,
) -> HoldEvent {
    HoldEvent {
        type_url: type_url.clone(),
        reason: *reason,
        removals,
        name: name.clone(),
        ended,
    }
}

fn holds(held: &BTreeMap<Half, Removals>) -> Vec<Hold> {
    let mut holds: BTreeMap<(TypeUrl, HoldReason), BTreeMap<Name, HeldRemoval>> = BTreeMap::new();
    for ((type_url, wildcard), removals) in held {
        for (name, removal) in removals {
            let Some(reason) = removal.reason() else { continue };
            let shown = HeldRemoval {
                since: removal.said,
                until: match reason {
                    HoldReason::Mass => removal.mass,
                    HoldReason::Referenced => removal.at_most,
                },
                by: removal.by.clone(),
                emptied: removal.is_emptied(),
                wildcard: *wildcard,
                extended: removal.extended.as_ref().map(|(_, reason)| reason.clone()),
            };
            let hold = holds.entry((type_url.clone(), reason)).or_default();
            hold.insert(name.clone(), shown);
        }
    }
    let holds = holds.into_iter();
    let holds = holds.map(|((type_url, reason), removals)| Hold {
        type_url,
        reason,
        removals,
    });
    holds.collect()
}
