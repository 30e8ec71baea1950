// SPDX-License-Identifier: Apache-2.0
//! The ledger: every content that a resource ever had, since when, and how many clients still lack it. The control plane writes
//! it and serves from it; the clients check against it what they get.

mod bell;
mod learning;
pub(crate) mod trials;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use bytes::Bytes;
use distributary::json::{Schemas, Secrets};
use xxhash_rust::xxh3::xxh3_128;

use crate::origin::shape::{Body, canonical};
use crate::origin::world;
use crate::wire::kind::Kind;
pub(crate) use bell::Bell;
use learning::Learned;

/// All resources, with their history.
#[derive(Debug)]
pub(crate) struct Ledger {
    kind: Kind,
    bytes: usize,
    /// The prefix of every name.
    prefix: String,
    /// How many resources clients ask for from the start; the rest are extras.
    len: u32,
    slots: Vec<RwLock<Slot>>,
    /// Set if the resources are not known before they come: their names.
    learned: Option<RwLock<Learned>>,
    /// The number of resources of each type, for references.
    counts: world::Counts,
    /// Which resource changed, in order. A generation is a position in it.
    log: Mutex<Vec<u32>>,
    /// The number of the newest content of all resources.
    newest: AtomicU64,
    bell: Arc<Bell>,
}

/// The parameters of a new ledger.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    pub(crate) resources: u32,
    /// How many resources exist beyond those that clients ask for from the start.
    pub(crate) extras: u32,
    pub(crate) bytes: usize,
    /// The authority of the names; old-style names if none.
    pub(crate) authority: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Slot {
    current: Option<Bytes>,
    /// The names in the body of a learned resource.
    refers: Vec<Box<[u8]>>,
    history: Vec<Arc<Content>>,
}

/// One content of one resource.
#[derive(Debug)]
pub(crate) struct Content {
    /// Its position in the resource's history.
    pub(crate) serial: u32,
    /// Its number among the contents of all resources; 0 for a learned one.
    pub(crate) number: u64,
    /// The seed of its body; that of an earlier content if the body is the same again.
    seed: u32,
    /// The size of its body.
    bytes: usize,
    /// The hash of the body's bytes; none if the resource was removed.
    pub(crate) hash: Option<u128>,
    /// When it was handed to the control plane's streams, before encoding; or when that was due, if it had a due time.
    pub(crate) published: Instant,
    /// Whether its deliveries count in the latency figures.
    pub(crate) measured: bool,
    /// How many clients still lack it.
    pub(crate) awaited: AtomicU32,
    /// Of a learned one: when its resource got it, and when the first client got another one in its place.
    told: learning::Told,
    /// The version of this content, set when the first client got it.
    version: OnceLock<Box<[u8]>>,
    /// The hash of its JSON, once somebody polled for it.
    json: OnceLock<u128>,
}

/// The hash that identifies a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The hash of the body's bytes.
    Bytes(u128),
    /// The hash of the equal JSON.
    Json(u128),
}

impl Content {
    /// A content that nobody awaits.
    fn new(serial: u32, hash: Option<u128>, now: Instant) -> Self {
        Self {
            serial,
            number: 0,
            seed: serial,
            bytes: 0,
            hash,
            published: now,
            measured: false,
            awaited: AtomicU32::new(0),
            told: learning::Told::default(),
            version: OnceLock::new(),
            json: OnceLock::new(),
        }
    }

    /// Whether `version` is the one with which all others got this content (K-09, C-18).
    pub(crate) fn agrees(&self, version: &[u8]) -> bool {
        **self.version.get_or_init(|| version.into()) == *version
    }

    /// Returns the version with which clients got it, if any did.
    pub(crate) fn version(&self) -> Option<&[u8]> {
        self.version.get().map(AsRef::as_ref)
    }
}

impl Ledger {
    #[cfg(test)]
    pub(crate) fn new(kind: Kind, resources: u32, bytes: usize, now: Instant) -> Self {
        Self::alone(
            Spec {
                kind,
                resources,
                extras: 0,
                bytes,
                authority: None,
            },
            now,
        )
    }

