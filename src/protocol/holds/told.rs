// SPDX-License-Identifier: Apache-2.0
//! The holds as operators see them, and what has happened to them.
//!
//! Owns what was last told, so that a change costs what has changed. Does not log.

use std::collections::BTreeMap;

use imbl::OrdMap;

use super::ground::Reason;
use super::waiting::Item;
use xds::{HeldRemoval, Hold, HoldChange, HoldClock, HoldEnd, HoldEvent, HoldReason, Name, TypeUrl};

type Key = (TypeUrl, Reason);

/// All holds.
///
/// Invariant: no hold is empty.
#[derive(Debug, Default)]
pub(super) struct Told {
    holds: BTreeMap<Key, OrdMap<Name, HeldRemoval>>,
    /// What has happened since the last call of [`Self::take`]: to how many removals, and one of their names.
    events: BTreeMap<(Key, HoldChange), (usize, Name)>,
    changed: bool,
}

impl Told {
    /// A row that was held for the reason `before` is held for this one now, or not any more because of `end`.
    pub(super) fn show(
        &mut self,
        item: &Item,
        before: Option<Reason>,
        shown: Option<(Reason, HeldRemoval)>,
        end: HoldEnd,
    ) {
        let ((type_url, _), name) = item;
        let after = shown.as_ref().map(|(reason, _)| *reason);
        if let Some(reason) = before.filter(|_| before != after) {
            let key = (type_url.clone(), reason);
            if let Some(removals) = self.holds.get_mut(&key) {
                removals.remove(name);
                if removals.is_empty() {
                    self.holds.remove(&key);
                }
            }
            self.note(key, HoldChange::Ended(end), name);
        }
        let Some((reason, removal)) = shown else { return };
        let key = (type_url.clone(), reason);
        if before != after {
            let begun = (key.clone(), HoldChange::Begun);
            let joins = self.holds.contains_key(&key) && !self.events.contains_key(&begun);
            let change = if joins { HoldChange::Joined } else { HoldChange::Begun };
            self.note(key.clone(), change, name);
        }
        let removals = self.holds.entry(key).or_default();
        if removals.get(name) != Some(&removal) {
            removals.insert(name.clone(), removal);
            self.changed = true;
        }
    }

    /// Whether the judgement with this number holds anything.
    pub(super) fn has_judgement(&self, type_url: &TypeUrl, number: u32) -> bool {
        let reason = (HoldReason::Mass, Some(number));
        self.holds.contains_key(&(type_url.clone(), reason))
    }

    fn note(&mut self, key: Key, change: HoldChange, name: &Name) {
        let (count, _) = self.events.entry((key, change)).or_insert((0, name.clone()));
        *count += 1;
        self.changed = true;
    }

    /// Returns all holds, and what has happened since the last call, if anything has changed.
    pub(super) fn take(
        &mut self,
        clock: impl Fn(&TypeUrl, u32) -> Option<HoldClock>,
    ) -> Option<(Vec<Hold>, Vec<HoldEvent>)> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let holds = self.holds.iter().map(|((type_url, reason), removals)| Hold {
            type_url: type_url.clone(),
            reason: reason.0,
            judgement: reason.1,
            clock: reason.1.and_then(|number| clock(type_url, number)),
            removals: removals.clone(),
        });
        let events = std::mem::take(&mut self.events).into_iter();
        let events = events.map(|(((type_url, reason), change), (removals, name))| HoldEvent {
            type_url,
            reason: reason.0,
            judgement: reason.1,
            change,
            removals,
            name,
        });
        Some((holds.collect(), events.collect()))
    }
}
