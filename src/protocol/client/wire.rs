//! Reading responses that the generated code cannot read as a whole.
//!
//! Owns what can be saved of a damaged message: its type, its nonce and its sound entries. Refuses to judge them.

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use crate::xds::resource::put_field;

/// A response of which not even the type and the nonce can be read, so that it cannot be refused by name.
#[derive(Debug, thiserror::Error)]
#[error("the server sent a response that is not readable ({0}); it is no xDS server, or the message was cut")]
pub struct Unreadable(#[from] prost::DecodeError);

/// The numbers that `resources`, `type_url` and `nonce` have in both kinds of response.
const RESOURCES: u32 = 2;
const TYPE_URL: u32 = 4;
const NONCE: u32 = 5;

/// Reads a SotW response. E-13: an entry that cannot be read stands in it as an empty one, so that it alone is refused.
///
/// # Errors
/// When not even the type and the nonce can be found.
pub fn read_sotw(bytes: Bytes) -> Result<DiscoveryResponse, Unreadable> {
    let whole = bytes.clone();
    DiscoveryResponse::decode(bytes).or_else(|error| {
        let salvage = Salvage::from(whole).ok_or(Unreadable(error))?;
        let mut saved: DiscoveryResponse = salvage.head();
        saved.resources = salvage.entries();
        Ok(saved)
    })
}

/// Reads a delta response. E-13: an entry that cannot be read stands in it as an empty one, so that it alone is refused.
///
/// # Errors
/// When not even the type and the nonce can be found.
pub fn read_delta(bytes: Bytes) -> Result<DeltaDiscoveryResponse, Unreadable> {
    let whole = bytes.clone();
    DeltaDiscoveryResponse::decode(bytes).or_else(|error| {
        let salvage = Salvage::from(whole).ok_or(Unreadable(error))?;
        let mut saved: DeltaDiscoveryResponse = salvage.head();
        saved.resources = salvage.entries();
        Ok(saved)
    })
}

/// The top level of a damaged response.
struct Salvage {
    entries: Vec<Bytes>,
    /// All other fields, or only type and nonce where the others are damaged themselves.
    head: Bytes,
    /// Something besides the entries was lost.
    cut: bool,
}

impl Salvage {
    fn from(mut bytes: Bytes) -> Option<Self> {
        let (mut entries, mut cut) = (Vec::new(), false);
        let (mut head, mut least) = (BytesMut::new(), BytesMut::new());
        let (mut typed, mut named) = (false, false);
        while !bytes.is_empty() {
            match next_field(&mut bytes) {
                Some(Some((RESOURCES, entry))) => entries.push(entry),
                Some(Some((number, value))) => {
                    put_field(&mut head, number, &value);
                    if matches!(number, TYPE_URL | NONCE) {
                        put_field(&mut least, number, &value);
                    }
                    typed |= number == TYPE_URL;
                    named |= number == NONCE;
                }
                Some(None) => {}
                None => {
                    cut = true;
                    break;
                }
            }
        }
        if DeltaDiscoveryResponse::decode(head.clone()).is_err() && DiscoveryResponse::decode(head.clone()).is_err() {
            cut = true;
            head = least;
        }
        (typed && named).then(|| Self {
            entries,
            head: head.freeze(),
            cut,
        })
    }

    fn head<M: Message + Default>(&self) -> M {
        M::decode(self.head.clone()).unwrap_or_default()
    }

    fn entries<M: Message + Default>(self) -> Vec<M> {
        let lost = self.cut.then(M::default);
        let entries = self
            .entries
            .into_iter()
            .map(|entry| M::decode(entry).unwrap_or_default());
        entries.chain(lost).collect()
    }
}

/// The next length-delimited field, `Some(None)` for one of another kind; `None` when the message ends in its middle.
fn next_field(bytes: &mut Bytes) -> Option<Option<(u32, Bytes)>> {
    let (number, wire) = decode_key(bytes).ok()?;
    if wire != WireType::LengthDelimited {
        skip_field(wire, number, bytes, DecodeContext::default()).ok()?;
        return Some(None);
    }
    let len = usize::try_from(decode_varint(bytes).ok()?).ok()?;
    (len <= bytes.len()).then(|| Some((number, bytes.split_to(len))))
}

/// The string field with this number in an encoded message, the rest unread.
pub(super) fn string_field(mut body: &[u8], number: u32) -> Option<String> {
    let mut found = None;
    while !body.is_empty() {
        let (at, wire) = decode_key(&mut body).ok()?;
        if at == number && wire == WireType::LengthDelimited {
            let len = usize::try_from(decode_varint(&mut body).ok()?).ok()?;
            let (value, rest) = body.split_at_checked(len)?;
            found = Some(std::str::from_utf8(value).ok()?.to_owned());
            body = rest;
        } else {
            skip_field(wire, at, &mut body, DecodeContext::default()).ok()?;
        }
    }
    found.filter(|name| !name.is_empty())
}
