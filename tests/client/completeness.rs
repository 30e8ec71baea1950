//! When a wildcard is complete, and when what it does not mention is gone.

use distributary::xds::Dialect;

use crate::{CDS, Upstream, delta, ms, relay};

fn streaming() -> Upstream {
    Upstream::streaming(Dialect::Delta, CDS, &["*"])
}

/// G-20: nothing before the first answer; then quiet, from when our answer went out.
#[test]
fn quiet_completes() {
    let mut upstream = streaming();
    upstream.pass(ms(60_000));
    assert_eq!(upstream.wildcard(CDS), "");
    upstream.hears(delta(CDS, "n1", &["a=1"], &[]));
    upstream.pass(ms(100));
    assert_eq!(upstream.sent(), ["cds ack n1"]);
    upstream.pass(ms(249));
    assert_eq!(upstream.wildcard(CDS), "a=1");
    upstream.pass(ms(1));
    assert_eq!(upstream.wildcard(CDS), "a=1 complete");
}

/// An answer may come in several messages: each with new names makes the quiet begin anew; changes of known ones do not.
#[test]
fn new_names_begin_the_quiet_anew() {
    let mut upstream = streaming();
    for (nonce, put) in [("n1", "a=1"), ("n2", "b=1"), ("n3", "c=1")] {
        upstream.hears(delta(CDS, nonce, &[put], &[]));
        upstream.sent();
        upstream.pass(ms(200));
    }
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 c=1");
    upstream.hears(delta(CDS, "n4", &["a=2"], &[]));
    upstream.sent();
    upstream.pass(ms(50));
    assert_eq!(upstream.wildcard(CDS), "a=2 b=1 c=1 complete");
}

/// A part of the next message is no quiet.
#[test]
fn half_a_message_is_no_quiet() {
    let mut upstream = streaming();
    upstream.hears(delta(CDS, "n1", &["a=1"], &[]));
    upstream.sent();
    upstream.pass(ms(200));
    upstream.client.handle_bytes(upstream.now);
    upstream.pass(ms(249));
    assert_eq!(upstream.wildcard(CDS), "a=1");
    upstream.pass(ms(1));
    assert_eq!(upstream.wildcard(CDS), "a=1 complete");
}

/// A far server gets four round trips.
#[test]
fn a_far_server_gets_more_time() {
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.want(CDS, "*");
    upstream.client.handle_connected(ms(200));
    upstream.sent();
    upstream.hears(delta(CDS, "n1", &[], &[]));
    upstream.sent();
    upstream.pass(ms(799));
    assert_eq!(upstream.wildcard(CDS), "");
    upstream.pass(ms(1));
    assert_eq!(upstream.wildcard(CDS), "complete");
}

/// However busy the server is, ten seconds are enough.
#[test]
fn ten_seconds_at_most() {
    let mut upstream = streaming();
    for round in 0..100 {
        let put = format!("c{round:02}=1");
        upstream.hears(delta(CDS, &format!("n{round}"), &[&put], &[]));
        upstream.sent();
        assert!(!upstream.wildcard(CDS).ends_with("complete"), "round {round}");
        upstream.pass(ms(100));
    }
    assert!(upstream.wildcard(CDS).ends_with("complete"));
}

/// Another relay says itself whether more follows; the mark of anybody else is part of its nonce.
#[test]
fn the_mark_of_another_relay() {
    let mut upstream = streaming();
    let mut response = delta(CDS, "x-1+", &["a=1"], &[]);
    response.control_plane = relay();
    upstream.hears(response);
    upstream.sent();
    upstream.pass(ms(60_000));
    assert_eq!(upstream.wildcard(CDS), "a=1");
    let mut response = delta(CDS, "x-2", &["b=1"], &[]);
    response.control_plane = relay();
    upstream.hears(response);
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");

    let mut upstream = streaming();
    upstream.hears(delta(CDS, "n1+", &["a=1"], &[]));
    upstream.sent();
    upstream.pass(ms(250));
    assert_eq!(upstream.wildcard(CDS), "a=1 complete");
}

