// SPDX-License-Identifier: Apache-2.0
//! The SotW dialect.

use xds::Dialect;

use crate::{CDS, EDS, LDS, RDS, Upstream, body, delta, ms, relay, resource, seconds, sotw};

/// E-02, E-03: acknowledgements carry the version, the nonce and all names; so does every later request.
#[test]
fn requests_say_everything() {
    let mut upstream = Upstream::new(Dialect::Sotw);
    upstream.want(EDS, "a");
    upstream.connect();
    assert_eq!(upstream.sent(), ["eds [a] v"]);
    upstream.hears_sotw(sotw(EDS, "1", "n1", &["a=1"]));
    assert_eq!(upstream.sent(), ["eds [a] v1 ack n1"]);
    upstream.want(EDS, "b");
    assert_eq!(upstream.sent(), ["eds [a b] v1 ack n1"]);
    // Several responses came before the transport took a request: the newest is acknowledged, for all of them (E-21).
    upstream.hears_sotw(sotw(EDS, "2", "n2", &["a=2"]));
    upstream.hears_sotw(sotw(EDS, "3", "n3", &["b=3"]));
    assert_eq!(upstream.sent(), ["eds [a b] v3 ack n3"]);
    assert_eq!(upstream.named(EDS), "a=2 b=3");
}

/// L-13, E-07, K-19: for a full-state type what is missing is gone; for other types it is not. A change in which the last one
/// goes counts too.
#[test]
fn full_state_versus_partial() {
    let mut upstream = Upstream::new(Dialect::Sotw);
    upstream.want(LDS, "*");
    upstream.want(RDS, "r1");
    upstream.want(RDS, "r2");
    upstream.connect();
    assert_eq!(upstream.sent(), ["lds [] v", "rds [r1 r2] v"]);
    upstream.hears_sotw(sotw(LDS, "1", "n1", &["l1=1", "l2=1"]));
    upstream.hears_sotw(sotw(RDS, "1", "n1", &["r1=1", "r2=1"]));
    assert_eq!(upstream.wildcard(LDS), "l1=1 l2=1 complete");
    upstream.hears_sotw(sotw(LDS, "2", "n2", &["l1=1"]));
    upstream.hears_sotw(sotw(RDS, "2", "n2", &["r1=1"]));
    assert_eq!(upstream.wildcard(LDS), "l1=1 complete");
    assert_eq!(upstream.named(RDS), "r1=1 r2=1");
    upstream.hears_sotw(sotw(LDS, "3", "n3", &[]));
    assert_eq!(upstream.wildcard(LDS), "complete");
}

/// E-02, E-25: versions that come again mean nothing: contents count. Each response is acknowledged once, with its own version.
#[test]
fn a_server_that_alternates_two_versions() {
    let mut upstream = Upstream::new(Dialect::Sotw);
    upstream.want(CDS, "*");
    upstream.connect();
    assert_eq!(upstream.sent(), ["cds [] v"]);
    for step in 1..=20 {
        let (version, nonce) = ((step % 2 + 1).to_string(), format!("n{step}"));
        let content = format!("a={}", step / 3);
        upstream.hears_sotw(sotw(CDS, &version, &nonce, &[&content]));
        assert_eq!(upstream.wildcard(CDS), format!("{content} complete"));
        assert_eq!(upstream.sent(), [format!("cds [] v{version} ack {nonce}")]);
    }
}

/// E-07: the first full state on a stream answers its first request, so a name that it lacks does not exist.
#[test]
fn what_the_first_full_state_lacks() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["a", "b"]);
    upstream.hears_sotw(sotw(CDS, "1", "n1", &["a=1"]));
    assert_eq!(upstream.named(CDS), "a=1 b:Said");
    upstream.hears_sotw(sotw(CDS, "2", "n2", &["b=1"]));
    assert_eq!(upstream.named(CDS), "a:Said b=1");

    // On the next stream as well.
    upstream.unwant(CDS, "a");
    upstream.want(CDS, "c");
    upstream.connect();
    upstream.sent();
    upstream.hears_sotw(sotw(CDS, "1", "n1", &["b=1"]));
    assert_eq!(upstream.named(CDS), "b=1 c:Said");
}

/// E-07: a full state may have been sent before a later request came; then it does not prove that a name is absent which was never
/// received, and the server has 15 s for it. So has another relay, which leaves out what it does not know (K-16), and who answers with
/// a part.
#[test]
fn what_a_full_state_may_lack() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["a", "gone"]);
    upstream.want(CDS, "b");
    upstream.unwant(CDS, "gone");
    upstream.sent();
    upstream.want(CDS, "gone");
    upstream.sent();
    upstream.hears_sotw(sotw(CDS, "1", "n1", &["a=1"]));
    assert!(!upstream.named(CDS).contains("b:"), "{}", upstream.named(CDS));
    upstream.pass(ms(15_000));
    assert!(upstream.named(CDS).contains("b:TimedOut"), "{}", upstream.named(CDS));

    for (type_url, from, nothing) in [(CDS, relay(), "a=1"), (EDS, None, "a=1"), (CDS, None, "a=1 b:Said")] {
        let mut upstream = Upstream::streaming(Dialect::Sotw, type_url, &["a", "b"]);
        let mut response = sotw(type_url, "1", "n1", &["a=1"]);
        response.control_plane = from;
        upstream.hears_sotw(response);
        assert_eq!(upstream.named(type_url), nothing);
    }
}

/// E-07, E-10: an entry that cannot be read, or is in doubt, may be any of the names.
#[test]
fn a_first_full_state_with_faults() {
    for faulty in [&["a=1", "b=1", "b=2"][..], &["a=1", "=2"]] {
        let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["a", "b"]);
        upstream.hears_sotw(sotw(CDS, "1", "n1", faulty));
        assert!(!upstream.named(CDS).contains("b:Said"), "{}", upstream.named(CDS));
    }
}

