// SPDX-License-Identifier: Apache-2.0
//! A message that is read once from the front, in one piece or in several.
//!
//! Owns the order of the pieces, and frees each as soon as it was read: what is made of a large message takes the place of the message.
//! Does not know what is in it.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use prost::{DecodeError, Message};

/// A message. Nearly every message is one piece.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// Empty only if nothing is left.
    first: Bytes,
    rest: Option<Box<Rest>>,
}

/// What comes after the first piece: never nothing.
#[derive(Clone, Debug, Default)]
struct Rest {
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

/// How large the pieces of a large message are.
pub(super) const PIECE_BYTES: usize = 256 * 1024;

impl Pieces {
    /// Returns all that is left, if that is one piece.
    #[inline]
    pub fn whole(&self) -> Option<&[u8]> {
        self.rest.is_none().then_some(&*self.first)
    }

    /// Decodes all that is left, into what a message holds already. One piece is decoded as its bytes: to look for further pieces at each
    /// field costs a quarter more.
    ///
    /// # Errors
    /// It is no such message.
    pub fn merge_into(self, message: &mut impl Message) -> Result<(), DecodeError> {
        match self.whole() {
            Some(whole) => message.merge(whole),
            None => message.merge(self),
        }
    }

    /// Takes the next `bytes` bytes, or all if there are fewer. Copies nothing.
    #[must_use]
    pub fn split_to(&mut self, bytes: usize) -> Self {
        let mut taken = Self::default();
        let mut missing = bytes.min(self.remaining());
        while missing > 0 {
            let piece = self.first.split_to(missing.min(self.first.len()));
            missing -= piece.len();
            taken.push(piece);
            self.drop_read();
        }
        taken
    }

    /// Returns the last four bytes, if there are so many.
    pub(super) fn last_four(&self) -> Option<[u8; 4]> {
        let mut last = self.clone();
        last.advance(last.remaining().checked_sub(4)?);
        Some(last.get_u32_ne().to_ne_bytes())
    }

    /// Adds another message to the end.
    pub fn append(&mut self, other: Self) {
        self.push(other.first);
        let rest = other.rest.into_iter().flat_map(|rest| rest.pieces);
        rest.for_each(|piece| self.push(piece));
    }

    /// Adds a piece to the end.
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.first.is_empty() {
            self.first = piece;
        } else if !piece.is_empty() {
            let rest = self.rest.get_or_insert_default();
            rest.bytes += piece.len();
            rest.pieces.push_back(piece);
        }
    }

    /// Goes on to the next piece if the first one was read.
    #[inline]
    fn drop_read(&mut self) {
        if self.first.is_empty()
            && let Some(rest) = &mut self.rest
            && let Some(next) = rest.pieces.pop_front()
        {
            rest.bytes -= next.len();
            self.first = next;
            self.rest = self.rest.take().filter(|rest| !rest.pieces.is_empty());
        }
    }
}

impl From<Bytes> for Pieces {
    #[inline]
    fn from(first: Bytes) -> Self {
        Self {
            first,
            ..Self::default()
        }
    }
}

impl Buf for Pieces {
    #[inline]
    fn remaining(&self) -> usize {
        self.first.len() + self.rest.as_ref().map_or(0, |rest| rest.bytes)
    }

    #[inline]
    fn chunk(&self) -> &[u8] {
        &self.first
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.remaining(), "read past the end");
        let mut left = count;
        while left > self.first.len() && self.rest.is_some() {
            left -= self.first.len();
            self.first.clear();
            self.drop_read();
        }
        self.first.advance(left.min(self.first.len()));
        self.drop_read();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::google::rpc::Status;

    fn pieces() -> (Pieces, &'static [u8]) {
        let mut pieces = Pieces::from(Bytes::from_static(b"one"));
        for piece in [&b""[..], b"three", b"x"] {
            pieces.push(Bytes::from_static(piece));
        }
        (pieces, b"onethreex")
    }

    fn all(mut pieces: Pieces) -> Vec<u8> {
        pieces.copy_to_bytes(pieces.remaining()).to_vec()
    }

    #[test]
    fn every_way_of_reading_gives_the_same_bytes() {
        let whole = pieces().1;
        for at in 0..=whole.len() {
            let mut rest = pieces().0;
            let front = rest.split_to(at);
            assert_eq!((all(front), all(rest)), (whole[..at].to_vec(), whole[at..].to_vec()));
            let mut rest = pieces().0;
            rest.advance(at);
            assert_eq!((rest.remaining(), all(rest)), (whole.len() - at, whole[at..].to_vec()));
        }
        let mut twice = pieces().0;
        twice.append(pieces().0);
        assert_eq!(all(twice), b"onethreexonethreex");
        let mut rest = pieces().0;
        assert_eq!((all(rest.split_to(99)), rest.remaining()), (whole.to_vec(), 0));
        assert!(!rest.has_remaining() && rest.chunk().is_empty());
        assert_eq!(pieces().0.last_four(), Some(*b"reex"));
        assert_eq!(Pieces::from(Bytes::from_static(b"x")).last_four(), None);
    }

    /// A message is the same message wherever it was cut.
    #[test]
    fn a_message_is_decoded_in_one_piece_or_in_several() {
        let status = Status {
            code: 13,
            message: "some words".to_owned(),
            ..Status::default()
        };
        let encoded = status.encode_to_vec();
        for at in 0..=encoded.len() {
            let mut message = Pieces::from(Bytes::copy_from_slice(&encoded[..at]));
            message.push(Bytes::copy_from_slice(&encoded[at..]));
            let mut decoded = Status::default();
            message.merge_into(&mut decoded).expect("it is whole");
            assert_eq!(decoded, status, "cut at {at}");
        }
    }

    /// What was read is not kept.
    #[test]
    fn a_piece_is_freed_when_it_was_read() {
        let piece = |byte| Bytes::from(vec![byte; 10]);
        let (first, second) = (piece(1), piece(2));
        let mut pieces = Pieces::from(first.clone());
        pieces.push(second.clone());
        assert!(pieces.whole().is_none() && !first.is_unique());
        pieces.advance(10);
        assert!(first.is_unique() && !second.is_unique());
        assert_eq!(pieces.whole(), Some(&*second));
        drop(pieces.split_to(10));
        assert!(second.is_unique());
    }
}
