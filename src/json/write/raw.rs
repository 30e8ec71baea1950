// SPDX-License-Identifier: Apache-2.0
//! The wire format, field by field, without types. Owns how a field's bytes are split. Knows nothing of what they mean.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field};
use prost_reflect::Kind;

/// The value of a field in the wire format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Raw<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

impl Raw<'_> {
    /// Whether a field of this kind can have this value.
    pub(crate) const fn fits(&self, kind: &Kind) -> bool {
        matches!(
            (self, Self::default_of(kind)),
            (Self::Varint(_), Raw::Varint(_))
                | (Self::Fixed32(_), Raw::Fixed32(_))
                | (Self::Fixed64(_), Raw::Fixed64(_))
                | (Self::Bytes(_), Raw::Bytes(_))
        )
    }

    /// Writes a field with this number and value.
    pub(crate) fn write(&self, number: u32, into: &mut Vec<u8>) {
        match self {
            Self::Varint(value) => {
                encode_key(number, WireType::Varint, into);
                encode_varint(*value, into);
            }
            Self::Fixed32(value) => {
                encode_key(number, WireType::ThirtyTwoBit, into);
                into.extend(value.to_le_bytes());
            }
            Self::Fixed64(value) => {
                encode_key(number, WireType::SixtyFourBit, into);
                into.extend(value.to_le_bytes());
            }
            Self::Bytes(bytes) => {
                encode_key(number, WireType::LengthDelimited, into);
                encode_varint(bytes.len() as u64, into);
                into.extend(*bytes);
            }
        }
    }

    /// Returns the default of this kind.
    pub(super) const fn default_of(kind: &Kind) -> Self {
        match kind {
            Kind::Int32
            | Kind::Int64
            | Kind::Uint32
            | Kind::Uint64
            | Kind::Sint32
            | Kind::Sint64
            | Kind::Bool
            | Kind::Enum(_) => Raw::Varint(0),
            Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => Raw::Fixed32(0),
            Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => Raw::Fixed64(0),
            Kind::String | Kind::Bytes | Kind::Message(_) => Raw::Bytes(&[]),
        }
    }

    /// Whether it is the default of this kind. A kind of 32 bits takes the lower 32 bits of a varint.
    pub(super) const fn is_default(&self, kind: &Kind) -> bool {
        match (self, kind) {
            (Self::Varint(number), Kind::Int32 | Kind::Uint32 | Kind::Sint32 | Kind::Enum(_)) => *number as u32 == 0,
            (Self::Varint(number) | Self::Fixed64(number), _) => *number == 0,
            (Self::Fixed32(number), _) => *number == 0,
            (Self::Bytes(bytes), _) => bytes.is_empty(),
        }
    }
}

/// Passes every field to `see`, in the order of the bytes; skips groups. Returns `None` if the bytes are not a message.
pub(crate) fn each<'a>(mut body: &'a [u8], mut see: impl FnMut(u32, Raw<'a>)) -> Option<()> {
    while !body.is_empty() {
        let (number, wire_type) = decode_key(&mut body).ok()?;
        if matches!(wire_type, WireType::StartGroup | WireType::EndGroup) {
            skip_field(wire_type, number, &mut body, DecodeContext::default()).ok()?;
        } else {
            see(number, next(wire_type, &mut body)?);
        }
    }
    Some(())
}

fn next<'a>(wire_type: WireType, body: &mut &'a [u8]) -> Option<Raw<'a>> {
    match wire_type {
        WireType::Varint => decode_varint(body).ok().map(Raw::Varint),
        WireType::ThirtyTwoBit => body.try_get_u32_le().ok().map(Raw::Fixed32),
        WireType::SixtyFourBit => body.try_get_u64_le().ok().map(Raw::Fixed64),
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(body).ok()?).ok()?;
            let (content, rest) = body.split_at_checked(length)?;
            *body = rest;
            Some(Raw::Bytes(content))
        }
        WireType::StartGroup | WireType::EndGroup => None,
    }
}

/// Returns the items of a list. Scalars may be packed, in several packs and between single ones.
pub(crate) fn unpacked<'a>(kind: &Kind, raws: &[Raw<'a>]) -> Option<Vec<Raw<'a>>> {
    let mut items = Vec::new();
    let wire_type = match Raw::default_of(kind) {
        Raw::Varint(_) => WireType::Varint,
        Raw::Fixed32(_) => WireType::ThirtyTwoBit,
        Raw::Fixed64(_) => WireType::SixtyFourBit,
        Raw::Bytes(_) => return Some(raws.to_vec()),
    };
    for raw in raws {
        let Raw::Bytes(mut pack) = *raw else {
            items.push(*raw);
            continue;
        };
        while !pack.is_empty() {
            items.push(next(wire_type, &mut pack)?);
        }
    }
    Some(items)
}
