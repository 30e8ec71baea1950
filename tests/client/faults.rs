//! What a server may get wrong, and what must not come of it.

use bytes::Bytes;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use distributary::protocol::{read_delta, read_sotw};
use distributary::xds::{Dialect, TypeUrl};
use prost::Message;

use crate::{CDS, EDS, RDS, Upstream, delta, ms, refusal, resource, sotw};

/// A-05, E-13, E-02: a resource of another type is refused by name, and the good ones are used.
#[test]
fn the_good_ones_are_used() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
    let mut response = delta(EDS, "n1", &["a=1"], &[]);
    response.resources.push(resource(RDS, "b", "1"));
    upstream.hears(response);
    assert_eq!(upstream.named(EDS), "a=1");
    let text = refusal(&mut upstream);
    assert!(text.contains("resource \"b\""), "{text}");
    assert!(
        text.contains("RouteConfiguration") && text.contains("ClusterLoadAssignment"),
        "{text}"
    );
}

/// E-12, E-13: a name that is there twice: neither copy counts, the others do.
#[test]
fn a_name_twice() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a", "b"]);
        match dialect {
            Dialect::Delta => upstream.hears(delta(EDS, "n1", &["a=1", "b=1", "a=2"], &[])),
            Dialect::Sotw => upstream.hears_sotw(sotw(EDS, "1", "n1", &["a=1", "b=1", "a=2"])),
        }
        assert_eq!(upstream.named(EDS), "b=1");
        let text = refusal(&mut upstream);
        assert!(
            text.contains("resource \"a\" is in the response more than once"),
            "{text}"
        );
    }
}

/// C-19, E-13: a name in resources and removed at once is refused; neither counts.
#[test]
fn a_name_in_resources_and_removed() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
    upstream.hears(delta(EDS, "n1", &["a=1"], &[]));
    upstream.hears(delta(EDS, "n2", &["a=2", "b=1"], &["a"]));
    assert_eq!(upstream.named(EDS), "a=1 b=1");
    let text = refusal(&mut upstream);
    assert!(
        text.contains("resource \"a\" is both in resources and in removed_resources"),
        "{text}"
    );
}

/// A-09, E-13, K-16: with a nameless entry a full state deletes nothing and completes nothing: the entry may be any of them.
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
    let text = refusal(&mut upstream);
    assert!(text.contains("entry 1 of resources has no name"), "{text}");
    upstream.hears_sotw(sotw(CDS, "2", "n2", &["a=1", "b=1"]));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");
    upstream.sent();
    response.nonce = "n3".to_owned();
    upstream.hears_sotw(response);
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");
    assert_eq!(upstream.sent(), ["cds [] v2 nack n3"]);
}

/// what is inside a body is nobody's business here, not even garbage.
#[test]
fn a_body_is_not_judged() {
    let mut upstream = Upstream::streaming(Dialect::Delta, CDS, &["*"]);
    let mut response = delta(CDS, "n1", &["a=1"], &[]);
    response.resources[0].resource.as_mut().unwrap().value = Bytes::from_static(b"\xff\xff=garbage");
    upstream.hears(response);
    assert_eq!(upstream.wildcard(CDS), "a=garbage");
    assert_eq!(upstream.sent(), ["cds ack n1"]);
}

/// E-10: an entry without a body that confirms nothing is refused.
#[test]
fn no_body_and_no_heartbeat() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    let mut response = delta(EDS, "n1", &["a=1"], &[]);
    response.resources[0].resource = None;
    upstream.hears(response);
    assert_eq!(upstream.named(EDS), "");
    let text = refusal(&mut upstream);
    assert!(text.contains("resource \"a\" has no body"), "{text}");
}

/// E-22: a server that answers a refusal with the same again is refused once a second, with its newest nonce.
#[test]
fn equal_refusals_are_slow() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a"]);
        let mut refused = Vec::new();
        for round in 0..3000 {
            let nonce = format!("n{round}");
            match dialect {
                Dialect::Delta => upstream.hears(delta(EDS, &nonce, &["a=1", "a=2"], &[])),
                Dialect::Sotw => upstream.hears_sotw(sotw(EDS, "1", &nonce, &["a=1", "a=2"])),
            }
            refused.extend(upstream.sent());
            upstream.pass(ms(1));
        }
        assert_eq!(refused.len(), 3, "{refused:?}");
        assert!(
            refused[0].ends_with("nack n0") && refused[1].ends_with("nack n1000"),
            "{refused:?}"
        );
        // What is different is refused at once.
        match dialect {
            Dialect::Delta => upstream.hears(delta(EDS, "m", &["a=1", "b=1", "b=2"], &[])),
            Dialect::Sotw => upstream.hears_sotw(sotw(EDS, "2", "m", &["a=1", "b=1", "b=2"])),
        }
        assert!(upstream.sent().last().unwrap().ends_with("nack m"));
        assert_eq!(upstream.named(EDS), "a=1");
    }
}

