// SPDX-License-Identifier: Apache-2.0
//! TLS records that are sent together.
//!
//! Owns how bytes are divided among records. Does not send.

use std::io::{self, IoSlice};

use rustls::server::ServerConnectionData;
use rustls::unbuffered::{EncryptError, WriteTraffic};

/// The bytes that are sealed before they are sent, and so the most memory that a stalled client costs here. It is a third of
/// 256 KiB of content with its framing, so that no small rest needs one more write.
const BATCH_BYTES: usize = 88 * 1024;
/// Room for the records of a batch, unless they are all tiny.
const ROOM_BYTES: usize = BATCH_BYTES + 8 * 1024;
/// The most content of a record. TLS allocates memory for each record while it seals it. A full record would be of the same size
/// class as the buffers of the transport, which hardly uses them; such memory would stay resident, full of old records.
const RECORD_BYTES: usize = 14 * 1024 - 64;
/// A part of this size is a record of its own; smaller ones share records, at the price of a copy.
const ALONE_BYTES_MIN: usize = 8 * 1024;

/// Memory that each batch uses again.
#[derive(Default)]
pub(super) struct Batch {
    /// The records.
    pub(super) sealed: Vec<u8>,
    /// The content of the next record.
    clear: Vec<u8>,
}

impl Batch {
    /// Seals up to one batch. Returns how many bytes were taken, and how many bytes the records have.
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
                // If no other part comes before or after, there is nothing to share a record with.
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

/// Seals one record at position `at`, behind the earlier ones. Returns its length.
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
