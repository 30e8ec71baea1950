//! A ledger of resources that this program did not make: it learns names and contents from the first client that gets them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use xxhash_rust::xxh3::xxh3_128;

use super::{Bell, Content, Ear, Ledger};
use crate::kind::Kind;
use crate::references;
use crate::violation::text;

/// Names of resources, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Learned {
    names: Vec<Box<[u8]>>,
    indexes: BTreeMap<Box<[u8]>, u32>,
    /// Who hears everything that is learned.
    ear: Option<Ear>,
}

/// How many resources of a type can be learned.
const LEARNED_MAX: u32 = 100_000;

impl Ledger {
    /// Creates a ledger whose resources are not known before they come.
    pub(crate) fn learning(kind: Kind, bell: Arc<Bell>) -> Self {
        Self {
            kind,
            bytes: 0,
            prefix: String::new(),
            len: 0,
            slots: (0..LEARNED_MAX).map(|_| RwLock::default()).collect(),
            learned: Some(RwLock::default()),
            counts: Kind::ALL.map(|kind| (kind, 0)),
            log: Mutex::default(),
            newest: AtomicU64::new(0),
            bell,
        }
    }

    pub(super) fn learned(&self) -> Option<RwLockReadGuard<'_, Learned>> {
        let learned = self.learned.as_ref()?;
        Some(learned.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) const fn is_learning(&self) -> bool {
        self.learned.is_some()
    }

    /// Records a content that came, with its references.
    pub(crate) fn learn(&self, index: u32, body: Option<&[u8]>, now: Instant) -> Option<Arc<Content>> {
        self.overhear(index, body, now);
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        let hash = body.map(xxh3_128);
        if let Some(known) = slot.history.iter().find(|content| content.hash == hash) {
            return Some(Arc::clone(known));
        }
        slot.refers = body.map_or_else(Vec::new, |body| references::of(self.kind, body));
        let serial = u32::try_from(slot.history.len()).ok()?;
        let content = Arc::new(Content {
            serial,
            number: 0,
            seed: serial,
            bytes: 0,
            hash,
            published: now,
            measured: false,
            awaited: AtomicU32::new(0),
            version: OnceLock::new(),
            json: OnceLock::new(),
        });
        slot.history.push(Arc::clone(&content));
        Some(content)
    }

    /// Returns the type that resources of this type refer to, if any.
    pub(crate) fn leads(&self) -> Option<Kind> {
        match self.learned {
            Some(_) => references::leads(self.kind),
            None => self.refers(0).map(|(to, _)| to),
        }
    }

    /// Returns the resources that these resources refer to.
    pub(crate) fn references(&self, parents: &[u32], to: &Self) -> Vec<u32> {
        if self.learned.is_none() {
            let ranges = parents.iter().filter_map(|parent| self.refers(*parent));
            return ranges.flat_map(|(_, range)| range).collect();
        }
        let mut found = Vec::new();
        for slot in parents
            .iter()
            .filter_map(|it| self.slots.get(usize::try_from(*it).ok()?))
        {
            let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
            found.extend(slot.refers.iter().filter_map(|name| to.index(name)));
        }
        found
    }
}

impl Learned {
    /// Nothing yet; `ear` hears everything.
    pub(super) fn heard_by(ear: Ear) -> Self {
        Self {
            ear: Some(ear),
            ..Self::default()
        }
    }

    pub(super) const fn ear(&self) -> Option<&Ear> {
        self.ear.as_ref()
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn name(&self, index: u32) -> String {
        let name = usize::try_from(index).ok().and_then(|index| self.names.get(index));
        name.map_or_else(String::new, |name| text(name))
    }

    pub(super) fn index(&self, name: &[u8]) -> Option<u32> {
        self.indexes.get(name).copied()
    }

    pub(super) fn add(&mut self, name: &[u8]) -> Option<u32> {
        let next = u32::try_from(self.names.len())
            .ok()
            .filter(|next| *next < LEARNED_MAX)?;
        let index = *self.indexes.entry(name.into()).or_insert(next);
        if index == next {
            self.names.push(name.into());
        }
        Some(index)
    }
}
