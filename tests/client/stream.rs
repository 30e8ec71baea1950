// SPDX-License-Identifier: Apache-2.0
//! What is kept from one stream to the next.

use std::time::Duration;

use prost::Message;
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use protocol::{Backoff, Request, read_node};
use xds::Dialect;

use crate::rejections::rejects;
use crate::{CDS, EDS, LDS, RDS, Upstream, delta, ms, relay, secs, sotw};

/// E-01, K-25, K-04: each request has the node, acknowledgements, rejections and late rejections too, with the relay's id and what the
/// relay can read. It is encoded once.
#[test]
fn each_request_has_the_node() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, CDS, &["*"]);
        upstream.want(EDS, "a");
        let mut fields = upstream.nodes();
        let hears = |upstream: &mut Upstream, nonce: &str, puts: &[&str]| upstream.hears_puts(CDS, nonce, nonce, puts);
        hears(&mut upstream, "1", &["a=1"]);
        fields.extend(upstream.nodes());
        hears(&mut upstream, "2", &["a=2", "a=3"]);
        fields.extend(upstream.nodes());
        hears(&mut upstream, "3", &["a=4"]);
        fields.extend(upstream.nodes());
        let rejection = rejects(&upstream, CDS, "a", 1);
        upstream.hears_rejections(CDS, &[rejection]);
        fields.extend(upstream.nodes());
        upstream.reconnect();
        fields.extend(upstream.nodes());
        assert_eq!(fields.len(), 7, "{dialect:?}: {fields:?}");
        let first = fields[0].clone().unwrap();
        let shared = |field: &Option<bytes::Bytes>| field.as_ref().map(|field| field.as_ptr()) == Some(first.as_ptr());
        assert!(fields.iter().all(shared), "{dialect:?}: {fields:?}");
        let node = node_of(dialect, &first);
        let read = read_node(&node);
        assert_eq!(read.relays(), ["relay-1"]);
        assert_eq!((&*read.id, &*read.user_agent.name), ("n", "distributary"));
        assert!(read.features.wrapper && read.features.ttl && !read.features.endpoint_collections);
    }
}

/// E-01: another relay is sent the node once on each stream, as soon as it is known to be one.
#[test]
fn a_relay_remembers_the_node() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, CDS, &["*"]);
        match dialect {
            Dialect::Delta => upstream.hears(DeltaDiscoveryResponse {
                control_plane: relay(),
                ..delta(CDS, "1", &["a=1"], &[])
            }),
            Dialect::Sotw => upstream.hears_sotw(DiscoveryResponse {
                control_plane: relay(),
                ..sotw(CDS, "1", "1", &["a=1"])
            }),
        }
        upstream.want(EDS, "a");
        assert_eq!(upstream.nodes(), [None, None], "{dialect:?}");
        upstream.client.handle_relays(vec!["edge".to_owned()]);
        upstream.want(EDS, "b");
        upstream.want(EDS, "c");
        upstream.want(LDS, "*");
        let nodes = upstream.nodes();
        assert_eq!(nodes.len(), 2, "{dialect:?}");
        assert_eq!(
            read_node(&node_of(dialect, nodes[0].as_ref().unwrap())).relays(),
            ["edge", "relay-1"]
        );
        assert_eq!(nodes[1], None, "{dialect:?}");
    }
}

/// The node in a request's field.
fn node_of(dialect: Dialect, field: &[u8]) -> Node {
    match dialect {
        Dialect::Sotw => DiscoveryRequest::decode(field).unwrap().node.unwrap(),
        Dialect::Delta => DeltaDiscoveryRequest::decode(field).unwrap().node.unwrap(),
    }
}

