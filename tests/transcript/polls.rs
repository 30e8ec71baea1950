// SPDX-License-Identifier: Apache-2.0
//! Clients that poll over REST: what they have, what they ask for, and what they are answered.

use crate::story::stories;

stories! {
    /// H-01, H-03: the path decides which type is polled, whatever the body says; types that cannot be polled have no path.
    the_path_says_the_type => sotw "
        origin put cds a@1, put eds e@1, put cds_v2 o@1
        poller polls /v3/discovery:clusters []
        poller <- cds 200 [a@1], ack
        poller polls /v3/discovery:clusters [a] of eds stale
        poller <- cds 200 [a@1], ack
        poller polls /v2/discovery:clusters []
        poller <- cds_v2 200 [o@1], ack
        poller polls /v3/discovery:endpoints []
        poller <- eds 200 [e@1], ack
        poller polls /v3/discovery:virtual_hosts []
        poller <- none 404
        poller polls /v3/discovery:lb_endpoints []
        poller <- none 404
        poller polls /v3/discovery:clusters/ []
        poller <- none 404
        poller polls /envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources []
        poller <- none 404
    ";

    /// H-02, H-05: each poll carries its node, and the limits of a stream hold for it; a poll that is refused asks for nothing.
    what_is_refused => sotw "
        relay limit names_per_stream 2
        relay limit name_bytes 10
        origin put cds a@1
        poller polls cds [] nameless
        poller <- cds refused InvalidArgument
        poller polls cds [a b c]
        poller <- cds refused ResourceExhausted
        poller polls cds [a a-name-that-is-long]
        poller <- cds 200 [a@1], ack
    ";

    /// H-02: a poll that asks for something twice, as a collection and by name or in two spellings of one name, is answered at once like
    /// any other.
    what_is_asked_for_twice => sotw "
        origin put eds xdstp://a/EDS/e/1@1 xdstp://a/EDS/e/2@1
        poller polls eds [xdstp://a/EDS/e/* xdstp://a/EDS/e/*]
        poller <- eds 200 [xdstp://a/EDS/e/1@1 xdstp://a/EDS/e/2@1], ack
        poller polls eds [xdstp://a/EDS/e/* xdstp://a/EDS/e/1 xdstp://a/EDS/e/2] stale
        poller <- eds 200 [xdstp://a/EDS/e/1@1 xdstp://a/EDS/e/2@1], ack
    ";

    /// H-05: a client that rejected an answer has the version from before, and is sent that answer again; it may also ask for
    /// something else.
    a_refusal_is_an_old_version => sotw "
        origin put cds a@1
        poller polls cds []
        poller <- cds 200 [a@1], ack
        origin put cds a@bad
        poller polls cds []
        poller <- cds 200 [a@bad], nack
        poller polls cds []
        poller <- cds 200 [a@bad], nack
        origin put cds a@1
        poller polls cds []
        wait 1s
        poller <- cds 304                          # what it has is good again
    ";

    /// H-04: only a change of what is asked for ends the wait; when all of it is gone, the answer is an empty set.
    a_change_ends_the_wait => sotw "
        origin put eds a@1 b@1
        poller polls eds [a]
        poller <- eds 200 [a@1], ack
        poller polls eds [a] 60s
        nothing for 10s
        origin put eds b@2 c@1
        nothing for 10s
        origin put eds a@2
        poller <- eds 200 [a@2], ack
        poller polls eds [a] 60s
        origin drop eds a
        poller <- eds 200 [], ack
        poller polls eds [a]
        wait 1s
        poller <- eds 304
        poller polls eds [a b] 60s
        poller <- eds 200 [b@2], ack
        poller polls eds [a b] 60s
        origin put eds a@3
        poller <- eds 200 [a@3 b@2], ack
    ";

    /// H-06: no names mean all names, of every type, like `*`; each poll is complete by itself.
    no_names_are_all_names => sotw "
        origin put eds a@1 b@1
        poller polls eds []
        poller <- eds 200 [a@1 b@1], ack
        poller polls eds [b]
        poller <- eds 200 [b@1], ack
        poller polls eds [*]
        poller <- eds 200 [a@1 b@1], ack
        poller polls eds [* b] 60s
        origin put eds c@1
        poller <- eds 200 [a@1 b@1 c@1], ack
    ";

    /// H-02, B-20, K-15: what the server has not answered for is never reported as nothing, whatever the client has; a known empty
    /// state is reported.
    what_is_not_known_is_not_empty => sotw "
        origin silent cds
        poller polls cds []
        wait 1s
        poller <- cds 503
        poller polls cds [] stale
        wait 1s
        poller <- cds 503
        poller polls cds [a] 60s
        nothing for 10s
        origin speaks
        poller <- cds 200 [], ack
        poller polls cds []
        wait 1s
        poller <- cds 304                          # nothing by name, nothing at all: one set
    ";

    /// B-16: at the end of its time, a client that asks for names of a type without full states is sent what is known of them; for
    /// other types it is sent everything or nothing.
    a_part_at_the_end => sotw "
        origin talks sotw, put eds a@1, put cds a@1
        poller polls eds [a b] 10s
        nothing for 9900ms
        wait 100ms
        poller <- eds 200 [a@1], ack
        poller-2 polls cds [a b] 10s
        wait 10s
        poller-2 <- cds 503
        wait 5s                                    # E-08: nobody waits for b any more
        poller-2 polls cds [a b]
        poller-2 <- cds 200 [a@1], ack
    ";

    /// K-09, G-19: neither the loss of the control plane, nor another relay, view or restart with the same content, counts as new.
    the_same_content_is_the_same_version => sotw "
        origin put cds a@1 b@1
        other put cds a@1 b@1
        poller polls cds []
        poller <- cds 200 [a@1 b@1], ack
        poller polls cds [] 60s
        origin lost
        nothing for 30s
        wait 30s
        poller <- cds 304
        poller moves other
        poller polls cds []
        wait 1s
        poller <- cds 304
        poller moves origin
        origin back
        relay restarts
        poller polls cds []
        wait 1s
        poller <- cds 304
    ";

    /// E-11: a client that polls sees no time to live, only that the resource is gone.
    a_time_to_live => sotw "
        origin put eds a@1:ttl=10s
        poller polls eds [a]
        poller <- eds 200 [a@1], ack
        poller polls eds [a] 60s
        nothing for 9s
        wait 1s
        poller <- eds 200 [], ack
    ";
}
