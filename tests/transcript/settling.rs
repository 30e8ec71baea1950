//! Acknowledged, rejected, stale: which response a request is about, and what follows.

use crate::story::{both, delta, sotw};

/// B-05, B-06, B-07, L-5: only the error says that a response was rejected; the version beside it says nothing.
#[test]
fn rejected_with_the_current_version() {
    sotw(
        "
        origin put eds A@1 B@1
        client sends eds [A]
        client <- eds [A@1]
        client sends eds [A] v1 n1 => ack
        client status eds Synced
        client sends eds [A B] v1 n1 => update
        client <- eds [B@1]
        client status eds Stale
        client sends eds [A B] v1 n2 ! => nack
        client status eds Error
        client sends eds [A B] v1 n2 => update
        client status eds Error
        nothing for 5s
        ",
    );
}

/// B-07, B-21, B-22, K-08, L-6: a rejected state is not sent again, whatever version the rejection carries, until it changes.
#[test]
fn rejections_do_not_loop() {
    for version in ["", "v1", "v2"] {
        sotw(&format!(
            "
            origin put cds a@1
            client subscribe cds
            client <- cds [a@1], ack
            origin put cds a@2
            client <- cds [a@2]
            client sends cds [] {version} n2 ! => nack
            nothing for 2s
            client status cds Error
            origin put cds a@3
            client <- cds [a@3], ack
            client status cds Synced
            ",
        ));
    }
    delta(
        "
        origin put cds a@1
        client subscribe cds
        client <- cds [a@1], nack
        nothing for 2s
        client status cds Error
        origin put cds a@2
        client <- cds [a@2], ack
        client status cds Synced
        ",
    );
}

/// B-08, B-09, L-7: a request that crossed a response is neither acceptance nor rejection, but its names count.
#[test]
fn a_request_that_crossed_a_response() {
    sotw(
        "
        origin put rds A@1 B@1
        client sends rds [A]
        client <- rds [A@1]
        client sends rds [A] v1 n1 => ack
        origin put rds A@2
        client <- rds [A@2]
        client sends rds [A B] v1 n1 => stale
        client status rds Stale
        nothing
        client sends rds [A B] v2 n2 => ack
        client <- rds [B@1]
        client sends rds [A B] v3 n3 => ack
        nothing
        ",
    );
}