/// K-25, C-04, E-01: a relay that comes later is declared on the same stream at once, in a request with nothing else; in SotW, which has
/// no such request, the last one is sent once more, with the nonce of what was accepted, and never while something is rejected.
#[test]
fn a_relay_that_comes_later() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, CDS, &["*"]);
        let comes = |upstream: &mut Upstream, relay: &str| {
            upstream.client.handle_relays(vec![relay.to_owned()]);
            let request = upstream.client.poll_request(upstream.now)?;
            let field = upstream.client.take_node().unwrap();
            assert_eq!(read_node(&node_of(dialect, &field)).relays(), [relay, "relay-1"]);
            assert_eq!(upstream.client.poll_request(upstream.now), None);
            Some(request)
        };
        match comes(&mut upstream, "edge").unwrap() {
            Request::Delta(request) => {
                let names = (&request.resource_names_subscribe, &request.resource_names_unsubscribe);
                assert!(names.0.is_empty() && names.1.is_empty());
                assert_eq!((request.type_url.as_str(), request.response_nonce.as_str()), (CDS, ""));
                assert!(request.initial_resource_versions.is_empty());
            }
            Request::Sotw(request) => {
                let first = DiscoveryRequest {
                    type_url: CDS.to_owned(),
                    ..Default::default()
                };
                assert_eq!(request, first);
                upstream.hears_sotw(sotw(CDS, "1", "n1", &["a=1"]));
                assert_eq!(upstream.sent(), ["cds [] v1 ack n1"]);
                let Some(Request::Sotw(again)) = comes(&mut upstream, "zone") else {
                    unreachable!("the last request is sent once more")
                };
                assert_eq!(again.version_info, "1");
                assert_eq!(again.response_nonce, "n1");
                assert_eq!(again.error_detail, None);
                upstream.hears_sotw(sotw(CDS, "2", "n2", &["a=2", "a=3"]));
                assert_eq!(upstream.sent(), ["cds [] v1 nack n2"]);
                assert_eq!(comes(&mut upstream, "far"), None);
            }
        }
    }
}

/// E-04, G-19: the stream is lost and nothing changes; the next one begins with the names and the versions held. One of these is wrong
/// on purpose: a server that is there has something to say.
#[test]
fn a_lost_stream_loses_nothing() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b", "c"]);
    upstream.accepts(delta(EDS, "n1", &["a=1", "b=2"], &["c"]));
    assert!(upstream.answered(EDS));
    upstream.disconnect();
    assert_eq!(upstream.named(EDS), "a=1 b=2 c:Said");
    assert!(!upstream.answered(EDS));
    upstream.connect();
    assert_eq!(upstream.sent(), ["eds +a +b +c a@unknown b@2"]);
    upstream.hears(delta(EDS, "m1", &["b=3"], &["a"]));
    assert_eq!(upstream.named(EDS), "a:Said b=3 c:Said");
    assert!(upstream.answered(EDS));
    assert_eq!(upstream.sent(), ["eds ack m1"]);
}

/// E-04, E-25: an acknowledgement that was due on the lost stream is not sent on the next; a SotW stream begins without a nonce. What is
/// held is asked for with a version that no server gave: a server has something to say, also one whose versions start anew.
#[test]
fn nonces_and_versions_end_with_their_stream() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    upstream.hears_sotw(sotw(EDS, "1", "n1", &["a=1"]));
    upstream.reconnect();
    assert_eq!(upstream.sent(), ["eds [a] vunknown"]);
    upstream.want(EDS, "b");
    assert_eq!(
        upstream.sent(),
        ["eds [a b] vunknown"],
        "nothing was accepted on this stream yet"
    );
    upstream.hears_sotw(sotw(EDS, "1", "n1", &["a=2", "b=2"]));
    assert_eq!(upstream.named(EDS), "a=2 b=2");
    assert_eq!(upstream.sent(), ["eds [a b] v1 ack n1"]);
}

/// E-25: what is rejected first on a stream is rejected with the version that no server gave; before anything was held, without any.
#[test]
fn a_rejection_has_no_version_of_an_earlier_stream() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    upstream.hears_sotw(sotw(EDS, "0", "n0", &["a=2", "a=3"]));
    assert_eq!(upstream.sent(), ["eds [a] v nack n0"]);
    upstream.hears_sotw(sotw(EDS, "1", "n1", &["a=1"]));
    upstream.reconnect();
    upstream.sent();
    upstream.hears_sotw(sotw(EDS, "2", "n1", &["a=2", "a=3"]));
    assert_eq!(upstream.sent(), ["eds [a] vunknown nack n1"]);
}

