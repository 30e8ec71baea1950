// SPDX-License-Identifier: Apache-2.0
//! A ledger of resources that this program did not make: it learns names and contents from the first client that gets them, and
//! measures how far each client is behind the first.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

use super::{Bell, Content, Ledger, Slot};
use crate::origin::references;
use crate::origin::world::Counts;
use crate::wire::kind::Kind;
use crate::wire::text;

/// Names of resources, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Learned {
    names: Vec<Box<[u8]>>,
    indexes: BTreeMap<Box<[u8]>, u32>,
    /// Whether the newest content of each is kept.
    keeps: bool,
}

/// What came to a client.
#[derive(Debug)]
pub(crate) struct Lesson {
    pub(crate) content: Arc<Content>,
    /// If it is a change: since when it was on its way to this client, as far as that is known. Nothing is known of the first client
    /// that sees a change, unless the change has a mark.
    pub(crate) since: Option<Instant>,
}

/// The times of a learned content.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The time that stands in it.
    marked: Option<Instant>,
    /// When the first client that held it got another one.
    left: OnceLock<Instant>,
}

impl Content {
    /// Notes that a client left it for a newer one; returns since when others did, none if it is the first.
    fn left(&self, now: Instant) -> Option<Instant> {
        let before = self.told.left.get().copied();
        let _ = self.told.left.set(now);
        before
    }
}

/// How many contents of a learned resource are kept. A client that is further behind is not measured.
const HISTORY_MAX: usize = 64;
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
            counts: Counts::default(),
            log: Mutex::default(),
            newest: AtomicU64::new(0),
            bell,
        }
    }

    /// Creates one that also keeps the newest content of each resource.
    pub(crate) fn keeping(kind: Kind, bell: Arc<Bell>) -> Self {
        let learned = Learned {
            keeps: true,
            ..Learned::default()
        };
        Self {
            learned: Some(RwLock::new(learned)),
            ..Self::learning(kind, bell)
        }
    }

    pub(super) fn learned(&self) -> Option<RwLockReadGuard<'_, Learned>> {
        let learned = self.learned.as_ref()?;
        Some(learned.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) const fn is_learning(&self) -> bool {
        self.learned.is_some()
    }

    /// Records the content that came to a client, with its references. `held` is the serial of what the client held before.
    pub(crate) fn learn(&self, index: u32, held: Option<u32>, body: Option<&[u8]>, now: Instant) -> Option<Lesson> {
        let keeps = self.learned().is_some_and(|learned| learned.keeps);
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        if keeps {
            slot.current = body.map(Bytes::copy_from_slice);
        }
        let hash = body.map(xxh3_128);
        let former = slot.history.iter().find(|it| Some(it.serial) == held).cloned();
        if let Some(same) = former.as_ref().filter(|former| former.hash == hash) {
            let content = Arc::clone(same);
            return Some(Lesson { content, since: None });
        }
        let equal = |content: &&Arc<Content>| content.hash == hash;
        let known = match held {
            None => slot.history.iter().rev().find(equal).cloned(),
            Some(held) => slot.history.iter().filter(|it| it.serial > held).find(equal).cloned(),
        };
        let content = known.map_or_else(|| self.first_seen(&mut slot, body, hash, now), Some)?;
        // The same content may have come again since, and may then be the newest.
        let latest = former.as_ref().and_then(|former| {
            let mut alike = slot.history.iter().rev().filter(|it| it.hash == former.hash);
            alike.next()
        });
        // B-16: only some clients are told that a resource of such a type is gone, so the others lack nothing.
        let told = body.is_some() || self.kind.full_state();
        let behind = latest
            .filter(|_| told)
            .and_then(|latest| match content.serial > latest.serial {
                true => latest.left(now),
                false => former.as_ref()?.told.left.get().copied(),
            });
        let since = content.told.marked.filter(|_| former.is_some()).or(behind);
        Some(Lesson { content, since })
    }

    /// Adds a content that no client got before.
    fn first_seen(
        &self,
        slot: &mut Slot,
        body: Option<&[u8]>,
        hash: Option<u128>,
        now: Instant,
    ) -> Option<Arc<Content>> {
        // What is gone is asked for no more, nor what it referred to.
        if let Some(body) = body {
            slot.refers = references::of(self.kind, body);
        }
        let serial = slot.history.last().map_or(Some(0), |last| last.serial.checked_add(1))?;
        let marked = body.and_then(|body| self.bell.trials.mark_in(self.kind, body, now));
        let content = Arc::new(Content {
            told: Told {
                marked,
                left: OnceLock::new(),
            },
            ..Content::new(serial, hash, now)
        });
        if slot.history.len() >= HISTORY_MAX {
            slot.history.remove(0);
        }
        slot.history.push(Arc::clone(&content));
        Some(content)
    }

    /// Whether a client that holds the content with this serial lacks a change that another one, which held the same, has seen.
    pub(crate) fn is_superseded(&self, index: u32, serial: u32) -> bool {
        let superseded = self.inspect(index, |history| {
            let held = history.iter().find(|it| it.serial == serial)?;
            let latest = history.iter().rev().find(|it| it.hash == held.hash)?;
            Some(latest.told.left.get().is_some())
        });
        superseded.flatten().unwrap_or_default()
    }

    /// Returns the type that resources of this type refer to, if any.
    pub(crate) fn leads(&self) -> Option<Kind> {
        match self.learned {
            Some(_) => self.kind.leads(),
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
