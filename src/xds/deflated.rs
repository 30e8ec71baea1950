// SPDX-License-Identifier: Apache-2.0
//! Shared bytes that are compressed once, although each message that has them begins with bytes of its own.
//!
//! Owns the compressed blocks, and joins them with a beginning to one gzip stream: the beginning is a block that is stored as it is, and
//! the checksum of the whole is computed from those of its parts. Knows nothing of what the bytes mean.

use std::io::{self, Write as _};
use std::sync::Arc;

use bytes::{BufMut as _, Bytes};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// Bytes in compressed blocks.
#[derive(Debug)]
pub struct Deflated {
    blocks: Bytes,
    sum: Crc,
}

/// The head of a gzip stream without a name, a time and a system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// The kind of a stored block that is not the last one, and its length in two forms.
const STORED_HEAD: usize = 5;
/// The checksum and the length of the content.
const END: usize = 8;
/// Fewer bytes are not worth the work, nor a gzip stream's own bytes.
const BYTES_MIN: usize = 512;
/// More bytes would keep the thread for too long: this many take some 30 ms.
const BYTES_MAX: usize = 4 * 1024 * 1024;

impl Deflated {
    /// Compresses these bytes; `None` if they are too few or too many, or do not get shorter.
    pub(super) fn of(pieces: &[Bytes]) -> Option<Self> {
        let length: usize = pieces.iter().map(Bytes::len).sum();
        if !(BYTES_MIN..=BYTES_MAX).contains(&length) {
            return None;
        }
        let blocks = deflate(pieces, length).ok()?;
        let mut sum = Crc::new();
        pieces.iter().for_each(|piece| sum.update(piece));
        let shorter = blocks.len() + HEAD.len() + STORED_HEAD + END < length;
        shorter.then(|| Self {
            blocks: blocks.into(),
            sum,
        })
    }

    /// Returns the gzip stream of `beginning` and these bytes, in three parts: what comes before the shared blocks, these, and what
    /// comes after them. `None` if the beginning is too long for a block.
    pub fn after(&self, beginning: &[u8]) -> Option<(Vec<u8>, Arc<[Bytes]>)> {
        let length = u16::try_from(beginning.len()).ok()?;
        let mut head = Vec::with_capacity(HEAD.len() + STORED_HEAD + beginning.len());
        head.extend(HEAD);
        head.put_u8(0);
        head.put_u16_le(length);
        head.put_u16_le(!length);
        head.extend(beginning);

        let mut sum = Crc::new();
        sum.update(beginning);
        sum.combine(&self.sum);
        let mut end = Vec::with_capacity(END);
        end.put_u32_le(sum.sum());
        end.put_u32_le(sum.amount());
        Some((head, Arc::from([self.blocks.clone(), Bytes::from(end)])))
    }
}

fn deflate(pieces: &[Bytes], length: usize) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(length / 4), Compression::fast());
    pieces.iter().try_for_each(|piece| encoder.write_all(piece))?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// Every decoder of gzip reads the beginning and the shared bytes, whatever the beginning is.
    #[test]
    fn one_stream_of_two_parts() {
        let pieces = [vec![7; 300], b"other words".repeat(90)].map(Bytes::from);
        let deflated = Deflated::of(&pieces).expect("it gets shorter");
        for beginning in [&b""[..], b"x", &[9; 5000], &[1; 65_535]] {
            let (mut stream, rest) = deflated.after(beginning).expect("it is short");
            rest.iter().for_each(|part| stream.extend_from_slice(part));
            assert!(stream.len() < beginning.len() + 200);
            let mut read = Vec::new();
            let mut decoder = flate2::read::GzDecoder::new(&*stream);
            decoder.read_to_end(&mut read).expect("it is sound");
            assert_eq!(read, [beginning, &pieces.concat()].concat());
        }
        assert!(deflated.after(&[0; 65_536]).is_none());
    }

    #[test]
    fn what_is_not_compressed() {
        let noise =
            |length: u64| Bytes::from_iter((0..length).map(|at| xxhash_rust::xxh3::xxh3_64(&at.to_le_bytes()) as u8));
        for (bytes, why) in [
            (Bytes::from(vec![0; BYTES_MIN - 1]), "too few"),
            (Bytes::from(vec![0; BYTES_MAX + 1]), "too many"),
            (noise(2000), "they do not get shorter"),
        ] {
            assert!(Deflated::of(&[bytes]).is_none(), "{why}");
        }
    }
}
