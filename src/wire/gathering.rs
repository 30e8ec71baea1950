// SPDX-License-Identifier: Apache-2.0
//! What one turn of a connection has written, in order: copied bytes, and references to shared bytes between them.
//!
//! Owns the order. Does not write to the socket.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Bytes on their way to a socket. The next turn uses the memory again.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    copied: Vec<u8>,
    shared: Vec<SharedBytes>,
    len: usize,
}

/// Shared bytes, and how many copied bytes come before them.
#[derive(Debug)]
struct SharedBytes {
    after: usize,
    bytes: Bytes,
}

/// The most slices of one vectored write.
pub(super) const PARTS_MAX: usize = 64;

impl Gathering {
    /// Returns the number of all bytes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of copied bytes.
    pub(super) const fn copied(&self) -> usize {
        self.copied.len()
    }

    pub(super) fn copy(&mut self, bytes: &[u8]) {
        self.copied.extend_from_slice(bytes);
        self.len += bytes.len();
    }

    pub(super) fn share(&mut self, bytes: Bytes) {
        self.len += bytes.len();
        let after = self.copied.len();
        self.shared.push(SharedBytes { after, bytes });
    }

    pub(super) fn clear(&mut self) {
        self.copied.clear();
        self.shared.clear();
        self.len = 0;
    }

    /// Fills `into` with the parts from position `from` on, and returns their number.
    pub(super) fn slices<'a>(&'a self, from: usize, into: &mut [IoSlice<'a>]) -> usize {
        let parts = WrittenParts {
            parts: self.parts(),
            skip: from,
        };
        fill(parts, into)
    }

    /// Returns everything from position `from` on as one slice, if no part is shared.
    pub(super) fn whole(&self, from: usize) -> Option<&[u8]> {
        self.copied.get(from..).filter(|_| self.shared.is_empty())
    }

    /// Returns everything from position `from` on; copied parts are copied once more, because this memory is reused.
    pub(super) fn rest(&self, from: usize) -> VecDeque<Bytes> {
        let mut rest = VecDeque::new();
        let mut skip = from;
        let mut unsent = |len: usize| {
            let sent = skip.min(len);
            skip -= sent;
            sent
        };
        let mut at = 0;
        // One new copy of all copied bytes that are left; the parts are slices of it.
        let mut own: Option<(Bytes, usize)> = None;
        let parts = self.shared.iter().map(|shared| (shared.after, Some(&shared.bytes)));
        for (after, shared) in parts.chain(std::iter::once((self.copied.len(), None))) {
            let from = at + unsent(after - at);
            at = after;
            if from < after {
                let copy = || Bytes::copy_from_slice(self.copied.get(from..).unwrap_or_default());
                let (own, start) = own.get_or_insert_with(|| (copy(), from));
                rest.push_back(own.slice(from - *start..after - *start));
            }
            if let Some(shared) = shared {
                let left = shared.slice(unsent(shared.len())..);
                rest.extend(Some(left).filter(|left| !left.is_empty()));
            }
        }
        rest
    }

    /// Returns all parts in order; some may be empty.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let last = self.shared.last().map_or(0, |shared| shared.after);
        let befores = std::iter::once(0).chain(self.shared.iter().map(|shared| shared.after));
        let within = self.shared.iter().zip(befores).flat_map(|(shared, before)| {
            let copied = self.copied.get(before..shared.after).unwrap_or_default();
            [copied, &*shared.bytes]
        });
        within.chain(std::iter::once(self.copied.get(last..).unwrap_or_default()))
    }
}

/// Leaves out the first `skip` bytes, and all empty parts.
struct WrittenParts<I> {
    parts: I,
    skip: usize,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Iterator for WrittenParts<I> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let part = self.parts.next()?;
            let skip = self.skip.min(part.len());
            self.skip -= skip;
            if let Some(part) = part.get(skip..).filter(|part| !part.is_empty()) {
                return Some(part);
            }
        }
    }
}

pub(super) fn fill<'a>(parts: impl Iterator<Item = &'a [u8]>, into: &mut [IoSlice<'a>]) -> usize {
    let mut count = 0;
    for (place, part) in into.iter_mut().zip(parts) {
        *place = IoSlice::new(part);
        count += 1;
    }
    count
}

/// Removes the first `count` bytes, and then all empty parts at the front.
pub(super) fn skip(rest: &mut VecDeque<Bytes>, mut count: usize) {
    while let Some(front) = rest.front_mut() {
        let step = count.min(front.len());
        front.advance(step);
        count -= step;
        if !front.is_empty() {
            return;
        }
        rest.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_holds_from_every_position() {
        let mut gathering = Gathering::default();
        gathering.share(Bytes::from_static(b"first"));
        gathering.copy(b"se");
        gathering.copy(b"cond");
        gathering.share(Bytes::from_static(b"third"));
        gathering.share(Bytes::from_static(b"fourth"));
        gathering.copy(b"fifth");
        let whole = b"firstsecondthirdfourthfifth";
        assert_eq!((gathering.len(), gathering.copied()), (whole.len(), 11));
        for from in 0..=whole.len() {
            let mut slices = [IoSlice::new(&[]); 8];
            let count = gathering.slices(from, &mut slices);
            let read: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
            assert_eq!(read, &whole[from..], "from {from}");
            let rest: Vec<u8> = gathering.rest(from).into_iter().flatten().collect();
            assert_eq!(rest, &whole[from..], "from {from}");
        }
        let mut slices = [IoSlice::new(&[]); 2];
        assert_eq!(gathering.slices(3, &mut slices), 2);
        assert_eq!((&*slices[0], &*slices[1]), (&b"st"[..], &b"second"[..]));
        gathering.clear();
        assert_eq!((gathering.len(), gathering.copied()), (0, 0));
    }
}
