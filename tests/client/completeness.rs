// SPDX-License-Identifier: Apache-2.0
//! When a wildcard is complete, and when resources that it does not mention are gone.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use protocol::{Decided, Rhythm};
use xds::Dialect;

use crate::{CDS, EDS, LDS, Upstream, cut, delta, ms, relay};

fn streaming() -> Upstream {
    Upstream::streaming(Dialect::Delta, CDS, &["*"])
}

/// G-20: nothing is complete before the first answer; then the server must be quiet, from when the acknowledgement went out.
#[test]
fn quiet_completes() {
    let mut upstream = streaming();
    assert_eq!(upstream.after(ms(60_000)).wildcard(CDS), "");
    upstream.hears(delta(CDS, "n1", &["a=1"], &[]));
    assert_eq!(upstream.after(ms(100)).sent(), ["cds ack n1"]);
    assert_eq!(upstream.after(ms(249)).wildcard(CDS), "a=1");
    assert_eq!(upstream.after(ms(1)).wildcard(CDS), "a=1 complete");
}

/// An answer may come in several messages: a message with new names starts the quiet time anew; changes of known names do not.
#[test]
fn new_names_begin_the_quiet_anew() {
    let mut upstream = streaming();
    for (nonce, put) in [("n1", "a=1"), ("n2", "b=1"), ("n3", "c=1")] {
        upstream.accepts(delta(CDS, nonce, &[put], &[]));
        upstream.pass(ms(200));
    }
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 c=1");
    upstream.accepts(delta(CDS, "n4", &["a=2"], &[]));
    assert_eq!(upstream.after(ms(50)).wildcard(CDS), "a=2 b=1 c=1 complete");
}

/// While a part of the next message has arrived, the server is not quiet.
#[test]
fn half_a_message_is_no_quiet() {
    let mut upstream = streaming();
    upstream.accepts(delta(CDS, "n1", &["a=1"], &[]));
    upstream.pass(ms(200));
    upstream.client.handle_bytes(upstream.now);
    assert_eq!(upstream.after(ms(249)).wildcard(CDS), "a=1");
    assert_eq!(upstream.after(ms(1)).wildcard(CDS), "a=1 complete");
}

/// G-20: a server that answers a later request of the stream has said all that it had. What it paused before that, it may pause again.
#[test]
fn a_later_answer_ends_the_wait() {
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.want(CDS, "*");
    upstream.want(LDS, "*");
    upstream.connect();
    assert_eq!(upstream.sent(), ["cds", "lds"]);
    upstream.hears(delta(CDS, "n1", &["a=1"], &[]));
    upstream.pass(ms(20));
    upstream.hears(delta(CDS, "n2", &["b=1"], &[]));
    upstream.accepts(delta(LDS, "n3", &["c=1"], &[]));
    assert_eq!(upstream.after(ms(69)).wildcard(CDS), "a=1 b=1");
    assert_eq!(upstream.after(ms(1)).wildcard(CDS), "a=1 b=1 complete");
    // Nothing later was asked for.
    assert_eq!(upstream.after(ms(179)).wildcard(LDS), "c=1");
    // A name that is asked for later is a later request too.
    upstream.want(EDS, "e");
    upstream.sent();
    upstream.hears(delta(EDS, "n4", &["e=1"], &[]));
    assert_eq!(upstream.after(ms(0)).wildcard(LDS), "c=1 complete");
}

/// A server that answers a later request first does not answer in order, and one that goes on after that neither: it must be quiet for as
/// long as any other.
#[test]
fn a_server_that_does_not_answer_in_order() {
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.want(CDS, "*");
    upstream.want(LDS, "*");
    upstream.connect();
    upstream.sent();
    upstream.hears(delta(LDS, "n1", &["c=1"], &[]));
    upstream.accepts(delta(CDS, "n2", &["a=1"], &[]));
    upstream.want(EDS, "e");
    upstream.sent();
    assert_eq!(upstream.after(ms(249)).wildcard(CDS), "a=1");
    upstream.hears(delta(EDS, "n3", &["e=1"], &[]));
    upstream.accepts(delta(CDS, "n4", &["b=1"], &[]));
    assert_eq!(upstream.after(ms(249)).wildcard(CDS), "a=1 b=1");
    assert_eq!(upstream.after(ms(1)).wildcard(CDS), "a=1 b=1 complete");
}

