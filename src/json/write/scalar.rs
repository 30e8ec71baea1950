// SPDX-License-Identifier: Apache-2.0
//! Writes single values as JSON (J-02). Knows nothing of messages.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::Kind;

use super::Writer;
use super::raw::Raw;
use crate::fault::Fault;
use crate::read::NULL_VALUE;

/// Replaces a secret.
pub(crate) const REDACTED: &str = "[redacted]";

impl Writer<'_> {
    pub(super) fn string(&mut self, text: &str) {
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.out, text);
    }

    fn display(&mut self, value: impl fmt::Display) {
        self.out.extend_from_slice(value.to_string().as_bytes());
    }

    pub(super) fn scalar(&mut self, kind: &Kind, raw: Raw<'_>) -> Result<(), Fault> {
        match (kind, raw) {
            (Kind::Bool, Raw::Varint(number)) => self.display(number != 0),
            (Kind::Int32, Raw::Varint(number)) => self.display(number as i32),
            (Kind::Uint32, Raw::Varint(number)) => self.display(number as u32),
            (Kind::Sint32, Raw::Varint(number)) => self.display(zigzag(u64::from(number as u32)) as i32),
            (Kind::Fixed32, Raw::Fixed32(number)) => self.display(number),
            (Kind::Sfixed32, Raw::Fixed32(number)) => self.display(number.cast_signed()),
            // JavaScript numbers cannot hold 64-bit integers, so these are strings.
            (Kind::Int64, Raw::Varint(number)) => self.quoted(number.cast_signed()),
            (Kind::Uint64, Raw::Varint(number)) => self.quoted(number),
            (Kind::Sint64, Raw::Varint(number)) => self.quoted(zigzag(number)),
            (Kind::Fixed64, Raw::Fixed64(number)) => self.quoted(number),
            (Kind::Sfixed64, Raw::Fixed64(number)) => self.quoted(number.cast_signed()),
            (Kind::Float, Raw::Fixed32(bits)) => {
                let number = f32::from_bits(bits);
                self.float(f64::from(number), serde_json::to_string(&number).unwrap_or_default());
            }
            (Kind::Double, Raw::Fixed64(bits)) => self.double(f64::from_bits(bits)),
            (Kind::String, Raw::Bytes(_)) if self.redacting => self.string(REDACTED),
            (Kind::String, Raw::Bytes(bytes)) => {
                let text = std::str::from_utf8(bytes).map_err(|_| self.fault("this string is not UTF-8"))?;
                self.string(text);
            }
            (Kind::Bytes, Raw::Bytes(bytes)) => {
                let shown = if self.redacting { REDACTED.as_bytes() } else { bytes };
                self.string(&STANDARD.encode(shown));
            }
            (Kind::Enum(descriptor), Raw::Varint(_)) if descriptor.full_name() == NULL_VALUE => {
                self.out.extend_from_slice(b"null");
            }
            (Kind::Enum(descriptor), Raw::Varint(number)) => match descriptor.get_value(number as i32) {
                Some(value) => self.string(value.name()),
                None => self.display(number as i32),
            },
            _ => return Err(self.fault(super::NOT_PROTOBUF)),
        }
        Ok(())
    }

    fn quoted(&mut self, value: impl fmt::Display) {
        self.out.push(b'"');
        self.display(value);
        self.out.push(b'"');
    }

    pub(super) fn double(&mut self, number: f64) {
        self.float(number, serde_json::to_string(&number).unwrap_or_default());
    }

    /// Writes a number; `shortest` is its shortest exact text.
    fn float(&mut self, number: f64, shortest: String) {
        if number.is_nan() {
            self.string("NaN");
        } else if number.is_infinite() {
            self.string(if number > 0.0 { "Infinity" } else { "-Infinity" });
        } else {
            let text = shortest.strip_suffix(".0").unwrap_or(&shortest);
            self.out.extend_from_slice(text.as_bytes());
        }
    }
}

/// Whether values of this kind are texts, which can be replaced by [`REDACTED`].
pub(super) const fn is_text(kind: &Kind) -> bool {
    matches!(kind, Kind::String | Kind::Bytes)
}

const fn zigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// A key of a map, in the order in which entries are written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MapKey {
    Bool(bool),
    Number(i128),
    Text(String),
}

impl MapKey {
    pub(super) fn of(kind: &Kind, raw: Raw<'_>) -> Option<Self> {
        Some(match (kind, raw) {
            (Kind::Bool, Raw::Varint(number)) => Self::Bool(number != 0),
            (Kind::String, Raw::Bytes(bytes)) => Self::Text(std::str::from_utf8(bytes).ok()?.to_owned()),
            (Kind::Int32, Raw::Varint(number)) => Self::Number(i128::from(number as i32)),
            (Kind::Uint32, Raw::Varint(number)) => Self::Number(i128::from(number as u32)),
            (Kind::Int64, Raw::Varint(number)) => Self::Number(i128::from(number.cast_signed())),
            (Kind::Uint64, Raw::Varint(number)) => Self::Number(i128::from(number)),
            (Kind::Sint32, Raw::Varint(number)) => Self::Number(i128::from(zigzag(u64::from(number as u32)) as i32)),
            (Kind::Sint64, Raw::Varint(number)) => Self::Number(i128::from(zigzag(number))),
            (Kind::Fixed32, Raw::Fixed32(number)) => Self::Number(i128::from(number)),
            (Kind::Sfixed32, Raw::Fixed32(number)) => Self::Number(i128::from(number.cast_signed())),
            (Kind::Fixed64, Raw::Fixed64(number)) => Self::Number(i128::from(number)),
            (Kind::Sfixed64, Raw::Fixed64(number)) => Self::Number(i128::from(number.cast_signed())),
            _ => return None,
        })
    }
}

impl fmt::Display for MapKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(truth) => truth.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}
