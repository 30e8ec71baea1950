// SPDX-License-Identifier: Apache-2.0
//! What convergence counts: a change is content that is new to a client, and that arrived after the client had its answer.

use crate::story::{EVERYTHING, stories};

stories! {
    /// What a client is sent because it has asked is no change, whether it was there before the request or arrived after it.
    an_answer_is_no_change => both "
        origin put cds a@1, put eds e@1, silent rds
        wait 5s
        client subscribe cds *
        client <- cds [a@1], ack => no change
        client subscribe eds e
        client <- eds [e@1], ack => no change
        client subscribe rds r
        wait 2s
        origin put rds r@1, speaks rds
        client <- rds [r@1], ack => no change
        client reconnects
        origin put cds a@2
        wait 5s
        client subscribe cds
        client <- cds [a@2], ack => no change
    ";

    /// The age of a change is that of its content. The oldest one counts.
    a_change_counts_from_its_arrival for (asked, error, absent) in EVERYTHING => both "
        origin put cds a@1 b@1, put eds e@1
        client gets cds {asked} sotw [a@1 b@1]{error} | delta [a@1 b@1]{absent}
        client gets eds e [e@1]
        wait 5s
        origin put cds a@2, put eds e@2
        client <- cds sotw [a@2 b@1] | delta [a@2]
        client <- eds [e@2]
        wait 3s
        client ack cds => changed 3s
        client ack eds => changed 3s
        client stalls
        origin put cds b@2
        wait 2s
        origin put cds a@3 c@1
        wait 1s
        client reads
        client <- cds sotw [a@3 b@2 c@1] | delta [a@3 b@2 c@1]
        client ack => changed 3s
    ";

    /// What did not exist when it was asked for, and exists later, is a change to a client that was answered.
    what_comes_to_exist_is_a_change => delta "
        client subscribe rds r
        client <- rds -[r], ack => no change
        wait 5s
        origin put rds r@1
        wait 1s
        client <- rds [r@1], ack => changed 1s
    ";

    /// K-13: endpoints that follow a changed cluster are no change, however old they are; the cluster is.
    endpoints_that_follow_a_cluster_are_no_change => both "
        client has cds * [x@1:eds]
        client has eds x [x@1]
        wait 30s
        origin put eds x@2
        client <- eds [x@2], ack => changed 0ns
        wait 30s
        origin put cds x@2:eds
        client <- cds [x@2]
        client <- eds [x@2], ack => no change
        wait 1s
        client ack cds => changed 1s
    ";

    /// What another server has is no change, also if it arrived there after the client had its answer; what changes there later is.
    a_move_is_no_change => both "
        client has cds * [a@1 b@1]
        client has eds e [e@1]
        wait 5s
        other put cds a@2 b@1, put eds e@2
        wait 1s
        client moves other
        client <- cds sotw [a@2 b@1] | delta [a@2]
        client ack cds => no change
        client <- eds [e@2], ack => no change
        wait 1s
        other put cds a@3, put eds e@3
        client <- cds sotw [a@3 b@1] | delta [a@3]
        client <- eds [e@3]
        wait 1s
        client ack cds => changed 1s
        client ack eds => changed 1s
    ";

    /// B-22: what is sent once more after a rejection is no change; repaired content is.
    only_the_repair_of_a_rejection_is_a_change => both "
        client has eds A B [A@1 B@1]
        wait 5s
        origin put eds A@2 B@bad
        client <- eds [A@2 B@bad]
        wait 1s
        client nack
        wait 1s
        client <- eds [A@2], ack => no change
        client <- eds [B@bad], nack
        wait 1s
        origin put eds A@bad
        client <- eds [A@bad], nack
        wait 5s
        origin put eds A@3
        client <- eds [A@3]
        wait 1s
        client ack => changed 1s
    ";

    /// S-07: what a changed rule allows is no change, also if it arrived after the client had its answer; what changes of it later is.
    what_a_rule_allows_is_no_change => both "
        relay rules {names: a}
        origin put cds a@1, put eds a@1
        client gets cds * [a@1]
        client gets eds a b sotw [a@1] ![b=7] | delta [a@1] -[b] ![b=7]
        wait 5s
        origin put cds b@1, put eds b@1
        wait 1s
        relay rules
        client <- cds sotw [a@1 b@1] | delta [b@1]
        client ack cds => no change
        client <- eds [b@1], ack => no change
        wait 1s
        origin put cds b@2, put eds b@2
        client <- cds sotw [a@1 b@2] | delta [b@2]
        client <- eds [b@2]
        wait 1s
        client ack cds => changed 1s
        client ack eds => changed 1s
    ";

    /// B-14, C-11: what is sent because a client asks for it again is no change.
    a_repeated_request_brings_no_change => both "
        client has eds A [A@1]
        wait 5s
        origin put eds A@2
        client <- eds [A@2], ack => changed 0ns
        client unsubscribe eds A
        wait 5s
        client subscribe eds A
        client <- eds [A@2], ack => no change
        delta client sends eds +A
        delta client <- eds [A@2], ack => no change
    ";
}
