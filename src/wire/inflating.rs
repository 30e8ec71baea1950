//! A compressed message, as far as it is inflated.
//!
//! Owns that a large one is inflated piece by piece, and in memory that does not grow from size to size. Refuses to know how much of
//! it there may be.

use std::io::{self, Read as _};

use bytes::buf::Reader;
use bytes::{Buf as _, Bytes};
use flate2::bufread::GzDecoder;

/// A message on the way.
#[derive(Debug)]
pub(super) struct Inflating {
    decoder: GzDecoder<Reader<Bytes>>,
    compressed: usize,
    pieces: Vec<Vec<u8>>,
    len: usize,
}

/// So much is inflated at a time: then others have their turns.
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

    /// How much of it is inflated.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// What the next piece makes of what is held. Of what is small nothing is: it is gone before anybody else has a turn.
    pub(super) const fn holds_next(&self) -> usize {
        if self.len == 0 {
            0
        } else {
            self.compressed + self.len + PIECE_BYTES
        }
    }

    /// Inflates one more piece, and gives whether it was the last one.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let count = self.decoder.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        self.len += count;
        self.pieces.push(piece);
        Ok(count < PIECE_BYTES)
    }

    /// All of it.
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
