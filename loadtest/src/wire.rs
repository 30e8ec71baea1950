//! gRPC frames and protobuf fields, read while they stream in. A response may be many megabytes and there are
//! thousands of clients, so no message is ever held as a whole: only the one field that is not complete yet.
//!
//! It is written apart from the relay's own decoder, so that both cannot be wrong in the same way.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

/// One thing read from the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unit<'a> {
    /// A length-delimited field of the message.
    Field(u32, &'a [u8]),
    /// A numeric field of the message, of no interest to anybody here.
    Number(u32),
    /// The message is complete.
    End,
}

/// What cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a gRPC message is compressed although nobody asked for it")]
    Compressed,
    #[error("a field reaches beyond the end of its message")]
    Overrun,
    #[error("a varint is longer than ten bytes")]
    Varint,
    #[error("wire type {0} does not occur in these messages")]
    WireType(u64),
}

/// Reads a stream of gRPC messages. Invariant: `pending` is empty or the beginning of exactly one unit.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pending: Vec<u8>,
    needed: usize,
    /// Bytes left of the message being read; none between two messages.
    left: Option<usize>,
}

/// More than this is not kept between two units.
const KEPT_BYTES_MAX: usize = 64 * 1024;
const PREFIX_BYTES: usize = 5;

enum Step<'a> {
    Unit { used: usize, field: Option<Unit<'a>> },
    Need(usize),
}

impl Reader {
    /// Reads `input` and hands every unit that it completes to `sink`.
    pub(crate) fn feed<E: From<Malformed>>(
        &mut self,
        mut input: &[u8],
        mut sink: impl FnMut(Unit<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !input.is_empty() {
            if self.pending.is_empty() {
                match step(input, self.left)? {
                    Step::Unit { used, field } => {
                        let complete = advance(&mut self.left, input, used);
                        field.map_or(Ok(()), &mut sink)?;
                        complete.map_or(Ok(()), &mut sink)?;
                        input = input.get(used..).unwrap_or_default();
                    }
                    Step::Need(total) => {
                        self.pending.extend_from_slice(input);
                        self.needed = total;
                        return Ok(());
                    }
                }
                continue;
            }
            let (taken, rest) = input.split_at(input.len().min(self.needed - self.pending.len()));
            self.pending.extend_from_slice(taken);
            input = rest;
            if self.pending.len() < self.needed {
                return Ok(());
            }
            match step(&self.pending, self.left)? {
                Step::Unit { used, field } => {
                    let complete = advance(&mut self.left, &self.pending, used);
                    field.map_or(Ok(()), &mut sink)?;
                    complete.map_or(Ok(()), &mut sink)?;
                    self.pending.clear();
                    self.pending.shrink_to(KEPT_BYTES_MAX);
                }
                Step::Need(total) => self.needed = total,
            }
        }
        Ok(())
    }
}

/// Takes `used` bytes off the message; says so when that was its end.
fn advance(left: &mut Option<usize>, input: &[u8], used: usize) -> Option<Unit<'static>> {
    let now_left = match *left {
        None => prefix_length(input).unwrap_or_default(),
        Some(bytes) => bytes.saturating_sub(used),
    };
    *left = (now_left > 0).then_some(now_left);
    (now_left == 0).then_some(Unit::End)
}

fn prefix_length(input: &[u8]) -> Option<usize> {
    let prefix = input.first_chunk::<PREFIX_BYTES>()?;
    let [_, length @ ..] = *prefix;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

fn step(input: &[u8], left: Option<usize>) -> Result<Step<'_>, Malformed> {
    let Some(left) = left else {
        return match input.first_chunk::<PREFIX_BYTES>() {
            None => Ok(Step::Need(PREFIX_BYTES)),
            Some([0, ..]) => Ok(Step::Unit {
                used: PREFIX_BYTES,
                field: None,
            }),
            Some(_) => Err(Malformed::Compressed),
        };
    };
    match field(input)? {
        Some((unit, used)) if used <= left => Ok(Step::Unit {
            used,
            field: Some(unit),
        }),
        Some(_) => Err(Malformed::Overrun),
        None => {
            let needed = field_length(input)?.unwrap_or(input.len() + 1);
            if needed > left {
                return Err(Malformed::Overrun);
            }
            Ok(Step::Need(needed))
        }
    }
}

/// The first field of `input` and its length, or nothing while it is not complete.
pub(crate) fn field(input: &[u8]) -> Result<Option<(Unit<'_>, usize)>, Malformed> {
    let Some((tag, tag_bytes)) = varint(input)? else {
        return Ok(None);
    };
    let number = u32::try_from(tag >> 3).map_err(|_| Malformed::Varint)?;
    let rest = input.get(tag_bytes..).unwrap_or_default();
    let numeric = |bytes: usize| (rest.len() >= bytes).then_some((Unit::Number(number), tag_bytes + bytes));
    match tag & 7 {
        0 => Ok(varint(rest)?.and_then(|(_, bytes)| numeric(bytes))),
        1 => Ok(numeric(8)),
        5 => Ok(numeric(4)),
        2 => {
            let Some((length, length_bytes)) = varint(rest)? else {
                return Ok(None);
            };
            let end = usize::try_from(length)
                .ok()
                .and_then(|length| length.checked_add(length_bytes))
                .ok_or(Malformed::Overrun)?;
            Ok(rest
                .get(length_bytes..end)
                .map(|payload| (Unit::Field(number, payload), tag_bytes + end)))
        }
        other => Err(Malformed::WireType(other)),
    }
}

/// How long the length-delimited field is with which `input` begins, once that is known.
fn field_length(input: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some((tag, tag_bytes)) = varint(input)? else {
        return Ok(None);
    };
    if tag & 7 != 2 {
        return Ok(None);
    }
    let length = varint(input.get(tag_bytes..).unwrap_or_default())?;
    length
        .map(|(length, length_bytes)| {
            usize::try_from(length)
                .ok()
                .and_then(|length| length.checked_add(tag_bytes + length_bytes))
                .ok_or(Malformed::Overrun)
        })
        .transpose()
}

fn varint(input: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    let mut value = 0_u64;
    for (position, byte) in input.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Ok(Some((value, position + 1)));
        }
    }
    if input.len() >= 10 {
        return Err(Malformed::Varint);
    }
    Ok(None)
}

/// Hands every field of a complete message to `sink`.
pub(crate) fn fields<'a>(mut input: &'a [u8], mut sink: impl FnMut(Unit<'a>)) -> Result<(), Malformed> {
    while !input.is_empty() {
        let (unit, used) = field(input)?.ok_or(Malformed::Overrun)?;
        sink(unit);
        input = input.get(used..).unwrap_or_default();
    }
    Ok(())
}

/// `message` as a gRPC frame.
pub(crate) fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(PREFIX_BYTES + length);
    out.put_slice(&prefix(length));
    // The buffer grows as needed, so that encoding cannot fail.
    let _ = message.encode(&mut out);
    out.freeze()
}

/// The five bytes before a message of `length` bytes.
pub(crate) fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [0, a, b, c, d]
}
