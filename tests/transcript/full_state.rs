// SPDX-License-Identifier: Apache-2.0
//! Types whose SotW responses list everything. The client deletes what is missing in one, so nothing is left out because it
//! is unknown.

use crate::story::stories;

stories! {
    /// B-16, B-18, C-15, K-16, K-19, L-13: listeners that go are missing in the next full state; a SotW client is not told that
    /// a route goes. When the last listener goes, the state is empty.
    what_goes_is_said_where_it_can_be_said => both "
        client has lds * [l1@1 l2@1]
        client has rds r1 r2 [r1@1 r2@1]
        origin drop lds l2, drop rds r2
        client <- rds sotw ![r2=5] | delta -[r2], ack
        client <- lds sotw [l1@1] | delta -[l2], ack
        origin drop lds l1
        client <- lds sotw [] | delta -[l1], ack
    ";

    /// B-16: every full state lists everything, changed or not; scoped routes are such a type as well.
    a_full_state_lists_everything for topic in ["cds", "lds", "srds"] => both "
        client has {topic} a b c [a@1 b@1 c@1]
        origin put {topic} b@2
        client <- {topic} sotw [a@1 b@2 c@1] | delta [b@2], ack
        origin drop {topic} c
        client <- {topic} sotw [a@1 b@2] ![c=5] | delta -[c], ack
    ";

    /// B-18: other types carry only what is new.
    a_partial_answer_says_what_is_new for topic in ["eds", "rds", "rtds", "ecds", "example.Unknown"] => both "
        client has {topic} a b [a@1 b@1]
        origin put {topic} b@2
        client <- {topic} [b@2], ack
    ";

    /// B-20, C-17, G-20, L-18: nothing is sent before the upstream has answered; then the state is sent, even an empty one.
    a_cold_start => both "
        origin silent cds
        client subscribe cds
        nothing for 5s
        origin put cds a@1, speaks
        client <- cds [a@1], ack
    ", both "
        origin silent cds
        client subscribe cds
        nothing for 5s
        origin speaks
        client <- cds [], ack
        origin put cds a@1
        client <- cds [a@1], ack
    ";

    /// G-20, K-16: while a wildcard is still coming in, a full state waits, and a delta removes nothing.
    a_wildcard_that_is_still_coming_in => both "
        origin open cds, put cds a@1
        client gets cds sotw nothing | delta [a@1]
        origin put cds b@1
        client <- cds sotw nothing | delta [b@1], ack
        origin complete cds
        sotw client <- cds [a@1 b@1], ack
        nothing
        origin drop cds a
        client <- cds sotw [b@1] | delta -[a], ack
    ";

    /// C-13, K-16: while a wildcard is still coming in, nothing that a client brings along is removed.
    coming_back_to_a_wildcard_that_is_still_coming_in => delta "
        client has cds * [a@1 b@1]
        relay restarts
        origin open cds, drop cds b
        client subscribe cds
        nothing for 5s
        origin put cds c@1
        client <- cds [c@1], ack
        nothing for 5s
        origin complete cds
        client <- cds -[b], ack
    ";

    /// B-14, G-20, K-16: a name that is still unknown does not hold back a full state if the client cannot hold that name.
    an_unknown_name_that_the_client_cannot_hold => both "
        origin talks sotw, put lds a@1
        client gets lds a ghost [a@1]
        nothing for 5s
        origin put lds ghost@1
        client <- lds sotw [a@1 ghost@1] | delta [ghost@1], ack
    ";

    /// G-20, K-16: but it does if the client may hold it from an earlier stream. At the bound, names that a healthy upstream should
    /// have answered for count as absent.
    an_unknown_name_that_the_client_may_hold => sotw "
        origin talks sotw, put lds a@1
        client sends lds [a old] vbefore
        nothing for 7s
        wait 1s
        client <- lds [a@1], ack
        origin put lds old@1
        client <- lds [a@1 old@1], ack
    ";

    /// B-14, G-20: a name that counted as absent once is not waited for again.
    an_unknown_name_is_waited_for_once => sotw "
        origin talks sotw, put lds a@1 z@1
        client sends lds [a old] vbefore
        wait 8s
        client <- lds [a@1], ack
        client sends lds [a old z] v1 n1
        client <- lds [a@1 z@1], ack
        origin put lds a@2
        client <- lds [a@2 z@1], ack
        wait 7s # the server has been silent for so long that the name does not exist
        client <- lds [a@2 z@1] ![old=5], ack
    ";

    /// C-14, K-15, K-16: an answer that does not come in time removes nothing from a client that holds the resource.
    silence_takes_nothing_away for topic in ["rds", "eds"] => both "
        client has {topic} a [a@1]
        relay restarts
        origin talks sotw, drop {topic} a
        client subscribe {topic}
        nothing for 20s
        origin put {topic} a@2
        client <- {topic} [a@2], ack
    ";

    /// B-19, C-19: a resource that a wildcard covers, and that was asked for by name and by an alias, is sent once.
    nothing_is_listed_twice => delta "
        origin put address a@1:aka=nick b@1
        client can xds.config.resource-in-sotw
        client gets address * a nick [a@1:aka=nick b@1]
        origin put address a@2:aka=nick
        client <- address [a@2:aka=nick], ack
    ";

    /// C-20: a client that asks by an alias gets the resource under its own name, and is told when it goes.
    asked_for_by_an_alias => delta "
        origin put address r@1:aka=nick
        client gets address nick [r@1:aka=nick]
        origin put address r@2:aka=nick
        client <- address [r@2:aka=nick], ack
        client gets address other -[other]
        origin put address r@3:aka=nick:aka=other
        client <- address [r@3:aka=nick:aka=other], ack
        origin put address r@4:aka=nick
        client <- address [r@4:aka=nick], ack
        origin drop address r
        client <- address -[r], ack
    ";

    /// B-30, M-07: a resource that only the wrapper can name is sent to clients that declare in any spelling that they read the
    /// wrapper, and to no others.
    the_wrapper_for_those_who_read_it for feature in ["xds.config.resource-in-sotw", "xds.config.supports-resource-in-sotw",
        "envoy.config.resource-in-sotw"] => sotw "
        origin put leds e@1
        client can {feature}
        client gets leds e [e@1:wrapped]
        plain subscribe leds e
    ";

    /// C-20, C-21, C-28: that a virtual host does not exist is sent as a resource without a body; one that the client holds and that
    /// goes is removed by name.
    virtual_hosts => delta "
        origin put vhds rc/vh1@1:aka=rc/host.x
        client gets vhds [rc/vh1@1:aka=rc/host.x]
        client gets vhds rc/host.x [rc/vh1@1:aka=rc/host.x]
        client gets vhds rc/nowhere [rc/nowhere@-:aka=rc/nowhere]
        origin put vhds rc/nowhere@1
        client <- vhds [rc/nowhere@1], ack
        origin drop vhds rc/nowhere
        client <- vhds -[rc/nowhere], ack
        origin drop vhds rc/vh1
        client <- vhds -[rc/vh1], ack
    ";

    /// C-27: the removal of an extension is passed on when the upstream sends it, and not invented.
    extensions => delta "
        client has ecds e [e@1]
        origin lost
        nothing for 20s
        origin back, drop ecds e
        client <- ecds -[e], ack
    ";

    /// B-16, B-22: an address goes from one listener to another. The one that gives it up comes first, whatever their names; and because it
    /// may not be free at once, the other one is tried once more.
    an_address_goes_to_another_listener for (asked, error) in [("*", ""), ("another web", " ![another=5]")] => sotw "
        origin put lds web@1:leads=0.0.0.0:80
        client gets lds {asked} [web@1]{error}
        origin put lds web@2:leads=0.0.0.0:81 another@1:leads=0.0.0.0:80
        client order web another
        client <- lds [another@1 web@2], nack
        client <- lds [web@2], ack
        nothing for 999ms
        wait 1ms
        client <- lds [another@1 web@2], nack
        client status lds Error
        nothing for 20s
        origin put lds web@3:leads=0.0.0.0:81
        client <- lds [web@3], ack
        nothing for 20s
        origin put lds another@2:leads=0.0.0.0:80
        client <- lds [another@2 web@3], ack
        client status lds Synced
    ";

    /// B-16: listeners that pass their addresses on come in the order in which each address is free.
    addresses_are_passed_on => sotw "
        origin put lds a@1:leads=0.0.0.0:80
        origin put lds b@1:leads=0.0.0.0:81
        origin put lds c@1:leads=0.0.0.0:82
        client gets lds * [a@1 b@1 c@1]
        origin put lds a@2:leads=0.0.0.0:81, put lds b@2:leads=0.0.0.0:82, put lds c@2:leads=0.0.0.0:83
        client order c b a
        client <- lds [a@2 b@2 c@2], nack
        client <- lds [a@1 b@1 c@2], ack
        client <- lds [a@1 b@2 c@2], ack
        nothing for 500ms
        origin put lds d@1
        client <- lds [a@1 b@2 c@2 d@1], ack
        wait 500ms
        client <- lds [a@2 b@2 c@2 d@1], ack
    ";

    /// B-22: listeners that exchange their addresses have no such order. What is rejected because of them waits for a change, and everything
    /// else goes on.
    addresses_are_exchanged => sotw "
        origin put lds a@1:leads=0.0.0.0:80, put rds r@1
        origin put lds b@1:leads=0.0.0.0:81
        client gets lds * [a@1 b@1]
        client gets rds r [r@1]
        origin put lds a@2:leads=0.0.0.0:81, put lds b@2:leads=0.0.0.0:80
        client order a b
        client <- lds [a@2 b@2], nack
        client <- lds [a@2 b@1], nack
        client <- lds [a@1 b@2], nack
        nothing for 20s
        origin put rds r@2
        client <- rds [r@2], ack
        origin put lds c@1
        client <- lds [a@1 b@1 c@1], ack
    ";
}
