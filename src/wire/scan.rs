// SPDX-License-Identifier: Apache-2.0
//! Measures what a request would cost before it is decoded.
//!
//! Owns a walk over the wire format that allocates nothing, so that 16 MiB of empty names never become 200 MiB of strings.
//! Does not judge the content.

use bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

use super::pieces::Pieces;
use crate::xds::Dialect;

/// The sizes of the parts of a request for which decoding allocates memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The number of names, versions, locators, and error details: of everything that is repeated.
    pub entries: usize,
    /// How many of these are versions.
    pub versions: usize,
    /// Bytes of the node.
    pub node: usize,
    /// Bytes of the type URL.
    pub type_url: usize,
    /// Whether it rejects a response.
    pub rejects: bool,
}

/// The message is not in protobuf's wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// How the scan counts a field of a request.
enum Field {
    Node,
    TypeUrl,
    Entry,
    Version,
    /// A `google.rpc.Status`: an entry with a repeated field.
    Error,
    Other,
}

/// The repeated field in `google.rpc.Status`.
const DETAILS: u32 = 3;

/// The tags of the two fields of a delta acknowledgement: field 2 and field 6, both length-delimited.
const TYPE_URL: u8 = 2 << 3 | 2;
const NONCE: u8 = 6 << 3 | 2;

fn field(dialect: Dialect, number: u32) -> Field {
    match (dialect, number) {
        (Dialect::Sotw, 2) | (Dialect::Delta, 1) => Field::Node,
        (Dialect::Sotw, 4) | (Dialect::Delta, 2) => Field::TypeUrl,
        (Dialect::Sotw, 3 | 7) | (Dialect::Delta, 3 | 4 | 8 | 9) => Field::Entry,
        (Dialect::Delta, 5) => Field::Version,
        (Dialect::Sotw, 6) | (Dialect::Delta, 7) => Field::Error,
        (Dialect::Sotw | Dialect::Delta, _) => Field::Other,
    }
}

impl Scan {
    /// Measures the request.
    ///
    /// # Errors
    /// When it is not valid protobuf.
    pub fn of(request: &Pieces, dialect: Dialect) -> Result<Self, Malformed> {
        match request.whole() {
            Some(mut whole) => Self::read(&mut whole, dialect),
            None => Self::read(&mut request.clone(), dialect),
        }
    }

    fn read(request: &mut impl Buf, dialect: Dialect) -> Result<Self, Malformed> {
        let mut scan = Self::default();
        walk(request, 0, |number, length, rest| {
            match field(dialect, number) {
                Field::Node => scan.node += length,
                Field::TypeUrl => scan.type_url += length,
                Field::Entry => scan.entries += 1,
                Field::Version => {
                    scan.entries += 1;
                    scan.versions += 1;
                }
                Field::Error => {
                    scan.rejects = true;
                    scan.entries += 1;
                    walk(rest, rest.remaining() - length, |number, _, _| {
                        scan.entries += usize::from(number == DETAILS);
                        Ok(())
                    })?;
                }
                Field::Other => {}
            }
            Ok(())
        })?;
        Ok(scan)
    }
}

/// Returns the type and the nonce of a delta request that has no other field. Nearly all requests are such acknowledgements, and
/// they need not be decoded field by field. Callers only compare the bytes, so they need not be valid UTF-8.
#[must_use]
pub fn acknowledgement(mut request: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut type_url, mut nonce) = (&[][..], &[][..]);
    while let Some((tag, rest)) = request.split_first() {
        let field = match *tag {
            TYPE_URL => &mut type_url,
            NONCE => &mut nonce,
            _ => return None,
        };
        request = rest;
        let length = usize::try_from(decode_varint(&mut request).ok()?).ok()?;
        (*field, request) = request.split_at_checked(length)?;
    }
    (!nonce.is_empty()).then_some((type_url, nonce))
}

/// Returns the first end of a field that is not before `bytes`. It is the end of the request if there is no such field.
///
/// # Errors
/// When the request is not valid protobuf up to there.
pub fn end_after(request: &Pieces, bytes: usize) -> Result<usize, Malformed> {
    let (all, mut rest) = (request.remaining(), request.clone());
    while all - rest.remaining() < bytes && rest.has_remaining() {
        skip(&mut rest)?;
    }
    Ok(all - rest.remaining())
}