/// E-03, B-05: a change of names never turns a refusal into an acceptance: the refusal goes first and alone.
#[test]
fn a_refusal_goes_before_a_change() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    upstream.hears_sotw(sotw(EDS, "1", "n1", &["a=1", "a=2"]));
    upstream.sent();
    upstream.hears_sotw(sotw(EDS, "1", "n2", &["a=1", "a=2"]));
    upstream.want(EDS, "b");
    assert_eq!(upstream.sent(), ["eds [a] v nack n2", "eds [a b] v ack n2"]);
}

/// B-03: empty nonces and repeated ones: the content counts, and answers do not run in circles.
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

    // A SotW server that takes every request without a nonce for the first one answers it, for ever.
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    let mut answers = 0;
    for _ in 0..3000 {
        upstream.hears_sotw(sotw(EDS, "1", "", &["a=1"]));
        answers += upstream.sent().len();
        upstream.pass(ms(1));
    }
    assert_eq!(answers, 3);
}

/// E-13: one entry that cannot be read does not spoil the others, and the refusal has the response's nonce.
#[test]
fn garbage_in_one_entry() {
    let mut bytes = delta(EDS, "n1", &["a=1"], &[]).encode_to_vec();
    // An entry of one field that is longer than the entry.
    bytes.extend([0x12, 0x02, 0x1a, 0x7f]);
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears_bytes(Bytes::from(bytes));
    assert_eq!(upstream.named(EDS), "a=1");
    let text = refusal(&mut upstream);
    assert!(text.contains("entry 1 of resources is empty or not readable"), "{text}");

    let mut bytes = sotw(EDS, "1", "n1", &["a=1"]).encode_to_vec();
    bytes.extend([0x12, 0x02, 0x0a, 0x7f]);
    let response = read_sotw(Bytes::from(bytes)).unwrap();
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    upstream.hears_sotw(response);
    assert_eq!(upstream.named(EDS), "a=1");
    let text = refusal(&mut upstream);
    assert!(
        text.contains("entry 1 of resources has no type or is not readable"),
        "{text}"
    );
}

/// A message that is cut, at whatever byte, is refused by its nonce or not readable at all; it never counts as whole.
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
    assert!(read_delta(Bytes::from_static(b"GET / HTTP/1.1\r\n")).is_err());
    assert!(read_sotw(Bytes::from_static(b"\xff\xff\xff\xff")).is_err());
}

/// E-13: a removed name that is no text is refused with the response's nonce, and what stands beside it counts.
#[test]
fn garbage_beside_the_entries() {
    let mut bytes = delta(EDS, "n1", &["a=1"], &[]).encode_to_vec();
    bytes.extend([0x32, 0x01, 0xff]);
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears_bytes(Bytes::from(bytes));
    assert_eq!(upstream.named(EDS), "a=1");
    assert_eq!(upstream.sent(), ["eds nack n1"]);
}

/// Random bytes never do more than be refused.
#[test]
fn noise() {
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut bytes = sotw(EDS, "1", "n1", &["a=1", "b=1"]).encode_to_vec();
        for _ in 0..3 {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(dice >> 33).unwrap() % bytes.len();
            bytes[at] = u8::try_from(dice >> 56).unwrap();
        }
        let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a", "b"]);
        if let Ok(response) = read_sotw(Bytes::from(bytes)) {
            let ours = TypeUrl::new(&response.type_url) == TypeUrl::new(EDS);
            upstream.hears_sotw(response);
            assert_eq!(upstream.sent().len(), usize::from(ours));
        }
    }
}

/// E-02: a refusal stays short, however much is wrong and however long the names are.
#[test]
fn a_refusal_stays_short() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    let long = "x".repeat(100_000);
    let response = DiscoveryResponse {
        type_url: EDS.to_owned(),
        nonce: "n1".to_owned(),
        resources: (0..1000)
            .map(|number| {
                crate::wrapped(&Resource {
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
