// SPDX-License-Identifier: Apache-2.0
//! The faults of servers, and what they must not cause.

use bytes::Bytes;
use prost::Message;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse, Resource};
use proto::google::protobuf::Any;
use xds::Dialect;

use crate::{CDS, EDS, RDS, Upstream, cut, delta, ms, refusal, resource, sotw, wrapped};

/// A-05, E-13, E-02: a resource of another type is rejected by name, and the sound ones are used.
#[test]
fn the_good_ones_are_used() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
    upstream.hears_with(EDS, ("", "n1"), &["a=1"], [resource(RDS, "b", "1")]);
    assert_eq!(upstream.named(EDS), "a=1");
    let text = refusal(&mut upstream);
    let all = ["resource \"b\"", "RouteConfiguration", "ClusterLoadAssignment"];
    assert!(all.iter().all(|part| text.contains(part)), "{text}");
}

/// E-12, E-13: of a name that occurs twice neither copy counts; the other names do.
#[test]
fn a_name_twice() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a", "b"]);
        upstream.hears_puts(EDS, "1", "n1", &["a=1", "b=1", "a=2"]);
        assert_eq!(upstream.named(EDS), "b=1");
        upstream.refuses("resource \"a\" is in the response more than once");
    }
}

/// C-19, E-13: a response with a name both in resources and in removed ones is rejected; neither counts.
#[test]
fn a_name_in_resources_and_removed() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
    upstream.hears(delta(EDS, "n1", &["a=1"], &[]));
    upstream.hears(delta(EDS, "n2", &["a=2", "b=1"], &["a"]));
    assert_eq!(upstream.named(EDS), "a=1 b=1");
    upstream.refuses("resource \"a\" is both in resources and in removed_resources");
}

/// A-09, E-13, K-16: a full state with a nameless entry removes nothing and completes nothing: the entry may be any of the
/// missing names.
#[test]
fn a_nameless_entry_deletes_nothing() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["*"]);
    let mut response = sotw(CDS, "1", "n1", &["a=1"]);
    response.resources.push(Any {
        type_url: CDS.to_owned(),
        value: Bytes::from_static(b"\x12\x01x"),
    });
    upstream.hears_sotw(response.clone());
    assert_eq!(upstream.wildcard(CDS), "a=1");
    upstream.refuses("entry 1 of resources has no name");
    upstream.hears_sotw(sotw(CDS, "2", "n2", &["a=1", "b=1"]));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");
    upstream.sent();
    response.nonce = "n3".to_owned();
    upstream.hears_sotw(response);
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");
    assert_eq!(upstream.after(ms(100)).sent(), ["cds [] v2 nack n3"]);
}

/// the relay does not look inside a body, not even at garbage.
#[test]
fn a_body_is_not_judged() {
    let mut upstream = Upstream::streaming(Dialect::Delta, CDS, &["*"]);
    let mut response = delta(CDS, "n1", &["a=1"], &[]);
    response.resources[0].resource.as_mut().unwrap().value = Bytes::from_static(b"\xff\xff=garbage");
    upstream.hears(response);
    assert_eq!(upstream.wildcard(CDS), "a=garbage");
    assert_eq!(upstream.sent(), ["cds ack n1"]);
}

/// E-10: an entry without a body says of what is not held that it does not exist, and is no fault; it ends the wait at once.
#[test]
fn no_body_and_nothing_held() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a", "b"]);
        let mut none = resource(EDS, "a", "1");
        none.resource = None;
        upstream.hears_with(EDS, ("1", "n1"), &["b=1"], [none]);
        assert_eq!(upstream.named(EDS), "a:Said b=1", "{dialect:?}");
        assert_eq!(refusal(&mut upstream), "", "{dialect:?}");
        assert!(!upstream.client.lacks(), "{dialect:?}");
    }
}

/// E-10: an entry without a body and with another version than what is held is rejected: it neither confirms nor removes it.
#[test]
fn no_body_and_no_heartbeat() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(delta(EDS, "n1", &["a=1"], &[]));
    let mut response = delta(EDS, "n2", &["a=2"], &[]);
    response.resources[0].resource = None;
    upstream.hears(response);
    assert_eq!(upstream.named(EDS), "a=1");
    upstream.refuses("resource \"a\" has no body");
}

