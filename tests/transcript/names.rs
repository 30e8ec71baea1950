// SPDX-License-Identifier: Apache-2.0
//! Names of new style: one name in any spelling, and each client answered in its own spelling.

use crate::story::stories;

stories! {
    /// F-04, F-09, L-25: two spellings are one name upstream; each client is answered in its own.
    each_in_its_own_writing => both "
        origin put eds xdstp://a/EDS/d/x?a=1&b=2@1
        one can xds.config.resource-in-sotw
        two can xds.config.resource-in-sotw
        one subscribe eds xdstp://a/EDS/d/x?b=2&a=1
        one wants eds xdstp://a/EDS/d/x?a=1&b=2
        one <- eds sotw [xdstp://a/EDS/d/x?b=2&a=1@1:wrapped] | delta [xdstp://a/EDS/d/x?b=2&a=1@1], ack
        two subscribe eds xdstp://a/EDS/d/x?a=1&b=2
        two wants eds xdstp://a/EDS/d/x?a=1&b=2
        two <- eds [xdstp://a/EDS/d/x?a=1&b=2@1], ack
        origin put eds xdstp://a/EDS/d/x?a=1&b=2@2
        one <- eds sotw [xdstp://a/EDS/d/x?b=2&a=1@2:wrapped] | delta [xdstp://a/EDS/d/x?b=2&a=1@2], ack
        two <- eds [xdstp://a/EDS/d/x?a=1&b=2@2], ack
        delta origin drop eds xdstp://a/EDS/d/x?a=1&b=2
        delta one <- eds -[xdstp://a/EDS/d/x?b=2&a=1], ack
        delta two <- eds -[xdstp://a/EDS/d/x?a=1&b=2], ack
    ";

    /// F-09: a client that uses two spellings of one name is answered in both, and can give up either.
    two_ways_at_once => delta "
        origin put eds xdstp://a/EDS/x:y@1
        client gets eds xdstp://a/EDS/x%3Ay [xdstp://a/EDS/x%3Ay@1]
        client gets eds xdstp://a/EDS/x:y [xdstp://a/EDS/x:y@1]
        client wants eds xdstp://a/EDS/x:y
        origin put eds xdstp://a/EDS/x:y@2
        client <- eds [xdstp://a/EDS/x%3Ay@2 xdstp://a/EDS/x:y@2], ack
        client unsubscribe eds xdstp://a/EDS/x%3Ay
        origin put eds xdstp://a/EDS/x:y@3
        client <- eds [xdstp://a/EDS/x:y@3], ack
        client unsubscribe eds xdstp://a/EDS/x:y
        client wants eds
        origin put eds xdstp://a/EDS/x:y@4
    ";

    /// F-07, L-25: directives never reach the wire upstream.
    directives => delta "
        origin put lds xdstp://a/LDS/x@1
        client subscribe lds xdstp://a/LDS/x#alt=xdstp://b/LDS/x
        client wants lds xdstp://a/LDS/x
        client <- lds [xdstp://a/LDS/x#alt=xdstp://b/LDS/x@1], ack
    ";

    /// F-02, F-03, L-25: a text that is no name of the form, or names another type, is asked for as it is. Only the server can say
    /// that it does not exist.
    any_text_is_a_name => both "
        origin put lds xdstp://a/LDS/x@1
        client subscribe lds xdstp:x xdstp://a/CDS/x xdstp://a/LDS/%zz xdstp://nowhere/LDS/x
        sotw client <- lds ![xdstp://a/CDS/x=5 xdstp://a/LDS/%zz=5 xdstp://nowhere/LDS/x=5 xdstp:x=5], ack
        delta client <- lds -[xdstp:x xdstp://a/CDS/x xdstp://a/LDS/%zz xdstp://nowhere/LDS/x], ack
        client wants lds xdstp://a/CDS/x xdstp://a/LDS/%zz xdstp://nowhere/LDS/x xdstp:x
        nothing for 20s
        origin put lds xdstp:x@1 xdstp://a/LDS/%zz@1
        client <- lds [xdstp:x@1 xdstp://a/LDS/%zz@1], ack
        client gets lds xdstp://a/LDS/x sotw [xdstp:x@1 xdstp://a/LDS/%zz@1 xdstp://a/LDS/x@1] | delta [xdstp://a/LDS/x@1]
        client unsubscribe lds xdstp:x
        delta client subscribe lds xdstp:x
        delta client <- lds [xdstp:x@1], ack
    ";

    /// C-08, F-03, F-09: a name that was dropped under a wildcard is answered in the client's spelling, also if it is no name of the
    /// form.
    what_is_dropped_is_called_as_it_was => delta "
        client has lds * [l@1]
        client gets lds xdstp://a/LDS/%zz xdstp://a/LDS/%78 -[xdstp://a/LDS/%78 xdstp://a/LDS/%zz]
        client unsubscribe lds xdstp://a/LDS/%zz
        nothing
        client gets lds xdstp://a/LDS/x -[xdstp://a/LDS/x]
        client gets lds xdstp://a/CDS/%zz xdstp://a/CDS/* -[xdstp://a/CDS/%zz xdstp://a/CDS/*]
    ";

    /// F-01: any other name is compared byte by byte.
    old_style => both "
        origin put eds x?a=1&b=2@1
        client gets eds x?b=2&a=1 x?a=1&b=2 sotw [x?a=1&b=2@1] ![x?b=2&a=1=5] | delta [x?a=1&b=2@1] -[x?b=2&a=1]
    ";

    /// C-13, F-09: what a client brings along from an earlier stream may be in its own spelling.
    reconnecting => delta "
        origin put rds xdstp://a/RDS/x?a=1&b=2@1 xdstp://a/RDS/y?a=1&b=2@1
        client gets rds xdstp://a/RDS/x?b=2&a=1 xdstp://a/RDS/y?b=2&a=1 [xdstp://a/RDS/x?b=2&a=1@1 xdstp://a/RDS/y?b=2&a=1@1]
        origin drop rds xdstp://a/RDS/x?a=1&b=2
        client <- rds -[xdstp://a/RDS/x?b=2&a=1]
        client reconnects
        client gets rds -[xdstp://a/RDS/x?b=2&a=1]
    ";

    /// C-22, F-10, L-25: a collection is one directory, for equal parameters; an empty one is answered by its own name.
    collections => both "
        origin put eds xdstp://a/EDS/d/x?a=1&b=2@1 xdstp://a/EDS/d/e/x?a=1&b=2@1 xdstp://a/EDS/d/x?a=1@1
        client subscribe eds xdstp://a/EDS/d/*?b=2&a=1
        client wants eds xdstp://a/EDS/d/*?a=1&b=2
        client <- eds [xdstp://a/EDS/d/x?a=1&b=2@1], ack
        origin put eds xdstp://a/EDS/d/y?a=1&b=2@1
        client <- eds [xdstp://a/EDS/d/y?a=1&b=2@1], ack
        origin put eds xdstp://a/EDS/d/y?a=1&b=2@2
        client <- eds [xdstp://a/EDS/d/y?a=1&b=2@2], ack
        origin drop eds xdstp://a/EDS/d/x?a=1&b=2
        client <- eds sotw nothing | delta -[xdstp://a/EDS/d/x?a=1&b=2], ack
        nothing
        origin put eds xdstp://a/EDS/d/x?a=1&b=2@1
        client <- eds [xdstp://a/EDS/d/x?a=1&b=2@1], ack
        second gets eds xdstp://a/EDS/none/*?b=2&a=1 sotw nothing | delta -[xdstp://a/EDS/none/*?b=2&a=1]
        origin put eds xdstp://a/EDS/none/x?a=1&b=2@1
        second <- eds [xdstp://a/EDS/none/x?a=1&b=2@1], ack
    ";

    /// C-22, B-16: in a full state the members are listed like names that were asked for.
    collections_in_full_states => sotw "
        client has cds xdstp://a/CDS/d/* z [xdstp://a/CDS/d/x@1 xdstp://a/CDS/d/y@1 z@1]
        origin drop cds xdstp://a/CDS/d/x
        client <- cds [xdstp://a/CDS/d/y@1 z@1], ack
        origin put cds xdstp://a/CDS/d/w@1
        client <- cds [xdstp://a/CDS/d/w@1 xdstp://a/CDS/d/y@1 z@1], ack
        client unsubscribe cds xdstp://a/CDS/d/*
        nothing
        origin put cds z@2
        client <- cds [z@2], ack
    ";

    /// C-22, B-14, C-11: a member that is asked for by itself as well, and a collection that is asked for again.
    members_and_names => delta "
        client has eds xdstp://a/EDS/d/* [xdstp://a/EDS/d/x@1 xdstp://a/EDS/d/y@1]
        client gets eds xdstp://a/EDS/d/x [xdstp://a/EDS/d/x@1]
        client wants eds xdstp://a/EDS/d/* xdstp://a/EDS/d/x
        client gets eds xdstp://a/EDS/d/* [xdstp://a/EDS/d/x@1 xdstp://a/EDS/d/y@1]
        client unsubscribe eds xdstp://a/EDS/d/*
        origin put eds xdstp://a/EDS/d/x@2 xdstp://a/EDS/d/y@2
        client <- eds [xdstp://a/EDS/d/x@2], ack
        client gets eds xdstp://a/EDS/d/* [xdstp://a/EDS/d/x@2 xdstp://a/EDS/d/y@2]
        client unsubscribe eds xdstp://a/EDS/d/x
        client <- eds [xdstp://a/EDS/d/x@2], ack
        client wants eds xdstp://a/EDS/d/*
        origin drop eds xdstp://a/EDS/d/x
        client <- eds -[xdstp://a/EDS/d/x], ack
    ";

    /// C-08, G-20: a name is given up under a wildcard, and a collection covers it before the answer is sent: the known state of the
    /// collection is the answer.
    given_up_and_then_a_member => delta "
        client has rds * [a@1]
        origin silent rds
        client stalls
        client subscribe rds xdstp://a/RDS/d/x
        client unsubscribe rds xdstp://a/RDS/d/x
        client subscribe rds xdstp://a/RDS/d/*
        client reads
        nothing for 5s
        origin speaks
        client <- rds -[xdstp://a/RDS/d/*], ack
    ";

    /// C-08, F-09: the same with a name that the client gave up in another spelling: the collection brings it by its own name, and
    /// nothing comes in that spelling.
    given_up_in_another_spelling_and_then_a_member => delta "
        origin put rds a@1 xdstp://a/RDS/d/x@1:aside
        client gets rds * [a@1]
        client stalls
        client subscribe rds xdstp://a/RDS/d/%78
        client unsubscribe rds xdstp://a/RDS/d/%78
        client subscribe rds xdstp://a/RDS/d/*
        client reads
        client <- rds [xdstp://a/RDS/d/x@1], ack
    ";

    /// C-08, K-16: the same if the client was sent the resource: silence about the collection does not remove it.
    given_up_and_then_a_member_of_which_nothing_is_known => delta "
        origin put rds a@1 xdstp://a/RDS/d/x@1:aside
        client gets rds * [a@1]
        client gets rds xdstp://a/RDS/d/x [xdstp://a/RDS/d/x@1]
        other open rds
        client stalls
        client unsubscribe rds xdstp://a/RDS/d/x
        client subscribe rds xdstp://a/RDS/d/*
        client moves other
        client reads
        wait 20s
        client <- rds -[xdstp://a/RDS/d/*], ack
        other complete rds
        client <- rds -[a], ack
    ";

    /// C-13, C-22, K-16: members that a client brings along are removed only once the collection is known as a whole.
    collections_and_reconnecting => delta "
        client has rds xdstp://a/RDS/d/* [xdstp://a/RDS/d/x@1 xdstp://a/RDS/d/y@1]
        origin open rds, drop rds xdstp://a/RDS/d/x, put rds xdstp://a/RDS/d/y@2
        client reconnects
        relay restarts
        client gets rds [xdstp://a/RDS/d/y@2]
        nothing for 20s
        origin complete rds
        client <- rds -[xdstp://a/RDS/d/x], ack
    ";

    /// C-22, K-16: that a collection was not answered in time is reported to clients that hold nothing of it, and to no other client.
    collections_and_silence => delta "
        client has rds xdstp://a/RDS/d/* [xdstp://a/RDS/d/x@1]
        origin open rds, drop rds xdstp://a/RDS/d/x
        client reconnects
        relay restarts
        client subscribe rds
        nothing for 20s
        second gets rds xdstp://a/RDS/d/* -[xdstp://a/RDS/d/*]
        client subscribe rds xdstp://a/RDS/d/*
        nothing for 20s
        origin complete rds
        client <- rds -[xdstp://a/RDS/d/* xdstp://a/RDS/d/x], ack
    ";

    /// B-14, K-16: a request that names a collection instead of its member gives up nothing, and silence takes nothing away.
    a_member_that_was_asked_for_by_name => sotw "
        client has lds xdstp://a/LDS/d/x [xdstp://a/LDS/d/x@1]
        other talks sotw, open lds
        client moves other
        nothing for 20s
        client sends lds [xdstp://a/LDS/d/*] v1 n1
        wait 20s
        client <- lds [xdstp://a/LDS/d/x@1] ![xdstp://a/LDS/d/*=5], ack
    ";

    /// C-22, L-28: a move to another view removes what is not in the collection there, once the collection is known as a whole.
    collections_and_views => delta "
        client has eds xdstp://a/EDS/d/* [xdstp://a/EDS/d/x@1 xdstp://a/EDS/d/y@1]
        other open eds, put eds xdstp://a/EDS/d/y@1 xdstp://a/EDS/d/z@1
        client moves other
        client <- eds [xdstp://a/EDS/d/z@1], ack
        nothing
        other complete eds
        client <- eds -[xdstp://a/EDS/d/x], ack
    ";

    /// endpoints by collection, whose name is only in the wrapper.
    locality_endpoints => both "
        origin put leds xdstp://a/LEDS/zone/1@1 xdstp://a/LEDS/zone/2@1
        client can xds.config.resource-in-sotw
        client subscribe leds xdstp://a/LEDS/zone/*
        sotw client <- leds [xdstp://a/LEDS/zone/1@1:wrapped xdstp://a/LEDS/zone/2@1:wrapped], ack
        delta client <- leds [xdstp://a/LEDS/zone/1@1 xdstp://a/LEDS/zone/2@1], ack
    ";

    /// C-22: members count as names, so an endless collection ends the stream, and has no other effect.
    a_collection_that_is_too_large => both "
        relay limit names_per_stream 4
        client has eds xdstp://a/EDS/d/* [xdstp://a/EDS/d/1@1 xdstp://a/EDS/d/2@1 xdstp://a/EDS/d/3@1]
        origin put eds xdstp://a/EDS/d/4@1
        client ends ResourceExhausted limits.names_per_stream
        second gets eds xdstp://a/EDS/d/1 [xdstp://a/EDS/d/1@1]
    ";

    /// B-14, C-22: if a collection is given up and asked for again, what is on its way counts as held, so that removals of it are
    /// sent.
    a_collection_that_is_given_up_and_asked_for_again => delta "
        origin put eds xdstp://a/EDS/x@1 xdstp://a/EDS/y@1
        client sends eds +xdstp://a/EDS/*
        client <- eds [xdstp://a/EDS/x@1 xdstp://a/EDS/y@1]
        client sends eds -xdstp://a/EDS/*
        origin drop eds xdstp://a/EDS/x
        client sends eds +xdstp://a/EDS/*
        client sends eds n1 => ack
        client <- eds [xdstp://a/EDS/y@1], ack
        client <- eds -[xdstp://a/EDS/x], ack
    ";

    /// C-11, C-22: a client that asks again for a collection with nothing left in it is answered again.
    an_empty_collection_asked_for_again => delta "
        origin put eds a@1
        client gets eds xdstp://a/EDS/none/* -[xdstp://a/EDS/none/*]
        client gets eds xdstp://a/EDS/none/* -[xdstp://a/EDS/none/*]
    ";

    /// C-11, C-15, C-22: a client that asks again for a collection is not told once more that a name in it does not exist.
    a_name_that_is_missing_in_a_collection_asked_for_again => delta "
        origin put eds xdstp://a/EDS/d/x@1
        client gets eds xdstp://a/EDS/d/* xdstp://a/EDS/d/x xdstp://a/EDS/d/none [xdstp://a/EDS/d/x@1] -[xdstp://a/EDS/d/none]
        client gets eds xdstp://a/EDS/d/* [xdstp://a/EDS/d/x@1]
        client sends eds +xdstp://a/EDS/d/* -xdstp://a/EDS/d/*
        client <- eds [xdstp://a/EDS/d/x@1], ack
    ";

    /// C-08, B-14: a name that was given up under a wildcard belongs to the collection that is asked for next, and is forgotten with
    /// it.
    a_name_given_up_and_then_its_collection => delta "
        origin put lds xdstp://a/LDS/d/x@1, late lds
        client gets lds * xdstp://a/LDS/d/x [xdstp://a/LDS/d/x@1]
        client stalls
        client sends lds -xdstp://a/LDS/d/x
        client sends lds +xdstp://a/LDS/d/*
        client sends lds -xdstp://a/LDS/d/*
        client reads
    ";

    /// C-13, G-11: what was on its way when a wildcard began, and has gone by its name since, does not go again with the wildcard.
    a_member_that_goes_after_a_wildcard_began => delta "
        origin put cds xdstp://a/CDS/d/x@1, late cds
        client subscribe cds xdstp://a/CDS/d/*
        client <- cds [xdstp://a/CDS/d/x@1]
        client sends cds +*
        client sends cds n1 => ack
        origin drop cds xdstp://a/CDS/d/x
        client <- cds -[xdstp://a/CDS/d/x], ack
        origin punctual cds, put cds w@1
        client <- cds [w@1], ack
    ";

    /// C-20: a client that was told by a resource's own name that it is gone does not hold it by its alias either, even if it comes back
    /// as it was before the alias is removed.
    gone_by_its_own_name_and_back_for_its_alias => delta "
        origin put address s@1:aka=t x@1
        client gets address s t x [s@1:aka=t x@1]
        origin put address x@2
        client <- address [x@2]
        origin drop address s
        client sends address +s
        client <- address -[s]
        client sends address -s
        origin put address s@1:aka=t
        client sends address n2
        client sends address n3
        client <- address [s@1:aka=t], ack
    ";

    /// F-16, C-05, B-10: a locator counts as its name, in every place where a request has names.
    names_in_locators => both "
        origin put cds a@1 b@1
        client locates
        client subscribe cds a
        client wants cds a
        client <- cds [a@1], ack
        client gets cds b sotw [a@1 b@1] | delta [b@1]
        client unsubscribe cds a
        client wants cds b
        origin put cds a@2 b@2
        client <- cds [b@2], ack
        client gets cds * sotw [a@2 b@2] | delta [a@2]
    ";

    /// F-16: the node of a client says what it has nothing of; the relay takes it for any other client.
    a_relay_of_the_version_before => both "
        origin put cds a@1
        client can distributary.all-variants xds.config.resource-in-sotw
        client via relay-0
        client gets cds a [a@1]
        client upstream cannot distributary.all-variants
    ";
}
