// SPDX-License-Identifier: Apache-2.0
//! Reads gRPC frames and the protobuf of responses while they stream in. A response may have many megabytes and there are
//! thousands of clients, so no message and no body is kept whole: only a name, a version or an incomplete head.
//!
//! Shares no code with the relay's decoder, so that both cannot be wrong in the same way.

use crate::wire::kind::Dialect;

/// One unit read from the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unit<'a> {
    /// A field of the response, the delta resource, or the `Any`.
    Field(Level, u32, &'a [u8]),
    /// A piece of the body of a resource.
    Body(Piece<'a>),
    /// A resource is complete.
    Resource,
    /// The response is complete; holds its length.
    End(usize),
}

/// A piece of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) first: bool,
    pub(crate) last: bool,
}

/// The message that a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Response,
    /// A resource of a delta response.
    Resource,
    Any,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a gRPC message is compressed, but the client did not accept compression")]
    Compressed,
    #[error("a field reaches beyond the end of its message")]
    Overrun,
    #[error("a varint is longer than ten bytes")]
    Varint,
    #[error("wire type {0} does not occur in these messages")]
    WireType(u64),
}

/// Reads a stream of gRPC messages. Invariant: `pending` is empty or the start of exactly one head or field; each entry of `open`
/// is the number of bytes of that message that come after it.
#[derive(Debug)]
pub(crate) struct Reader {
    dialect: Dialect,
    pending: Vec<u8>,
    needed: usize,
    open: Vec<(Level, usize)>,
    /// How many bytes of the current body are still to come.
    body: Option<usize>,
    begun: bool,
    length: usize,
}

const PREFIX_BYTES: usize = 5;
/// The most memory that is kept between two units.
const KEPT_BYTES_MAX: usize = 1024;
/// The longest field, apart from bodies, which are not kept.
const FIELD_BYTES_MAX: usize = 16 * 1024 * 1024;

enum Step<'a> {
    Need(usize),
    /// A message of so many bytes begins.
    Prefix(usize),
    Field(u32, &'a [u8], usize),
    /// A head of so many bytes; what follows belongs to a message inside.
    Inside(usize, usize),
    Skip(usize),
}

impl Reader {
    pub(crate) const fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            pending: Vec::new(),
            needed: 0,
            open: Vec::new(),
            body: None,
            begun: false,
            length: 0,
        }
    }

    /// Reads `input` and hands every unit that it completes to `sink`.
    pub(crate) fn feed<E: From<Malformed>>(
        &mut self,
        mut input: &[u8],
        mut sink: impl FnMut(Unit<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !input.is_empty() {
            if let Some(left) = self.body {
                let (bytes, rest) = input.split_at(left.min(input.len()));
                input = rest;
                let last = bytes.len() == left;
                let first = !std::mem::replace(&mut self.begun, !last);
                self.body = (!last).then_some(left - bytes.len());
                sink(Unit::Body(Piece { bytes, first, last }))?;
                self.close(&mut sink)?;
            } else if self.pending.is_empty() {
                let step = self.step(input)?;
                match self.used(&step) {
                    Some(used) => {
                        self.take(step, &mut sink)?;
                        input = input.get(used..).unwrap_or_default();
                    }
                    None => {
                        self.pending.extend_from_slice(input);
                        return Ok(());
                    }
                }
            } else {
                let (taken, rest) = input.split_at(input.len().min(self.needed - self.pending.len()));
                self.pending.extend_from_slice(taken);
                input = rest;
                if self.pending.len() < self.needed {
                    return Ok(());
                }
                let mut pending = std::mem::take(&mut self.pending);
                let step = self.step(&pending)?;
                if self.used(&step).is_some() {
                    self.take(step, &mut sink)?;
                    pending.clear();
                    pending.shrink_to(KEPT_BYTES_MAX);
                }
                self.pending = pending;
            }
        }
        Ok(())
    }

    /// Returns how much of the input a step uses; none if it needs more.
    const fn used(&mut self, step: &Step<'_>) -> Option<usize> {
        match step {
            Step::Need(total) => {
                self.needed = *total;
                None
            }
            Step::Prefix(_) => Some(PREFIX_BYTES),
            Step::Field(_, _, used) | Step::Inside(used, _) | Step::Skip(used) => Some(*used),
        }
    }

    fn take<E: From<Malformed>>(
        &mut self,
        step: Step<'_>,
        sink: &mut impl FnMut(Unit<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let level = self.open.last().map(|(level, _)| *level);
        match step {
            Step::Need(_) => return Ok(()),
            Step::Prefix(length) => {
                self.length = length;
                self.open.push((Level::Response, length));
            }
            Step::Skip(used) => self.consume(used)?,
            Step::Field(number, bytes, used) => {
                self.consume(used)?;
                if let Some(level) = level {
                    sink(Unit::Field(level, number, bytes))?;
                }
            }
            Step::Inside(used, length) => {
                self.consume(used + length)?;
                match (level, self.dialect) {
                    (Some(Level::Any), _) if length > 0 => self.body = Some(length),
                    (Some(Level::Any) | None, _) => {}
                    (Some(Level::Response), Dialect::Delta) => self.open.push((Level::Resource, length)),
                    (Some(Level::Response | Level::Resource), _) => self.open.push((Level::Any, length)),
                }
            }
        }
        self.close(sink)
    }

    fn consume(&mut self, used: usize) -> Result<(), Malformed> {
        let (_, left) = self.open.last_mut().ok_or(Malformed::Overrun)?;
        *left = left.checked_sub(used).ok_or(Malformed::Overrun)?;
        Ok(())
    }

    /// Leaves the messages that are complete.
    fn close<E>(&mut self, sink: &mut impl FnMut(Unit<'_>) -> Result<(), E>) -> Result<(), E> {
        while self.body.is_none() && matches!(self.open.last(), Some((_, 0))) {
            match (self.open.pop().map(|(level, _)| level), self.dialect) {
                (Some(Level::Response), _) => sink(Unit::End(self.length))?,
                (Some(Level::Resource), _) | (Some(Level::Any), Dialect::Sotw) => sink(Unit::Resource)?,
                (Some(Level::Any) | None, _) => {}
            }
        }
        Ok(())
    }

    fn step<'a>(&self, input: &'a [u8]) -> Result<Step<'a>, Malformed> {
        let Some((_, left)) = self.open.last() else {
            return match input.first_chunk::<PREFIX_BYTES>() {
                None => Ok(Step::Need(PREFIX_BYTES)),
                Some([0, length @ ..]) => {
                    let length = u32::from_be_bytes(*length);
                    Ok(Step::Prefix(usize::try_from(length).map_err(|_| Malformed::Overrun)?))
                }
                Some(_) => Err(Malformed::Compressed),
            };
        };
        let Some((number, wire_type, head)) = head(input)? else {
            return need(input.len() + 1, *left);
        };
        let rest = input.get(head..).unwrap_or_default();
        let numeric = |bytes: usize| match rest.len() >= bytes {
            true => Ok(Step::Skip(head + bytes)),
            false => need(head + bytes, *left),
        };
        match wire_type {
            0 => match varint(rest)? {
                Some((_, bytes)) => numeric(bytes),
                None => need(input.len() + 1, *left),
            },
            1 => numeric(8),
            5 => numeric(4),
            2 => {
                let Some((length, bytes)) = varint(rest)? else {
                    return need(input.len() + 1, *left);
                };
                let length = usize::try_from(length).map_err(|_| Malformed::Overrun)?;
                let total = (head + bytes).checked_add(length).ok_or(Malformed::Overrun)?;
                // The resources of a response, the `Any` of a resource and the body of an `Any` all have this number.
                if number == 2 {
                    return Ok(Step::Inside(head + bytes, length));
                }
                // Nothing here uses the metadata of a resource.
                if length > FIELD_BYTES_MAX {
                    return Err(Malformed::Overrun);
                }
                match input.get(head + bytes..total) {
                    Some(payload) => Ok(Step::Field(number, payload, total)),
                    None => need(total, *left),
                }
            }
            other => Err(Malformed::WireType(other)),
        }
    }
}

