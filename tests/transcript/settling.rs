// SPDX-License-Identifier: Apache-2.0
//! Acknowledged, rejected, stale: which response a request is about, and what follows.

use crate::story::{both, stories};

stories! {
    /// B-08, B-09, L-7: a request that crossed a response is neither acceptance nor rejection, but its names count.
    a_request_that_crossed_a_response => sotw "
        origin put rds A@1 B@1
        client sends rds [A]
        client <- rds [A@1]
        client sends rds [A] v1 n1 => ack
        origin put rds A@2
        client <- rds [A@2]
        client sends rds [A B] v1 n1 => stale
        client wants rds A B                     # asked of the upstream at once
        client status rds Stale
        nothing
        client sends rds [A B] v2 n2 => ack
        client <- rds [B@1]
        client sends rds [A B] v3 n3 => ack
    ";

    /// B-09: a stale request unsubscribes from names, too.
    a_stale_request_takes_names_back => sotw "
        origin put rds A@1 B@1
        client sends rds [A B]
        client <- rds [A@1 B@1], ack
        origin put rds A@2
        client <- rds [A@2]
        client sends rds [A] v1 n1 => stale
        client wants rds A
        origin put rds B@2
        client sends rds [A] v2 n2 => ack
    ";
}

/// B-24, K-21, L-8: while one response is on its way nothing else is sent, and then the latest.
#[test]
fn fifty_changes_while_one_is_on_its_way() {
    let mut story = String::from("origin put cds a@1 b@1\nclient subscribe cds *\nclient <- cds [a@1 b@1]\n");
    (2..52).for_each(|label| story.push_str(&format!("origin put cds a@{label}\n")));
    story.push_str("nothing for 30s\nclient ack\n");
    story.push_str("client <- cds sotw [a@51 b@1] | delta [a@51]\nclient ack\n");
    both(&story);
}

stories! {
    /// B-02: each type is acknowledged and rejected by itself.
    types_settle_apart => both "
        origin put sds s@1, put rtds t@1
        client subscribe sds s
        client subscribe rtds t
        client <- sds [s@1]
        client <- rtds [t@1], ack
        client status sds Stale
        client status rtds Synced
        origin put sds s@2, put rtds t@2
        client <- rtds [t@2], nack
        client status rtds Error
        client status sds Stale
        client ack sds
        client <- sds [s@2], ack
    ";

    /// C-01, C-02, C-03: in delta one request may acknowledge or reject and also change the subscription, and the change counts
    /// whatever the nonce is.
    changes_count_whatever_the_nonce_says => delta "
        origin put rds A@1 B@1 C@1 D@1
        client sends rds +A
        client <- rds [A@1]
        client sends rds +B n1 ! => nack
        client <- rds [B@1]
        client sends rds +C nforeign => stale
        client <- rds [C@1]
        client sends rds -A +D n2 => ack
        client <- rds [D@1]
        client sends rds n3 => ack
        client sends rds n3 => stale
        client sends rds n4 => ack
        origin put rds A@2
    ";

    /// C-02: a request without a nonce acknowledges and rejects nothing.
    a_spontaneous_change_settles_nothing => delta "
        origin put rds A@1 B@1
        client sends rds +A
        client <- rds [A@1]
        client sends rds +B => update
        client <- rds [B@1]
        client status rds Stale
        client sends rds n1 => ack
        client status rds Stale
        client sends rds n2 => ack
        client status rds Synced
    ";

    /// B-05, B-09: a request that a client sends before it has seen any response answers none.
    before_the_first_response_is_seen => sotw "
        origin put rds A@1 B@1
        client sends rds [A] => first
        client <- rds [A@1]
        client sends rds [A B] => update
        client status rds Stale
        nothing
        client sends rds [A B] v1 n1 => ack
        client <- rds [B@1], ack
    ";

    /// B-05, B-25: a first request is a first request, whatever nonce and error it carries.
    the_first_request_settles_nothing => both "
        origin put rds a@1
        sotw client sends rds [a] vforeign nforeign ! => first
        delta client sends rds +a nforeign ! => first
        client <- rds [a@1], ack
    ";

    /// B-21, B-14: an acceptance is never answered, and neither is content that did not change.
    equal_content_is_not_sent_again => both "
        client has cds * [a@1]
        client has rds r [r@1]
        origin put cds a@1, put rds r@1
        nothing for 2s
        origin put cds a@2
        origin put cds a@1
        client <- cds [a@2], ack
        client <- cds [a@1], ack
    ";

    /// C-08: what was given up while it was on its way, and is wanted for no other reason, the client has forgotten once it answers.
    given_up_on_its_way => delta "
        origin put eds a@1 b@1
        client sends eds +a +b
        client <- eds [a@1 b@1]
        client sends eds -b
        client sends eds n1 => ack
    ";
}
