// SPDX-License-Identifier: Apache-2.0
//! A naive model of which content of files counts (I-05, E-11): the last good content of each file, and how long it lives.
//!
//! Owns the files of an imaginary disk, and their content taken together. Does not know who writes and who reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::body::Type;
use crate::truth::Key;

/// What a file says.
pub(super) type Said = BTreeMap<Key, Line>;

/// One resource in a file: revision, and time to live from the moment it is read.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) revision: u64,
    pub(super) ttl: Option<Duration>,
}

/// One file as it is now.
pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    /// What it says, if it is valid.
    pub(super) says: Option<Said>,
    /// The number of this write, counted over all files.
    pub(super) nth: i64,
}

/// A [`Line`] that was read.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) revision: u64,
    pub(super) until: Option<Instant>,
}

/// The content that counts.
#[derive(Default)]
pub(super) struct Model {
    /// The number of the last write of each file that was read.
    seen: BTreeMap<PathBuf, i64>,
    good: BTreeMap<PathBuf, BTreeMap<Key, Counted>>,
    pub(super) merged: BTreeMap<Key, Counted>,
    /// Resources in valid files whose time to live is over.
    over: BTreeSet<Key>,
    pub(super) whole: bool,
}

impl Counted {
    /// Whether its time to live is not over yet.
    fn lives(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    fn is_like(&self, other: &Self) -> bool {
        self.revision == other.revision
    }
}

impl Model {
    pub(super) fn find(&self, kind: Type, name: &str) -> Option<&Counted> {
        self.merged.get(&(kind, name.to_owned()))
    }

    /// Whether the time to live of a name is over.
    pub(super) fn is_over(&self, kind: Type, name: &str) -> bool {
        self.over.contains(&(kind, name.to_owned()))
    }

    /// I-05: a bad file does not replace the content of its last good one; when a file is removed from a directory, its content
    /// goes.
    pub(super) fn look(&mut self, disk: Option<&BTreeMap<PathBuf, Written>>, now: Instant) {
        if let Some(disk) = disk {
            self.take(disk, now);
        }
        self.merge(
            disk.is_some_and(|disk| disk.values().all(|written| written.says.is_some())),
            now,
        );
    }

    fn take(&mut self, disk: &BTreeMap<PathBuf, Written>, now: Instant) {
        self.good.retain(|path, _| disk.contains_key(path));
        self.seen.retain(|path, _| disk.contains_key(path));
        for (path, written) in disk {
            // E-11: only a file that was written again counts as received again.
            let again = self.seen.insert(path.clone(), written.nth) != Some(written.nth);
            let Some(says) = written.says.as_ref().filter(|_| again) else {
                continue;
            };
            let counted = says.iter().map(|(key, line)| {
                let counted = Counted {
                    revision: line.revision,
                    until: line.ttl.map(|ttl| now + ttl),
                };
                (key.clone(), counted)
            });
            self.good.insert(path.clone(), counted.collect());
        }
    }

    fn merge(&mut self, all_good: bool, now: Instant) {
        let mut merged = BTreeMap::new();
        let mut known = true;
        self.over.clear();
        for (key, counted) in self.good.values().flatten() {
            if !counted.lives(now) {
                self.over.insert(key.clone());
                continue;
            }
            let said = self.good.values().filter_map(|said| said.get(key));
            let mut alive = said.filter(|other| other.lives(now));
            // E-12: a resource that is there twice, with different contents, stays as it was.
            if alive.clone().all(|other| other.is_like(counted)) {
                let forever = alive.clone().any(|other| other.until.is_none());
                let until = alive.clone().filter_map(|other| other.until).max();
                let counted = Counted {
                    until: until.filter(|_| !forever),
                    ..counted.clone()
                };
                merged.insert(key.clone(), counted);
            } else if let Some(before) = self.merged.get(key) {
                merged.extend(before.lives(now).then(|| (key.clone(), before.clone())));
            } else {
                known &= alive.next().is_none();
            }
        }
        self.merged = merged;
        self.whole |= all_good && known;
    }
}
