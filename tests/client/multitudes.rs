// SPDX-License-Identifier: Apache-2.0
//! Responses of very many entries: their end is rejected, and nothing that is held is lost by that.

use bytes::Bytes;
use prost::Message as _;
use proto::google::protobuf::Any;
use protocol::{Cutter, FIELD_BYTES_MIN};
use xds::Dialect;

use crate::{CDS, EDS, Upstream, delta, refusal, sotw};

/// How many fields the limit admits here: the five of a small response, and some more.
const FIELDS: usize = 12;

/// A response of this dialect for this type: `first`, then so many empty entries, then `last`.
fn response(dialect: Dialect, type_url: &str, first: &str, empty: usize, last: &str) -> Vec<u8> {
    let (first, last) = match dialect {
        Dialect::Delta => (
            delta(type_url, "n2", &[first], &[]).encode_to_vec(),
            delta(type_url, "", &[last], &[]).encode_to_vec(),
        ),
        Dialect::Sotw => (
            sotw(type_url, "2", "n2", &[first]).encode_to_vec(),
            sotw(type_url, "", "", &[last]).encode_to_vec(),
        ),
    };
    [first, [0x12, 0].repeat(empty), last].concat()
}

impl Upstream {
    /// Reads a response under a limit for some small fields, in parts.
    fn hears_within_limit(&mut self, message: &[u8]) {
        let mut cutter = Cutter::new(message.len(), FIELDS * FIELD_BYTES_MIN);
        message.chunks(7).for_each(|part| cutter.push(part));
        let arrival = cutter.finish(self.client.dialect()).unwrap();
        let changes = self.client.handle_response(arrival, self.now);
        for change in &changes {
            self.cut = self.cut.with(change).0;
        }
    }
}

/// E-13: what comes before the limit counts, the end is rejected, and names in it keep what they had. What is not mentioned may
/// have been in it, so a full state removes nothing.
#[test]
fn the_end_of_a_multitude_is_rejected() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        for type_url in [EDS, CDS] {
            let target: &[&str] = if type_url == CDS { &["*"] } else { &["a", "b", "c"] };
            let mut upstream = Upstream::streaming(dialect, type_url, target);
            upstream.hears_puts(type_url, "1", "n1", &["a=1", "b=1", "c=1"]);
            upstream.sent();
            upstream.hears_within_limit(&response(dialect, type_url, "a=2", 1000, "b=2"));
            let held = if type_url == CDS {
                upstream.wildcard(CDS)
            } else {
                upstream.named(EDS)
            };
            assert!(held.starts_with("a=2 b=1 c=1"), "{dialect:?} {type_url}: {held}");
            let text = refusal(&mut upstream);
            assert!(text.contains("`limits.upstream_message`"), "{text}");
            // As many entries as the limit admits are judged.
            let judged = text.matches("entry ").count();
            assert!(judged < FIELDS, "{judged} of 1000 were read: {text}");
        }
    }
}

/// A response within the limit is taken whole.
#[test]
fn a_few_are_taken() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a", "b"]);
        upstream.hears_within_limit(&response(dialect, EDS, "a=2", 0, "b=2"));
        assert_eq!(upstream.named(EDS), "a=2 b=2");
        assert_eq!(refusal(&mut upstream), "");
    }
}

/// What stands beside the entries is bounded as well: many removed names, and one field of very many parts.
#[test]
fn multitudes_beside_the_entries() {
    let removed = [0x32, 1, b'a'].repeat(1000);
    let errors = {
        let parts = [0x1a, 0].repeat(40_000);
        let status = [vec![0x12, 0x80, 0xf1, 0x04], parts].concat();
        let length = u32::try_from(status.len()).unwrap();
        let mut field = vec![0x4a];
        prost::encoding::encode_varint(u64::from(length), &mut field);
        [field, status].concat()
    };
    for beside in [removed, errors] {
        let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
        upstream.accepts(delta(EDS, "n1", &["a=1", "b=1"], &[]));
        let message = [delta(EDS, "n2", &["b=2"], &[]).encode_to_vec(), beside].concat();
        upstream.hears_within_limit(&message);
        assert_eq!(upstream.named(EDS), "a=1 b=2");
        upstream.refuses("`limits.upstream_message`");
    }
}

/// One entry of very many parts is rejected by its name.
#[test]
fn an_entry_of_very_many_parts() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
    let mut response = delta(EDS, "n1", &["a=1", "b=1"], &[]);
    response.resources[0].aliases = vec!["x".to_owned(); 5000];
    upstream.hears_bytes(Bytes::from(response.encode_to_vec()));
    assert_eq!(upstream.named(EDS), "b=1");
    upstream.refuses("resource \"a\" has more than 4096 aliases");

    response.resources[0].aliases.clear();
    response.nonce = "n2".to_owned();
    let mut message = response.encode_to_vec();
    // Field 9 of an entry, its metadata, with very many entries of its own.
    let metadata = proto::envoy::service::discovery::v3::Resource {
        name: "a".to_owned(),
        resource: Some(Any::default()),
        ..Default::default()
    };
    let parts = [0x0a, 0].repeat(40_000);
    let mut entry = metadata.encode_to_vec();
    entry.push(0x4a);
    prost::encoding::encode_varint(parts.len() as u64, &mut entry);
    entry.extend(parts);
    message.push(0x12);
    prost::encoding::encode_varint(entry.len() as u64, &mut message);
    message.extend(entry);
    upstream.hears_bytes(Bytes::from(message));
    upstream.refuses("entry 2 of resources is empty or not readable");
}
