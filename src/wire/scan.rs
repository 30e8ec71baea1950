//! Measures what a request would cost before it is decoded.
//!
//! Owns a walk over the wire format that allocates nothing, so that 16 MiB of empty names never become 200 MiB of strings.
//! Does not judge the content.

use bytes::Bytes;
use prost::encoding::{WireType, decode_key, decode_varint};

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
    pub fn of(request: &[u8], dialect: Dialect) -> Result<Self, Malformed> {
        let mut scan = Self::default();
        walk(request, |number, content| {
            match field(dialect, number) {
                Field::Node => scan.node += content.len(),
                Field::TypeUrl => scan.type_url += content.len(),
                Field::Entry => scan.entries += 1,
                Field::Version => {
                    scan.entries += 1;
                    scan.versions += 1;
                }
                Field::Error => {
                    scan.rejects = true;
                    scan.entries += 1;
                    walk(content, |number, _| {
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

/// Finds a field with this number that is longer than `bytes_max`. Returns what comes before it, what comes after it, and its
/// content.
#[must_use]
pub fn around(request: &Bytes, number: u32, bytes_max: usize) -> Option<[Bytes; 3]> {
    let (mut rest, mut found) = (&**request, None);
    let at = |rest: &[u8]| request.len() - rest.len();
    while !rest.is_empty() && found.is_none() {
        let start = at(rest);
        let (key, wire_type) = decode_key(&mut rest).ok()?;
        let content = skip(wire_type, &mut rest).ok()?;
        if key == number && content.len() > bytes_max {
            found = Some([
                request.slice(..start),
                request.slice(at(rest)..),
                request.slice_ref(content),
            ]);
        }
    }
    found
}

/// Calls `see` with every length-delimited field.
fn walk(mut bytes: &[u8], mut see: impl FnMut(u32, &[u8]) -> Result<(), Malformed>) -> Result<(), Malformed> {
    while !bytes.is_empty() {
        let (number, wire_type) = decode_key(&mut bytes).map_err(|_| Malformed)?;
        let content = skip(wire_type, &mut bytes)?;
        if wire_type == WireType::LengthDelimited {
            see(number, content)?;
        }
    }
    Ok(())
}

/// Skips the field whose key was just read. Returns its content, which is empty for a varint. Inlined although it has several
/// callers, because it runs once for each name of a request.
#[inline(always)]
fn skip<'a>(wire_type: WireType, bytes: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = match wire_type {
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
    };
    let (content, rest) = bytes.split_at_checked(length).ok_or(Malformed)?;
    *bytes = rest;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::proto::envoy::config::core::v3::Node;
    use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest, ResourceLocator};
    use crate::proto::google::{protobuf::Any, rpc};

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
        assert_eq!(Scan::of(&sotw.encode_to_vec(), Dialect::Sotw), Ok(scan));
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
        assert_eq!(Scan::of(&delta.encode_to_vec(), Dialect::Delta), Ok(scan));
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
        let encoded = Bytes::from(request.encode_to_vec());
        assert_eq!(around(&encoded, 7, 1000), None);
        assert_eq!(around(&encoded, 3, 0), None);
        let [before, after, content] = around(&encoded, 7, 100).unwrap();
        assert_eq!(rpc::Status::decode(content), Ok(error));
        let mut rest = DeltaDiscoveryRequest::decode(before).unwrap();
        rest.merge(after).unwrap();
        assert_eq!(
            rest,
            DeltaDiscoveryRequest {
                error_detail: None,
                ..request
            }
        );
    }

    #[test]
    fn garbage_is_told_from_a_request() {
        let whole = DiscoveryRequest {
            type_url: "t".repeat(300),
            ..Default::default()
        }
        .encode_to_vec();
        for end in 1..whole.len() {
            assert_eq!(Scan::of(&whole[..end], Dialect::Sotw), Err(Malformed), "cut at {end}");
        }
        for bad in [
            &[0xff; 12][..],
            &[0x0b, 0x0c],
            &[0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            assert_eq!(Scan::of(bad, Dialect::Delta), Err(Malformed), "{bad:?}");
        }
        assert_eq!(Scan::of(&[], Dialect::Delta), Ok(Scan::default()));
    }
}
