// SPDX-License-Identifier: Apache-2.0
//! Wildcards and names beside them: what a client is subscribed to, and what unsubscribing means.

use crate::story::{EVERYTHING, stories};

stories! {
    /// B-18, K-19: what is gone cannot be said in a partial answer in SotW, so it counts as forgotten with the next response: the same content is
    /// sent again if it comes back while that is on its way.
    what_goes_and_comes_back_beside_a_change for (asked, error, _) in EVERYTHING => sotw "
        origin put rds a@1 b@1
        client gets rds {asked} [a@1 b@1]{error}
        origin drop rds b, put rds a@2
        client <- rds [a@2]
        origin put rds b@1
        client ack
        client <- rds [b@1], ack
        client rests
    ";

    /// B-10, B-11, B-14, B-21, L-1: an empty list means everything only until the first request that names anything;
    /// from then on it means nothing.
    the_legacy_wildcard_ends_with_the_first_name => sotw "
        origin put cds c1@1 c2@1 A@1
        client sends cds []
        client <- cds [A@1 c1@1 c2@1]
        client sends cds [] v1 n1 => ack
        nothing
        client sends cds [* A] v1 n1
        client <- cds [A@1 c1@1 c2@1]            # the same full state: A was newly named
        client sends cds [* A] v2 n2 => ack
        client sends cds [A] v2 n2
        nothing
        origin put cds c1@2
        nothing
        client sends cds [] v2 n2
        nothing
        origin put cds A@2
    ";

    /// B-10: as long as every request is empty, all of them mean everything.
    the_legacy_wildcard_lasts_as_long_as_nothing_is_named => sotw "
        origin put lds a@1
        client sends lds []
        client <- lds [a@1]
        client sends lds [] v1 n1 => ack
        client sends lds [] v1 n1 => update
        nothing
        origin put lds b@1
        client <- lds [a@1 b@1], ack
    ";

    /// B-11: a name that is still wanted after the wildcard has ended is served alone.
    a_name_survives_the_wildcard => sotw "
        origin put cds A@1 c1@1
        client sends cds [* A]
        client <- cds [A@1 c1@1], ack
        client sends cds [A] v1 n1
        nothing
        origin put cds A@2
        client <- cds [A@2], ack
    ", delta "
        client has cds * A [A@1 c1@1]
        client unsubscribe cds *
        nothing
        origin put cds A@2, put cds c1@2
        client <- cds [A@2], ack
    ";

    /// B-12, C-07: `*` is a wildcard for any type; names beside it are not served twice.
    an_explicit_wildcard_works_for_any_type => both "
        client has eds * a [a@1 b@1]
        origin put eds c@1
        client <- eds [c@1], ack
    ";

    /// B-13, L-15: an empty first request of a type without wildcards asks for nothing.
    an_empty_first_request_for_endpoints_asks_for_nothing => both "
        origin put eds a@1
        client subscribe eds
        nothing for 20s
        client gets eds a [a@1]
    ";

    /// C-05, C-07, C-10, L-15: `+* -*` means `nothing yet`, and a first request that only unsubscribes asks for nothing either.
    a_start_without_subscription => delta "
        origin put cds a@1 b@1
        client sends cds +* -*
        client <- cds [], ack
        nothing for 20s
        origin put cds a@2
        nothing
        other put cds a@1
        second sends cds -a
        nothing for 20s
        second sends cds +b
        second <- cds [b@1], ack
        third sends cds +a -a
    ";

    /// C-04, C-06: later empty lists change nothing, and giving up everything never brings the wildcard back.
    what_is_taken_back_never_becomes_a_wildcard => delta "
        origin put cds a@1 b@1
        client sends cds
        client <- cds [a@1 b@1], ack
        client sends cds
        nothing
        client sends cds +a
        client <- cds [a@1], ack
        client sends cds -*
        nothing
        origin put cds a@2 b@2
        client <- cds [a@2], ack
        client sends cds -a
        client sends cds
        nothing
        origin put cds a@3 b@3
    ";

    /// C-06, C-08, B-14, C-11, K-05, L-2: under a wildcard every name that is given up is answered, because the client cannot know
    /// whether the wildcard still covers it.
    names_besides_a_wildcard_are_answered_for_when_they_go => delta "
        origin put cds c1@1 X@1:aside
        client gets cds [c1@1]
        client gets cds X [X@1]
        client gets cds c1 [c1@1]
        client unsubscribe cds c1
        client <- cds [c1@1], ack
        client unsubscribe cds X
        client <- cds -[X], ack
        client unsubscribe cds *
        nothing
        origin put cds c1@2
    ";

    /// C-08: also while another response is on its way, and for a name that does not exist.
    the_answer_to_giving_up_a_name_waits_for_nothing => delta "
        origin put cds c1@1
        client gets cds * c1 ghost [c1@1] -[ghost]
        origin put cds c2@1
        client <- cds [c2@1]
        client unsubscribe cds c1
        client <- cds [c1@1]
        client unsubscribe cds ghost
        client <- cds -[ghost], ack
    ";

    /// B-14: without a wildcard, and for names that were never subscribed, unsubscribing is not answered.
    giving_up_without_a_wildcard_needs_no_answer => delta "
        client has rds a b [a@1 b@1]
        client unsubscribe rds a
        nothing
        client sends rds -never
        nothing
        origin put rds a@2
    ";

    /// B-14, C-11: after giving up the wildcard the relay forgets what came only through it; asking again brings everything that it
    /// covers.
    the_wildcard_begins_anew => delta "
        client has cds * a [a@1 b@1]
        client sends cds -*
        nothing
        client sends cds +*
        client <- cds [b@1], ack
        client sends cds +*
        client <- cds [a@1 b@1], ack
    ";

    /// B-21, K-05: that the wildcard no longer covers a name does not affect clients that asked for it by name.
    leaving_the_wildcard_is_not_the_end_of_a_name => both "
        client has cds * a [a@1 b@1]
        second gets cds * [a@1 b@1]
        origin put cds a@1:aside
        client <- cds nothing
        second <- cds sotw [b@1] | delta -[a], ack
        origin put cds a@2:aside
        client <- cds sotw [a@2 b@1] | delta [a@2], ack
    ";

    /// C-20, K-05: the same for a client that asked by an alias; giving up an alias is answered for the resource behind it.
    leaving_the_wildcard_is_not_the_end_of_an_alias => delta "
        origin put address a@1:aka=nick b@1
        client gets address * nick [a@1:aka=nick b@1]
        origin put address a@1:aka=nick:aside
        nothing
        client unsubscribe address nick
        client <- address -[a nick], ack
    ";

    /// C-20: what a client held by an alias alone, it has forgotten once it gives that up: a wildcard that begins then brings it.
    an_alias_that_is_given_up_before_the_wildcard => delta "
        origin put address a@1:aka=nick
        client sends address +nick
        client <- address [a@1:aka=nick], ack
        client sends address -nick
        nothing
        client sends address +*
        client <- address [a@1:aka=nick], ack
    ";

    /// B-29: a SotW client that has given up everything is sent nothing, not even the state, which would be empty.
    nothing_is_said_to_who_wants_nothing => sotw "
        client has cds * [a@1]
        client has eds x [x@1]
        client unsubscribe cds *
        client unsubscribe eds x
        origin drop cds a, put eds x@2
    ";

    /// C-20, K-05: of two resources that answer to one alias, a client that asked by it gets the one that its wildcard covers, and
    /// then the other one in its place.
    an_alias_of_two => delta "
        origin put address y@1:aka=a, put address x@2:aka=a:aside
        client gets address * a [y@1:aka=a]
        origin put address x@3:aka=a:aside
        nothing
        origin put address y@4:aka=a
        client <- address [y@4:aka=a], ack
        origin drop address y
        client <- address [x@3:aka=a]
        client <- address -[y], ack
    ";

    /// C-20: a resource that is sent by an alias replaces what the wildcard has brought, so the wildcard brings that back, even
    /// unchanged.
    an_alias_beside_the_wildcard => delta "
        origin talks sotw, put address a@1
        client subscribe address * nick              # of which nothing is known yet
        client <- address [a@1]
        origin put address a@2:aka=nick
        client <- address [a@2:aka=nick]
        origin put address a@1
        client ack
        client <- address [a@1], ack
    ";

    /// C-20: if a wildcard is late and has other content of what an alias means, the meaning of the alias is unknown until both have
    /// the same: nothing older is sent after something newer.
    an_alias_beside_a_wildcard_that_is_late => delta "
        client has address * [a@1]
        wait 1s
        origin late address, put address a@2:aka=nick
        client gets address nick a [a@1]
        origin punctual address
        client <- address [a@2:aka=nick], ack
        nothing
        origin put address a@3:aka=nick
        client <- address [a@3:aka=nick], ack
    ";

    /// C-20: the same without a wildcard.
    an_alias_of_another => delta "
        origin put address y@1:aka=a
        client gets address a [y@1:aka=a]
        origin drop address y, put address x@2:aka=a
        client <- address [x@2:aka=a], ack
        client <- address -[y], ack
    ";

    /// C-20: what was to be looked at because of an alias is not kept once the client asks for everything alone, and gets what all others
    /// get.
    an_alias_that_leaves_nothing_to_look_at => delta "
        origin put address a@1:aka=xdstp://n/ADDRESS/x b@1
        client gets address * [a@1:aka=xdstp://n/ADDRESS/x b@1]
        origin put address b@2
        client <- address [b@2]
        client stalls
        origin put address b@3, drop address a
        origin silent address
        client sends address +xdstp://n/ADDRESS/x
        client reads
        client sends address -xdstp://n/ADDRESS/x
        client ack
        client <- address [b@3], ack
        client <- address -[a], ack
        client rests
    ";

    /// C-20, F-11: an alias under an authority, when it goes, takes what was held by it with it, even if nothing is known yet of a
    /// wildcard, which does not cover it, and another client asked for the resource by its own name.
    an_alias_that_no_wildcard_covers => delta "
        origin put address xdstp://a/ADDRESS/c@1:aka=xdstp://a/ADDRESS/nick:aside, open address
        client gets address * xdstp://a/ADDRESS/nick [xdstp://a/ADDRESS/c@1:aka=xdstp://a/ADDRESS/nick]
        second gets address xdstp://a/ADDRESS/c [xdstp://a/ADDRESS/c@1:aka=xdstp://a/ADDRESS/nick]
        origin drop address xdstp://a/ADDRESS/c
        client <- address -[xdstp://a/ADDRESS/c], ack
        second <- address -[xdstp://a/ADDRESS/c], ack
    ";

    /// B-14, B-20: a client that asks for everything, or for a collection, of a type with full states gets one answer, whatever it
    /// holds already.
    a_full_state_is_owed_once_to_who_asks_for_everything => sotw "
        client has lds a [a@1]
        client gets lds * [a@1]
    ", sotw "
        client has lds xdstp://a/LDS/d/x [xdstp://a/LDS/d/x@1]
        client gets lds xdstp://a/LDS/d/* [xdstp://a/LDS/d/x@1]
    ", sotw "
        client has lds xdstp://a/LDS/d/x [xdstp://a/LDS/d/x@1]
        client gets lds xdstp://a/LDS/none/* [xdstp://a/LDS/d/x@1] ![xdstp://a/LDS/none/*=5]
    ";
}
