//! The ledger: every content that the control plane ever gave a resource, when, and how many clients still lack it.
//! The control plane writes it and serves from it; the clients look up in it whether what they got is true.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::{Notify, watch};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::arguments::Kind;

/// All resources, with their history.
#[derive(Debug)]
pub(crate) struct Ledger {
    kind: Kind,
    bytes: usize,
    /// How every name begins.
    prefix: String,
    /// How many of the resources anybody asks for from the beginning.
    len: u32,
    slots: Vec<RwLock<Slot>>,
    /// Which resource changed, in order. A generation is a position in it.
    log: Mutex<Vec<u32>>,
    generation: watch::Sender<usize>,
    /// Rings when the last client that lacked some content got it.
    pub(crate) delivered: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    current: Option<Bytes>,
    history: Vec<Arc<Content>>,
}

/// One content of one resource.
#[derive(Debug)]
pub(crate) struct Content {
    /// Its position in the resource's history.
    pub(crate) serial: u32,
    /// The hash of the body's bytes; none where the resource was removed.
    pub(crate) hash: Option<u128>,
    /// When it was handed to the control plane's streams, before anything was encoded; or when it was due to be, if there was a
    /// time for it.
    pub(crate) published: Instant,
    /// Whether its way to the clients counts for the latency figures.
    pub(crate) measured: bool,
    /// How many clients still lack it.
    pub(crate) awaited: AtomicU32,
    /// The version under which clients got it, once the first did.
    version: OnceLock<Box<[u8]>>,
}

impl Content {
    /// Whether `version` is the one under which everybody else got this content (K-09, C-18).
    pub(crate) fn agrees(&self, version: &[u8]) -> bool {
        **self.version.get_or_init(|| version.into()) == *version
    }

    /// The version under which clients got it, if any did.
    pub(crate) fn version(&self) -> Option<&[u8]> {
        self.version.get().map(AsRef::as_ref)
    }
}

impl Ledger {
    pub(crate) fn new(kind: Kind, resources: u32, bytes: usize, now: Instant) -> Self {
        Self::under(None, kind, resources, 0, bytes, now)
    }

    /// With names of this authority, or of old style, and so many `extras` beyond what clients ask for from the beginning.
    pub(crate) fn under(
        authority: Option<&str>,
        kind: Kind,
        resources: u32,
        extras: u32,
        bytes: usize,
        now: Instant,
    ) -> Self {
        let prefix = authority.map_or_else(
            || NAME_PREFIX.to_owned(),
            |authority| {
                let message = kind.type_url().rsplit('/').next().unwrap_or_default();
                format!("xdstp://{authority}/{message}/{NAME_PREFIX}")
            },
        );
        let ledger = Self {
            kind,
            bytes,
            prefix,
            len: resources,
            slots: (0..resources + extras).map(|_| RwLock::default()).collect(),
            log: Mutex::default(),
            generation: watch::Sender::new(0),
            delivered: Notify::new(),
        };
        for index in 0..resources + extras {
            let _ = ledger.write(index, true, 0, false, now);
        }
        ledger
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// How many resources there are, but for the extras, which come after them.
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// How many there are with the extras.
    pub(crate) fn all(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    /// The name of a resource.
    pub(crate) fn name(&self, index: u32) -> String {
        format!("{}{index:07}", self.prefix)
    }

    /// The resource with this name.
    pub(crate) fn index(&self, name: &[u8]) -> Option<u32> {
        let digits = name.strip_prefix(self.prefix.as_bytes())?;
        if digits.len() != 7 {
            return None;
        }
        digits.iter().try_fold(0_u32, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
        })
    }

    /// Gives a resource new content, which `awaiting` clients are to get, and wakes the control plane's streams.
    pub(crate) fn change(&self, index: u32, awaiting: u32, measured: bool, now: Instant) -> Option<Arc<Content>> {
        self.publish(index, true, awaiting, measured, now)
    }

    /// Removes a resource.
    pub(crate) fn remove(&self, index: u32, awaiting: u32, now: Instant) -> Option<Arc<Content>> {
        self.publish(index, false, awaiting, false, now)
    }

    /// Writes what only control planes say that are started from now on, or that are asked anew.
    pub(crate) fn foretell(&self, index: u32, present: bool, awaiting: u32, now: Instant) -> Option<Arc<Content>> {
        self.write(index, present, awaiting, false, now)
    }

    fn publish(&self, index: u32, present: bool, awaiting: u32, measured: bool, now: Instant) -> Option<Arc<Content>> {
        let content = self.write(index, present, awaiting, measured, now);
        self.announce(index);
        content
    }

    /// Has every control plane say what is written of a resource.
    pub(crate) fn announce(&self, index: u32) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(index);
        self.generation.send_replace(log.len());
    }

