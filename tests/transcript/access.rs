// SPDX-License-Identifier: Apache-2.0
//! Rules about what clients may have: nobody is sent anything else, and nothing else is asked for.

use crate::story::stories;

stories! {
    /// S-01, S-04, K-24: a name that a client may not have does not exist for it; other clients have it.
    a_name_that_is_denied_does_not_exist => both "
        relay rule {nodes: {id: a*}, names: a*}
        relay rule {nodes: {id: b*}}
        origin put rds a@1 b@1
        first renames a1
        first gets rds a b sotw [a@1] ![b=7] | delta [a@1] -[b] ![b=7]
        first wants rds a
        second renames b1
        second gets rds a b [a@1 b@1]
        origin put rds a@2 b@2
        first <- rds [a@2], ack
        second <- rds [a@2 b@2], ack
        origin drop rds b
        second <- rds sotw ![b=5] | delta -[b], ack
    ";

    /// S-06: a wildcard shows what the client may see, and changes of nothing else.
    a_wildcard_shows_what_may_be_seen => both "
        relay rule {nodes: {id: a*}, names: [a*, shared]}
        relay rule {nodes: {id: b*}, names: secret, action: deny}
        relay rule {nodes: {id: b*}}
        origin put cds a@1 b@1 secret@1 shared@1
        first renames a1
        second renames b1
        first gets cds * [a@1 shared@1]
        second gets cds * [a@1 b@1 shared@1]
        origin put cds secret@2
        nothing
        origin put cds b@2
        second <- cds sotw [a@1 b@2 shared@1] | delta [b@2], ack
        origin put cds a@2
        first <- cds sotw [a@2 shared@1] | delta [a@2], ack
        second <- cds sotw [a@2 b@2 shared@1] | delta [a@2], ack
        origin drop cds b
        second <- cds sotw [a@2 shared@1] | delta -[b], ack
        origin drop cds a
        first <- cds sotw [shared@1] | delta -[a], ack
        second <- cds sotw [shared@1] | delta -[a], ack
    ";

    /// S-02: a client that no rule admits is refused at once, in words that name it.
    a_stranger_is_refused => both "
        relay rule {identities: 'spiffe://td/ns/{ns}/sa/*', nodes: {id: '{ns}-*'}}
        first proves spiffe://td/ns/a/sa/x ip:10.0.0.1
        first renames b-1
        first subscribe cds *
        first ends PermissionDenied node `b-1`
        second proves spiffe://td/ns/b/sa/x
        second renames b-1
        second has cds * [c@1]
        third renames b-1
        third subscribe cds *
        third ends PermissionDenied no identity
    ";

    /// S-03: on an aggregated stream a denied type has no resources, and all else goes on; a stream for it alone ends.
    a_denied_type_harms_no_other => both "
        relay rule {types: lds, action: deny}
        relay rule {nodes: {}}
        origin put cds a@1, put lds l@1
        client gets cds * [a@1]
        client gets lds * []
        origin put cds a@2, put lds l@2
        client <- cds [a@2], ack
        client wants lds
        alone speaks lds
        alone subscribe lds *
        alone ends PermissionDenied do not allow
    ";

    /// S-05: secrets are served only where a rule names them.
    secrets_must_be_named => sotw "
        relay secrets by_rule
        origin put sds s@1, put cds a@1
        client gets cds * [a@1]
        client subscribe sds s
        nothing for 20s
        client wants sds
        alone speaks sds
        alone subscribe sds s
        alone ends PermissionDenied `secrets: allow`
    ", both "
        relay secrets by_rule
        relay rule {types: sds, names: s}
        relay rule {nodes: {}}
        origin put sds s@1 t@1, put cds a@1
        client gets cds * [a@1]
        client gets sds s t sotw [s@1] | delta [s@1] -[t] ![t=7]
        client wants sds s
    ";

    /// S-01, C-20: a resource is not had by another of its names either.
    aliases_are_no_way_around => delta "
        relay rule {names: x}
        origin put vhds hidden@1:aka=x
        client gets vhds x [x@-:aka=x]
    ";

    /// S-01, C-22: a collection has the members that the client may have.
    collections_have_what_may_be_seen => both "
        relay rule {names: ['xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/d/*']}
        relay rule {names: ['*/e/b'], action: deny}
        relay rule {names: ['*/e/*']}
        origin put eds xdstp://a/EDS/d/a@1 xdstp://a/EDS/e/a@1 xdstp://a/EDS/e/b@1
        client gets eds xdstp://a/EDS/e/* [xdstp://a/EDS/e/a@1]
        client gets eds xdstp://a/EDS/f/* sotw ![xdstp://a/EDS/f/*=7] | delta -[xdstp://a/EDS/f/*] ![xdstp://a/EDS/f/*=7]
        origin put eds xdstp://a/EDS/e/b@2
    ";

    /// S-07: rules that change take away what they do not allow any more, like a removal, and bring what they allow now; of what does not
    /// change, nothing is sent.
    rules_change_under_a_wildcard => both "
        relay rules {names: [a*, shared]}
        origin put cds a@1 b@1 shared@1
        client gets cds * [a@1 shared@1]
        second gets cds * [a@1 shared@1]
        relay rules {names: [b*, shared]}
        client <- cds sotw [b@1 shared@1] | delta [b@1]
        delta client <- cds -[a]
        client ack
        second <- cds sotw [b@1 shared@1] | delta [b@1]
        delta second <- cds -[a]
        second ack
        relay rules {nodes: {id: client}, names: [b, shared]}; {names: [b, shared]}
        nothing
        origin put cds c@1
        nothing
        relay rules
        client <- cds sotw [a@1 b@1 c@1 shared@1] | delta [a@1 c@1], ack
        second <- cds sotw [a@1 b@1 c@1 shared@1] | delta [a@1 c@1], ack
    ";

    /// S-07: a name that may not be had any more goes like one that is gone at the server, and is not asked for; in SotW, no more of it is
    /// sent.
    rules_change_for_names => both "
        client has eds a b [a@1 b@1]
        client wants eds a b
        relay rules {names: a}
        client <- eds sotw ![b=7] | delta -[b] ![b=7], ack
        client wants eds a
        origin put eds a@2 b@2
        client <- eds [a@2], ack
        relay rules {names: '*'}
        client wants eds a b
        client <- eds sotw [b@2] | delta [b@2], ack
    ";

    /// S-07, B-18: a secret that may not be had any more is listed beside others as it was sent, whatever its server has made of it since.
    a_denied_secret_stays_listed => sotw "
        client can xds.config.supports-resource-ttl
        client has sds a b [a@1 b@1]
        relay rules {names: b, types: sds}
        origin put sds a@2:ttl=30s
        nothing for 2s
        origin put sds b@2
        client <- sds [a@1 b@2], ack
    ";

    /// S-02, S-03, S-07: a stream that the rules do not admit any more ends; so does a stream for a type of which nothing is allowed.
    rules_change_for_whole_streams => both "
        client has cds * [a@1]
        client has lds * [l@1]
        alone speaks lds
        alone gets lds * [l@1]
        relay rules {types: cds}
        alone ends PermissionDenied do not allow
        client <- lds sotw [] | delta -[l], ack
        client wants lds
        origin put lds l@2
        nothing
        relay rules {nodes: {}}
        client wants lds *
        client <- lds [l@2], ack
        relay rules {nodes: {id: another}}
        client ends PermissionDenied node `client`
    ";

    /// S-07: what is on its way when the rules change is taken away again; what was still to come of an answer is not sent.
    rules_change_in_the_middle_of_an_answer => both "
        origin put cds a@1 b@1 c@1
        client subscribe cds *
        client <- cds [a@1 b@1 c@1]
        relay rules {names: [a, c]}
        nothing
        client ack
        client <- cds sotw [a@1 c@1] | delta -[b], ack
    ", delta "
        relay chunk 1
        origin put cds a@1 b@1 c@1
        client stalls
        client subscribe cds *
        client reads 1
        client <- cds [a@1]
        relay rules {names: [a, c]}
        client ack
        client reads
        client <- cds [c@1], ack
    ";
}
