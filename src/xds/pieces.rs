// SPDX-License-Identifier: Apache-2.0
//! The shared bytes of one response.
//!
//! Owns which of them are joined, so that a response of many small resources is one buffer. Does not know what else is in it.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::batch::{Dialect, Form, Item};

/// Records below this size are joined into one buffer; larger ones are passed by reference.
const JOIN_BELOW: usize = 16 * 1024;
/// The same for a response that one session alone gets. Its copies would cost memory as long as its client does not read, for each
/// such client. Copying a shorter record costs less than referring to it.
const JOIN_ALONE_BELOW: usize = 512;

/// Collects pieces; joins the small ones, so that a response of many small resources is one buffer.
pub(super) struct Pieces {
    pieces: Vec<Bytes>,
    small: Vec<Bytes>,
    join_below: usize,
}

impl Pieces {
    /// Creates it for a response that only one session gets (`alone`), or many.
    pub(super) const fn new(alone: bool) -> Self {
        Self {
            pieces: Vec::new(),
            small: Vec::new(),
            join_below: if alone { JOIN_ALONE_BELOW } else { JOIN_BELOW },
        }
    }

    pub(super) fn item(&mut self, item: &Item, dialect: Dialect) {
        let (resource, text) = (&item.resource, item.text.as_ref());
        debug_assert!(!resource.is_hollow(), "{resource:?} has no bytes to send");
        match (dialect, item.form) {
            (_, Form::Heartbeat) => self.push(resource.heartbeat(item.ttl.unwrap_or_default(), text)),
            (Dialect::Sotw, Form::Whole | Form::Repeated) => self.push(resource.sotw_record()),
            (Dialect::Sotw, Form::Wrapped) => self.push_all(resource.wrapped(item.ttl, text)),
            (Dialect::Delta, _) if item.ttl.is_none() && text.is_none() => self.push(resource.delta_record()),
            (Dialect::Delta, _) => self.push_all(resource.private_record(item.ttl, text)),
        }
    }

    fn push_all(&mut self, pieces: [Bytes; 2]) {
        pieces.into_iter().for_each(|piece| self.push(piece));
    }

    pub(super) fn push(&mut self, piece: Bytes) {
        if piece.len() < self.join_below {
            if !piece.is_empty() {
                self.small.push(piece);
            }
        } else {
            self.join();
            self.pieces.push(piece);
        }
    }

    fn join(&mut self) {
        if self.small.len() <= 1 {
            self.pieces.append(&mut self.small);
            return;
        }
        let mut joined = BytesMut::with_capacity(self.small.iter().map(Bytes::len).sum());
        for piece in self.small.drain(..) {
            joined.put_slice(&piece);
        }
        self.pieces.push(joined.freeze());
    }

    pub(super) fn finish(mut self) -> Arc<[Bytes]> {
        self.join();
        Arc::from(self.pieces)
    }
}
