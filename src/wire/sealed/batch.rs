//! Records that go out together.
//!
//! Owns how bytes are divided among records. Refuses to send.

use std::io::{self, IoSlice};

use rustls::server::ServerConnectionData;
use rustls::unbuffered::{EncryptError, WriteTraffic};

/// What is sealed before it is sent, and so the most memory that a stalled client holds here: a third of 256 KiB of content with
/// what is around it, so that no small rest is left for one write more.
const BATCH_BYTES: usize = 88 * 1024;
/// Room for its records, if they are not all tiny.
const ROOM_BYTES: usize = BATCH_BYTES + 8 * 1024;
/// What a record holds at the most. TLS takes memory for every record while it seals it: with a full one that would be memory of
/// the kind that the transport takes for its buffers, which it hardly uses and which so would stay full of old records.
const RECORD_BYTES: usize = 14 * 1024 - 64;
/// A part of this size is a record of its own; smaller ones share records, at the price of a copy.
const ALONE_BYTES_MIN: usize = 8 * 1024;

/// Memory that is used again from batch to batch.
#[derive(Default)]
pub(super) struct Batch {
    /// The records.
    pub(super) sealed: Vec<u8>,
    /// What becomes the next one.
    clear: Vec<u8>,
}

impl Batch {
    /// Seals as much as makes a batch: how much of it there was, and how much it became.
    pub(super) fn fill(&mut self, traffic: &mut Traffic<'_>, slices: &[IoSlice<'_>]) -> io::Result<(usize, usize)> {
        let Self { sealed, clear } = self;
        if sealed.len() < ROOM_BYTES {
            sealed.resize(ROOM_BYTES, 0);
        }
        clear.clear();
        let (mut taken, mut len) = (0, 0);
        for (at, slice) in slices.iter().enumerate() {
            let mut rest = &**slice;
            while !rest.is_empty() && taken < BATCH_BYTES {
                // Where nothing comes before and nothing after it there is nothing to share a record with.
                let only = clear.is_empty() && at + 1 == slices.len();
                let alone = only || rest.len() >= ALONE_BYTES_MIN;
                if alone || clear.len() == RECORD_BYTES {
                    len += seal(traffic, clear, sealed, len)?;
                    clear.clear();
                }
                let room = RECORD_BYTES - clear.len();
                let (piece, more) = rest.split_at(rest.len().min(room));
                if alone {
                    len += seal(traffic, piece, sealed, len)?;
                } else {
                    clear.extend_from_slice(piece);
                }
                taken += piece.len();
                rest = more;
            }
        }
        len += seal(traffic, clear, sealed, len)?;
        Ok((taken, len))
    }
}

pub(super) type Traffic<'a> = WriteTraffic<'a, ServerConnectionData>;

/// Seals one record behind those that there are; gives its length.
fn seal(traffic: &mut Traffic<'_>, clear: &[u8], sealed: &mut Vec<u8>, at: usize) -> io::Result<usize> {
    if clear.is_empty() {
        return Ok(0);
    }
    loop {
        match traffic.encrypt(clear, sealed.get_mut(at..).unwrap_or_default()) {
            Ok(len) => return Ok(len),
            Err(EncryptError::InsufficientSize(short)) => sealed.resize(at + short.required_size, 0),
            Err(error @ EncryptError::EncryptExhausted) => return Err(io::Error::other(error)),
        }
    }
}
