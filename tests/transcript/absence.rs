// SPDX-License-Identifier: Apache-2.0
//! Names that do not exist, names that are not known yet, and what happens while the upstream is away.

use crate::story::stories;

stories! {
    /// C-15, C-16, K-15, K-16, L-14: a name that does not exist is answered for once per subscription; the subscription stays.
    missing_and_then_created => both "
        client gets rds ghost sotw nothing | delta -[ghost]
        nothing
        delta client subscribe rds ghost
        delta client <- rds -[ghost], ack
        origin put rds ghost@1
        client <- rds [ghost@1], ack
    ";

    /// C-16, K-15, L-14: an upstream that never reports missing names has 15 s.
    missing_says_nobody => delta "
        origin talks sotw
        client subscribe rds ghost
        nothing for 14s
        wait 1s
        client <- rds -[ghost], ack
        origin put rds ghost@1
        client <- rds [ghost@1], ack
    ";

    /// G-18, G-19, L-17: while the upstream is away, a client that holds something is sent nothing; a client that can get nothing at
    /// all is sent elsewhere before it takes that for an answer; what is known is served.
    the_upstream_is_away => both "
        origin put eds A@1 B@1
        holder gets eds A [A@1]
        origin lost
        nothing for 60s
        second subscribe eds B
        nothing for 7s
        wait 1s
        second ends Unavailable no upstream
        third gets eds A B [A@1]
        nothing for 20s
        origin back
        third <- eds [B@1], ack
        second gets eds B [B@1]
    ";

    /// G-18: a client that has nothing is sent elsewhere, also where it shows only after its first wait that nobody can answer it. One that
    /// holds something keeps its stream.
    it_shows_late_that_nobody_can_answer => delta "
        origin silent cds, silent rds
        plain subscribe rds a
        holder has sds z [z@1]
        holder subscribe cds b
        nothing for 9s
        origin fails rds a=14, speaks rds
        plain ends Unavailable no upstream has answered
        second subscribe cds b
        nothing for 9s
        origin lost
        second ends Unavailable no upstream
    ";

    /// G-18: a SotW client would take silence for `does not exist`, so it is sent elsewhere even if the upstream is only silent.
    the_upstream_is_silent => sotw "
        origin silent cds
        client subscribe cds
        nothing for 7s
        wait 1s
        client ends Unavailable no upstream
    ";

    /// G-19, K-22: an upstream that was away and comes back with the same content causes no responses.
    the_upstream_comes_back => both "
        client has cds * [a@1]
        client has rds r [r@1]
        origin lost
        nothing for 60s
        origin back, put cds a@1, put rds r@1
        nothing
        origin lost, put cds a@2
        nothing for 60s
        origin back
        client <- cds [a@2], ack
    ";

    /// B-16, C-15: an Envoy drops routes and asks for them again while they are on their way. It may hold them, so it is told that
    /// they are gone.
    routes_on_their_way_that_an_envoy_asks_for_again => delta "
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
    ";

    /// C-15, B-32: an Envoy is not told that routes do not exist which it does not hold, because it would wait for them for ever.
    routes_that_an_envoy_waits_for => delta "
        origin put rds x@1
        client runs envoy
        client gets rds x ghost [x@1]
        nothing for 60s
        origin drop rds x
        client <- rds -[x], ack
        origin put rds ghost@1
        client <- rds [ghost@1], ack
        second gets rds none -[none]
    ";

    /// C-26: an Envoy that rejects what comes is told apart from it what goes.
    a_removal_of_routes_that_an_envoy_rejected => delta "
        origin put rds x@1 y@1
        client runs envoy
        client gets rds x y [x@1 y@1]
        origin put rds y@bad, drop rds x
        client <- rds [y@bad], nack
        client <- rds -[x], ack
        nothing for 60s
        origin put rds y@2
        client <- rds [y@2], ack
    ";
}
