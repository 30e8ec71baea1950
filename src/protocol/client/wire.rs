//! Reading responses, whole and damaged ones.
//!
//! Owns the cut of a response into its entries while it comes, and what can be saved of a damaged one: its type, its nonce and
//! its sound entries. Refuses to judge them.

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use crate::proto::google::protobuf::Any;
use crate::xds::put_field;

/// A response of which not even the type and the nonce can be read, so that it cannot be refused by name.
#[derive(Debug, thiserror::Error)]
#[error("the server sent a response that is not readable ({0}); it is no xDS server, or the message was cut")]
pub struct Unreadable(&'static str);

/// A delta response whose entries are not read yet. Each is read by itself, so that what it has many of is never there as a
/// second copy.
#[derive(Debug)]
pub struct DeltaResponse {
    /// Everything but the entries.
    pub(super) head: DeltaDiscoveryResponse,
    /// The entries, in order.
    pub(super) entries: Vec<Bytes>,
}

/// A response of either dialect, cut into its entries while it comes: of the bytes that it comes in nothing is kept.
#[derive(Debug, Default)]
pub struct Cutter {
    length: usize,
    /// How much is still to come.
    left: usize,
    entries: Vec<Bytes>,
    /// The other fields, and of them the type and the nonce.
    head: BytesMut,
    least: BytesMut,
    typed: bool,
    named: bool,
    /// What has come of a field that is not whole yet.
    begun: BytesMut,
}

/// The numbers that `resources`, `type_url` and `nonce` have in both kinds of response.
const RESOURCES: u32 = 2;
const TYPE_URL: u32 = 4;
const NONCE: u32 = 5;
/// Most of what is not an entry fits into so much.
const HEAD_BYTES: usize = 256;
/// Within so many bytes a field has said how long it is.
const FIELD_HEAD_MAX: usize = 20;

/// Reads a whole SotW response.
///
/// # Errors
/// When it is damaged, and not even the type and the nonce can be found.
pub fn read_sotw(message: impl AsRef<[u8]>) -> Result<DiscoveryResponse, Unreadable> {
    Cutter::whole(message.as_ref()).sotw()
}

/// Reads a whole delta response.
///
/// # Errors
/// When it is damaged, and not even the type and the nonce can be found.
pub fn read_delta(message: impl AsRef<[u8]>) -> Result<DeltaResponse, Unreadable> {
    Cutter::whole(message.as_ref()).delta()
}

impl Cutter {
    /// A response of so many bytes, of which none has come.
    #[must_use]
    pub fn new(length: usize) -> Self {
        let room = length.min(HEAD_BYTES);
        Self {
            length,
            left: length,
            head: BytesMut::with_capacity(room),
            least: BytesMut::with_capacity(room),
            ..Self::default()
        }
    }

    fn whole(message: &[u8]) -> Self {
        let mut cutter = Self::new(message.len());
        cutter.push(message);
        cutter
    }

    /// How many bytes it has.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// How many of them are still to come.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// The next bytes have come.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !self.begun.is_empty() && !bytes.is_empty() {
            let lacks = field_length(&self.begun).saturating_sub(self.begun.len());
            if lacks <= self.left {
                self.begun.reserve(lacks);
            }
            let (more, rest) = bytes.split_at(lacks.min(bytes.len()));
            self.begun.extend_from_slice(more);
            self.left = self.left.saturating_sub(more.len());
            bytes = rest;
            if more.len() == lacks && next_field(&mut &*self.begun).is_some() {
                self.finish_begun();
            }
        }
        let unread = self.cut(bytes, Bytes::copy_from_slice).len();
        self.begun
            .extend_from_slice(bytes.get(bytes.len() - unread..).unwrap_or_default());
        self.left = self.left.saturating_sub(bytes.len());
    }

    /// Takes the fields that are whole, and gives the rest.
    fn cut<'a>(&mut self, mut bytes: &'a [u8], entry: impl Fn(&[u8]) -> Bytes) -> &'a [u8] {
        let mut rest = bytes;
        while let Some((number, content)) = next_field(&mut rest) {
            bytes = rest;
            let Some(content) = content else { continue };
            if number == RESOURCES {
                self.entries.push(entry(content));
                continue;
            }
            put_field(&mut self.head, number, content);
            if matches!(number, TYPE_URL | NONCE) {
                put_field(&mut self.least, number, content);
            }
            self.typed |= number == TYPE_URL;
            self.named |= number == NONCE;
        }
        bytes
    }

    /// Takes what has been gathered. Whether all of it could be read.
    fn finish_begun(&mut self) -> bool {
        let begun = std::mem::take(&mut self.begun).freeze();
        self.cut(&begun, |content| begun.slice_ref(content)).is_empty()
    }

    /// The SotW response. E-13: an entry that cannot be read stands in it as an empty one, so that it alone is refused.
    ///
    /// # Errors
    /// When it is damaged, and not even the type and the nonce can be found.
    pub fn sotw(self) -> Result<DiscoveryResponse, Unreadable> {
        let (head, entries) = self.finish::<DiscoveryResponse>()?;
        let resources = entries.into_iter().map(|entry| Any::decode(entry).unwrap_or_default());
        Ok(DiscoveryResponse {
            resources: resources.collect(),
            ..head
        })
    }

    /// The delta response. E-13: an entry that cannot be read is refused alone, when its turn comes.
    ///
    /// # Errors
    /// When it is damaged, and not even the type and the nonce can be found.
    pub fn delta(self) -> Result<DeltaResponse, Unreadable> {
        let (head, entries) = self.finish()?;
        Ok(DeltaResponse { head, entries })
    }

    /// All fields but the entries, and the entries. Where the others are damaged, type and nonce are all there is of them, and of
    /// what was lost an empty entry tells, which no response may have.
    fn finish<M: Message + Default>(mut self) -> Result<(M, Vec<Bytes>), Unreadable> {
        let whole = self.finish_begun();
        let mut damage = (!whole).then_some("it ends in the middle, or is no message at all");
        let mut rest = M::decode(self.head.freeze());
        if rest.is_err() {
            damage = Some("what stands beside its resources is damaged");
            rest = M::decode(self.least.freeze());
        }
        match damage {
            Some(damage) if !(self.typed && self.named) => return Err(Unreadable(damage)),
            Some(_) => self.entries.push(Bytes::new()),
            None => {}
        }
        let damaged = |_| Unreadable("its type or its nonce is no text");
        Ok((rest.map_err(damaged)?, self.entries))
    }
}

