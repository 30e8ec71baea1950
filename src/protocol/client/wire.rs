//! Reading responses, whole and damaged ones.
//!
//! Owns the cut of a response into its entries, and what can be saved of a damaged one: its type, its nonce and its sound
//! entries. Refuses to judge them.

use bytes::{Buf, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use crate::proto::google::protobuf::Any;
use crate::xds::resource::put_field;

/// A response of which not even the type and the nonce can be read, so that it cannot be refused by name.
#[derive(Debug, thiserror::Error)]
#[error("the server sent a response that is not readable ({0}); it is no xDS server, or the message was cut")]
pub struct Unreadable(&'static str);

/// A delta response whose entries are not read yet. Each is read by itself, in the bytes of the message, so that what it has
/// many of is never there as a second copy.
#[derive(Debug)]
pub struct DeltaResponse {
    /// Everything but the entries.
    pub(super) head: DeltaDiscoveryResponse,
    /// The entries, in order.
    pub(super) entries: Vec<Bytes>,
}

/// The numbers that `resources`, `type_url` and `nonce` have in both kinds of response.
const RESOURCES: u32 = 2;
const TYPE_URL: u32 = 4;
const NONCE: u32 = 5;

/// Reads a SotW response. E-13: an entry that cannot be read stands in it as an empty one, so that it alone is refused.
///
/// # Errors
/// When it is damaged, and not even the type and the nonce can be found.
pub fn read_sotw(message: impl Buf + Clone) -> Result<DiscoveryResponse, Unreadable> {
    DiscoveryResponse::decode(message.clone()).or_else(|_| {
        let (head, entries) = cut::<DiscoveryResponse>(message)?;
        let resources = entries.into_iter().map(|entry| Any::decode(entry).unwrap_or_default());
        Ok(DiscoveryResponse {
            resources: resources.collect(),
            ..head
        })
    })
}

/// Reads a delta response. E-13: an entry that cannot be read is refused alone, when its turn comes.
///
/// # Errors
/// When it is damaged, and not even the type and the nonce can be found.
pub fn read_delta(message: impl Buf) -> Result<DeltaResponse, Unreadable> {
    let (head, entries) = cut(message)?;
    Ok(DeltaResponse { head, entries })
}

/// All fields but the entries, and the entries. Where the others are damaged, type and nonce are all there is of them, and of
/// what was lost an empty entry tells, which no response may have.
fn cut<M: Message + Default>(mut message: impl Buf) -> Result<(M, Vec<Bytes>), Unreadable> {
    let mut entries = Vec::new();
    let (mut head, mut least) = (BytesMut::new(), BytesMut::new());
    let (mut typed, mut named) = (false, false);
    let mut damage = None;
    while message.has_remaining() {
        match next_part(&mut message) {
            Some((RESOURCES, Some(entry))) => entries.push(entry),
            Some((number, Some(value))) => {
                put_field(&mut head, number, &value);
                if matches!(number, TYPE_URL | NONCE) {
                    put_field(&mut least, number, &value);
                }
                typed |= number == TYPE_URL;
                named |= number == NONCE;
            }
            Some((_, None)) => {}
            None => {
                damage = Some("it ends in the middle, or is no message at all");
                break;
            }
        }
    }
    let mut rest = M::decode(head.freeze());
    if rest.is_err() {
        damage = Some("what stands beside its resources is damaged");
        rest = M::decode(least.freeze());
    }
    match damage {
        Some(damage) if !(typed && named) => return Err(Unreadable(damage)),
        Some(_) => entries.push(Bytes::new()),
        None => {}
    }
    let damaged = |_| Unreadable("its type or its nonce is no text");
    Ok((rest.map_err(damaged)?, entries))
}

/// The next field of a message that may be in pieces; see [`next_field`].
fn next_part(message: &mut impl Buf) -> Option<(u32, Option<Bytes>)> {
    let (number, wire) = decode_key(message).ok()?;
    if wire != WireType::LengthDelimited {
        skip_field(wire, number, message, DecodeContext::default()).ok()?;
        return Some((number, None));
    }
    let len = usize::try_from(decode_varint(message).ok()?).ok()?;
    (len <= message.remaining()).then(|| (number, Some(message.copy_to_bytes(len))))
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