/// A distant server is given four round trips.
#[test]
fn a_far_server_gets_more_time() {
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.want(CDS, "*");
    upstream.client.handle_connected(ms(200));
    upstream.sent();
    upstream.accepts(delta(CDS, "n1", &[], &[]));
    assert_eq!(upstream.after(ms(799)).wildcard(CDS), "");
    assert_eq!(upstream.after(ms(1)).wildcard(CDS), "complete");
}

/// However busy the server is, ten seconds are enough.
#[test]
fn ten_seconds_at_most() {
    let mut upstream = streaming();
    for round in 0..100 {
        let put = format!("c{round:02}=1");
        upstream.accepts(delta(CDS, &format!("n{round}"), &[&put], &[]));
        assert!(!upstream.wildcard(CDS).ends_with("complete"), "round {round}");
        upstream.pass(ms(100));
    }
    assert!(upstream.wildcard(CDS).ends_with("complete"));
}

/// Another relay marks in its nonce whether more follows; from any other server that mark is only part of its nonce.
#[test]
fn the_mark_of_another_relay() {
    let mut upstream = streaming();
    let mut response = delta(CDS, "x-1+", &["a=1"], &[]);
    response.control_plane = relay();
    upstream.accepts(response);
    assert_eq!(upstream.after(ms(60_000)).wildcard(CDS), "a=1");
    let mut response = delta(CDS, "x-2", &["b=1"], &[]);
    response.control_plane = relay();
    upstream.hears(response);
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");

    let mut upstream = streaming();
    upstream.accepts(delta(CDS, "n1+", &["a=1"], &[]));
    assert_eq!(upstream.after(ms(250)).wildcard(CDS), "a=1 complete");
}

/// E-13, K-16: a response with an entry whose name is in doubt completes nothing and removes nothing.
#[test]
fn doubt_completes_nothing() {
    let mut upstream = streaming();
    upstream.hears(delta(CDS, "n1", &["a=1", "b=1"], &[]));
    upstream.accepts(delta(CDS, "n2", &["c=1", "c=2"], &["b"]));
    assert_eq!(upstream.after(ms(60_000)).wildcard(CDS), "a=1 b=1");
    upstream.accepts(delta(CDS, "n3", &["c=3"], &["b"]));
    assert_eq!(upstream.after(ms(250)).wildcard(CDS), "a=1 c=3 complete");
}

fn complete(puts: &[&str]) -> Upstream {
    let mut upstream = streaming();
    upstream.accepts(delta(CDS, "n1", puts, &[]));
    assert!(upstream.after(ms(250)).wildcard(CDS).ends_with("complete"));
    upstream
}

/// E-04, L-10: the server is told what is held and sends only what is different; nothing else is gone. The smallest is brought with a
/// version that no server gave, and that it is sent again proves nothing.
#[test]
fn a_server_that_looks_at_the_map() {
    let mut upstream = complete(&["a=1", "b=1", "c=1"]);
    upstream.disconnect();
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 c=1 complete");
    upstream.connect();
    assert_eq!(upstream.sent(), ["cds a@unknown b@1 c@1"]);
    upstream.hears(delta(CDS, "m1", &["a=1", "b=2"], &["c"]));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=2 complete");
    upstream.sent();
    assert_eq!(upstream.after(ms(60_000)).wildcard(CDS), "a=1 b=2 complete");
}

