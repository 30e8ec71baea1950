// SPDX-License-Identifier: Apache-2.0
//! Several views: clients that must not share, and a client that moves from one view to another.

use crate::story::stories;

stories! {
    /// B-04, K-02, K-09, L-23: equal names and equal versions from two upstreams are different contents; neither client ever gets the
    /// other's.
    views_never_mix => both "
        origin put lds l@1, put rds r@for-first
        other put lds l@1, put rds r@for-second
        second moves other
        first gets lds * [l@1]
        second gets lds * [l@1]
        second gets rds r [r@for-second]
        first gets rds r [r@for-first]
        other put rds r@more
        second <- rds [r@more], ack
        second reconnects
        first reconnects
        second gets rds sotw [r@more] | delta nothing
        first gets rds sotw [r@for-first] | delta nothing
    ";

    /// K-24: that a name does not exist for one class says nothing about another class.
    absence_is_not_shared => both "
        other put rds r@1
        second moves other
        first gets rds r sotw nothing | delta -[r]
        second gets rds r [r@1]
        other drop rds r
        second <- rds sotw ![r=5] | delta -[r], ack
        origin put rds r@2
        first <- rds [r@2], ack
    ";

    /// K-09, K-22: equal content of another view is the same content.
    moving_between_equal_views_is_not_heard => both "
        origin put cds a@1 b@1, put rds r@1
        other put cds a@1 b@1, put rds r@1
        client gets cds * [a@1 b@1]
        client gets rds r [r@1]
        client moves other
        nothing
        origin put cds a@2
        nothing
        other put cds a@2
        client <- cds sotw [a@2 b@1] | delta [a@2], ack
    ";

    /// C-13, L-28: what changed, and is not in the other view, is removed.
    removed_while_moving => both "
        origin put cds x@1 y@1, put rds x@1 y@1
        other put cds y@1, put rds y@1
        client gets cds * [x@1 y@1]
        client gets rds x y [x@1 y@1]
        client stalls
        origin put cds x@2, put rds x@2
        client moves other
        client reads
        client <- rds sotw ![x=5] | delta -[x], ack
        client <- cds sotw [y@1] | delta -[x], ack
    ";

    /// C-13, L-28: the same of what was on its way, be it accepted or rejected.
    on_its_way_while_moving for settle in ["ack", "nack"] => delta "
        client has rds x y [x@1 y@1]
        other put rds y@1
        origin put rds x@2
        client <- rds [x@2]
        client moves other
        nothing
        client {settle}
        client <- rds -[x], ack
    ", both "
        client has cds * [x@1 y@1]
        other put cds y@1
        origin put cds x@2
        client <- cds sotw [x@2 y@1] | delta [x@2]
        client moves other
        nothing
        client {settle}
        client <- cds sotw [y@1] | delta -[x], ack
    ";

    /// G-20, K-16, L-28: a view that does not know a name yet removes nothing.
    moving_to_a_view_that_knows_nothing => both "
        origin put cds x@1 y@1, put rds r@1
        other put cds y@1, silent cds, silent rds
        client gets cds * [x@1 y@1]
        client gets rds r [r@1]
        client moves other
        nothing for 20s
        other speaks cds
        client <- cds sotw [y@1] | delta -[x], ack
        other put rds r@2, speaks
        client <- rds [r@2], ack
    ";

    /// C-20, K-16: a resource that no longer answers to an alias replaces what was held by the alias. It goes with the wildcard that
    /// brought it, whatever is unknown of the alias, and the alias brings the other one back.
    an_alias_in_one_view_alone => delta "
        origin put address a@1:aka=nick b@1
        other talks sotw, put address a@2 b@1
        client gets address nick * [a@1:aka=nick b@1]
        client moves other
        client <- address [a@2], ack
        client moves origin
        client <- address [a@1:aka=nick], ack
        client moves other
        client <- address [a@2], ack
        other drop address a
        client <- address -[a], ack
    ";
}
