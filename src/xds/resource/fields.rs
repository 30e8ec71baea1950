// SPDX-License-Identifier: Apache-2.0
//! Fields of messages, as they are written by hand.
//!
//! Owns their form. Does not know what is in them.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use super::{NAME, TTL};
use crate::Name;

pub(super) fn ttl_field(ttl: Duration) -> Bytes {
    let mut duration = BytesMut::new();
    if ttl.as_secs() > 0 {
        encode_key(1, WireType::Varint, &mut duration);
        encode_varint(ttl.as_secs(), &mut duration);
    }
    if ttl.subsec_nanos() > 0 {
        encode_key(2, WireType::Varint, &mut duration);
        encode_varint(u64::from(ttl.subsec_nanos()), &mut duration);
    }
    let mut field = BytesMut::new();
    put_field(&mut field, TTL, &duration);
    field.freeze()
}

/// the size of the field with a name, which is left out if there is no name.
pub(super) fn name_len(name: &Name) -> usize {
    match name.as_str() {
        "" => 0,
        name => field_len(NAME, name.len()),
    }
}

pub(super) fn put_name(into: &mut BytesMut, name: &Name) {
    if !name.as_str().is_empty() {
        put_field(into, NAME, name.as_str().as_bytes());
    }
}

/// The size of a length-delimited field.
pub fn field_len(number: u32, len: usize) -> usize {
    key_len(number) + encoded_len_varint(len as u64) + len
}

/// Writes a length-delimited field.
#[inline]
pub fn put_field(into: &mut impl BufMut, number: u32, bytes: &[u8]) {
    put_key_len(into, number, bytes.len());
    into.put_slice(bytes);
}

/// Writes what comes before the content of a length-delimited field.
#[inline]
pub fn put_key_len(into: &mut impl BufMut, number: u32, len: usize) {
    let key = || (number << 3) as u8 | WireType::LengthDelimited as u8;
    // The own fields of a response are short, and so are most resources: the key takes one byte, and the length one or two.
    match (number, len) {
        (1..=15, ..=0x7f) => into.put_slice(&[key(), len as u8]),
        (1..=15, ..=0x3fff) => into.put_slice(&[key(), len as u8 | 0x80, (len >> 7) as u8]),
        (_, _) => {
            encode_key(number, WireType::LengthDelimited, into);
            encode_varint(len as u64, into);
        }
    }
}
