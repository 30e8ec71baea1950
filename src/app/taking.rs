// SPDX-License-Identifier: Apache-2.0
//! The answer of a neighbour: snapshots, each behind its length.
//!
//! Owns how much of them fits into memory. Does not know where they come from and what becomes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::Memory;
use super::plan;
use crate::config::MemoryLimit;
use crate::downstream::{Action, Used};
use crate::snapshot::{Decoder, MAGIC, Snapshot, SnapshotFault};
use crate::xds::Types;

/// The memory that is left for all answers together.
pub(super) struct AnswerRoom {
    memory: Memory,
    limit: MemoryLimit,
    /// How many bytes may still be announced.
    left: AtomicU64,
}

/// An answer that is being read.
pub(super) struct Taking {
    room: Arc<AnswerRoom>,
    types: Types,
    secrets: bool,
    /// What has come of the head of the next snapshot: its length, and with what each begins.
    head: Vec<u8>,
    snapshot: Option<Announced>,
    /// How much was read since the memory was last looked at.
    unseen: usize,
    found: usize,
}

/// A snapshot that is being read.
struct Announced {
    reserved: Reserved,
    /// How many bytes of it have not come yet.
    left: u64,
    decoder: Decoder,
}

/// The room that a snapshot takes. Dropping it makes the room free.
struct Reserved {
    room: Arc<AnswerRoom>,
    bytes: u64,
}

/// Why an answer is not read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum StopReading {
    #[error("it announces a snapshot of {} MiB, and there is memory for {} MiB; see `limits.memory`", .announced >> 20, .left >> 20)]
    Large { announced: u64, left: u64 },
    #[error("memory is short: {} of {} MiB are in use; see `limits.memory`", .0.used >> 20, .0.max >> 20)]
    Short(Used),
    #[error("it sends something else than snapshots")]
    Foreign,
    #[error("its answer ends within a snapshot")]
    Torn,
    #[error("it sends what is no snapshot for this relay: {0}")]
    Broken(#[from] SnapshotFault),
}

/// How many bytes are taken at most, however much memory there is: all of it should be there within seconds.
const BYTES_MAX: u64 = 512 << 20;
/// How much is read between two looks at the memory.
const LOOK_BYTES: usize = 1 << 20;
const HEAD_BYTES: usize = size_of::<u64>() + MAGIC.len();

impl AnswerRoom {
    /// Looks how much is left below where the relay would shed load.
    pub(super) fn new(limit: MemoryLimit) -> Self {
        let memory = Memory::new();
        let left =
            |Used { used, max }: Used| (max / 100 * Action::ShrinkReading.threshold()).saturating_sub(used) as u64;
        let limits = limits(&memory, limit).map(left);
        Self {
            left: AtomicU64::new(limits.min().unwrap_or(BYTES_MAX).min(BYTES_MAX)),
            memory,
            limit,
        }
    }

    /// Takes the place of a snapshot.
    fn take(&self, bytes: u64) -> Result<(), StopReading> {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken
            .map(drop)
            .map_err(|left| StopReading::Large { announced: bytes, left })
    }

    /// Fails once the relay sheds load.
    fn look(&self) -> Result<(), StopReading> {
        let mut limits = limits(&self.memory, self.limit);
        limits
            .find(|used| Action::last(*used).is_some())
            .map_or(Ok(()), |used| Err(StopReading::Short(used)))
    }
}

/// Returns the limits that there are: the configured one, and those of the system, which end the process.
fn limits(memory: &Memory, limit: MemoryLimit) -> impl Iterator<Item = Used> {
    let both = [limit, MemoryLimit::Auto].map(|limit| memory.used(limit));
    both.into_iter().filter(|used| used.max > 0)
}

impl Taking {
    pub(super) fn new(room: &Arc<AnswerRoom>, types: &Types, secrets: bool) -> Self {
        Self {
            room: room.clone(),
            types: types.clone(),
            secrets,
            head: Vec::new(),
            snapshot: None,
            unseen: 0,
            found: 0,
        }
    }

    /// Reads the next bytes. `add` says whether a snapshot is kept.
    pub(super) fn read(&mut self, mut bytes: &[u8], add: &mut impl FnMut(Snapshot) -> bool) -> Result<(), StopReading> {
        while !bytes.is_empty() || self.snapshot.as_ref().is_some_and(|snapshot| snapshot.left == 0) {
            let Some(mut snapshot) = self.snapshot.take() else {
                let (of_head, rest) = part(bytes, HEAD_BYTES - self.head.len());
                self.head.extend_from_slice(of_head);
                bytes = rest;
                if self.head.len() == HEAD_BYTES {
                    let head = std::mem::take(&mut self.head);
                    self.snapshot = Some(self.announced(&head)?);
                }
                continue;
            };
            let most = usize::try_from(snapshot.left).unwrap_or(usize::MAX).min(LOOK_BYTES);
            let (next, rest) = part(bytes, most);
            bytes = rest;
            self.unseen += next.len();
            if self.unseen >= LOOK_BYTES {
                self.unseen = 0;
                self.room.look()?;
            }
            snapshot.decoder.feed(next)?;
            snapshot.left -= next.len() as u64;
            if snapshot.left > 0 {
                self.snapshot = Some(snapshot);
            } else {
                self.found += 1;
                if add(snapshot.decoder.finish()?) {
                    // It stays.
                    snapshot.reserved.bytes = 0;
                }
            }
        }
        Ok(())
    }

    /// Nothing follows. Returns how many snapshots there were.
    pub(super) fn finish(self) -> Result<usize, StopReading> {
        match self.head.is_empty() && self.snapshot.is_none() {
            true => Ok(self.found),
            false => Err(StopReading::Torn),
        }
    }

    /// Makes room for a snapshot with this head. What does not begin as one announces nothing.
    fn announced(&self, head: &[u8]) -> Result<Announced, StopReading> {
        let (length, begins) = head.split_first_chunk().ok_or(StopReading::Foreign)?;
        let bytes = u64::from_le_bytes(*length);
        let left = bytes.checked_sub(begins.len() as u64).ok_or(StopReading::Foreign)?;
        if begins != MAGIC {
            return Err(StopReading::Foreign);
        }
        self.room.take(bytes)?;
        let mut snapshot = Announced {
            reserved: Reserved {
                room: self.room.clone(),
                bytes,
            },
            left,
            decoder: Decoder::new(&self.types, plan::now(), self.secrets),
        };
        snapshot.decoder.feed(begins)?;
        Ok(snapshot)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.room.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// Splits the first bytes off, or all if there are not as many.
fn part(bytes: &[u8], len: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(len).unwrap_or((bytes, &[]))
}