/// E-25: a type that stays silent for ten seconds after the last answer of any type is asked for once more, without a version; without
/// any answer, after thirty. Views do so within five seconds. Never what is not held.
#[test]
fn a_silent_type_is_asked_for_once_more() {
    for answers in [true, false] {
        let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["*"]);
        upstream.want(EDS, "a");
        upstream.want(LDS, "*");
        upstream.sent();
        upstream.hears_sotw(sotw(CDS, "1", "n1", &["c=1"]));
        upstream.hears_sotw(sotw(EDS, "1", "n1", &["a=1"]));
        upstream.reconnect();
        assert_eq!(upstream.sent(), ["cds [] vunknown", "eds [a] vunknown", "lds [] v"]);
        if answers {
            upstream.pass(ms(4000));
            upstream.hears_sotw(sotw(CDS, "1", "n1", &["c=1"]));
            assert_eq!(upstream.sent(), ["cds [] v1 ack n1"]);
        }
        let quiet = if answers { 10_000 } else { 30_000 };
        assert_eq!(upstream.after(ms(quiet - 1)).sent(), [""; 0], "{answers}");
        upstream.pass(ms(5001));
        let cds = (!answers).then(|| "cds [] v".to_owned());
        let expected: Vec<String> = cds.into_iter().chain(["eds [a] v".to_owned()]).collect();
        assert_eq!(upstream.sent(), expected, "{answers}");
        assert_eq!(upstream.after(ms(120_000)).sent(), [""; 0], "{answers}: once");
        upstream.hears_sotw(sotw(EDS, "2", "n2", &["a=2"]));
        assert_eq!(upstream.sent(), ["eds [a] v2 ack n2"]);
    }
}

/// E-19: types of which nothing is wanted any more are not mentioned on the next stream.
#[test]
fn what_is_not_wanted_is_not_mentioned() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a"]);
        upstream.want(LDS, "*");
        upstream.want(RDS, "r");
        upstream.sent();
        upstream.unwant(RDS, "r");
        upstream.unwant(LDS, "*");
        upstream.reconnect();
        let sent = upstream.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert!(upstream.client.wanted());
        upstream.unwant(EDS, "a");
        assert!(!upstream.client.wanted());
    }
}

/// G-12, E-25: the other dialect has other versions, so none of these are sent; what is held stays and is only compared.
#[test]
fn the_other_dialect_begins_clean() {
    let mut upstream = Upstream::streaming(Dialect::Delta, CDS, &["*"]);
    upstream.accepts(delta(CDS, "n1", &["a=1", "b=1"], &[]));
    assert_eq!(upstream.after(ms(300)).wildcard(CDS), "a=1 b=1 complete");
    upstream.disconnect();
    upstream.client.handle_dialect(Dialect::Sotw);
    upstream.connect();
    assert_eq!(upstream.sent(), ["cds [] vunknown"]);
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");
    upstream.hears_sotw(sotw(CDS, "v", "n1", &["a=1", "c=1"]));
    assert_eq!(upstream.wildcard(CDS), "a=1 c=1 complete");
}

/// E-14, L-22c: the pause is 1 s, then 1.6 times as long each time, give or take a fifth, and at most what is configured; a
/// response resets it.
#[test]
fn waits_grow() {
    let mut backoff = Backoff::new(secs(30));
    let mut usual = 1.0;
    for _ in 0..20 {
        let wait = backoff.clone().handle_failure(0.5).as_secs_f64();
        assert!((wait - usual).abs() < 0.01, "{wait} is not {usual}");
        let least = backoff.clone().handle_failure(0.0).as_secs_f64();
        assert!((least - usual * 0.8).abs() < 0.01);
        let most = backoff.handle_failure(1.0).as_secs_f64();
        assert!((most - usual * 1.2).abs() < 0.01);
        usual = f64::min(usual * 1.6, 30.0);
    }
    backoff.handle_response();
    assert_eq!(backoff.handle_failure(0.5), secs(1));
}