/// E-22: a server that at once sends again what was rejected, with a new version each time or the same one, is sent the rejection
/// after a pause that doubles from 100 ms to 5 s, with its newest nonce.
#[test]
fn equal_refusals_are_slow() {
    for (dialect, new_versions) in [(Dialect::Delta, true), (Dialect::Sotw, false), (Dialect::Sotw, true)] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a"]);
        let mut refused = Vec::new();
        let version = |round: u32| if new_versions { round } else { 0 };
        for round in 0..17_000 {
            let nonce = format!("n{round}");
            let (one, other) = (format!("a={}", version(round)), format!("a={}", version(round) + 1));
            upstream.hears_puts(EDS, &format!("v{}", version(round)), &nonce, &[&one, &other]);
            for line in upstream.sent() {
                let nonce = line
                    .rsplit("nack n")
                    .next()
                    .and_then(|number| number.parse::<u32>().ok());
                assert_eq!(nonce, Some(round), "{line}");
                refused.push(round);
            }
            upstream.pass(ms(1));
        }
        assert_eq!(refused, [0, 100, 300, 700, 1500, 3100, 6300, 11_300, 16_300]);
        // Different content is rejected at once, and a fault that did not occur for a while counts as new.
        let sends = |upstream: &mut Upstream, nonce: &str, puts: &[&str]| upstream.hears_puts(EDS, nonce, nonce, puts);
        sends(&mut upstream, "m", &["a=1", "b=1", "b=2"]);
        assert!(upstream.sent().last().unwrap().ends_with("nack m"));
        assert_eq!(upstream.named(EDS), "a=1");
        upstream.pass(ms(15_000));
        upstream.sent();
        upstream.pass(ms(15_000));
        for (nonce, pause) in [("o", 0), ("p", 100)] {
            sends(&mut upstream, nonce, &["a=1", "a=2"]);
            upstream.pass(ms(pause));
            assert!(upstream.sent().last().unwrap().ends_with(&format!("nack {nonce}")));
        }
    }
}

/// E-02, E-22: each of several faults has its own pause, a rejection that waits does not hold up an ACK, and none is lost.
#[test]
fn refusals_wait_for_themselves_alone() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b", "c"]);
    for round in 0..4 {
        upstream.accepts(delta(EDS, &format!("a{round}"), &["a=1", "a=2"], &[]));
        upstream.pass(ms(1000));
    }
    upstream.hears(delta(EDS, "a4", &["a=1", "a=2"], &[]));
    upstream.hears(delta(EDS, "b0", &["b=1", "b=2"], &[]));
    upstream.hears(delta(EDS, "c", &["c=1"], &[]));
    assert_eq!(upstream.sent(), ["eds nack a4", "eds nack b0", "eds ack c"]);
    upstream.hears(delta(EDS, "a5", &["a=1", "a=2"], &[]));
    upstream.hears(delta(EDS, "b1", &["b=1", "b=2"], &[]));
    upstream.hears(delta(EDS, "both", &["b=1", "b=2", "c=1", "c=2"], &[]));
    upstream.hears(delta(EDS, "c2", &["c=2"], &[]));
    // The response with a new fault is rejected at once; the rejection also names the older fault of `b`.
    assert_eq!(upstream.sent(), ["eds nack both", "eds ack c2"]);
    assert_eq!(upstream.after(ms(800)).sent(), [""; 0]);
    assert_eq!(upstream.after(ms(800)).sent(), ["eds nack a5"]);
}

/// E-02, E-22: a server that would not repeat a removal unless it is told that its response was rejected, is told so for each such
/// response, together and after the pause.
#[test]
fn removals_that_did_not_count() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b", "c"]);
    upstream.hears(delta(EDS, "n1", &["a=1", "b=1", "c=1"], &[]));
    upstream.hears(delta(EDS, "n2", &["a=2", "a=3"], &[]));
    assert_eq!(upstream.sent(), ["eds ack n1", "eds nack n2"]);
    upstream.hears(delta(EDS, "n3", &["a=2", "a=3"], &["b"]));
    upstream.hears(delta(EDS, "n4", &["a=2", "a=3"], &[]));
    upstream.hears(delta(EDS, "n5", &["a=2", "a=3"], &["c"]));
    upstream.hears(delta(EDS, "n6", &["a=2", "a=3"], &[]));
    assert_eq!(upstream.named(EDS), "a=1 b=1 c=1");
    assert_eq!(upstream.sent(), [""; 0]);
    upstream.pass(ms(100));
    assert_eq!(upstream.sent(), ["eds nack n3", "eds nack n5", "eds nack n6"]);
}

/// E-22: a server that sends its fault under a new name each time gains only a moment.
#[test]
fn ever_new_faults_are_slow() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a"]);
        let mut refused = 0;
        for round in 0..10_000 {
            let (nonce, one) = (format!("n{round}"), format!("a{round}=1"));
            upstream.hears_puts(EDS, &nonce, &nonce, &[&one, &one]);
            refused += upstream.sent().len();
            upstream.pass(ms(1));
        }
        assert!(refused < 1500, "{refused} in ten seconds");
    }
}

