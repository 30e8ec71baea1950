// SPDX-License-Identifier: Apache-2.0
//! What is sent although the client may have it: what it names anew, and what it says when it comes back.

use crate::story::stories;

stories! {
    /// B-14, L-3: a name that was dropped and named again is sent again, though version and nonce are the same.
    dropped_and_named_again => both "
        client has eds A [A@1]
        client unsubscribe eds A
        nothing
        client gets eds A [A@1]
    ";

    /// B-14: in a full state too.
    dropped_and_named_again_in_a_full_state => both "
        client has lds A B [A@1 B@1]
        client unsubscribe lds A
        nothing
        client gets lds A sotw [A@1 B@1] | delta [A@1]
    ";

    /// C-11, B-14, L-4: a client that subscribes again to what it has subscribed to has forgotten it.
    subscribed_twice_is_sent_twice => delta "
        client has rds A [A@1]
        client sends rds +A
        client <- rds [A@1], ack
        client sends rds +A +A
        client <- rds [A@1]
        client sends rds +A
        nothing
        client ack
        client <- rds [A@1], ack
    ";

    /// C-11: the same for the wildcard.
    the_wildcard_subscribed_twice => delta "
        origin put cds a@1 b@1
        client sends cds +*
        client <- cds [a@1 b@1], ack
        client sends cds +*
        client <- cds [a@1 b@1], ack
    ";

    /// B-14: only the new name has to be sent, unless the type lists all there is.
    one_more_name => both "
        origin put eds a@1 b@1, put lds a@1 b@1
        client gets eds a [a@1]
        client gets eds b [b@1]
        client gets lds a [a@1]
        client gets lds b sotw [a@1 b@1] | delta [b@1]
    ";

    /// B-25, B-26, K-09, K-11, L-9: after a restart of the relay the client may have forgotten anything, so it is answered,
    /// although the version is the same as before; a nonce from another stream means nothing.
    forgotten_while_away => sotw "
        origin put eds A@1 B@1
        client sends eds [A B]
        client <- eds [A@1 B@1]
        client sends eds [A B] v1 n1 => ack
        relay restarts
        client sends eds [A B] v1 n1 => first
        client <- eds [A@1 B@1]
        client sends eds [A B] v2 n1 => stale
        client sends eds [A B] v1 n2 => ack      # v1 is v2: the same content has the same version
    ";

    /// B-26: a wildcard is answered on every stream too.
    a_wildcard_is_answered_on_every_stream => sotw "
        client has cds [a@1]
        client reconnects
        client gets cds [a@1]
    ";

    /// C-12, C-13, C-14, L-10: the versions that a client brings along are compared; endpoints are sent in any case.
    known_versions_are_not_sent_again => delta "
        client has cds * [a@1 b@1 c@1]
        client has eds e1 [e1@1]
        client has rds r [r@1]
        client reconnects
        origin put cds b@2, drop cds c
        client gets cds [b@2]
        client <- cds -[c], ack
        client gets eds [e1@1]
        client subscribe rds
        nothing
        client sends cds =a@0 =z@0
        nothing
        origin put rds r@2
        client <- rds [r@2], ack
    ";

    /// C-14: the same of endpoints that only a wildcard covers.
    endpoints_of_a_wildcard_are_sent_again => delta "
        client has eds * [e1@1 e2@1]
        client reconnects
        client gets eds [e1@1 e2@1]
    ";

    /// C-12, C-13: what a client brings along says what it holds, not what it wants; what is not asked for, or gone, is removed.
    knowledge_is_not_interest => delta "
        origin put rds a@1 b@1 c@1
        client sends rds +a =a@foreign =b@foreign =gone@foreign
        client <- rds [a@1], ack
        client <- rds -[b gone], ack
        origin put rds b@2
        nothing
        second sends rds +c +gone =c@foreign =gone@foreign
        second <- rds [c@1], ack
        second <- rds -[gone], ack
    ";

    /// C-13, C-17: a client that comes back and holds exactly what there is gets one empty answer to its wildcard.
    nothing_has_changed_while_away => delta "
        client has cds * [a@1 b@1]
        relay restarts
        client gets cds []
        origin put cds b@2
        client <- cds [b@2], ack
    ";

    /// C-13, D-01, K-16, G-20: a relay that knows nothing yet removes nothing from a client that comes back.
    coming_back_before_the_relay_knows_anything => both "
        client has cds * [a@1 b@1]
        client has rds r s [r@1 s@1]
        relay restarts
        origin silent cds, silent rds, drop cds b, drop rds s
        client subscribe cds
        client subscribe rds
        nothing for 5s
        origin speaks
        client <- cds sotw [a@1] | delta []
        client ack cds
        client <- rds sotw [r@1] ![s=5] | delta -[s]
        client ack rds
        delta client <- cds -[b], ack            # D-01: clusters go last
    ";

    /// C-13, C-20, G-20: a client that asked by an alias brings the resource along under its own name, and keeps it while the relay
    /// does not know the alias yet.
    an_alias_that_is_not_known_yet => delta "
        origin put address a@1:aka=nick b@1
        client sends address +nick +b
        client <- address [a@1:aka=nick b@1], ack
        relay restarts
        origin silent address
        client sends address +nick +b =a@1 =b@1 =gone@1
        nothing
        origin speaks
        client <- address [a@1:aka=nick], ack
        client <- address -[gone], ack
        origin put address a@2:aka=nick
        client <- address [a@2:aka=nick], ack
    ", delta "
        origin talks sotw, put address b@1
        client sends address +nick +b =a@old =b@old =gone@old
        client <- address [b@1], ack
        nothing for 10s
        origin put address a@1:aka=nick
        client <- address [a@1:aka=nick], ack
        client <- address -[gone], ack
    ", delta "
        origin talks sotw, put address a@1:aka=nick
        client sends address +nick +ghost
        client <- address [a@1:aka=nick], ack
        nothing for 14s
        wait 1s
        client <- address -[ghost], ack
        relay restarts
        client sends address +nick +ghost =a@old =gone@old
        client <- address [a@1:aka=nick], ack
        nothing for 14s
        wait 1s
        client <- address -[ghost], ack
    ";

    /// C-13, C-20: what a client declared may be what it asks for by an alias, also if it gives up its wildcard before anything is known.
    what_is_declared_and_its_wildcard_given_up => delta "
        origin put address a@1:aka=nick
        client sends address +nick
        client <- address [a@1:aka=nick], ack
        relay restarts
        origin silent address
        client sends address +nick +* =a@1
        client sends address -*
        nothing
        origin drop address a
        origin speaks
        client <- address -[a nick], ack
    ";
}
