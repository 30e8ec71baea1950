// SPDX-License-Identifier: Apache-2.0
//! Reads responses, whole and damaged ones.
//!
//! Owns how an arriving response is cut into its entries, and what can be saved of a damaged one: its type, its nonce and its
//! sound entries. Does not judge the entries.

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use proto::envoy::config::core::v3::ControlPlane;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse, ResourceError};
use xds::{Dialect, put_field};

/// A response without a readable type and nonce, so that the relay cannot send a NACK for it.
#[derive(Debug, thiserror::Error)]
#[error("the server sent a response that is not readable ({0}); it is no xDS server, or the message was damaged")]
pub struct Unreadable(&'static str);

/// A response of either dialect whose entries are not decoded yet. Each is decoded by itself, so that the many entries are never in memory
/// twice.
#[derive(Debug, Default, PartialEq)]
pub struct Arrival {
    pub(super) type_url: String,
    pub(super) nonce: String,
    pub(super) version: String,
    pub(super) identifier: String,
    pub(super) errors: Vec<ResourceError>,
    /// Delta: the names that are removed.
    pub(super) removed: Vec<String>,
    /// F-16: how many are removed for some clients only.
    pub(super) ignored: usize,
    /// The entries, in order.
    pub(super) entries: Vec<Bytes>,
    /// Whether the end of the response is left out, because it is too large.
    pub(super) full: bool,
}

/// A response of either dialect that is cut into its entries while it arrives; the received buffers are not kept.
#[derive(Debug, Default)]
pub struct Cutter {
    length: usize,
    /// How many bytes are still to come.
    left: usize,
    entries: Vec<Bytes>,
    /// The other fields, encoded.
    head: BytesMut,
    /// The bytes of a field that is not complete yet.
    begun: BytesMut,
    /// How much of the limit is left.
    room: usize,
    limit: usize,
    /// Whether a field was left out.
    full: bool,
}

/// A field counts as at least so many bytes: that is about the memory that it takes, however small it is.
pub const FIELD_BYTES_MIN: usize = 256;
/// A field that is no entry has at most so many bytes. It is decoded as a whole, and may consist of very many tiny parts.
pub(super) const OTHER_BYTES_MAX: usize = 64 * 1024;
/// The field numbers of `resources`, `type_url` and `nonce` in both kinds of response.
const RESOURCES: u32 = 2;
const TYPE_URL: u32 = 4;
const NONCE: u32 = 5;
/// Most responses have no more bytes than this besides their entries.
const HEAD_BYTES: usize = 256;
/// The head of a field, with its length, has at most this many bytes.
const FIELD_HEAD_MAX: usize = 20;

impl Arrival {
    /// Returns what the server calls itself, to take its span out of that.
    pub const fn identifier_mut(&mut self) -> &mut String {
        &mut self.identifier
    }
}

impl From<DiscoveryResponse> for Arrival {
    fn from(head: DiscoveryResponse) -> Self {
        Self {
            type_url: head.type_url,
            nonce: head.nonce,
            version: head.version_info,
            identifier: named(head.control_plane),
            errors: head.resource_errors,
            removed: Vec::new(),
            ignored: 0,
            entries: encoded(&head.resources),
            full: false,
        }
    }
}

impl From<DeltaDiscoveryResponse> for Arrival {
    fn from(head: DeltaDiscoveryResponse) -> Self {
        let (mut removed, all) = (head.removed_resources, head.removed_resource_names.len());
        let plain = head.removed_resource_names.into_iter();
        let plain = plain.filter(|full| full.dynamic_parameter_constraints.is_empty());
        let before = removed.len();
        removed.extend(plain.map(|full| full.name));
        Self {
            type_url: head.type_url,
            nonce: head.nonce,
            version: head.system_version_info,
            identifier: named(head.control_plane),
            errors: head.resource_errors,
            ignored: all + before - removed.len(),
            removed,
            entries: encoded(&head.resources),
            full: false,
        }
    }
}

fn named(plane: Option<ControlPlane>) -> String {
    plane.unwrap_or_default().identifier
}

fn encoded<M: Message>(resources: &[M]) -> Vec<Bytes> {
    let encoded = resources.iter().map(Message::encode_to_vec);
    encoded.map(Bytes::from).collect()
}

impl Cutter {
    /// Creates a cutter for a response of this many bytes, before any of them came. All of its fields may count `limit` bytes; the
    /// rest is left out.
    #[must_use]
    pub fn new(length: usize, limit: usize) -> Self {
        Self {
            length,
            left: length,
            head: BytesMut::with_capacity(length.min(HEAD_BYTES)),
            room: limit,
            limit,
            ..Self::default()
        }
    }

    /// Returns how many bytes the response has.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns how many bytes its fields count as that have come: each at least as [`FIELD_BYTES_MIN`].
    #[must_use]
    pub const fn weight(&self) -> usize {
        self.limit - self.room
    }

    /// Returns the type, if that has come.
    #[must_use]
    pub fn type_url(&self) -> Option<&str> {
        string_field(&self.head, TYPE_URL)
    }

    /// Returns how many of them are still to come.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Takes the next bytes.
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
        // One piece of memory for all entries in it: what stays of a resource would lie between entries, and keep their pages.
        let part = Bytes::copy_from_slice(bytes);
        let unread = self.cut(&part, |content| part.slice_ref(content));
        self.begun.extend_from_slice(unread);
        self.left = self.left.saturating_sub(part.len());
    }

    /// Takes the complete fields, and returns the rest.
    fn cut<'a>(&mut self, mut bytes: &'a [u8], entry: impl Fn(&[u8]) -> Bytes) -> &'a [u8] {
        let mut rest = bytes;
        while let Some((number, content)) = next_field(&mut rest) {
            bytes = rest;
            let Some(content) = content else { continue };
            if !self.admits(number, content.len()) {
                continue;
            }
            if number == RESOURCES {
                self.entries.push(entry(content));
                continue;
            }
            put_field(&mut self.head, number, content);
        }
        bytes
    }

    /// Whether there is room for a field; type and nonce are always read. After the first field that is left out there is none.
    fn admits(&mut self, number: u32, bytes: usize) -> bool {
        if matches!(number, TYPE_URL | NONCE) {
            return true;
        }
        let fits = number == RESOURCES || bytes <= OTHER_BYTES_MAX;
        match self.room.checked_sub(bytes.max(FIELD_BYTES_MIN)).filter(|_| fits) {
            Some(room) => self.room = room,
            None => (self.room, self.full) = (0, true),
        }
        !self.full
    }

    /// Takes the gathered bytes. Returns whether all of them were readable.
    fn finish_begun(&mut self) -> bool {
        let begun = std::mem::take(&mut self.begun).freeze();
        self.cut(&begun, |content| begun.slice_ref(content)).is_empty()
    }

    /// Returns all fields but the entries, and the entries. If the other fields are damaged, only type and nonce are kept. An
    /// empty entry, which no response may have, stands for the lost part. E-13: an entry that is not readable is rejected alone, when it is
    /// decoded.
    ///
    /// # Errors
    /// If it is damaged, and its type or its nonce is lost.
    pub fn finish(mut self, dialect: Dialect) -> Result<Arrival, Unreadable> {
        let whole = self.finish_begun();
        let text = |number| string_field(&self.head, number).map(str::to_owned);
        let least = text(TYPE_URL).zip(text(NONCE)).map(|(type_url, nonce)| Arrival {
            type_url,
            nonce,
            ..Arrival::default()
        });
        let read = match dialect {
            Dialect::Sotw => DiscoveryResponse::decode(self.head).map(Arrival::from),
            Dialect::Delta => DeltaDiscoveryResponse::decode(self.head).map(Arrival::from),
        };
        let read = match (read, whole) {
            (Ok(read), true) => read,
            (read, _) => {
                let damage = match read {
                    Ok(_) => "it is cut off, or is not a protobuf message",
                    Err(_) => "its fields besides resources are damaged",
                };
                let least = least.ok_or(Unreadable(damage))?;
                self.entries.push(Bytes::new());
                read.unwrap_or(least)
            }
        };
        Ok(Arrival {
            entries: self.entries,
            full: self.full,
            ..read
        })
    }
}