/// E-03, E-22, B-05: a change of names does not wait for the pause of a rejection and never turns it into an acknowledgement: it
/// goes at once and carries the rejection. Servers that do not look at the names of a rejection get them once more.
#[test]
fn a_change_carries_the_refusal() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    upstream.hears_sotw(sotw(EDS, "1", "n1", &["a=1", "a=2"]));
    assert_eq!(upstream.sent(), ["eds [a] v nack n1"]);
    upstream.hears_sotw(sotw(EDS, "2", "n2", &["a=1", "a=2"]));
    assert_eq!(upstream.sent(), [""; 0]);
    upstream.want(EDS, "b");
    assert_eq!(upstream.sent(), ["eds [a b] v nack n2", "eds [a b] v ack n2"]);
    // In delta a change acknowledges and rejects nothing, and never shares a request with what does (E-16).
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(delta(EDS, "n1", &["a=1", "a=2"], &[]));
    assert_eq!(upstream.sent(), ["eds nack n1"]);
    upstream.hears(delta(EDS, "n2", &["a=2", "a=3"], &[]));
    upstream.want(EDS, "b");
    assert_eq!(upstream.sent(), ["eds +b"]);
    assert_eq!(upstream.after(ms(100)).sent(), ["eds nack n2"]);
}

/// B-03: for empty and repeated nonces the content counts, and the acknowledgements do not cause endless responses.
#[test]
fn nonces_that_are_none() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(delta(EDS, "", &["a=1"], &[]));
    assert_eq!(upstream.named(EDS), "a=1");
    assert_eq!(upstream.sent(), [""; 0]);
    for content in ["a=2", "a=3"] {
        upstream.hears(delta(EDS, "same", &[content], &[]));
    }
    assert_eq!(upstream.named(EDS), "a=3");
    assert_eq!(upstream.sent(), ["eds ack same"]);

    // A SotW server that takes every request without a nonce for a first request would answer it forever.
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    let mut answers = 0;
    for _ in 0..3000 {
        upstream.hears_sotw(sotw(EDS, "1", "", &["a=1"]));
        answers += upstream.sent().len();
        upstream.pass(ms(1));
    }
    assert_eq!(answers, 3);
}

/// E-13: one entry that cannot be read does not spoil the others, and the rejection has the response's nonce.
#[test]
fn garbage_in_one_entry() {
    let mut bytes = delta(EDS, "n1", &["a=1"], &[]).encode_to_vec();
    // An entry of one field that is longer than the entry.
    bytes.extend([0x12, 0x02, 0x1a, 0x7f]);
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears_bytes(Bytes::from(bytes));
    assert_eq!(upstream.named(EDS), "a=1");
    upstream.refuses("entry 1 of resources is empty or not readable");

    let mut bytes = sotw(EDS, "1", "n1", &["a=1"]).encode_to_vec();
    bytes.extend([0x12, 0x02, 0x0a, 0x7f]);
    let response = cut(bytes).finish(Dialect::Sotw).unwrap();
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    upstream.hears_sotw(response);
    assert_eq!(upstream.named(EDS), "a=1");
    upstream.refuses("entry 1 of resources has no type or is not readable");
}

/// A message that is cut at any byte is rejected by its nonce, or is not readable at all; it never counts as whole.
#[test]
fn a_message_that_is_cut() {
    let mut response = delta(EDS, "", &["a=1", "b=1"], &["c"]);
    response.type_url.clear();
    let mut whole = DeltaDiscoveryResponse {
        type_url: EDS.to_owned(),
        nonce: "n1".to_owned(),
        ..DeltaDiscoveryResponse::default()
    }
    .encode_to_vec();
    let head = whole.len();
    whole.extend(response.encode_to_vec());
    for end in head + 1..whole.len() {
        let bytes = Bytes::copy_from_slice(&whole[..end]);
        if DeltaDiscoveryResponse::decode(bytes.clone()).is_ok() {
            continue;
        }
        let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b", "c"]);
        upstream.hears_bytes(bytes);
        assert_eq!(upstream.sent(), ["eds nack n1"], "cut at {end}");
    }
    assert!(cut(b"GET / HTTP/1.1\r\n").finish(Dialect::Delta).is_err());
    assert!(cut(b"\xff\xff\xff\xff").finish(Dialect::Sotw).is_err());
}

/// E-13: a response with a removed name that is no text is rejected with its nonce, and its other entries count.
#[test]
fn garbage_beside_the_entries() {
    let mut bytes = delta(EDS, "n1", &["a=1"], &[]).encode_to_vec();
    bytes.extend([0x32, 0x01, 0xff]);
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears_bytes(Bytes::from(bytes));
    assert_eq!(upstream.named(EDS), "a=1");
    assert_eq!(upstream.sent(), ["eds nack n1"]);
}

/// E-02: a rejection stays short, however much is wrong and however long the names are.
#[test]
fn a_refusal_stays_short() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    let long = "x".repeat(100_000);
    let response = DiscoveryResponse {
        type_url: EDS.to_owned(),
        nonce: "n1".to_owned(),
        resources: (0..1000)
            .map(|number| {
                wrapped(&Resource {
                    name: format!("{number}{long}"),
                    resource: Some(Any {
                        type_url: long.clone(),
                        value: Bytes::new(),
                    }),
                    ..Resource::default()
                })
            })
            .collect(),
        ..DiscoveryResponse::default()
    };
    upstream.hears_sotw(response);
    let text = refusal(&mut upstream);
    assert!(text.len() < 4096 && text.contains("and 992 more"), "{}", text.len());
}
