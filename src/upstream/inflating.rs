// SPDX-License-Identifier: Apache-2.0
//! A compressed response that is being inflated.
//!
//! Owns how much is inflated at a time, and that no response has more bytes than the end of its gzip stream states. Hands the bytes on as
//! they come out, so that a response is never in memory as a whole.

use std::io::{self, Read as _};

use bytes::buf::Reader;
use bytes::{Buf as _, Bytes};
use flate2::bufread::GzDecoder;

use crate::protocol::Cutter;

/// A response that is being inflated.
#[derive(Debug)]
pub(super) struct InflatingResponse {
    decoder: GzDecoder<Reader<Bytes>>,
    message: Cutter,
    piece: Box<[u8]>,
}

/// The bytes that come out at a time.
const PIECE: usize = 16 * 1024;
/// So many pieces are inflated before others have their turn.
const PIECES_IN_A_TURN: usize = 16;

/// Returns the size of what is inflated, as the end of a gzip stream states it.
pub(super) fn stated(compressed: &[u8]) -> usize {
    let size = compressed.last_chunk().map_or(0, |size| u32::from_le_bytes(*size));
    usize::try_from(size).unwrap_or(usize::MAX)
}

impl InflatingResponse {
    /// Begins to inflate a response; `message` is to be as long as the end of the gzip stream states.
    pub(super) fn new(compressed: Bytes, message: Cutter) -> Self {
        Self {
            decoder: GzDecoder::new(compressed.reader()),
            message,
            piece: vec![0; PIECE].into(),
        }
    }

    /// Inflates some more. Returns whether that was the end.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        for _ in 0..PIECES_IN_A_TURN {
            let count = self.decoder.read(&mut self.piece)?;
            let left = self.message.left();
            if count > left || count == 0 && left > 0 {
                let what = "it has another size than its end states";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if count == 0 {
                return Ok(true);
            }
            self.message.push(self.piece.get(..count).unwrap_or_default());
        }
        Ok(false)
    }

    /// Returns the response.
    pub(super) fn whole(self) -> Cutter {
        self.message
    }
}
