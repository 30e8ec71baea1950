// SPDX-License-Identifier: Apache-2.0
//! Old content that is still in memory, because some session has not looked at its replacement.
//!
//! Owns weak references to replaced content. Does not know who holds it: it counts what is alive.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Weak};

use super::earlier::Earlier;
use xds::{Changes, Cut, Known, Reason, Resource, Update};

/// Replaced content, oldest first. Counts only the bodies: the maps around them share their structure.
#[derive(Default)]
pub(super) struct Replaced {
    gone: VecDeque<Gone>,
    /// When there are as many entries as this, the dead ones are removed.
    sweep_at: usize,
    /// Some of it, which is held.
    earlier: Earlier,
}

struct Gone {
    generation: u64,
    resource: Weak<Resource>,
    bytes: usize,
}

const SWEEP_AT_LEAST: usize = 256;

impl Replaced {
    /// Notes what the changes are about to replace in the cut, and the generation of the changes.
    pub(super) fn note(&mut self, cut: &Cut, changes: &Changes, generation: u64, history_bytes: usize) {
        let Some(state) = cut.half(&changes.type_url, changes.wildcard) else {
            return;
        };
        let mut removed = BTreeSet::new();
        for update in &changes.updates {
            match update {
                Update::Put(new, _) => {
                    let old = state.entries().get(new.name()).and_then(Known::resource);
                    if let Some(old) = old.filter(|old| old.version() != new.version()) {
                        let bytes = state.bytes();
                        self.earlier.note(&changes.type_url, new, old, bytes, history_bytes);
                        self.add(old, generation);
                    }
                }
                Update::Absent(name, _) | Update::Forget(name) => {
                    if let Some(Known::Present(old)) = state.entries().get(name) {
                        self.add(old, generation);
                        // What leaves a wildcard is not covered any more (K-05).
                        if changes.wildcard || matches!(update, Update::Absent(_, Reason::Said)) {
                            removed.insert(name);
                        }
                    }
                }
                Update::Whole(_) | Update::Error(..) => {}
            }
        }
        self.earlier.withdraw(&changes.type_url, &removed);
    }

    /// Notes that this content is not current any more.
    pub(super) fn add(&mut self, old: &Arc<Resource>, generation: u64) {
        if self.gone.len() >= self.sweep_at.max(SWEEP_AT_LEAST) {
            self.gone.retain(|gone| gone.resource.strong_count() > 0);
            self.sweep_at = self.gone.len() * 2;
        }
        self.gone.push_back(Gone {
            generation,
            resource: Arc::downgrade(old),
            bytes: old.weight(),
        });
    }

    /// How many bytes of content that was replaced in this generation or later are still in memory.
    pub(super) fn bytes_since(&self, generation: u64) -> usize {
        let alive = self
            .gone
            .iter()
            .rev()
            .take_while(|gone| gone.generation >= generation)
            .filter(|gone| gone.resource.strong_count() > 0);
        alive.map(|gone| gone.bytes).sum()
    }

    /// The part of it that is held.
    pub(super) const fn earlier(&mut self) -> &mut Earlier {
        &mut self.earlier
    }
}
