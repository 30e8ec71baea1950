// SPDX-License-Identifier: Apache-2.0
//! Single values: which JSON or YAML scalars a field accepts, and their wire format (J-02). Knows nothing of messages and
//! paths.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost::encoding::{WireType, encode_varint};
use prost_reflect::Kind;

use crate::plain;
use crate::tree::{Tree, Value, shortened};

/// A value in the wire format.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(Vec<u8>),
}

impl Scalar {
    pub(super) fn of(kind: &Kind, tree: &Tree) -> Result<Self, String> {
        let expected = |what: &str| format!("expected {what}, found {}", tree.description());
        Ok(match kind {
            Kind::Bool => Self::Varint(u64::from(truth(tree).ok_or_else(|| expected("true or false"))?)),
            Kind::String => Self::Bytes(tree.text().ok_or_else(|| expected("a string"))?.as_bytes().to_vec()),
            Kind::Bytes => {
                let decoded = tree.text().and_then(base64);
                Self::Bytes(decoded.ok_or_else(|| expected("base64"))?)
            }
            Kind::Double => Self::Fixed64(number(tree).ok_or_else(|| expected("a number"))?.to_bits()),
            Kind::Float => {
                let wide = number(tree).ok_or_else(|| expected("a number"))?;
                let narrow = wide as f32;
                if wide.is_finite() && !narrow.is_finite() {
                    return Err(format!("{} is out of range for 32 bits", tree.description()));
                }
                Self::Fixed32(narrow.to_bits())
            }
            Kind::Int32
            | Kind::Int64
            | Kind::Uint32
            | Kind::Uint64
            | Kind::Sint32
            | Kind::Sint64
            | Kind::Fixed32
            | Kind::Fixed64
            | Kind::Sfixed32
            | Kind::Sfixed64 => {
                let whole = written(tree)
                    .and_then(integer)
                    .ok_or_else(|| expected("a whole number"))?;
                Self::integer(kind, whole).ok_or_else(|| format!("{whole} is out of range for this field"))?
            }
            Kind::Enum(_) | Kind::Message(_) => return Err(expected("another kind of value")),
        })
    }

    /// Returns a whole number of this kind, if it is in range.
    fn integer(kind: &Kind, whole: i128) -> Option<Self> {
        let zigzag = |number: i64| ((number << 1) ^ (number >> 63)).cast_unsigned();
        Some(match kind {
            Kind::Int32 => Self::Varint(i64::from(i32::try_from(whole).ok()?).cast_unsigned()),
            Kind::Int64 => Self::Varint(i64::try_from(whole).ok()?.cast_unsigned()),
            Kind::Uint32 => Self::Varint(u64::from(u32::try_from(whole).ok()?)),
            Kind::Uint64 => Self::Varint(u64::try_from(whole).ok()?),
            Kind::Sint32 => Self::Varint(zigzag(i64::from(i32::try_from(whole).ok()?))),
            Kind::Sint64 => Self::Varint(zigzag(i64::try_from(whole).ok()?)),
            Kind::Fixed32 => Self::Fixed32(u32::try_from(whole).ok()?),
            Kind::Fixed64 => Self::Fixed64(u64::try_from(whole).ok()?),
            Kind::Sfixed32 => Self::Fixed32(i32::try_from(whole).ok()?.cast_unsigned()),
            Kind::Sfixed64 => Self::Fixed64(i64::try_from(whole).ok()?.cast_unsigned()),
            Kind::Bool | Kind::String | Kind::Bytes | Kind::Float | Kind::Double | Kind::Enum(_) | Kind::Message(_) => {
                return None;
            }
        })
    }

    pub(super) fn enumeration(number: i32) -> Self {
        Self::Varint(i64::from(number).cast_unsigned())
    }

    pub(super) fn is_default(&self) -> bool {
        match self {
            Self::Varint(number) | Self::Fixed64(number) => *number == 0,
            Self::Fixed32(number) => *number == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }

    pub(super) const fn wire_type(&self) -> WireType {
        match self {
            Self::Varint(_) => WireType::Varint,
            Self::Fixed32(_) => WireType::ThirtyTwoBit,
            Self::Fixed64(_) => WireType::SixtyFourBit,
            Self::Bytes(_) => WireType::LengthDelimited,
        }
    }

    /// Writes it, without its key.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Varint(number) => encode_varint(*number, out),
            Self::Fixed32(number) => out.extend_from_slice(&number.to_le_bytes()),
            Self::Fixed64(number) => out.extend_from_slice(&number.to_le_bytes()),
            Self::Bytes(bytes) => {
                encode_varint(bytes.len() as u64, out);
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// A key of a map, in the order in which entries are written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MapKey {
    Bool(bool),
    Number(i128),
    Text(String),
}

impl MapKey {
    /// Parses a key of this kind.
    pub(super) fn of(kind: &Kind, text: &str) -> Option<Self> {
        if matches!(kind, Kind::String) {
            return Some(Self::Text(text.to_owned()));
        }
        if matches!(kind, Kind::Bool) {
            return match text {
                "true" => Some(Self::Bool(true)),
                "false" => Some(Self::Bool(false)),
                _ => None,
            };
        }
        let whole = integer(text)?;
        Scalar::integer(kind, whole).map(|_| Self::Number(whole))
    }

    pub(super) fn scalar(&self, kind: &Kind) -> Scalar {
        match self {
            Self::Bool(truth) => Scalar::Varint(u64::from(*truth)),
            Self::Number(whole) => Scalar::integer(kind, *whole).unwrap_or(Scalar::Varint(0)),
            Self::Text(text) => Scalar::Bytes(text.as_bytes().to_vec()),
        }
    }
}

fn truth(tree: &Tree) -> Option<bool> {
    match &tree.value {
        Value::Bool(truth) => Some(*truth),
        Value::Plain(text) => plain::truth(text),
        Value::Null | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// Returns the text of a number, which may be quoted.
fn written(tree: &Tree) -> Option<&str> {
    match &tree.value {
        Value::Number(text) | Value::Text(text) | Value::Plain(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// Parses a whole number, also as `1e3`, `5.0` or, in YAML, `0x1F`.
pub(super) fn integer(text: &str) -> Option<i128> {
    if let Ok(whole) = text.parse::<i128>() {
        return Some(whole);
    }
    if let Some(whole) = plain::radix(text) {
        return Some(i128::from(whole));
    }
    let float = plain::float(text)?;
    // Up to 2^53 every whole float is exact.
    let exact = float.abs() <= 9_007_199_254_740_992.0 && float.fract() == 0.0;
    exact.then_some(float as i128)
}

fn number(tree: &Tree) -> Option<f64> {
    match written(tree)? {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        text => plain::float(text).filter(|number| {
            // A number too large for 64 bits is a fault, not infinity.
            number.is_finite() || !text.contains(|c: char| c.is_ascii_digit())
        }),
    }
}

/// J-02: both alphabets, with and without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
    if text.contains(['-', '_']) {
        URL_SAFE.decode(text).ok()
    } else {
        STANDARD.decode(text).ok()
    }
}

/// Returns a key or a name as it is shown in an error.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}
