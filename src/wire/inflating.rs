//! A compressed message that is being inflated.
//!
//! Inflates a large message piece by piece, into memory of the size that its end states, so that nothing is copied while it grows.
//! Does not know the limit on its size.

use std::io::{self, Read as _};
use std::task::{Context, Poll};

use bytes::buf::Reader;
use bytes::{Buf as _, Bytes};
use flate2::bufread::GzDecoder;

use super::turn::{Permit, Place};

/// A message that is being inflated.
pub(super) struct Inflating {
    decoder: GzDecoder<Reader<Bytes>>,
    compressed: usize,
    /// How many bytes it has when it is inflated, as its end states. The decoder checks that.
    stated: usize,
    inflated: Vec<u8>,
    place: Place,
}

/// The bytes that are inflated at a time. After each piece, others have their turn.
pub(super) const PIECE_BYTES: usize = 256 * 1024;

impl Inflating {
    pub(super) fn new(message: Bytes) -> Self {
        let size = message.last_chunk().map_or(0, |size| u32::from_le_bytes(*size));
        Self {
            compressed: message.len(),
            decoder: GzDecoder::new(message.reader()),
            stated: usize::try_from(size).unwrap_or(usize::MAX),
            inflated: Vec::new(),
            place: Place::default(),
        }
    }

    /// Returns the size that its end states.
    pub(super) const fn stated(&self) -> usize {
        self.stated
    }

    /// Whether it has several pieces.
    pub(super) const fn is_large(&self) -> bool {
        self.stated > PIECE_BYTES
    }

    /// Returns the memory that it holds. A message of one piece counts as nothing: it is complete before anybody else has a turn.
    pub(super) const fn holds(&self) -> usize {
        if self.is_large() {
            self.compressed + self.stated
        } else {
            0
        }
    }

    /// Ready when the next piece may be inflated.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Option<Permit>> {
        self.place.poll_turn(cx)
    }

    /// Inflates one more piece. Returns whether it was the last one.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        let left = self.stated - self.inflated.len();
        self.inflated.try_reserve_exact(left)?;
        let piece = PIECE_BYTES.min(left);
        let count = self
            .decoder
            .by_ref()
            .take(piece as u64)
            .read_to_end(&mut self.inflated)?;
        if count == piece && piece < left {
            return Ok(false);
        }
        // The decoder reads the end only when it is asked for more.
        match self.decoder.read(&mut [0])? {
            0 => Ok(true),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is larger than its end states",
            )),
        }
    }

    /// Returns the inflated message.
    pub(super) fn whole(self) -> Bytes {
        self.inflated.into()
    }
}