/// E-15, L-22a: a server that answers once and closes, again and again, is asked at most once a second; one that closes after a
/// long time is asked again at once, but not by all views at the same instant (K-22).
#[test]
fn quick_closes_are_not_answered_quickly() {
    let mut backoff = Backoff::new(secs(30));
    for _ in 0..20 {
        assert!(backoff.handle_end(ms(5), 0.3) >= secs(1));
        assert!(backoff.handle_end(ms(5), 1.0) < secs(2));
    }
    let wait = backoff.handle_end(secs(1800), 0.5);
    assert!(wait > Duration::ZERO && wait < ms(300), "{wait:?}");
}

/// E-19: when nothing more is wanted on a stream, the server is not told, because the stream is closed soon; what is wanted
/// before that is asked for as usual.
#[test]
fn an_end_of_all_interest_is_not_said() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a", "b"]);
        upstream.unwant(EDS, "a");
        assert_eq!(upstream.sent().len(), 1, "{dialect:?}: something is left");
        upstream.unwant(EDS, "b");
        assert_eq!(upstream.sent().len(), 0, "{dialect:?}");
        upstream.want(CDS, "*");
        assert_eq!(
            upstream.sent().len(),
            2,
            "{dialect:?}: the one is asked for, the other given up"
        );
    }
}

/// E-14: whether a client waits for an answer that no server has given.
#[test]
fn what_is_lacking() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::new(dialect);
        assert!(!upstream.client.lacks());
        upstream.want(EDS, "a");
        upstream.want(CDS, "*");
        assert!(upstream.client.lacks());
        upstream.connect();
        upstream.sent();
        upstream.hears_puts(EDS, "1", "1", &["a=1"]);
        upstream.hears_puts(CDS, "1", "1", &["c=1"]);
        assert!(!upstream.client.lacks(), "{dialect:?}");
        upstream.want(EDS, "missing");
        upstream.sent();
        assert!(upstream.client.lacks(), "{dialect:?}");
        upstream.disconnect();
        assert!(upstream.client.lacks(), "{dialect:?}");
        upstream.connect();
        upstream.sent();
        upstream.pass(secs(16));
        assert!(!upstream.client.lacks(), "{dialect:?}: it does not exist");
        upstream.disconnect();
        assert!(!upstream.client.lacks(), "{dialect:?}: what is known stays known");
        upstream.want(EDS, "new");
        upstream.unwant(EDS, "new");
        assert!(!upstream.client.lacks(), "{dialect:?}");
    }
}

/// G-19, E-04, E-25: a type that moves to another stream of the same server takes its content with it, in delta its versions too, and
/// is asked for there; the stream that it left no longer knows it.
#[test]
fn a_type_moves() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut from = Upstream::streaming(dialect, EDS, &["a", "b"]);
        from.want(CDS, "*");
        from.sent();
        from.hears_puts(EDS, "1", "n1", &["a=1"]);
        from.sent();
        let (parted, changes) = from.client.part(&xds::TypeUrl::new(EDS)).unwrap();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].answered, Some(false));
        let mut to = Upstream::new(dialect);
        to.client.join(parted);
        assert!(to.client.wanted() && to.client.lacks());
        let told = to.client.handle_refused("no such type");
        assert_eq!(told[0].updates.len(), 1, "{dialect:?}: of what nothing is known");
        assert_eq!(to.client.handle_refused("no such type").len(), 0, "{dialect:?}: once");
        to.connect();
        let expected = match dialect {
            Dialect::Delta => "eds +a +b a@unknown",
            Dialect::Sotw => "eds [a b] vunknown",
        };
        assert_eq!(to.sent(), [expected]);
        // On the old stream responses for it are ignored, because it is not asked for there.
        from.hears_puts(EDS, "2", "n2", &["a=2"]);
        assert_eq!(from.sent(), [""; 0], "{dialect:?}");
        // And back, to a stream that is open.
        let (parted, _) = to.client.part(&xds::TypeUrl::new(EDS)).unwrap();
        assert!(!to.client.wanted());
        from.client.join(parted);
        assert_eq!(from.sent().len(), 1, "{dialect:?}");
    }
}
