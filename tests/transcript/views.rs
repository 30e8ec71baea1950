//! Several views: clients that must not share, and a client that moves from one view to another.

use crate::story::{both, delta};

/// B-04, K-02, K-09, L-23: equal names and equal versions from two upstreams are different contents; neither client ever gets the
/// other's.
#[test]
fn views_never_mix() {
    both(
        "
        origin put lds l@1, put rds r@for-first
        other put lds l@1, put rds r@for-second
        second moves other
        first subscribe lds *
        first <- lds [l@1], ack
        second subscribe lds *
        second <- lds [l@1], ack
        second subscribe rds r
        second <- rds [r@for-second], ack
        first subscribe rds r
        first <- rds [r@for-first], ack
        other put rds r@more
        second <- rds [r@more], ack
        second reconnects
        first reconnects
        second subscribe rds
        second <- rds sotw [r@more] | delta nothing
        sotw second ack
        first subscribe rds
        first <- rds sotw [r@for-first] | delta nothing
        sotw first ack
        ",
    );
}

/// K-24: that a name does not exist for one class says nothing about another class.
#[test]
fn absence_is_not_shared() {
    both(
        "
        other put rds r@1
        second moves other
        first subscribe rds r
        first <- rds sotw nothing | delta -[r]
        delta first ack
        second subscribe rds r
        second <- rds [r@1], ack
        other drop rds r
        delta second <- rds -[r], ack
        origin put rds r@2
        first <- rds [r@2], ack
        ",
    );
}

/// K-09, K-22: equal content of another view is the same content.
#[test]
fn moving_between_equal_views_is_not_heard() {
    both(
        "
        origin put cds a@1 b@1, put rds r@1
        other put cds a@1 b@1, put rds r@1
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        client subscribe rds r
        client <- rds [r@1], ack
        client moves other
        nothing
        origin put cds a@2
        nothing
        other put cds a@2
        client <- cds sotw [a@2 b@1] | delta [a@2]
        client ack
        ",
    );
}

/// C-13, L-28: what changed, was on its way or was rejected, and is not in the other view, is removed.
#[test]
fn removed_while_moving() {
    both(
        "
        origin put cds x@1 y@1, put rds x@1 y@1
        other put cds y@1, put rds y@1
        client subscribe cds *
        client <- cds [x@1 y@1], ack
        client subscribe rds x y
        client <- rds [x@1 y@1], ack
        client stalls
        origin put cds x@2, put rds x@2
        client moves other
        client reads
        delta client <- rds -[x], ack
        client <- cds sotw [y@1] | delta -[x]
        client ack
        ",
    );
    for settle in ["ack", "nack"] {
        delta(&format!(
            "
            origin put rds x@1 y@1
            other put rds y@1
            client subscribe rds x y
            client <- rds [x@1 y@1], ack
            origin put rds x@2
            client <- rds [x@2]
            client moves other
            nothing
            client {settle}
            client <- rds -[x], ack
            ",
        ));
        both(&format!(
            "
            origin put cds x@1 y@1
            other put cds y@1
            client subscribe cds *
            client <- cds [x@1 y@1], ack
            origin put cds x@2
            client <- cds sotw [x@2 y@1] | delta [x@2]
            client moves other
            nothing
            client {settle}
            client <- cds sotw [y@1] | delta -[x]
            client ack
            ",
        ));
    }
}

/// G-20, K-16, L-28: a view that does not know a name yet removes nothing.
#[test]
fn moving_to_a_view_that_knows_nothing() {
    both(
        "
        origin put cds x@1 y@1, put rds r@1
        other put cds y@1, silent cds, silent rds
        client subscribe cds *
        client <- cds [x@1 y@1], ack
        client subscribe rds r
        client <- rds [r@1], ack
        client moves other
        nothing for 20s
        other speaks cds
        client <- cds sotw [y@1] | delta -[x]
        client ack
        other put rds r@2, speaks
        client <- rds [r@2], ack
        ",
    );
}