/// E-04: a server that resends what the relay declared ignores the declaration: what it does not mention is gone after five seconds of
/// quiet, and not before (G-19).
#[test]
fn a_server_that_ignores_the_map() {
    let mut upstream = complete(&["a=1", "b=1", "c=1", "gone=1"]);
    upstream.reconnect();
    upstream.sent();
    upstream.accepts(delta(CDS, "m1", &["a=1", "c=1"], &[]));
    upstream.pass(ms(4_000));
    upstream.accepts(delta(CDS, "m2", &["b=2"], &[]));
    assert_eq!(upstream.after(ms(4_999)).wildcard(CDS), "a=1 b=2 c=1 gone=1 complete");
    assert_eq!(upstream.after(ms(1)).wildcard(CDS), "a=1 b=2 c=1 complete");
}

/// E-04: that a server says nothing of what it was sent versions of may mean that this is gone, if it does not read them. It is tried with
/// what it has just sent.
#[test]
fn a_server_that_says_nothing_of_the_map() {
    for (ignores, rest) in [(true, "a=1 complete"), (false, "a=1 gone=1 complete")] {
        let mut upstream = complete(&["a=1", "gone=1"]);
        upstream.reconnect();
        assert_eq!(upstream.sent(), ["cds a@unknown gone@1"]);
        upstream.accepts(delta(CDS, "m1", &["a=1"], &[]));
        assert!(upstream.after(ms(4_999)).client.take_doubt(true).is_none());
        upstream.pass(ms(1));
        let doubt = upstream.client.take_doubt(true).unwrap();
        assert!(upstream.client.take_doubt(false).is_none(), "one question at a time");
        let mut beside = Upstream {
            client: upstream.client.beside(),
            ..Upstream::new(Dialect::Delta)
        };
        beside.client.handle_question(&doubt);
        beside.connect();
        assert_eq!(beside.sent(), ["cds a@1 gone@1"]);
        for (said, shows) in [("a=2", false), ("a=1", true)] {
            let response = cut(delta(CDS, said, &[said], &[]).encode_to_vec());
            let heard = beside
                .client
                .handle_response(response.finish(Dialect::Delta).unwrap(), beside.now);
            let updates = heard.iter().flat_map(|changes| &changes.updates);
            let shown = |dialect| updates.clone().any(|update| doubt.is_shown_by(update, dialect));
            assert_eq!([Dialect::Sotw, Dialect::Delta].map(shown), [false, shows], "{said}");
        }
        if let Some(Decided::Gone(gone)) = upstream.client.handle_outcome(&doubt, ignores) {
            upstream.publish(vec![gone]);
        }
        assert_eq!(upstream.wildcard(CDS), rest);
        // What is sent again later means nothing any more.
        upstream.hears(delta(CDS, "m2", &["a=1"], &[]));
        assert_eq!(upstream.after(ms(60_000)).wildcard(CDS), rest);
        assert!(upstream.client.take_doubt(true).is_none());
    }
}

/// E-04: the resource with the made-up version is gone if the server says nothing of it, for it would have.
#[test]
fn what_was_brought_with_another_version() {
    let mut upstream = complete(&["a=1", "b=1"]);
    upstream.reconnect();
    upstream.sent();
    upstream.accepts(delta(CDS, "m1", &["b=2"], &[]));
    assert_eq!(upstream.after(ms(5000)).wildcard(CDS), "b=2 complete");
}

/// A wildcard that was not complete when the stream was lost is asked for from the beginning, so that its answer has an end.
#[test]
fn what_was_not_complete_begins_clean() {
    let mut upstream = streaming();
    upstream.accepts(delta(CDS, "n1", &["a=1", "gone=1"], &[]));
    upstream.disconnect();
    assert_eq!(upstream.after(ms(60_000)).wildcard(CDS), "a=1 gone=1");
    upstream.connect();
    assert_eq!(upstream.sent(), ["cds"]);
    upstream.accepts(delta(CDS, "m1", &["a=1", "b=1"], &[]));
    assert_eq!(upstream.after(ms(250)).wildcard(CDS), "a=1 b=1 gone=1 complete");
    assert_eq!(upstream.after(ms(5_000)).wildcard(CDS), "a=1 b=1 complete");
}