/// Finds a field with this number that is longer than `bytes_max`. Returns what comes before it, what comes after it, and its
/// content.
#[must_use]
pub fn around(request: &Pieces, number: u32, bytes_max: usize) -> Option<[Pieces; 3]> {
    let [start, length, end] = match request.whole() {
        Some(mut whole) => find(&mut whole, number, bytes_max),
        None => find(&mut request.clone(), number, bytes_max),
    }?;
    let mut after = request.clone();
    let before = after.split_to(start);
    let mut content = after.split_to(end - start);
    content.advance(end - start - length);
    Some([before, after, content])
}

/// Returns where such a field starts, how long its content is, and where it ends.
fn find(request: &mut impl Buf, number: u32, bytes_max: usize) -> Option<[usize; 3]> {
    let all = request.remaining();
    while request.has_remaining() {
        let start = all - request.remaining();
        let (key, length) = skip(request).ok()?;
        if key == number && length > bytes_max {
            return Some([start, length, all - request.remaining()]);
        }
    }
    None
}

/// Skips a field. Returns its number, and the length of its content.
fn skip(bytes: &mut impl Buf) -> Result<(u32, usize), Malformed> {
    let (number, wire_type) = decode_key(bytes).map_err(|_| Malformed)?;
    let length = length(wire_type, bytes)?;
    if length > bytes.remaining() {
        return Err(Malformed);
    }
    bytes.advance(length);
    Ok((number, length))
}

/// Calls `see` with the number of every length-delimited field, its length, and the bytes from its content on, until `left` bytes are left.
fn walk<B: Buf>(
    bytes: &mut B,
    left: usize,
    mut see: impl FnMut(u32, usize, &mut B) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    while bytes.remaining() > left {
        let (number, wire_type) = decode_key(bytes).map_err(|_| Malformed)?;
        let length = length(wire_type, bytes)?;
        let after = bytes.remaining().checked_sub(length).filter(|after| *after >= left);
        let after = after.ok_or(Malformed)?;
        if wire_type == WireType::LengthDelimited {
            see(number, length, bytes)?;
        }
        bytes.advance(bytes.remaining() - after);
    }
    Ok(())
}

