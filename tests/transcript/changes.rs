//! What counts as a change at a client, and since when: content that is new to it, and that came after it had asked for it.

use crate::story::{both, delta, sotw};

/// Answers are no changes, whether the content was there before the request or comes after it. What comes later is one, and is as
/// old as its arrival.
#[test]
fn an_answer_is_no_change() {
    both(
        "
        origin put cds a@1, put eds e@1
        wait 2s
        client subscribe cds *
        client <- cds [a@1], ack
        client changed nothing
        client subscribe eds e
        client <- eds [e@1], ack
        client changed nothing
        wait 2s
        origin put eds e@2
        wait 3s
        client <- eds [e@2], ack
        client changed 3s
        origin put cds a@2
        wait 4s
        client <- cds [a@2], ack
        client changed 4s
        ",
    );
}

/// K-13: endpoints that are sent again because their cluster has changed are no change, however old they are.
#[test]
fn endpoints_that_are_sent_again_are_no_change() {
    both(
        "
        origin put cds x@1:eds, put eds x@1
        client subscribe cds *
        client <- cds [x@1], ack
        client subscribe eds x
        client <- eds [x@1], ack
        wait 1s
        origin put eds x@2
        client <- eds [x@2], ack
        client changed 0s
        wait 30s
        origin put cds x@2:eds
        client <- cds [x@2], ack
        client changed 0s
        client <- eds [x@2], ack
        client changed nothing
        ",
    );
}

/// What another server had already is no change; what it says later is one.
#[test]
fn a_move_is_no_change() {
    both(
        "
        origin put eds e@1
        client subscribe eds e
        client <- eds [e@1], ack
        wait 1s
        other put eds e@2
        wait 5s
        client moves other
        client <- eds [e@2], ack
        client changed nothing
        wait 1s
        other put eds e@3
        wait 2s
        client <- eds [e@3], ack
        client changed 2s
        ",
    );
}

/// A further try after a rejection is no change; repaired content is one.
#[test]
fn a_further_try_is_no_change() {
    delta(
        "
        origin put cds a@1 b@1
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        origin put cds a@2 b@bad
        client <- cds [a@2 b@bad]
        wait 3s
        client nack cds
        wait 3s
        origin put cds b@3
        wait 2s
        client <- cds [a@2 b@3], ack
        client changed 2s
        ",
    );
    sotw(
        "
        origin put eds a@1
        client subscribe eds a
        client <- eds [a@1], ack
        origin put eds a@bad
        client <- eds [a@bad]
        client nack eds
        wait 3s
        origin put eds a@3
        wait 2s
        client <- eds [a@3], ack
        client changed 2s
        ",
    );
}

/// S-07: what the rules allow from now on is no change.
#[test]
fn what_a_rule_allows_is_no_change() {
    both(
        "
        relay rule {names: a}
        origin put eds a@1 b@1
        client subscribe eds a b
        client <- eds sotw [a@1] | delta [a@1] -[b], ack
        origin put eds b@2
        wait 5s
        relay rules {names: a}; {names: b}
        client <- eds [b@2], ack
        client changed nothing
        ",
    );
}