/// E-13, K-16: a response with an entry of which the name is in doubt completes nothing and deletes nothing.
#[test]
fn doubt_completes_nothing() {
    let mut upstream = streaming();
    upstream.hears(delta(CDS, "n1", &["a=1", "b=1"], &[]));
    upstream.hears(delta(CDS, "n2", &["c=1", "c=2"], &["b"]));
    upstream.sent();
    upstream.pass(ms(60_000));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1");
    upstream.hears(delta(CDS, "n3", &["c=3"], &["b"]));
    upstream.sent();
    upstream.pass(ms(250));
    assert_eq!(upstream.wildcard(CDS), "a=1 c=3 complete");
}

/// What leaves the wildcard is not covered by it any more (K-05).
#[test]
fn a_removal() {
    let mut upstream = complete(&["a=1", "b=1"]);
    upstream.hears(delta(CDS, "n2", &["c=1"], &["a", "never"]));
    assert_eq!(upstream.wildcard(CDS), "b=1 c=1 complete");
}

fn complete(puts: &[&str]) -> Upstream {
    let mut upstream = streaming();
    upstream.hears(delta(CDS, "n1", puts, &[]));
    upstream.sent();
    upstream.pass(ms(250));
    assert!(upstream.wildcard(CDS).ends_with("complete"));
    upstream
}

/// E-04, L-10: the server is told what is held and says only what is different; nothing else is gone.
#[test]
fn a_server_that_looks_at_the_map() {
    let mut upstream = complete(&["a=1", "b=1", "c=1"]);
    upstream.disconnect();
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 c=1 complete");
    upstream.connect();
    assert_eq!(upstream.sent(), ["cds a@1 b@1 c@1"]);
    upstream.hears(delta(CDS, "m1", &["b=2"], &["c"]));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=2 complete");
    upstream.sent();
    upstream.pass(ms(60_000));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=2 complete");
}

/// A server that resends what it was told that we hold does not look at the map: what it does not mention is gone, after five
/// seconds of quiet. Until then nothing is (G-19).
#[test]
fn a_server_that_ignores_the_map() {
    let mut upstream = complete(&["a=1", "b=1", "gone=1"]);
    upstream.disconnect();
    upstream.connect();
    upstream.sent();
    upstream.hears(delta(CDS, "m1", &["a=1"], &[]));
    upstream.sent();
    upstream.pass(ms(4_000));
    upstream.hears(delta(CDS, "m2", &["b=2"], &[]));
    upstream.sent();
    upstream.pass(ms(4_999));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=2 gone=1 complete");
    upstream.pass(ms(1));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=2 complete");
}

/// A wildcard that was not complete when the stream was lost is asked for from the beginning, so that its answer has an end.
#[test]
fn what_was_not_complete_begins_clean() {
    let mut upstream = streaming();
    upstream.hears(delta(CDS, "n1", &["a=1", "gone=1"], &[]));
    upstream.sent();
    upstream.disconnect();
    upstream.pass(ms(60_000));
    assert_eq!(upstream.wildcard(CDS), "a=1 gone=1");
    upstream.connect();
    assert_eq!(upstream.sent(), ["cds"]);
    upstream.hears(delta(CDS, "m1", &["a=1", "b=1"], &[]));
    upstream.sent();
    upstream.pass(ms(250));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 gone=1 complete");
    upstream.pass(ms(5_000));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");
}

/// A server that says nothing after a reconnect takes nothing away (G-19, K-16).
#[test]
fn silence_after_a_reconnect() {
    let mut upstream = complete(&["a=1"]);
    upstream.disconnect();
    upstream.connect();
    upstream.sent();
    upstream.pass(ms(600_000));
    assert_eq!(upstream.wildcard(CDS), "a=1 complete");
    assert!(!upstream.answered(CDS));
}

/// A wildcard that is wanted anew is unsubscribed and subscribed by its name; what comes for the old one does not count.
#[test]
fn a_wildcard_wanted_anew() {
    let mut upstream = complete(&["a=1"]);
    upstream.unwant(CDS, "*");
    upstream.cut = upstream.cut.without_wildcard(&distributary::xds::TypeUrl::new(CDS));
    upstream.want(CDS, "*");
    upstream.hears(delta(CDS, "n2", &["b=1"], &[]));
    upstream.pass(ms(60_000));
    assert_eq!(upstream.wildcard(CDS), "");
    assert_eq!(upstream.sent(), ["cds ack n2", "cds -*", "cds +*"]);
    upstream.hears(delta(CDS, "n3", &["a=1", "b=1"], &[]));
    upstream.sent();
    upstream.pass(ms(250));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");
}