    /// Creates the ledger of a type that refers to no other.
    pub(crate) fn alone(spec: Spec, now: Instant) -> Self {
        Self::of(&spec, world::Counts::default(), Arc::default(), now)
    }

    /// Creates the ledger of a type of which there is nothing.
    pub(crate) fn empty(kind: Kind) -> Self {
        let spec = Spec {
            kind,
            resources: 0,
            extras: 0,
            bytes: 0,
            authority: None,
        };
        #[expect(clippy::disallowed_methods, reason = "there is no content that is timed from it")]
        Self::alone(spec, Instant::now())
    }

    /// Creates the ledger of one of several types, which have `counts` resources.
    pub(crate) fn of(spec: &Spec, counts: world::Counts, bell: Arc<Bell>, now: Instant) -> Self {
        let (kind, all) = (spec.kind, spec.resources + spec.extras);
        let prefix = spec.authority.map_or_else(
            || kind.prefix().to_owned(),
            |authority| {
                let message = kind.type_url().rsplit('/').next().unwrap_or_default();
                format!("xdstp://{authority}/{message}/{}", kind.prefix())
            },
        );
        let ledger = Self {
            kind,
            bytes: spec.bytes,
            prefix,
            len: spec.resources,
            slots: (0..all).map(|_| RwLock::default()).collect(),
            learned: None,
            counts,
            log: Mutex::default(),
            newest: AtomicU64::new(0),
            bell,
        };
        for index in 0..all {
            let _ = ledger.write(index, What::New, 0, false, now);
        }
        ledger
    }

    pub(crate) const fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the resources of another type that this one refers to.
    pub(crate) fn refers(&self, index: u32) -> Option<(Kind, std::ops::Range<u32>)> {
        world::refers(self.kind, index, &self.counts)
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of resources without the extras, which come after them.
    pub(crate) fn len(&self) -> u32 {
        self.learned().map_or(self.len, |learned| learned.count())
    }

    /// Returns the number of resources with the extras.
    pub(crate) fn all(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    /// Returns the name of a resource.
    pub(crate) fn name(&self, index: u32) -> String {
        if let Some(learned) = self.learned() {
            return learned.name(index);
        }
        format!("{}{index:07}", self.prefix)
    }

    /// Returns the resource with this name.
    pub(crate) fn index(&self, name: &[u8]) -> Option<u32> {
        if let Some(learned) = &self.learned {
            let known = self.learned().and_then(|learned| learned.index(name));
            return known.or_else(|| learned.write().unwrap_or_else(PoisonError::into_inner).add(name));
        }
        let digits = name.strip_prefix(self.prefix.as_bytes())?;
        if digits.len() != 7 {
            return None;
        }
        digits.iter().try_fold(0_u32, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
        })
    }

    #[cfg(test)]
    /// Gives a resource new content for `awaiting` clients, and wakes the control plane's streams.
    pub(crate) fn change(&self, index: u32, awaiting: u32, measured: bool, now: Instant) -> Option<Arc<Content>> {
        let content = self.write(index, What::New, awaiting, measured, now);
        self.announce(&[index]);
        content
    }

    #[cfg(test)]
    /// Removes a resource.
    pub(crate) fn remove(&self, index: u32, awaiting: u32, now: Instant) -> Option<Arc<Content>> {
        let content = self.write(index, What::Nothing, awaiting, false, now);
        self.announce(&[index]);
        content
    }

    /// Writes a content without announcing it: only control planes that start later send it, or streams that ask anew.
    pub(crate) fn foretell(&self, index: u32, present: bool, awaiting: u32, now: Instant) -> Option<Arc<Content>> {
        let what = if present { What::New } else { What::Nothing };
        self.write(index, what, awaiting, false, now)
    }

    /// Makes every control plane send the written content of these resources.
    pub(crate) fn announce(&self, indexes: &[u32]) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(indexes);
        self.bell.changes.send_modify(|announcements| *announcements += 1);
    }