fn need<'a>(total: usize, left: usize) -> Result<Step<'a>, Malformed> {
    if total > left {
        return Err(Malformed::Overrun);
    }
    Ok(Step::Need(total))
}

/// Reads the number of a field, its wire type, and the length of both together.
fn head(input: &[u8]) -> Result<Option<(u32, u64, usize)>, Malformed> {
    let Some((tag, bytes)) = varint(input)? else {
        return Ok(None);
    };
    let number = u32::try_from(tag >> 3).map_err(|_| Malformed::Varint)?;
    Ok(Some((number, tag & 7, bytes)))
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

/// Returns the first field of a body, which is the name for most types.
pub(crate) fn first_field(body: &[u8]) -> Option<&[u8]> {
    let (1, 2, head) = head(body).ok()?? else { return None };
    let rest = body.get(head..)?;
    let (length, bytes) = varint(rest).ok()??;
    rest.get(bytes..bytes.checked_add(usize::try_from(length).ok()?)?)
}

/// Returns the numeric field with this number, of a complete message.
pub(crate) fn number(mut message: &[u8], wanted: u32) -> Option<u64> {
    while let Some((number, wire_type, bytes)) = head(message).ok()? {
        let rest = message.get(bytes..)?;
        let used = match wire_type {
            0 => {
                let (value, used) = varint(rest).ok()??;
                if number == wanted {
                    return Some(value);
                }
                used
            }
            1 => 8,
            5 => 4,
            _ => {
                let (length, used) = varint(rest).ok()??;
                used.checked_add(usize::try_from(length).ok()?)?
            }
        };
        message = rest.get(used..)?;
    }
    None
}

/// Hands every length-delimited field of a complete message to `sink`; a malformed message has none.
pub(crate) fn fields<'a>(mut message: &'a [u8], mut sink: impl FnMut(u32, &'a [u8])) {
    while let Ok(Some((number, wire_type, bytes))) = head(message) {
        let Some(rest) = message.get(bytes..) else { return };
        let used = match wire_type {
            0 => varint(rest).ok().flatten().map(|(_, used)| used),
            1 => Some(8),
            5 => Some(4),
            2 => varint(rest).ok().flatten().and_then(|(length, used)| {
                let end = used.checked_add(usize::try_from(length).ok()?)?;
                sink(number, rest.get(used..end)?);
                Some(end)
            }),
            _ => None,
        };
        let Some(after) = used.and_then(|used| rest.get(used..)) else {
            return;
        };
        message = after;
    }
}