/// Returns the length of the field that begins with these bytes: one byte more if they are too few to tell, and no limit if this
/// is no field with a length.
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

/// Returns the next field: its number, and its content unless that is a number; `None` if the message ends within it.
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

/// Whether this is an encoded message; nested messages are not checked.
pub(super) fn is_message(mut body: &[u8]) -> bool {
    while !body.is_empty() {
        if next_field(&mut body).is_none() {
            return false;
        }
    }
    true
}

/// Returns the string field with this number in an encoded message, without decoding the rest.
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

    fn finish(cutter: Cutter) -> Result<Arrival, Unreadable> {
        cutter.finish(Dialect::Delta)
    }

    fn pushed(message: &[u8], cut: usize, length: usize) -> Cutter {
        let mut cutter = Cutter::new(length, usize::MAX);
        message.chunks(cut).for_each(|part| cutter.push(part));
        assert_eq!(cutter.left(), length.saturating_sub(message.len()));
        cutter
    }

    /// The result does not depend on the parts in which a message comes or on where it ends.
    #[test]
    fn cuts_do_not_matter() {
        let message = message();
        for end in 0..=message.len() {
            let part = &message[..end];
            let as_text = |cutter: Cutter| finish(cutter).map_or_else(|why| why.to_string(), |it| format!("{it:?}"));
            let at_once = as_text(pushed(part, usize::MAX, end));
            for cut in 1..=end {
                assert_eq!(as_text(pushed(part, cut, end)), at_once, "cut at {cut}, ends at {end}");
            }
        }
        for cut in 1..=message.len() {
            let whole = pushed(&message, cut, message.len());
            assert!(whole.begun.is_empty(), "cut at {cut}");
            let whole = finish(whole).unwrap();
            assert_eq!(
                whole.entries.iter().map(Bytes::len).collect::<Vec<_>>(),
                [300, 0, 20, 2]
            );
            assert_eq!((whole.type_url.as_str(), whole.nonce.as_str()), ("type", "nonce"));
            assert_eq!(whole.version, "version");
        }
    }

    /// Entries that come together are one piece of memory.
    #[test]
    fn entries_lie_together() {
        let message = message();
        let whole = finish(pushed(&message, usize::MAX, message.len())).unwrap();
        let at = |content: u8| message.windows(2).position(|two| two == [content; 2]).unwrap();
        let [first, _, third, _] = &*whole.entries else {
            panic!("there are four");
        };
        assert_eq!(third.as_ptr() as usize - first.as_ptr() as usize, at(2) - at(1));
    }

    /// The claimed length of a field takes no memory before the bytes have come.
    #[test]
    fn a_length_is_no_memory() {
        for claim in [[0x12, 0xff, 0xff, 0xff, 0x7f, 1], [0x12, 0xff, 0xff, 0xff, 0xff, 0x7f]] {
            let cutter = pushed(&claim, 1, 1000);
            assert!(cutter.begun.capacity() < 1000, "{}", cutter.begun.capacity());
            assert!(finish(cutter).is_err());
        }
    }
}