    fn write(&self, index: u32, present: bool, awaiting: u32, measured: bool, now: Instant) -> Option<Arc<Content>> {
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        let serial = u32::try_from(slot.history.len()).ok()?;
        slot.current = present.then(|| {
            body(
                self.kind,
                &self.name(index),
                u64::from(index) << 32 | u64::from(serial),
                self.bytes,
            )
        });
        let content = Arc::new(Content {
            serial,
            hash: slot.current.as_ref().map(|body| xxh3_128(body)),
            published: now,
            measured,
            awaited: AtomicU32::new(awaiting),
            version: OnceLock::new(),
        });
        slot.history.push(Arc::clone(&content));
        Some(content)
    }

    /// The resource's bytes now and which content that is; no bytes where it is removed.
    pub(crate) fn current(&self, index: u32) -> Option<(Option<Bytes>, u32)> {
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
        Some((slot.current.clone(), slot.history.last()?.serial))
    }

    /// Looks at a resource's history, oldest content first.
    pub(crate) fn inspect<R>(&self, index: u32, look: impl FnOnce(&[Arc<Content>]) -> R) -> Option<R> {
        let slot = self.slots.get(usize::try_from(index).ok()?)?;
        let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
        Some(look(&slot.history))
    }

    /// Notices new generations.
    pub(crate) fn watch(&self) -> watch::Receiver<usize> {
        self.generation.subscribe()
    }

    /// The resources that changed after generation `since`, each once, and the generation that this leads to.
    pub(crate) fn changed_since(&self, since: usize) -> (Vec<u32>, usize) {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = log.get(since..).unwrap_or_default().to_vec();
        changed.sort_unstable();
        changed.dedup();
        (changed, log.len())
    }

    /// Says that one more client has `content`.
    pub(crate) fn deliver(&self, content: &Content) {
        if content.awaited.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.delivered.notify_waiters();
        }
    }
}

const NAME_PREFIX: &str = "cluster-";

/// A valid message of the kind with the wanted size (or the least possible), different for every seed.
fn body(kind: Kind, name: &str, seed: u64, bytes: usize) -> Bytes {
    let mut padding = bytes;
    loop {
        let body = filled(kind, name, &text(seed, padding));
        let excess = body.len().saturating_sub(bytes);
        if excess == 0 || padding <= LEAST_PADDING {
            return Bytes::from(body);
        }
        padding = padding.saturating_sub(excess).max(LEAST_PADDING);
    }
}

/// Enough text to make every content differ.
const LEAST_PADDING: usize = 16;

fn filled(kind: Kind, name: &str, padding: &[u8]) -> Vec<u8> {
    let mut out = delimited(1, name.as_bytes());
    match kind {
        // Cluster.alt_stat_name
        Kind::Cds => out.extend(delimited(28, padding)),
        // ClusterLoadAssignment.endpoints.locality.sub_zone
        Kind::Eds => out.extend(delimited(2, &delimited(1, &delimited(3, padding)))),
    }
    out
}

fn delimited(number: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 8);
    prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut out);
    prost::encoding::encode_varint(u64::try_from(payload.len()).unwrap_or(u64::MAX), &mut out);
    out.extend_from_slice(payload);
    out
}

fn text(seed: u64, length: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 16] = b"abcdefghijklmnop";
    let mut out = Vec::with_capacity(length + 16);
    let mut block = 0_u64;
    while out.len() < length {
        let random = xxh3_64_with_seed(&block.to_le_bytes(), seed);
        out.extend((0..16).filter_map(|digit| ALPHABET.get(usize::try_from(random >> (4 * digit) & 15).ok()?)));
        block += 1;
    }
    out.truncate(length);
    out
}
