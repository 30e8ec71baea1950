// SPDX-License-Identifier: Apache-2.0
//! A message that is sent without copying it together: a few private bytes, then pieces that all clients share.
//!
//! Owns the reading position, and tells the sender how much the transport has taken. Knows nothing of the pieces' content.

use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;

use super::SharedSlices;

/// One private head and shared pieces, read once from the front.
pub struct Rope {
    head: Bytes,
    pieces: Arc<[Bytes]>,
    /// The index of the next piece, and how many of its bytes were read.
    at: usize,
    within: usize,
    remaining: usize,
    progress: Option<Arc<RopeProgress>>,
}

/// How much of one stream's messages the transport has taken.
pub struct RopeProgress {
    shared_slices: Arc<SharedSlices>,
    /// Bytes that the transport was ever given, and that it has taken. The difference waits.
    given: AtomicU64,
    taken: AtomicU64,
    waker: AtomicWaker,
}

/// A stream gives the transport nothing more while this many bytes wait there. The next response is then made later, from newer
/// content.
const WAITING_BYTES_MAX: u64 = 64 * 1024;

impl Rope {
    /// Creates a message of these parts that reports no progress.
    #[must_use]
    pub fn new(head: Bytes, pieces: Arc<[Bytes]>) -> Self {
        let remaining = head.len() + pieces.iter().map(Bytes::len).sum::<usize>();
        Self {
            head,
            pieces,
            at: 0,
            within: 0,
            remaining,
            progress: None,
        }
    }

    /// Makes the message report to `progress` from now on.
    #[must_use]
    pub fn reporting(mut self, progress: &Arc<RopeProgress>) -> Self {
        progress.given.fetch_add(self.remaining as u64, Ordering::Relaxed);
        progress.shared_slices.enter(&self.pieces);
        self.progress = Some(progress.clone());
        self
    }

    fn skip(&mut self, mut count: usize) {
        let of_head = count.min(self.head.len());
        self.head.advance(of_head);
        count -= of_head;
        while count > 0 {
            let Some(piece) = self.pieces.get(self.at) else { return };
            let left = piece.len() - self.within;
            if count < left {
                self.within += count;
                return;
            }
            count -= left;
            self.at += 1;
            self.within = 0;
        }
    }

    fn unread(&self) -> impl Iterator<Item = &[u8]> {
        let shared = self.pieces.iter().skip(self.at).enumerate().map(|(nth, piece)| {
            let from = if nth == 0 { self.within } else { 0 };
            piece.get(from..).unwrap_or_default()
        });
        std::iter::once(&*self.head)
            .chain(shared)
            .filter(|slice| !slice.is_empty())
    }
}

impl From<Bytes> for Rope {
    fn from(bytes: Bytes) -> Self {
        Self::new(bytes, Arc::from([]))
    }
}

impl Buf for Rope {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.unread().next().unwrap_or_default()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for (slot, slice) in slices.iter_mut().zip(self.unread()) {
            *slot = IoSlice::new(slice);
            count += 1;
        }
        count
    }

    fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.remaining, "read past the end");
        let count = count.min(self.remaining);
        self.skip(count);
        self.remaining -= count;
        if let Some(progress) = &self.progress {
            progress.took(count);
        }
    }
}

impl Drop for Rope {
    /// Counts unread bytes as taken, so that they no longer wait.
    fn drop(&mut self) {
        if let Some(progress) = &self.progress {
            progress.shared_slices.leave(&self.pieces);
            if self.remaining > 0 {
                progress.took(self.remaining);
            }
        }
    }
}

impl fmt::Debug for Rope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rope({} bytes)", self.remaining)
    }
}

impl RopeProgress {
    /// Creates the progress of a stream that has sent nothing, on the connection with these shared slices.
    #[must_use]
    pub fn new(shared_slices: Arc<SharedSlices>) -> Self {
        Self {
            shared_slices,
            given: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        }
    }

    /// Whether the transport may be given more. If not, `waker` is woken once it may.
    pub fn ready(&self, waker: &Waker) -> bool {
        if self.waiting() < WAITING_BYTES_MAX {
            return true;
        }
        self.waker.register(waker);
        self.waiting() < WAITING_BYTES_MAX
    }

    /// Returns the number of bytes that wait in the transport.
    pub fn waiting(&self) -> u64 {
        let taken = self.taken.load(Ordering::Acquire);
        self.given.load(Ordering::Relaxed).saturating_sub(taken)
    }

    /// Returns how many bytes the transport has ever taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    fn took(&self, count: usize) {
        let count = count as u64;
        let before = self.taken.fetch_add(count, Ordering::AcqRel);
        let waited = self.given.load(Ordering::Relaxed).saturating_sub(before);
        if waited >= WAITING_BYTES_MAX && waited.saturating_sub(count) < WAITING_BYTES_MAX {
            self.waker.wake();
        }
    }
}

impl fmt::Debug for RopeProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Progress({} waiting, {} taken)", self.waiting(), self.taken())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope() -> (Rope, Vec<u8>) {
        let pieces = [&b"one"[..], b"", b"three", b"x"].map(Bytes::from_static);
        (
            Rope::new(Bytes::from_static(b"head"), Arc::from(pieces)),
            b"headonethreex".to_vec(),
        )
    }

    #[test]
    fn every_way_of_reading_gives_the_same_bytes() {
        let whole = rope().1;
        for step in 1..=whole.len() {
            let (mut rope, _) = rope();
            let mut read = Vec::new();
            while rope.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 2];
                let count = rope.chunks_vectored(&mut slices);
                assert!(count > 0 && slices[..count].iter().all(|slice| !slice.is_empty()));
                assert_eq!(&*slices[0], rope.chunk());
                let bytes: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
                let take = step.min(bytes.len());
                read.extend_from_slice(&bytes[..take]);
                rope.advance(take);
            }
            assert_eq!(read, whole, "in steps of {step}");
        }
    }

    #[test]
    fn progress_knows_what_waits_and_forgets_what_is_dropped() {
        let progress = Arc::new(RopeProgress::new(Arc::default()));
        let big = Bytes::from(vec![0; 64 * 1024]);
        let mut rope = Rope::new(Bytes::new(), Arc::from([big])).reporting(&progress);
        assert!(!progress.ready(Waker::noop()));
        rope.advance(1);
        assert!(progress.ready(Waker::noop()));
        assert_eq!((progress.taken(), progress.waiting()), (1, WAITING_BYTES_MAX - 1));
        drop(rope);
        assert_eq!(progress.waiting(), 0);
    }
}
