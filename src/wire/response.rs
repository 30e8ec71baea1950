// SPDX-License-Identifier: Apache-2.0
//! Encodes a discovery response as one gRPC message around bytes that all clients share.
//!
//! Owns the private fields (version, type, nonce, control plane) and the gRPC prefix. Does not look into the shared bytes.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::Rope;
use crate::xds::{Deflated, Dialect, field_len, put_field, put_key_len};

/// The fields of one response other than its resources.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFields<'a> {
    /// SotW or delta: which of the two messages is encoded.
    pub dialect: Dialect,
    /// The version of what the client holds after this response (`version_info` or `system_version_info`).
    pub version: &'a [u8],
    /// The type, canonical.
    pub type_url: &'a str,
    /// The nonce.
    pub nonce: &'a [u8],
    /// The identifier of the relay. A-14: the relay sets its own identifier. The v2 delta message has no such field.
    pub identifier: Option<&'a str>,
}

/// The bytes before a gRPC message: the compression flag and the length.
pub(super) const PREFIX_LEN: usize = 5;
/// The flag of a compressed message.
const COMPRESSED: u8 = 1;

/// Field numbers of the two responses; those of the version and the type are the same in both.
const VERSION: u32 = 1;
const TYPE_URL: u32 = 4;
const NONCE: u32 = 5;
const IDENTIFIER: u32 = 1;

impl ResponseFields<'_> {
    const fn control_plane(&self) -> u32 {
        match self.dialect {
            Dialect::Sotw => 6,
            Dialect::Delta => 7,
        }
    }

    const fn fields(&self) -> [(u32, &[u8]); 3] {
        [
            (VERSION, self.version),
            (TYPE_URL, self.type_url.as_bytes()),
            (NONCE, self.nonce),
        ]
    }

    fn named(&self) -> Option<(&str, usize)> {
        self.identifier.map(|text| (text, field_len(IDENTIFIER, text.len())))
    }

    /// Returns how many bytes they have when they are encoded.
    fn length(&self) -> usize {
        let fields = self.fields();
        let fields = fields.iter().map(|(number, text)| field_len(*number, text.len()));
        fields.sum::<usize>()
            + self
                .named()
                .map_or(0, |(_, inner)| field_len(self.control_plane(), inner))
    }

    fn put(&self, into: &mut Vec<u8>) {
        for (number, text) in self.fields() {
            put_field(into, number, text);
        }
        if let Some((text, inner)) = self.named() {
            put_key_len(into, self.control_plane(), inner);
            put_field(into, IDENTIFIER, text.as_bytes());
        }
    }
}

/// Returns the gRPC message. Protobuf allows any order of fields, so the private ones come first.
#[must_use]
pub fn encode(answer: ResponseFields<'_>, shared: Arc<[Bytes]>) -> Rope {
    let private = answer.length();
    let length = private + shared.iter().map(Bytes::len).sum::<usize>();
    let mut head = Vec::with_capacity(PREFIX_LEN + private);
    put_prefix(&mut head, length);
    answer.put(&mut head);
    Rope::new(Bytes::from(head), shared)
}

/// Returns the gRPC message, compressed with gzip. `None` if its private fields are too long.
#[must_use]
pub fn encode_gzip(answer: ResponseFields<'_>, shared: &Deflated) -> Option<Rope> {
    let mut private = Vec::with_capacity(answer.length());
    answer.put(&mut private);
    let (beginning, shared) = shared.after(&private)?;
    let length = beginning.len() + shared.iter().map(Bytes::len).sum::<usize>();
    let mut head = Vec::with_capacity(PREFIX_LEN + beginning.len());
    put_flagged(&mut head, COMPRESSED, length);
    head.extend(beginning);
    Some(Rope::new(Bytes::from(head), shared))
}

/// Returns any small message with its gRPC prefix.
#[must_use]
pub fn message(encoded: &[u8]) -> Bytes {
    message_before(encoded, 0)
}

/// Returns the beginning of a message with its gRPC prefix; so many bytes `follow`.
#[must_use]
pub fn message_before(encoded: &[u8], follow: usize) -> Bytes {
    let mut bytes = BytesMut::with_capacity(PREFIX_LEN + encoded.len());
    put_prefix(&mut bytes, encoded.len() + follow);
    bytes.put_slice(encoded);
    bytes.freeze()
}

/// Returns a large message of these parts with its gRPC prefix.
#[must_use]
pub fn message_of(parts: Vec<Bytes>) -> Rope {
    let mut prefix = BytesMut::with_capacity(PREFIX_LEN);
    put_prefix(&mut prefix, parts.iter().map(Bytes::len).sum());
    Rope::new(prefix.freeze(), parts.into())
}

fn put_prefix(into: &mut impl BufMut, length: usize) {
    put_flagged(into, 0, length);
}

fn put_flagged(into: &mut impl BufMut, flag: u8, length: usize) {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    into.put_slice(&[flag, a, b, c, d]);
}

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use prost::Message;

    use super::*;
    use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse, Resource};
    use crate::proto::google::protobuf::Any;

    const ANSWER: ResponseFields<'_> = ResponseFields {
        dialect: Dialect::Sotw,
        version: b"v",
        type_url: "type.googleapis.com/t",
        nonce: b"00000000-1",
        identifier: Some("distributary/a"),
    };

    fn read<M: Message + Default>(mut rope: Rope) -> M {
        assert_eq!(rope.get_u8(), 0);
        assert_eq!(rope.get_u32() as usize, rope.remaining());
        M::decode(rope).unwrap()
    }

    /// A-14, and the field numbers of both responses.
    #[test]
    fn both_messages_read_back() {
        let any = Any {
            type_url: "t".to_owned(),
            value: Bytes::from(vec![7; 20_000]),
        };
        let shared = DiscoveryResponse {
            resources: vec![any],
            ..Default::default()
        };
        let sotw: DiscoveryResponse = read(encode(ANSWER, Arc::from([Bytes::from(shared.encode_to_vec())])));
        assert_eq!((sotw.version_info.as_str(), sotw.nonce.as_str()), ("v", "00000000-1"));
        assert_eq!(sotw.type_url, "type.googleapis.com/t");
        assert_eq!(sotw.control_plane.unwrap().identifier, "distributary/a");
        assert_eq!(sotw.resources, shared.resources);

        let resource = Resource {
            name: "a".to_owned(),
            ..Default::default()
        };
        let removed_resources = vec!["b".to_owned()];
        let shared = DeltaDiscoveryResponse {
            resources: vec![resource],
            removed_resources,
            ..Default::default()
        };
        let pieces: Arc<[Bytes]> = Arc::from([Bytes::from(shared.encode_to_vec())]);
        let delta = ResponseFields {
            dialect: Dialect::Delta,
            ..ANSWER
        };
        let read_delta: DeltaDiscoveryResponse = read(encode(delta, pieces.clone()));
        assert_eq!(read_delta.system_version_info, "v");
        assert_eq!(read_delta.control_plane.unwrap().identifier, "distributary/a");
        assert_eq!(
            (read_delta.resources, read_delta.removed_resources),
            (shared.resources, shared.removed_resources)
        );
        let v2: DeltaDiscoveryResponse = read(encode(
            ResponseFields {
                identifier: None,
                ..delta
            },
            pieces,
        ));
        assert_eq!(v2.control_plane, None);
    }
}