/// How many bytes the field has of which these are the first: one more as long as it does not say, and no end where it is none
/// that says so.
fn field_length(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    let said = decode_key(&mut rest).ok().and_then(|(_, wire)| {
        let content = (wire == WireType::LengthDelimited).then(|| decode_varint(&mut rest).ok())??;
        usize::try_from(content).ok()?.checked_add(bytes.len() - rest.len())
    });
    match said {
        Some(length) => length,
        None if bytes.len() < FIELD_HEAD_MAX => bytes.len() + 1,
        None => usize::MAX,
    }
}

/// The next field: its number, and its content unless that is a number; `None` when the message ends in its middle.
pub(super) fn next_field<'a>(bytes: &mut &'a [u8]) -> Option<(u32, Option<&'a [u8]>)> {
    let (number, wire) = decode_key(bytes).ok()?;
    if wire != WireType::LengthDelimited {
        skip_field(wire, number, bytes, DecodeContext::default()).ok()?;
        return Some((number, None));
    }
    let len = usize::try_from(decode_varint(bytes).ok()?).ok()?;
    let (content, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some((number, Some(content)))
}

/// Whether this is an encoded message, as far as its own fields go.
pub(super) fn is_message(mut body: &[u8]) -> bool {
    while !body.is_empty() {
        if next_field(&mut body).is_none() {
            return false;
        }
    }
    true
}

/// The string field with this number in an encoded message, the rest unread.
pub(super) fn string_field(mut body: &[u8], number: u32) -> Option<&str> {
    let mut found = None;
    while !body.is_empty() {
        match next_field(&mut body)? {
            (at, Some(value)) if at == number => found = Some(std::str::from_utf8(value).ok()?),
            (_, _) => {}
        }
    }
    found.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries between other fields, some long and some short, one empty; numbers, fixed ones, and a group (3, 4).
    fn message() -> Vec<u8> {
        let mut message = Vec::new();
        for (number, content) in [
            (TYPE_URL, &b"type"[..]),
            (RESOURCES, &[1; 300]),
            (RESOURCES, b""),
            (1, b"version"),
            (RESOURCES, &[2; 20]),
        ] {
            put_field(&mut message, number, content);
        }
        message.extend([0x18, 0x80, 0x01, 0x7d, 1, 2, 3, 4, 0x7b, 0x08, 0x05, 0x7c]);
        put_field(&mut message, RESOURCES, &[3; 2]);
        put_field(&mut message, NONCE, b"nonce");
        message
    }

    fn pushed(message: &[u8], cut: usize, length: usize) -> Cutter {
        let mut cutter = Cutter::new(length);
        message.chunks(cut).for_each(|part| cutter.push(part));
        assert_eq!(cutter.left(), length.saturating_sub(message.len()));
        cutter
    }

    /// However a message comes, and wherever it ends, the same is read; of what has come nothing is kept twice.
    #[test]
    fn cuts_do_not_matter() {
        let message = message();
        for end in 0..=message.len() {
            let part = &message[..end];
            let as_text = |cutter: Cutter| {
                cutter
                    .delta()
                    .map_or_else(|why| why.to_string(), |it| format!("{it:?}"))
            };
            let at_once = as_text(pushed(part, usize::MAX, end));
            for cut in 1..=end {
                assert_eq!(as_text(pushed(part, cut, end)), at_once, "cut at {cut}, ends at {end}");
            }
        }
        for cut in 1..=message.len() {
            let whole = pushed(&message, cut, message.len());
            assert!(whole.begun.is_empty(), "cut at {cut}");
            let whole = whole.delta().unwrap();
            assert_eq!(
                whole.entries.iter().map(Bytes::len).collect::<Vec<_>>(),
                [300, 0, 20, 2]
            );
            assert_eq!(
                (whole.head.type_url.as_str(), whole.head.nonce.as_str()),
                ("type", "nonce")
            );
            assert_eq!(whole.head.system_version_info, "version");
        }
    }

    /// What a field says of its length takes no memory before it has come.
    #[test]
    fn a_length_is_no_memory() {
        for claim in [[0x12, 0xff, 0xff, 0xff, 0x7f, 1], [0x12, 0xff, 0xff, 0xff, 0xff, 0x7f]] {
            let cutter = pushed(&claim, 1, 1000);
            assert!(cutter.begun.capacity() < 1000, "{}", cutter.begun.capacity());
            assert!(cutter.delta().is_err());
        }
    }
}
