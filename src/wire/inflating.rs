//! A compressed message that is being inflated.
//!
//! Inflates a large message piece by piece, each piece into memory of its own, so that nothing is copied while it grows. Does not
//! know the limit on its size.

use std::io::{self, Read as _};

use bytes::buf::Reader;
use bytes::{Buf as _, Bytes};
use flate2::bufread::GzDecoder;

/// A message that is being inflated.
#[derive(Debug)]
pub(super) struct Inflating {
    decoder: GzDecoder<Reader<Bytes>>,
    compressed: usize,
    pieces: Vec<Vec<u8>>,
    len: usize,
}

/// The bytes that are inflated at a time. After each piece, others have their turn.
pub(super) const PIECE_BYTES: usize = 256 * 1024;

impl Inflating {
    pub(super) fn new(message: Bytes) -> Self {
        Self {
            compressed: message.len(),
            decoder: GzDecoder::new(message.reader()),
            pieces: Vec::new(),
            len: 0,
        }
    }

    /// Returns the number of bytes inflated so far.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the memory that the message holds after the next piece. A message of one piece counts as nothing: it is complete
    /// before anybody else has a turn.
    pub(super) const fn holds_next(&self) -> usize {
        if self.len == 0 {
            0
        } else {
            self.compressed + self.len + PIECE_BYTES
        }
    }

    /// Inflates one more piece. Returns whether it was the last one.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let count = self.decoder.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        self.len += count;
        self.pieces.push(piece);
        Ok(count < PIECE_BYTES)
    }

    /// Returns the inflated message.
    pub(super) fn whole(mut self) -> Bytes {
        if self.pieces.len() < 2 {
            return self.pieces.pop().unwrap_or_default().into();
        }
        let mut whole = Vec::with_capacity(self.len);
        self.pieces
            .into_iter()
            .for_each(|piece| whole.extend_from_slice(&piece));
        whole.into()
    }
}