/// B-09: a stale request takes names back, too.
#[test]
fn a_stale_request_takes_names_back() {
    sotw(
        "
        origin put rds A@1 B@1
        client sends rds [A B]
        client <- rds [A@1 B@1], ack
        origin put rds A@2
        client <- rds [A@2]
        client sends rds [A] v1 n1 => stale
        origin put rds B@2
        client sends rds [A] v2 n2 => ack
        nothing
        ",
    );
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

/// B-02: each type settles for itself.
#[test]
fn types_settle_apart() {
    both(
        "
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
        ",
    );
}

/// B-23: the names of a rejection count.
#[test]
fn a_rejection_that_names_more() {
    sotw(
        "
        origin put rds A@1 B@1
        client sends rds [A]
        client <- rds [A@1]
        client sends rds [A B] n1 ! => nack
        client <- rds [B@1]
        client sends rds [B] v2 n2 => ack
        nothing
        origin put rds A@2
        nothing
        ",
    );
}

/// C-01, C-02, C-03: in delta one request may settle and change, and what it changes counts whatever its nonce is.
#[test]
fn changes_count_whatever_the_nonce_says() {
    delta(
        "
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
        nothing
        ",
    );
}

/// C-02: without a nonce a request settles nothing.
#[test]
fn a_spontaneous_change_settles_nothing() {
    delta(
        "
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
        ",
    );
}

/// B-22, C-25, K-08, L-26, M-02: the whole of a rejected response is held back until one of its members changes or goes; then all of
/// them are owed again, in one response.
#[test]
fn rejected_and_repaired() {
    both(
        "
        origin put eds A@1 B@bad
        client subscribe eds A B
        client <- eds [A@1 B@bad], nack
        nothing for 2s
        client status eds Error
        origin put eds B@good
        client <- eds [A@1 B@good], ack
        client status eds Synced
        ",
    );
}

/// B-22, C-25, L-26: a member that goes away releases the others.
#[test]
fn rejected_and_one_goes() {
    both(
        "
        origin put eds A@1 B@bad
        client subscribe eds A B
        client <- eds [A@1 B@bad], nack
        nothing for 2s
        origin drop eds B
        client <- eds sotw [A@1] | delta [A@1] -[B]
        client ack
        ",
    );
}

/// B-22, L-26: of a full state the next one is sent once it is another.
#[test]
fn a_rejected_full_state() {
    sotw(
        "
        origin put cds A@1 B@bad
        client subscribe cds *
        client <- cds [A@1 B@bad], nack
        nothing for 2s
        origin put cds B@good
        client <- cds [A@1 B@good], ack
        origin put cds A@worse
        client <- cds [A@worse B@good], nack
        origin drop cds A
        client <- cds [B@good], ack
        ",
    );
}

/// B-22, C-25: a rejection does not hold back what was not in the response.
#[test]
fn neighbours_of_a_rejection_go_on() {
    both(
        "
        origin put eds A@1 B@1
        client subscribe eds A B
        client <- eds [A@1 B@1], ack
        origin put eds B@bad
        client <- eds [B@bad], nack
        origin put eds A@2
        client <- eds [A@2], ack
        nothing for 2s
        client status eds Error
        origin put eds B@1
        client <- eds [B@1], ack                 # what it holds is unknown after a rejection
        client status eds Synced
        ",
    );
}

/// B-22, K-08: a full state that was rejected is not sent again for a name that adds nothing to it; for one that does it is another.
#[test]
fn a_rejected_full_state_and_more_names() {
    sotw(
        "
        origin put lds a@bad b@1
        client subscribe lds a
        client <- lds [a@bad], nack
        client subscribe lds ghost
        nothing for 2s
        client subscribe lds b
        client <- lds [a@bad b@1], nack
        nothing for 2s
        origin put lds a@good
        client <- lds [a@good b@1], ack
        ",
    );
}

/// B-05, B-09: what a client says before it has seen any response is no answer to one.
#[test]
fn before_the_first_response_is_seen() {
    sotw(
        "
        origin put rds A@1 B@1
        client sends rds [A] => first
        client <- rds [A@1]
        client sends rds [A B] => update
        client status rds Stale
        nothing
        client sends rds [A B] v1 n1 => ack
        client <- rds [B@1], ack
        ",
    );
}

/// B-22, C-25: of an answer in several parts only the rejected part is held back.
#[test]
fn one_part_is_rejected() {
    delta(
        "
        relay chunk 1
        origin put cds a@1 b@1 c@1
        client subscribe cds *
        client <- cds [a@1]
        client <- cds [b@1]
        client <- cds [c@1]
        client sends cds n2 ! => nack
        client sends cds n1 => ack
        client sends cds n3 => ack
        nothing for 2s
        client status cds Error
        origin put cds c@2
        client <- cds [c@2], ack
        origin put cds b@2
        client <- cds [b@2], ack
        client status cds Synced
        ",
    );
}

/// B-22: a rejected change that is taken back.
#[test]
fn rejected_and_rolled_back() {
    both(
        "
        origin put cds a@1 b@1
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        origin put cds a@bad
        client <- cds sotw [a@bad b@1] | delta [a@bad]
        client nack
        nothing for 2s
        origin put cds a@1
        client <- cds sotw [a@1 b@1] | delta [a@1]
        client ack
        client status cds Synced
        ",
    );
}

/// B-22, C-25: a rejected removal is not repeated, and does not stand in the way of what comes back.
#[test]
fn a_rejected_removal() {
    delta(
        "
        origin put rds a@1, put cds b@1
        client subscribe rds a
        client <- rds [a@1], ack
        client subscribe cds *
        client <- cds [b@1], ack
        origin drop rds a
        client <- rds -[a], nack
        origin drop cds b
        client <- cds -[b], nack
        nothing for 5s
        origin put rds a@1, put cds b@1
        client <- cds [b@1], ack
        client <- rds [a@1], ack
        client status rds Synced
        client status cds Synced
        ",
    );
}

/// B-08, B-09: a stale request that names more of a type that lists everything.
#[test]
fn a_request_that_crossed_a_full_state() {
    sotw(
        "
        origin put lds A@1 B@1
        client sends lds [A]
        client <- lds [A@1]
        client sends lds [A] v1 n1 => ack
        origin put lds A@2
        client <- lds [A@2]
        client sends lds [A B] v1 n1 => stale
        nothing
        client sends lds [A B] v2 n2 => ack
        client <- lds [A@2 B@1], ack
        ",
    );
}

/// B-22: a client that rejects everything gets each content once.
#[test]
fn a_storm_of_rejections() {
    both(
        "
        origin put lds a@1
        client subscribe lds *
        client <- lds [a@1], nack
        nothing for 2s
        origin put lds a@2
        client <- lds [a@2], nack
        nothing for 2s
        origin put lds a@3
        client <- lds [a@3], nack
        nothing for 2s
        ",
    );
}

/// K-06, K-07, L-16: one client's rejection is its own affair.
#[test]
fn one_of_three_rejects() {
    both(
        "
        origin put cds x@1
        first subscribe cds *
        first <- cds [x@1], ack
        second subscribe cds *
        second <- cds [x@1], ack
        third subscribe cds *
        third <- cds [x@1], ack
        origin put cds x@2
        first <- cds [x@2], ack
        second <- cds [x@2], nack
        third <- cds [x@2], ack
        nothing for 2s
        second status cds Error
        first status cds Synced
        origin put cds x@3
        first <- cds [x@3], ack
        second <- cds [x@3], ack
        third <- cds [x@3], ack
        second status cds Synced
        ",
    );
}

/// B-05, B-25: a first request is a first request, whatever nonce and error it carries.
#[test]
fn the_first_request_settles_nothing() {
    both(
        "
        origin put rds a@1
        sotw client sends rds [a] vforeign nforeign ! => first
        delta client sends rds +a nforeign ! => first
        client <- rds [a@1], ack
        ",
    );
}

/// B-21, K-12: an acceptance is never answered, and neither is content that did not change.
#[test]
fn equal_content_is_not_sent_again() {
    both(
        "
        origin put cds a@1, put rds r@1
        client subscribe cds *
        client <- cds [a@1], ack
        client subscribe rds r
        client <- rds [r@1], ack
        origin put cds a@1, put rds r@1
        nothing for 2s
        origin put cds a@2
        origin put cds a@1
        client <- cds [a@2], ack
        client <- cds [a@1], ack
        ",
    );
}
