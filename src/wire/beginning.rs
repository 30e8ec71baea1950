// SPDX-License-Identifier: Apache-2.0
//! The beginning of a message of which more is to come.
//!
//! Owns how much memory it takes: never more than a piece for what has not arrived, and nothing that has arrived is copied again beyond
//! the first piece. Does not know the limit on the message.

use bytes::{Bytes, BytesMut};

use super::pieces::{PIECE_BYTES, Pieces};

/// The beginning of a message.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// Complete pieces, of [`PIECE_BYTES`] each.
    full: Vec<Bytes>,
    last: BytesMut,
}

/// The least memory that is allocated, unless the message is smaller.
const LEAST_BYTES: usize = 8 * 1024;

impl Beginning {
    /// Returns how many bytes have arrived.
    pub(super) fn len(&self) -> usize {
        self.full.len() * PIECE_BYTES + self.last.len()
    }

    /// Returns the bytes at the front that stand together.
    pub(super) fn front(&self) -> &[u8] {
        self.full.first().map_or(&*self.last, |first| first)
    }

    /// Returns how much memory it takes when it has taken the next bytes of a message of `whole` bytes with [`Self::take`].
    pub(super) fn bytes_with(&self, chunk: &Bytes, whole: usize) -> usize {
        self.full.len() * PIECE_BYTES + self.room(self.fitting(chunk, whole), whole)
    }

    /// Takes bytes from the chunk, up to the end of a piece or of the message. Returns whether there may be more to take.
    pub(super) fn take(&mut self, chunk: &mut Bytes, whole: usize) -> bool {
        let take = self.fitting(chunk, whole);
        let room = self.room(take, whole);
        if room > self.last.capacity() {
            let mut larger = BytesMut::with_capacity(room);
            larger.extend_from_slice(&self.last);
            self.last = larger;
        }
        self.last.extend_from_slice(&chunk.split_to(take));
        if self.last.len() == PIECE_BYTES {
            self.full.push(std::mem::take(&mut self.last).freeze());
        }
        self.len() < whole && !chunk.is_empty()
    }

    /// Returns the message.
    pub(super) fn finish(self) -> Pieces {
        let mut message = Pieces::default();
        for piece in self.full {
            message.push(piece);
        }
        message.push(self.last.freeze());
        message
    }

    /// Returns how many bytes of the chunk are taken next.
    fn fitting(&self, chunk: &Bytes, whole: usize) -> usize {
        let missing = whole.saturating_sub(self.len());
        missing.min(chunk.len()).min(PIECE_BYTES - self.last.len())
    }

    /// Returns how large the last piece must be for `more` bytes: twice as large as before if it is too small, but no larger than a piece,
    /// and than the message needs.
    fn room(&self, more: usize, whole: usize) -> usize {
        let (len, before) = (self.last.len() + more, self.last.capacity());
        if len <= before {
            return before;
        }
        let wanted = match self.full.is_empty() {
            true => (2 * before).max(LEAST_BYTES),
            false => PIECE_BYTES,
        };
        let rest = whole.saturating_sub(self.full.len() * PIECE_BYTES);
        wanted.min(PIECE_BYTES).min(rest).max(len)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Buf as _;

    use super::*;

    /// Whatever its size and that of the chunks, a message takes little more memory than it has bytes, and is whole.
    #[test]
    fn a_message_takes_its_size_and_no_more() {
        for (whole, size) in [
            (1, 1),
            (9000, 700),
            (PIECE_BYTES, 16 << 10),
            (PIECE_BYTES + 1, 9999),
            (3 << 20, 300_000),
        ] {
            let bytes: Vec<u8> = (0..whole).map(|at| (at % 251) as u8).collect();
            let mut beginning = Beginning::default();
            for chunk in bytes.chunks(size) {
                let mut chunk = Bytes::copy_from_slice(chunk);
                loop {
                    let takes = beginning.bytes_with(&chunk, whole);
                    let more = beginning.take(&mut chunk, whole);
                    let most = (2 * beginning.len())
                        .min(beginning.len() + PIECE_BYTES)
                        .max(LEAST_BYTES);
                    assert!(takes <= most.min(whole), "{takes} bytes for {}", beginning.len());
                    if !more {
                        break;
                    }
                }
            }
            assert_eq!(beginning.len(), whole);
            let mut message = beginning.finish();
            assert_eq!(message.whole().is_some(), whole <= PIECE_BYTES);
            assert!(
                message.copy_to_bytes(whole) == bytes,
                "{whole} bytes in chunks of {size}"
            );
        }
    }
}