/// A server that sends nothing after a reconnect removes nothing (G-19, K-16).
#[test]
fn silence_after_a_reconnect() {
    let mut upstream = complete(&["a=1"]);
    upstream.reconnect();
    upstream.sent();
    assert_eq!(upstream.after(ms(600_000)).wildcard(CDS), "a=1 complete");
    assert!(!upstream.answered(CDS));
}

/// A stream on which another type is wanted, and not any more the wildcard that was complete with `a`.
fn unwanted() -> Upstream {
    let mut upstream = complete(&["a=1"]);
    upstream.want(EDS, "e");
    upstream.sent();
    upstream.unwant(CDS, "*");
    upstream.cut = upstream.cut.without_wildcard(&xds::TypeUrl::new(CDS));
    upstream.news();
    upstream
}

/// E-17: the server is not told that a wildcard is not wanted any more, because go-control-plane would not answer for it again. What
/// it sends meanwhile is there at once when the wildcard is wanted again.
#[test]
fn a_wildcard_wanted_anew() {
    let mut upstream = unwanted();
    upstream.hears(delta(CDS, "n2", &["b=1"], &["a"]));
    assert_eq!(upstream.news(), 0);
    assert_eq!(upstream.sent(), ["cds ack n2"]);
    upstream.want(CDS, "*");
    assert_eq!(upstream.wildcard(CDS), "b=1 complete");
    assert_eq!(upstream.sent(), [""; 0]);
}

/// E-17: a client that invents types does not make the relay forget that the server goes on sending a wildcard.
#[test]
fn invented_types_end_no_wildcard() {
    let mut upstream = unwanted();
    for number in 0..3000 {
        let invented = format!("type.googleapis.com/example.Type{number}");
        upstream.want(&invented, "*");
        upstream.unwant(&invented, "*");
    }
    upstream.sent();
    upstream.want(CDS, "*");
    assert_eq!(upstream.wildcard(CDS), "a=1 complete");
    assert_eq!(upstream.sent(), [""; 0]);
}

/// E-19: a wildcard that nobody wants any more is not asked for on the next stream.
#[test]
fn a_wildcard_ends_with_its_stream() {
    let mut upstream = unwanted();
    upstream.reconnect();
    assert_eq!(upstream.sent(), ["eds +e"]);
    upstream.want(CDS, "*");
    assert_eq!(upstream.sent(), ["cds"]);
    upstream.accepts(delta(CDS, "n1", &["b=1"], &[]));
    assert_eq!(upstream.after(ms(250)).wildcard(CDS), "b=1 complete");
}

/// A view of a server with this rhythm, on a stream on which all of the type is wanted.
fn view(rhythm: &Rhythm, type_url: &str) -> Upstream {
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.client.handle_rhythm(Arc::new(rhythm.clone()));
    upstream.want(type_url, "*");
    upstream.connect();
    upstream.sent();
    upstream
}

/// How long it takes until the wildcard is complete.
fn completes(upstream: &mut Upstream, type_url: &str) -> Duration {
    let begun = upstream.now;
    while !upstream.wildcard(type_url).ends_with("complete") {
        assert!(upstream.after(ms(1)).now < begun + ms(20_000));
    }
    upstream.now - begun
}

/// G-20: the relay does not wait again for a server that has shown that it sends everything at once: not in the next view, and
/// for other types only once the server has shown it for them too.
#[test]
fn what_a_server_has_shown_is_not_waited_for_again() {
    let mut rhythm = Rhythm::default();
    for (type_url, expected) in [(CDS, 250), (CDS, 30), (LDS, 250), (LDS, 30), (CDS, 30)] {
        let mut upstream = view(&rhythm, type_url);
        upstream.accepts(delta(type_url, "n1", &["a=1"], &[]));
        assert_eq!(completes(&mut upstream, type_url), ms(expected));
        rhythm.merge(&upstream.client.take_rhythm().unwrap());
        assert_eq!(upstream.client.take_rhythm(), None);
    }
}

