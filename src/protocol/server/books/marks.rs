// SPDX-License-Identifier: Apache-2.0
//! What few names of few streams need beside their rows.
//!
//! Owns its storage, so that it takes no memory where it is not needed. Does not know what follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use xds::{Errors, Name, ResourceError};

/// The marks on the names of a type. Most types have none, and then nothing is allocated.
#[derive(Debug, Default)]
pub(in crate::server) struct NameMarks(Option<Box<MarkTable>>);

#[derive(Debug, Default)]
struct MarkTable {
    /// The errors that the client was sent (B-31).
    errors: Errors,
    /// The last heartbeat that was passed on of each resource (K-17).
    beats: BTreeMap<Name, u32>,
    /// B-34: how many versions are in the table that the ledger is relative to, until the client was sent all that differs.
    table: usize,
}

impl MarkTable {
    fn is_empty(&self) -> bool {
        let Self { errors, beats, table } = self;
        errors.is_empty() && beats.is_empty() && *table == 0
    }
}

impl NameMarks {
    fn add(&mut self) -> &mut MarkTable {
        self.0.get_or_insert_default()
    }

    /// Takes something away, if there is anything. Frees the storage if nothing is left in it.
    fn take<R: Default>(&mut self, take: impl FnOnce(&mut MarkTable) -> R) -> R {
        let Some(written) = &mut self.0 else {
            return R::default();
        };
        let taken = take(written);
        self.0.take_if(|written| written.is_empty());
        taken
    }

    /// Returns how many entries are kept.
    pub(in crate::server) fn len(&self) -> usize {
        let count = |written: &MarkTable| written.errors.len() + written.beats.len();
        self.0.as_deref().map_or(0, count)
    }

    /// The client has forgotten a name.
    pub(super) fn forget(&mut self, name: &Name) {
        self.take(|written| {
            written.errors.remove(name);
            written.beats.remove(name);
        });
    }

    /// B-31: returns the error of a name that the client was sent.
    pub(in crate::server) fn error(&self, name: &Name) -> Option<&Arc<ResourceError>> {
        self.0.as_ref()?.errors.get(name)
    }

    pub(super) fn note_error(&mut self, name: Name, error: Arc<ResourceError>) {
        self.add().errors.insert(name, error);
    }

    pub(super) fn forget_error(&mut self, name: &Name) {
        self.take(|written| drop(written.errors.remove(name)));
    }

    /// K-17: returns the heartbeat of a resource that was passed on.
    pub(in crate::server) fn beat(&self, name: &Name) -> Option<u32> {
        self.0.as_ref()?.beats.get(name).copied()
    }

    /// Whether the client was sent anything with a time to live.
    pub(in crate::server) fn has_beats(&self) -> bool {
        self.0.as_ref().is_some_and(|written| !written.beats.is_empty())
    }

    /// Notes the heartbeat that was passed on; `None`: the resource has no time to live.
    pub(super) fn note_beat(&mut self, name: &Name, beat: Option<u32>) {
        match beat {
            Some(beat) => _ = self.add().beats.insert(name.clone(), beat),
            None => self.take(|written| _ = written.beats.remove(name)),
        }
    }

    /// A table of so many versions is kept.
    pub(super) fn note_version_table(&mut self, len: usize) {
        self.add().table = len;
    }

    /// The client was sent all of the state, or all that it was not sent is in rows: nothing is relative to a table any more.
    pub(super) fn forget_version_table(&mut self) {
        self.take(|written| written.table = 0);
    }

    /// B-34: returns how many versions are kept, those in rows left out.
    pub(in crate::server) fn versions(&self) -> usize {
        self.0.as_ref().map_or(0, |written| written.table)
    }
}
