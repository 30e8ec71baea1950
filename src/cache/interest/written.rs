// SPDX-License-Identifier: Apache-2.0
//! The texts of names that clients of a view do not write in the canonical way (F-07).
//!
//! Owns the texts, as long as the names are leased. Does not know who wrote them.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::{Mutex, MutexGuard};

use xds::{Name, Target, TypeUrl, Want};

/// The texts of names of one view. Nothing is kept for a name that all clients write in the canonical way.
#[derive(Debug, Default)]
pub(crate) struct NameTexts(Mutex<TextTable>);

#[derive(Debug, Default)]
pub(crate) struct TextTable {
    ways: BTreeMap<(TypeUrl, Name), BTreeSet<Option<Name>>>,
    /// Wants that the writer has not taken yet.
    fresh: Vec<Want>,
}

/// The most texts of one name that are requested upstream; nobody needs more.
const WAYS_MAX: usize = 8;

impl NameTexts {
    /// Locks the table, if the target of a want may be in it. While it is locked, no lease of a new-style name changes.
    pub(crate) fn of(&self, want: &Want) -> Option<MutexGuard<'_, TextTable>> {
        matches!(&want.target, Target::Name(name) if name.is_new_style()).then(|| self.0.lock())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, TextTable> {
        self.0.lock()
    }
}

impl TextTable {
    /// Notes that somebody wants this; `leased` if it was leased before. Returns whether the writer must be told.
    pub(crate) fn note(&mut self, want: &Want, leased: bool) -> bool {
        let Target::Name(name) = &want.target else { return false };
        let key = (want.type_url.clone(), name.clone());
        let ways = match (self.ways.get_mut(&key), &want.written) {
            (Some(ways), _) => ways,
            (None, None) => return false,
            // All clients that leased it until now wrote it in the canonical way.
            (None, Some(_)) => self
                .ways
                .entry(key)
                .or_insert(leased.then_some(None).into_iter().collect()),
        };
        let new = ways.len() < WAYS_MAX && ways.insert(want.written.clone());
        if new && leased {
            self.fresh.push(want.clone());
        }
        new && leased
    }

    /// Returns the wants, with one for each text of a name that begins, and the texts that are new since the last call.
    pub(crate) fn tell(&mut self, wants: Vec<Want>) -> Vec<Want> {
        if self.ways.is_empty() {
            return wants;
        }
        let mut told = Vec::with_capacity(wants.len());
        let mut fresh = std::mem::take(&mut self.fresh);
        if !fresh.is_empty() {
            let begun = wants.iter().filter(|want| want.wanted);
            let begun: BTreeSet<_> = begun.map(|want| (&want.type_url, &want.target)).collect();
            fresh.retain(|want| !begun.contains(&(&want.type_url, &want.target)));
        }
        for want in wants {
            let ways = match &want.target {
                Target::Name(name) if want.wanted => self.ways.get(&(want.type_url.clone(), name.clone())),
                Target::Name(_) | Target::Wildcard => None,
            };
            match ways {
                Some(ways) => told.extend(ways.iter().map(|written| Want {
                    written: written.clone(),
                    ..want.clone()
                })),
                None => told.push(want),
            }
        }
        told.extend(fresh);
        told
    }

    /// Forgets the texts of targets that are not leased any more. These are in order.
    pub(crate) fn forget(&mut self, ended: &[(TypeUrl, Target)]) {
        if self.ways.is_empty() {
            return;
        }
        for (type_url, target) in ended {
            if let Target::Name(name) = target {
                self.ways.remove(&(type_url.clone(), name.clone()));
            }
        }
        let has_ended = |want: &Want| {
            let order = |(of, target): &(TypeUrl, Target)| (of, target).cmp(&(&want.type_url, &want.target));
            ended.binary_search_by(order).is_ok()
        };
        self.fresh.retain(|want| !has_ended(want));
    }
}
