//! Names that do not exist, names that are not known yet, and what happens while the upstream is away.

use crate::story::{both, delta, sotw};

/// C-15, C-16, K-15, K-16, L-14: a name that does not exist is answered for once per subscription; the subscription stays.
#[test]
fn missing_and_then_created() {
    both(
        "
        client subscribe rds ghost
        client <- rds sotw nothing | delta -[ghost]
        delta client ack
        nothing
        delta client subscribe rds ghost
        delta client <- rds -[ghost], ack
        origin put rds ghost@1
        client <- rds [ghost@1], ack
        ",
    );
}

/// C-16, K-15, L-14: an upstream that never reports missing names has 15 s.
#[test]
fn missing_says_nobody() {
    delta(
        "
        origin talks sotw
        client subscribe rds ghost
        nothing for 14s
        wait 1s
        client <- rds -[ghost], ack
        origin put rds ghost@1
        client <- rds [ghost@1], ack
        ",
    );
}

/// G-18, G-19, L-17: while the upstream is away, a client that holds something is sent nothing; a client that can get nothing at
/// all is sent elsewhere before it takes that for an answer; what is known is served.
#[test]
fn the_upstream_is_away() {
    both(
        "
        origin put eds A@1 B@1
        holder subscribe eds A
        holder <- eds [A@1], ack
        origin lost
        nothing for 60s
        second subscribe eds B
        nothing for 7s
        wait 1s
        second ends Unavailable no upstream
        third subscribe eds A B
        third <- eds [A@1], ack
        nothing for 20s
        origin back
        third <- eds [B@1], ack
        second subscribe eds B
        second <- eds [B@1], ack
        ",
    );
}

/// G-18: a SotW client would take silence for `does not exist`, so it is sent elsewhere even if the upstream is only silent.
#[test]
fn the_upstream_is_silent() {
    sotw(
        "
        origin silent cds
        client subscribe cds
        nothing for 7s
        wait 1s
        client ends Unavailable no upstream
        ",
    );
}

/// G-19, K-22: an upstream that was away and comes back with the same content causes no responses.
#[test]
fn the_upstream_comes_back() {
    both(
        "
        origin put cds a@1, put rds r@1
        client subscribe cds *
        client <- cds [a@1], ack
        client subscribe rds r
        client <- rds [r@1], ack
        origin lost
        nothing for 60s
        origin back, put cds a@1, put rds r@1
        nothing
        origin lost, put cds a@2
        nothing for 60s
        origin back
        client <- cds [a@2], ack
        ",
    );
}

/// K-23: a resource that one client asked for is there for the next client at once.
#[test]
fn known_names_are_served_at_once() {
    both(
        "
        origin put eds A@1
        first subscribe eds A
        first <- eds [A@1], ack
        origin silent eds
        second subscribe eds A
        second <- eds [A@1], ack
        ",
    );
}

/// B-21: changes of one type are sent with a pause between them if the operator wants that; first answers and what a client asks
/// for do not wait, and nothing is forgotten meanwhile.
#[test]
fn pace() {
    both(
        "
        relay pace 1s
        origin put rds a@1 b@1, put cds x@1 y@1
        client subscribe rds a
        client <- rds [a@1], ack
        client subscribe rds b
        client <- rds [b@1], ack
        origin put rds a@2
        nothing
        origin put rds a@3
        wait 1s
        client <- rds [a@3], ack
        wait 500ms
        client subscribe cds *
        client <- cds [x@1 y@1], ack
        origin drop cds y
        nothing
        wait 1s
        client <- cds sotw [x@1] | delta -[y]
        client ack
        ",
    );
}

/// D-03: a name that returns while the pace holds back its removal is sent, although removals have waited for so long that they would
/// go before anything else.
#[test]
fn what_returns_while_the_pace_holds_back_its_removal() {
    delta(
        "
        relay pace 3s
        origin put cds a@1 c@1
        client subscribe cds a c
        client <- cds [a@1 c@1], ack
        wait 3s
        origin put cds a@2, drop cds c
        client <- cds [a@2], ack
        nothing for 1s
        origin put cds c@2
        nothing for 1s
        wait 1s
        client <- cds [c@2], ack
        nothing for 5s
        ",
    );
}

/// D-03: a cluster waits for a route whose removal the pace holds back, also while other types have something to send.
#[test]
fn the_pace_holds_back_the_removal_of_a_route() {
    delta(
        "
        relay pace 1s
        origin put cds c@1, put eds e@1, put rds r@1
        client subscribe cds c
        client <- cds [c@1], ack
        wait 1s
        client subscribe eds e
        client <- eds [e@1], ack
        client subscribe rds r
        client <- rds [r@1], ack
        origin put eds e@2, drop rds r, drop cds c
        nothing
        wait 1s
        client <- eds [e@2], ack
        client <- rds -[r], ack
        client <- cds -[c], ack
        nothing for 2s
        ",
    );
}

/// B-16, C-15: an Envoy drops routes and asks for them again while they are on their way. It may hold them, so it is told that
/// they are gone.
#[test]
fn routes_on_their_way_that_an_envoy_asks_for_again() {
    delta(
        "
        origin put rds x@1
        client runs envoy
        client subscribe rds x
        client <- rds [x@1]
        client sends rds -x
        origin drop rds x
        client sends rds +x
        nothing
        client ack
        client <- rds -[x], ack
        ",
    );
}

/// C-15, B-32: an Envoy is not told that routes do not exist which it does not hold, because it would wait for them for ever.
#[test]
fn routes_that_an_envoy_waits_for() {
    delta(
        "
        origin put rds x@1
        client runs envoy
        client subscribe rds x ghost
        client <- rds [x@1], ack
        nothing for 60s
        origin drop rds x
        client <- rds -[x], ack
        origin put rds ghost@1
        client <- rds [ghost@1], ack
        second subscribe rds none
        second <- rds -[none], ack
        ",
    );
}

/// C-26: an Envoy that rejects what comes is told apart from it what goes.
#[test]
fn a_removal_of_routes_that_an_envoy_rejected() {
    delta(
        "
        origin put rds x@1 y@1
        client runs envoy
        client subscribe rds x y
        client <- rds [x@1 y@1], ack
        origin put rds y@bad, drop rds x
        client <- rds [y@bad], nack
        client <- rds -[x], ack
        nothing for 60s
        origin put rds y@2
        client <- rds [y@2], ack
        ",
    );
}