/// C-20, K-16: a resource that no longer answers to an alias replaces what was held by the alias. It goes with the wildcard that
/// brought it, whatever is unknown of the alias, and the alias brings the other one back.
#[test]
fn an_alias_in_one_view_alone() {
    both(
        "
        origin put cds a@1:aka=nick b@1
        other talks sotw, put cds a@2 b@1
        client subscribe cds nick *
        client <- cds sotw [a@1 b@1] | delta [a@1:aka=nick b@1]
        client ack
        client moves other
        client <- cds sotw [a@2 b@1] | delta [a@2]
        client ack
        client moves origin
        client <- cds sotw [a@1 b@1] | delta [a@1:aka=nick]
        client ack
        client moves other
        client <- cds sotw [a@2 b@1] | delta [a@2]
        client ack
        other drop cds a
        client <- cds sotw [b@1] | delta -[a]
        client ack
        ",
    );
}

/// C-09, C-20: a resource that was to be sent and is not sent has replaced nothing.
#[test]
fn an_alias_in_one_view_alone_and_the_other_is_left() {
    delta(
        "
        relay chunk 1
        origin put cds b@1 z@1:aka=nick
        other talks sotw, put cds b@2 z@2
        client subscribe cds nick *
        client <- cds [z@1:aka=nick]
        client <- cds [b@1]
        client ack
        client stalls
        client moves other
        client reads 1
        client <- cds [b@2], ack
        client unsubscribe cds *
        client reads
        client moves origin
        nothing
        origin put cds z@3:aka=nick
        client <- cds [z@3:aka=nick], ack
        ",
    );
}

/// B-01, D-07: many streams of one node live side by side.
#[test]
fn streams_of_one_node() {
    both(
        "
        origin put lds a@1 b@1
        first subscribe lds a
        first <- lds [a@1], ack
        second subscribe lds b
        second <- lds [b@1], ack
        origin put lds a@2 b@2
        first <- lds [a@2], ack
        second <- lds [b@2], ack
        ",
    );
}

/// C-20, G-17: when the alias no longer means what the client has by it, the client is sent what its wildcard has of it.
#[test]
fn an_alias_that_only_one_view_knows() {
    delta(
        "
        origin put rds a@1
        other put rds a@2:aka=nick
        client subscribe rds *
        client <- rds [a@1], ack
        client subscribe rds nick
        client <- rds -[nick], ack
        wait 1s
        second moves other
        client moves other
        client <- rds [a@2:aka=nick], ack
        client moves origin
        client <- rds [a@1] -[nick], ack
        nothing
        ",
    );
}

/// G-08, G-17, C-26: what was to come from the view that the session has left is not sent any more.
#[test]
fn moved_between_two_parts() {
    both(
        "
        relay chunk 1
        origin put rds a@1 b@1 c@1
        other put rds a@1 b@2 c@1
        second moves other
        second subscribe rds *
        second <- rds [a@1], ack
        second <- rds [b@2], ack
        second <- rds [c@1], ack
        client stalls
        client subscribe rds *
        client reads 1
        client <- rds [a@1], ack
        client moves other
        client reads
        client <- rds [b@2], ack
        client <- rds [c@1], ack
        nothing
        ",
    );
}

/// C-20, C-25: until a response is acknowledged or rejected, the client may hold a resource under its former name, and is told
/// when that name no longer means anything.
#[test]
fn what_it_was_called_before() {
    for settle in ["ack", "nack"] {
        delta(&format!(
            "
            origin put rds o@1:aka=z
            other behind rds, put rds o@2
            second moves other
            second subscribe rds *
            second <- rds [o@2], ack
            client subscribe rds * z
            client <- rds [o@1:aka=z], ack
            client moves other
            client <- rds [o@2], {settle}
            nothing
            other punctual rds
            client <- rds -[z], ack
            nothing
            ",
        ));
    }
}

/// C-20, C-25: the same, if the client has given the name up meanwhile: it keeps what it held, because it asks for its alias.
#[test]
fn what_it_was_called_before_it_was_given_up() {
    delta(
        "
        origin put rds o@1:aka=z
        client subscribe rds o z
        client <- rds [o@1:aka=z], ack
        origin put rds o@2
        client <- rds [o@2] -[z]
        client sends rds -o
        client nack rds
        client <- rds -[o z], ack
        nothing
        ",
    );
}
