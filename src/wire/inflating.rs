// SPDX-License-Identifier: Apache-2.0
//! A compressed message that is being inflated.
//!
//! Inflates a large message piece by piece, into as much memory as its end states, so that nothing is copied while it grows. Does not
//! know the limit on its size.

use std::io::{self, Read as _};
use std::task::{Context, Poll};

use bytes::Buf as _;
use bytes::buf::Reader;
use flate2::bufread::GzDecoder;

use super::pieces::{PIECE_BYTES, Pieces};
use super::turn::{Permit, StreamTurns};

/// A message that is being inflated.
pub(super) struct InflatingMessage {
    decoder: GzDecoder<Reader<Pieces>>,
    compressed: usize,
    /// How many bytes it has when it is inflated, as its end states. The decoder checks that.
    stated: usize,
    inflated: Pieces,
    turns: StreamTurns,
}

impl InflatingMessage {
    pub(super) fn new(message: Pieces) -> Self {
        let size = message.last_four().map_or(0, u32::from_le_bytes);
        Self {
            compressed: message.remaining(),
            decoder: GzDecoder::new(message.reader()),
            stated: usize::try_from(size).unwrap_or(usize::MAX),
            inflated: Pieces::default(),
            turns: StreamTurns::default(),
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
        self.turns.poll_turn(cx)
    }

    /// Inflates one more piece, after which others have their turn. Returns whether it was the last one.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        let left = self.stated - self.inflated.remaining();
        let size = PIECE_BYTES.min(left);
        let mut piece = Vec::new();
        piece.try_reserve_exact(size)?;
        let count = self.decoder.by_ref().take(size as u64).read_to_end(&mut piece)?;
        self.inflated.push(piece.into());
        if count == size && size < left {
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
    pub(super) fn whole(self) -> Pieces {
        self.inflated
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use bytes::Bytes;

    use super::*;

    fn inflating(message: &[u8]) -> InflatingMessage {
        InflatingMessage::new(Bytes::copy_from_slice(message).into())
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// One turn inflates a bounded number of bytes, however few they were, and no memory is taken but for what comes out.
    #[test]
    fn a_turn_inflates_one_piece() {
        for len in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 9 * PIECE_BYTES + 1] {
            let mut inflating = inflating(&packed(&vec![7; len]));
            assert_eq!((inflating.stated(), inflating.is_large()), (len, len > PIECE_BYTES));
            for turn in 1.. {
                let before = inflating.inflated.remaining();
                let over = inflating.step().unwrap();
                let inflated = inflating.inflated.remaining() - before;
                assert_eq!(inflated, PIECE_BYTES.min(len - before), "turn {turn} of {len} bytes");
                assert_eq!(
                    over,
                    turn == len.div_ceil(PIECE_BYTES).max(1),
                    "turn {turn} of {len} bytes"
                );
                if over {
                    break;
                }
            }
            assert!(inflating.whole().copy_to_bytes(len) == vec![7; len], "{len} bytes");
        }
    }

    /// A message whose end states another size is refused, and no more of it is inflated than it states.
    #[test]
    fn a_false_size_is_refused() {
        let mut message = packed(&[7; 1000]);
        let end = message.len() - 4;
        for (size, why) in [(0, "larger"), (999, "larger"), (1001, "checksum")] {
            message[end..].copy_from_slice(&u32::to_le_bytes(size));
            let mut inflating = inflating(&message);
            let error = inflating.step().unwrap_err().to_string();
            assert!(error.contains(why), "{size}: {error}");
            assert!(inflating.inflated.remaining() <= size as usize);
        }
        assert!(inflating(&[1]).step().is_err());
    }
}