/// Returns the length of the content of the field whose key was just read; zero for a varint, which is skipped. Inlined although it has
/// several callers, because it runs once for each name of a request.
#[inline(always)]
fn length(wire_type: WireType, bytes: &mut impl Buf) -> Result<usize, Malformed> {
    Ok(match wire_type {
        WireType::Varint => {
            decode_varint(bytes).map_err(|_| Malformed)?;
            0
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::LengthDelimited => {
            let length = decode_varint(bytes).map_err(|_| Malformed)?;
            usize::try_from(length).map_err(|_| Malformed)?
        }
        // Groups were deprecated long before these messages were defined.
        WireType::StartGroup | WireType::EndGroup => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use prost::Message;

    use super::*;
    use crate::proto::envoy::config::core::v3::Node;
    use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest, ResourceLocator};
    use crate::proto::google::{protobuf::Any, rpc};

    /// A request in pieces of so many bytes.
    fn pieces(request: &[u8], size: usize) -> Pieces {
        let mut pieces = Pieces::default();
        for piece in request.chunks(size) {
            pieces.push(Bytes::copy_from_slice(piece));
        }
        pieces
    }

    /// What the scan says of a request, into whatever pieces it is cut.
    fn scanned(request: &[u8], dialect: Dialect) -> Result<Scan, Malformed> {
        let whole = Scan::of(&pieces(request, usize::MAX), dialect);
        for size in [1, 2, 3, 7, 64] {
            assert_eq!(Scan::of(&pieces(request, size), dialect), whole, "in pieces of {size}");
        }
        whole
    }

    fn locator() -> ResourceLocator {
        ResourceLocator { name: "l".to_owned() }
    }

    #[test]
    fn everything_repeated_is_counted() {
        let node = Node {
            id: "x".repeat(100),
            ..Default::default()
        };
        let error = rpc::Status {
            code: 3,
            message: "bad".to_owned(),
            details: vec![Any::default(); 4],
        };
        let sotw = DiscoveryRequest {
            node: Some(node.clone()),
            type_url: "t".to_owned(),
            resource_names: vec![String::new(); 1000],
            resource_locators: vec![locator()],
            error_detail: Some(error.clone()),
            ..Default::default()
        };
        let scan = Scan {
            entries: 1000 + 1 + 5,
            versions: 0,
            node: 102,
            type_url: 1,
            rejects: true,
        };
        assert_eq!(scanned(&sotw.encode_to_vec(), Dialect::Sotw), Ok(scan));
        let delta = DeltaDiscoveryRequest {
            node: Some(node),
            type_url: "tt".to_owned(),
            resource_names_subscribe: vec![String::new(); 10],
            resource_names_unsubscribe: vec![String::new(); 20],
            initial_resource_versions: (0..30).map(|n| (n.to_string(), String::new())).collect(),
            resource_locators_subscribe: vec![locator()],
            resource_locators_unsubscribe: vec![locator()],
            error_detail: Some(error),
            ..Default::default()
        };
        let scan = Scan {
            entries: 60 + 2 + 5,
            versions: 30,
            node: 102,
            type_url: 2,
            rejects: true,
        };
        assert_eq!(scanned(&delta.encode_to_vec(), Dialect::Delta), Ok(scan));
    }

    /// An acknowledgement reads the same either way. Any other request, and a malformed one, is left to the decoder.
    #[test]
    fn an_acknowledgement_is_nothing_else() {
        let request = DeltaDiscoveryRequest {
            type_url: "t".repeat(300),
            response_nonce: "n".to_owned(),
            ..Default::default()
        };
        let encoded = request.encode_to_vec();
        assert_eq!(
            acknowledgement(&encoded),
            Some((request.type_url.as_bytes(), &b"n"[..]))
        );
        for end in 0..encoded.len() {
            assert_eq!(acknowledgement(&encoded[..end]), None, "cut at {end}");
        }
        let nack = DeltaDiscoveryRequest {
            error_detail: Some(rpc::Status::default()),
            ..request.clone()
        };
        let more = DeltaDiscoveryRequest {
            resource_names_subscribe: vec![String::new()],
            ..request
        };
        for other in [nack, more, DeltaDiscoveryRequest::default()] {
            assert_eq!(acknowledgement(&other.encode_to_vec()), None);
        }
        assert_eq!(acknowledgement(&[TYPE_URL, 0, NONCE, 0]), None, "no nonce");
    }

    #[test]
    fn what_stands_around_a_long_field() {
        let error = rpc::Status {
            code: 3,
            message: "bad".repeat(100),
            details: Vec::new(),
        };
        let request = DeltaDiscoveryRequest {
            type_url: "t".to_owned(),
            response_nonce: "n".to_owned(),
            error_detail: Some(error.clone()),
            resource_locators_subscribe: vec![locator()],
            ..Default::default()
        };
        let without = DeltaDiscoveryRequest {
            error_detail: None,
            ..request.clone()
        };
        for size in [usize::MAX, 1, 100] {
            let encoded = pieces(&request.encode_to_vec(), size);
            assert!(around(&encoded, 7, 1000).is_none() && around(&encoded, 3, 0).is_none());
            let [before, after, content] = around(&encoded, 7, 100).unwrap();
            assert_eq!(rpc::Status::decode(content).as_ref(), Ok(&error));
            let mut rest = DeltaDiscoveryRequest::decode(before).unwrap();
            rest.merge(after).unwrap();
            assert_eq!(rest, without, "in pieces of {size}");
        }
    }

    #[test]
    fn garbage_is_told_from_a_request() {
        let whole = DiscoveryRequest {
            type_url: "t".repeat(300),
            ..Default::default()
        }
        .encode_to_vec();
        for end in 1..whole.len() {
            assert_eq!(scanned(&whole[..end], Dialect::Sotw), Err(Malformed), "cut at {end}");
        }
        for bad in [
            &[0xff; 12][..],
            &[0x0b, 0x0c],
            &[0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            assert_eq!(scanned(bad, Dialect::Delta), Err(Malformed), "{bad:?}");
        }
        assert_eq!(scanned(&[], Dialect::Delta), Ok(Scan::default()));
    }
}