/// G-20: if such a server pauses after all, the relay waits for it from then on.
#[test]
fn a_pause_after_all() {
    let mut rhythm = Rhythm::default();
    for (pause, complete, expected) in [
        (None, true, 250),
        (Some(100), true, 0),
        (Some(100), false, 230),
        (Some(249), true, 0),
    ] {
        let mut upstream = view(&rhythm, CDS);
        upstream.accepts(delta(CDS, "n1", &["a=1"], &[]));
        if let Some(pause) = pause {
            upstream.pass(ms(pause));
            assert_eq!(upstream.wildcard(CDS).ends_with("complete"), complete, "{pause}");
            upstream.accepts(delta(CDS, "n2", &["b=1"], &[]));
        }
        assert_eq!(completes(&mut upstream, CDS), ms(expected));
        rhythm.merge(&upstream.client.take_rhythm().unwrap());
    }
    // And never longer than for an unknown server.
    let mut upstream = view(&rhythm, CDS);
    upstream.accepts(delta(CDS, "n1", &["a=1"], &[]));
    assert_eq!(completes(&mut upstream, CDS), ms(250));
}

/// G-20: parts of messages count as messages once it turns out that they were such.
#[test]
fn a_pause_before_a_part() {
    let mut upstream = view(&Rhythm::default(), CDS);
    upstream.accepts(delta(CDS, "n1", &["a=1"], &[]));
    upstream.pass(ms(80));
    upstream.client.handle_bytes(upstream.now);
    upstream.pass(ms(10));
    upstream.accepts(delta(CDS, "n2", &["b=1"], &[]));
    completes(&mut upstream, CDS);
    let rhythm = upstream.client.take_rhythm().unwrap();
    let mut upstream = view(&rhythm, CDS);
    upstream.accepts(delta(CDS, "n1", &["a=1"], &[]));
    assert_eq!(completes(&mut upstream, CDS), ms(190));
}

/// G-20: whatever servers do, a full state never lacks what came within the pauses that the server has shown, and the relay never
/// waits longer for it than for an unknown server.
#[test]
fn nothing_is_lacked_within_what_was_shown() {
    let (mut complete_early, mut quick) = (0, 0);
    for seed in 1..=600_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut dice = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let longest = [1, 5, 40, 120, 249][dice(5) as usize];
        let (mut rhythm, mut shown) = (Rhythm::default(), None);
        for number in 0..6 {
            let mut upstream = view(&rhythm, CDS);
            let (parts, mut pauses, mut over) = (1 + dice(4), Vec::new(), false);
            for part in 0..parts {
                if part > 0 {
                    let (pause, answered) = (dice(longest), dice(2) > 0);
                    pauses.push(pause);
                    if answered {
                        upstream.sent();
                    }
                    upstream.pass(ms(pause));
                    upstream.sent();
                    let early = upstream.wildcard(CDS).ends_with("complete");
                    let within = shown.is_none_or(|shown| pause <= shown);
                    assert!(over || !(early && within), "seed {seed}, view {number}: {pause}");
                    over |= early;
                    complete_early += u32::from(early);
                }
                upstream.hears(delta(CDS, &format!("n{part}"), &[&format!("c{part}=1")], &[]));
            }
            upstream.sent();
            let waited = completes(&mut upstream, CDS);
            assert!(waited <= ms(250), "seed {seed}, view {number}: {waited:?}");
            quick += u32::from(waited < ms(100));
            if let Some(seen) = upstream.client.take_rhythm() {
                rhythm.merge(&seen);
            }
            shown = pauses.into_iter().chain(shown).max().or(Some(0));
        }
    }
    assert!(complete_early > 20 && quick > 200, "{complete_early} {quick}");
}
