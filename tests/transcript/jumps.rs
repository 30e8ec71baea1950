// SPDX-License-Identifier: Apache-2.0
//! A clock that jumps: clients notice nothing, no stream ends, and nothing on its way is lost.

use crate::story::both;

/// G-19, K-16: after a jump of a day forward or back, clients keep what they hold.
#[test]
fn nothing_comes_of_it() {
    both(
        "
        origin put cds a@1 b@1, put rds r@1
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        client subscribe rds r
        client <- rds [r@1], ack
        jump 86400s
        nothing
        jump back 172800s
        nothing
        origin put cds a@2, put rds r@2
        client <- cds sotw [a@2 b@1] | delta [a@2]
        client ack
        client <- rds [r@2], ack
        ",
    );
}

/// B-24, L-8: a client acknowledges a response a day later; it then gets what is current.
#[test]
fn what_is_on_its_way_stays_there() {
    both(
        "
        origin put cds a@1
        client subscribe cds *
        client <- cds [a@1]
        origin put cds a@2
        jump 86400s
        nothing
        jump back 172800s
        nothing
        client status cds Stale
        client ack
        client <- cds [a@2], ack
        ",
    );
}

/// D-04, L-27: a route that waits for its cluster is sent once, when its bound is over, and no sooner if the clock goes back.
#[test]
fn a_gate_opens_once() {
    both(
        "
        origin put cds a@1, put rds r@a
        client subscribe cds *
        client <- cds [a@1], ack
        client subscribe rds r
        client <- rds [r@a], ack
        origin put cds a@2
        client <- cds [a@2]
        origin put cds a@3, put rds r@c
        jump back 86400s
        nothing
        client gates 0
        jump 172800s
        client <- rds [r@c], ack
        client gates 1
        client ack cds
        client <- cds [a@3]
        client ack
        ",
    );
}

/// B-14, G-20, K-16: a jump does not make an unknown name absent for a client that already holds something.
#[test]
fn what_is_unknown_stays_unknown() {
    both(
        "
        origin silent eds
        origin put cds a@1, put eds e@1
        client subscribe cds *
        client <- cds [a@1], ack
        client subscribe eds e
        jump 86400s
        nothing
        jump back 172800s
        nothing
        origin speaks eds
        client <- eds [e@1], ack
        ",
    );
}