    /// Writes a content without announcing it.
    pub(crate) fn write(
        &self,
        index: u32,
        what: What,
        awaiting: u32,
        measured: bool,
        now: Instant,
    ) -> Option<Arc<Content>> {
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        let serial = u32::try_from(slot.history.len()).ok()?;
        let seed = match what {
            What::New | What::Sized(_) => Some(serial),
            What::Former => slot
                .history
                .last()
                .and_then(|last| last.seed.checked_sub(1))
                .or(Some(serial)),
            What::Nothing => None,
        };
        let bytes = match what {
            What::Sized(bytes) => bytes,
            What::New | What::Former | What::Nothing => self.bytes,
        };
        slot.current = seed.map(|seed| self.body(index, seed, bytes));
        let hash = slot.current.as_ref().map(|body| xxh3_128(body));
        let content = Arc::new(Content {
            number: self.newest.fetch_add(1, Ordering::AcqRel) + 1,
            seed: seed.unwrap_or(serial),
            bytes,
            measured,
            awaited: AtomicU32::new(awaiting),
            ..Content::new(serial, hash, now)
        });
        slot.history.push(Arc::clone(&content));
        self.bell.owed.fetch_add(i64::from(awaiting), Ordering::Relaxed);
        Some(content)
    }

    fn body(&self, index: u32, seed: u32, bytes: usize) -> Bytes {
        let refers: Vec<String> = self.refers(index).map_or_else(Vec::new, |(kind, range)| {
            range.map(|index| format!("{}{index:07}", kind.prefix())).collect()
        });
        let body = Body {
            kind: self.kind,
            name: &self.name(index),
            refers: &refers,
            seed: u64::from(index) << 32 | u64::from(seed),
            bytes,
        };
        body.encode()
    }

    /// Returns a content of a resource as JSON; none if it was removed.
    pub(crate) fn json(&self, index: u32, content: &Content) -> Option<serde_json::Value> {
        content.hash?;
        let body = self.body(index, content.seed, content.bytes);
        let json = Schemas::standard().resource_json(self.kind.type_url(), &body, Secrets::Show);
        serde_json::from_slice(&json.ok()?.text).ok()
    }

    /// Whether this content of the resource has this mark.
    pub(crate) fn is(&self, index: u32, content: &Content, mark: Mark) -> bool {
        match mark {
            Mark::Bytes(hash) => content.hash == Some(hash),
            Mark::Json(hash) => {
                let json = || self.json(index, content).map(|value| xxh3_128(&canonical(&value)));
                content.hash.is_some() && *content.json.get_or_init(|| json().unwrap_or_default()) == hash
            }
        }
    }

    /// Returns the resource's current bytes and the serial of this content; no bytes if it is removed.
    pub(crate) fn current(&self, index: u32) -> Option<(Option<Bytes>, u32)> {
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
        Some((slot.current.clone(), slot.history.last()?.serial))
    }

    /// Hands a resource's history to `look`, oldest content first.
    pub(crate) fn inspect<R>(&self, index: u32, look: impl FnOnce(&[Arc<Content>]) -> R) -> Option<R> {
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
        Some(look(&slot.history))
    }

    /// Returns the number of the newest content of all resources.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Returns the number of announcements so far.
    pub(crate) fn generation(&self) -> usize {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the resources that changed after generation `since`, each once, and the current generation.
    pub(crate) fn changed_since(&self, since: usize) -> (Vec<u32>, usize) {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = log.get(since..).unwrap_or_default().to_vec();
        changed.sort_unstable();
        changed.dedup();
        (changed, log.len())
    }

    /// Notes that one more client has `content`.
    pub(crate) fn deliver(&self, content: &Content) {
        // Some contents are awaited by nobody.
        let less = |left: u32| left.checked_sub(1);
        if let Ok(before) = content.awaited.fetch_update(Ordering::AcqRel, Ordering::Acquire, less) {
            self.bell.owed.fetch_sub(1, Ordering::Relaxed);
            if before == 1 {
                self.bell.delivered.notify_waiters();
            }
        }
    }
}

/// The new state of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A new content.
    New,
    /// A new content of this size.
    Sized(usize),
    /// Its former content.
    Former,
    /// Removed.
    Nothing,
}