/// E-18, E-08: a server that withholds a type until all its names are asked for does not answer; the names count as missing after
/// their time, and exist again once it answers.
#[test]
fn a_server_that_withholds() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    assert_eq!(upstream.after(ms(15_000)).named(EDS), "a:TimedOut");
    upstream.hears_sotw(sotw(EDS, "1", "n1", &["a=1"]));
    assert_eq!(upstream.named(EDS), "a=1");
}

/// L-18, G-20: nothing is known before the first answer, however much time passes; an empty answer is an answer.
#[test]
fn nothing_is_known_before_the_first_answer() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["*"]);
    upstream.pass(ms(600_000));
    assert_eq!((upstream.news(), upstream.wildcard(CDS).as_str()), (0, ""));
    upstream.hears_sotw(sotw(CDS, "1", "n1", &[]));
    assert_eq!(upstream.wildcard(CDS), "complete");
    assert!(upstream.answered(CDS));
}

/// E-10, A-10: resources are unwrapped, and the wrapper's name counts before the body's.
#[test]
fn the_wrapper_names_its_resource() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["outer"]);
    let mut inner = resource(EDS, "inner", "1");
    inner.name = "outer".to_owned();
    upstream.hears_with(EDS, ("1", "n1"), &[], [inner]);
    assert_eq!(upstream.named(EDS), "outer=1");
    assert_eq!(upstream.sent(), ["eds [outer] v1 ack n1"]);
}

/// E-10, E-11, K-17: a wrapper without a body confirms what is held if the response's version is the accepted one; a response of
/// only such wrappers says nothing about the other resources, even of a full-state type.
#[test]
fn a_heartbeat_deletes_nothing() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["*"]);
    let mut beat = resource(CDS, "x", "of-its-own");
    beat.ttl = seconds(10);
    upstream.hears_with(CDS, ("1", "n1"), &["y=1"], [beat.clone()]);
    assert_eq!(upstream.wildcard(CDS), "x=of-its-own y=1 complete");
    upstream.pass(ms(8_000));
    beat.resource = None;
    upstream.hears_with(CDS, ("1", "n2"), &[], [beat]);
    assert_eq!(upstream.after(ms(9_999)).wildcard(CDS), "x=of-its-own y=1 complete");
    assert_eq!(upstream.after(ms(1)).wildcard(CDS), "y=1 complete");
}

/// E-10: with another version a wrapper without a body confirms nothing, and is rejected.
#[test]
fn a_heartbeat_of_another_version_is_refused() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["x"]);
    upstream.accepts_sotw(sotw(EDS, "1", "n1", &["x=1"]));
    let mut beat = resource(EDS, "x", "1");
    beat.resource = None;
    upstream.hears_with(EDS, ("2", "n2"), &[], [beat]);
    assert_eq!(upstream.sent(), ["eds [x] v1 nack n2"]);
    assert_eq!(upstream.named(EDS), "x=1");
}

/// E-19, E-15: a name that is dropped and wanted again before the server was told is first left out of one request.
#[test]
fn a_name_wanted_anew_is_missing_once() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a", "b"]);
    upstream.accepts_sotw(sotw(EDS, "1", "n1", &["a=1", "b=1"]));
    upstream.unwant(EDS, "a");
    upstream.want(EDS, "a");
    assert_eq!(upstream.sent(), ["eds [b] v1 ack n1", "eds [a b] v1 ack n1"]);
    upstream.unwant(EDS, "a");
    upstream.unwant(EDS, "b");
    assert_eq!(
        upstream.sent(),
        [""; 0],
        "a stream of which nothing is wanted is closed"
    );
}

/// K-16: a wildcard that is no longer wanted goes on in the background, and is there at once when it is wanted again; an empty
/// answer to an older request is never taken for the answer to the new one.
#[test]
fn a_wildcard_comes_back() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["*"]);
    upstream.want(EDS, "e");
    upstream.accepts_sotw(sotw(CDS, "1", "n1", &["a=1"]));
    upstream.unwant(CDS, "*");
    upstream.cut = upstream.cut.without_wildcard(&xds::TypeUrl::new(CDS));
    upstream.news();
    upstream.hears_sotw(sotw(CDS, "2", "n2", &["a=2", "b=2"]));
    assert_eq!(upstream.news(), 0);
    assert_eq!(upstream.sent(), ["cds [] v2 ack n2"]);
    upstream.want(CDS, "*");
    assert_eq!(upstream.wildcard(CDS), "a=2 b=2 complete");
    assert_eq!(upstream.sent(), [""; 0]);
}

/// both forms may occur in one response; the body's type must be the response's.
#[test]
fn wrapped_and_bare_side_by_side() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a", "b"]);
    upstream.hears_with(EDS, ("1", "n1"), &["a=1"], [resource(EDS, "b", "1")]);
    assert_eq!(upstream.named(EDS), "a=1 b=1");
    let mut response = sotw(EDS, "2", "n2", &["a=2"]);
    response.resources.push(body(CDS, "b", "2"));
    upstream.hears_sotw(response);
    assert_eq!(upstream.named(EDS), "a=2 b=1");
    assert_eq!(upstream.sent(), ["eds [a b] v1 nack n2"]);
}

/// the dialect belongs to the stream; a delta response is not valid on a SotW stream.
#[test]
fn the_types_of_another_dialect_share_nothing() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a"]);
    upstream.hears(delta(RDS, "n1", &["a=1"], &[]));
    assert_eq!(upstream.named(EDS), "");
}
