// SPDX-License-Identifier: Apache-2.0
//! Order between types: clusters and endpoints before the resources that refer to them, removals last.

use crate::story::{EVERYTHING, stories};

stories! {
    /// D-01, D-02: what can be sent at the same time is sent in one order, whatever the order of the requests.
    one_order_for_all_types => both "
        origin put cds a@1, put eds a@1, put lds a@1, put rds a@1, put srds a@1, put sds a@1, put rtds a@1, put ecds a@1
        origin put leds a@1
        client can xds.config.resource-in-sotw
        client gets ecds a [a@1]
        client stalls
        client subscribe rtds a
        client subscribe sds a
        client subscribe srds a
        client subscribe rds a
        client subscribe lds a
        client subscribe leds a
        client subscribe eds a
        client subscribe cds a
        origin put ecds a@2
        client reads
        client <- cds [a@1]
        client <- eds [a@1]
        client <- leds sotw [a@1:wrapped] | delta [a@1]
        client <- lds [a@1]
        client <- rds [a@1]
        client <- srds [a@1]
        client <- sds [a@1]
        client <- rtds [a@1]
        client <- ecds [a@2]
        client ack
    ";

    /// B-24: a cluster that warms is not answered, and goes meanwhile. The next one does not wait for that in delta.
    a_cluster_beside_one_that_warms_and_goes => delta "
        client has cds * [c0@1]
        client has rds r [r@1:to=c0]
        origin put cds warms@1
        client <- cds [warms@1]
        origin drop cds warms, put cds c1@1, put rds r@2:to=c1
        client <- cds [c1@1]
        client <- rds [r@2]
        client ack
        client <- cds -[warms], ack
        client gates 0
    ";

    /// D-01, D-04: in SotW the next cluster waits for the answer, and what leads to it waits as long as an Envoy may warm.
    a_route_behind_clusters_that_warm => sotw "
        client has cds * [c0@1]
        client has rds r [r@1:to=c0]
        origin put cds warms@1
        client <- cds [c0@1 warms@1]
        origin drop cds warms, put cds c1@1, put rds r@2:to=c1
        nothing for 14s
        client ack
        client <- cds [c0@1 c1@1 warms@1]
        client <- rds [r@2]
        client ack
        client <- cds [c0@1 c1@1], ack
        client gates 0
        origin put cds c2@1
        client <- cds [c0@1 c1@1 c2@1]
        origin put cds c3@1, put rds r@3:to=c3
        nothing for 15s
        wait 5s
        client <- rds [r@3], ack
        client gates 1
    ";

    /// D-03, D-04, L-27: a route is never sent before its cluster, even if a newer change of the cluster hides the older one.
    a_route_waits_for_its_cluster => both "
        client has cds * [c0@1]
        client has rds r [r@c0]
        origin put cds c0@2
        client <- cds [c0@2]
        origin put cds c0@3
        origin put rds r@c1
        origin put cds c0@4
        nothing for 1s
        client ack
        client <- cds [c0@4]
        client <- rds [r@c1]
        client ack
        client gates 0
    ";

    /// D-03, L-27: a cluster is never removed before the route that used it is acknowledged or rejected, even if the route changes
    /// again.
    a_cluster_stays_until_no_route_needs_it => both "
        client has cds * [c0@1 c1@1]
        client has rds r [r@c1]
        origin put rds r@c0
        client <- rds [r@c0]
        origin drop cds c1
        origin put rds r@c0-again
        nothing for 500ms
        client ack
        client <- rds [r@c0-again]
        nothing for 500ms
        client ack
        client <- cds sotw [c0@1] | delta -[c1], ack
        client gates 0
    ";

    /// D-01, D-03, B-16: one message moves a route to another cluster: the new cluster is sent, then the route, and only then the old
    /// cluster is removed.
    make_before_break => both "
        client has cds * [old@1:eds]
        client has eds old [old@1]
        client has rds r [r@old]
        origin put cds new@1, put rds r@new, drop cds old, drop eds old
        client <- cds sotw [new@1 old@1] | delta [new@1]
        sotw client <- eds ![old=5], ack
        client <- rds [r@new]
        nothing
        client ack cds
        nothing
        client ack rds
        delta client <- eds -[old], ack
        client <- cds sotw [new@1] | delta -[old], ack
        client gates 0
    ";

    /// D-04: endpoints that change in the same burst as a cluster is new go with the routes to it: a control plane may number its clusters, and
    /// then these are the endpoints of another route.
    endpoints_change_with_their_routes => both "
        client has cds * [a@1:eds]
        client has eds a [a@1]
        client has rds r [r@a]
        wait 10s
        origin put cds b@1:eds, put eds a@2 b@1, put rds r@ab
        client <- cds sotw [a@1 b@1] | delta [b@1]
        nothing for 50ms
        sotw client subscribe eds a b
        delta client subscribe eds b
        client <- eds [b@1]
        sotw client ack eds
        client <- eds [a@2]
        client <- rds [r@ab]
        client ack
        client gates 0
        origin put eds a@3
        client <- eds [a@3], ack
    ";

    /// D-04: if the client does not ask for the endpoints of the new cluster, others do not wait for long; outside of a burst they never wait.
    endpoints_do_not_wait_long => both "
        client has cds * [a@1:eds]
        client has eds a [a@1]
        wait 10s
        origin put eds a@2
        client <- eds [a@2], ack
        origin put cds b@1:eds, put eds a@3
        client <- cds sotw [a@1 b@1] | delta [b@1]
        nothing for 99ms
        wait 1ms
        client <- eds [a@3], ack
        origin put eds a@4
        client <- eds [a@4], ack
        client ack cds
    ";

    /// C-22, D-03: when the bound lets the first part of what leaves a collection go, the next part has a wait of its own.
    a_collection_goes_in_parts => delta "
        relay chunk 1
        origin put cds xdstp://a/CDS/x@1 xdstp://a/CDS/y@1, put rds r@1
        client subscribe cds xdstp://a/CDS/*
        client <- cds [xdstp://a/CDS/x@1]
        client <- cds [xdstp://a/CDS/y@1], ack
        client gets rds r [r@1]
        origin put rds r@2, drop cds xdstp://a/CDS/x, drop cds xdstp://a/CDS/y
        client <- rds [r@2]
        nothing for 1s
        wait 1s
        client <- cds -[xdstp://a/CDS/x], ack cds
        nothing for 1s
        client ack
        client <- cds -[xdstp://a/CDS/y], ack
        client gates 1
    ";

    /// D-01, L-27: a rejected route ends the wait as well: the cluster does not stay forever.
    a_rejected_route_holds_nothing_back => both "
        client has cds * [c0@1 c1@1]
        client has rds r [r@c1]
        origin put rds r@bad, drop cds c1
        client <- rds [r@bad]
        nothing for 1s
        client nack rds
        client <- cds sotw [c0@1] | delta -[c1], ack
        client gates 0
    ";

    /// D-04, D-08: every gate has a bound, and each time that a bound opens a gate is counted; a client may acknowledge as late as it
    /// likes.
    a_gate_opens_by_itself => both "
        origin put cds x@1:eds, put eds x@1, put lds l@1, put rds r@1
        client stalls
        client subscribe cds *
        client subscribe lds *
        client subscribe rds r
        client reads
        client <- cds [x@1]
        nothing for 1s
        wait 1s
        client <- lds [l@1]
        client <- rds [r@1]
        client ack
    ", both "
        client has cds * [c0@1]
        client has rds r [r@c0]
        origin put cds c0@2
        client <- cds [c0@2]
        origin put cds c0@3, put rds r@c1
        nothing for 1s
        wait 1s
        client <- rds [r@c1]
        client gates 1
        client ack
        client <- cds [c0@3], ack
    ";

    /// D-02, D-04: the bound is one for all that waits, not one for each type.
    all_that_waits_passes_together => both "
        client has cds * [c0@1]
        client has lds * [l@1]
        client has rds r [r@1]
        client has ecds e [e@1]
        origin put cds c0@2
        client <- cds [c0@2]
        origin put cds c0@3, put lds l@2, put rds r@2, put ecds e@2
        nothing for 1s
        wait 1s
        client <- lds [l@2]
        client <- rds [r@2]
        client <- ecds [e@2]
        origin put rds r@3                       # what comes later waits for itself
        nothing for 1s
        client ack
        client <- cds [c0@3]
        client <- rds [r@3]
        client ack
    ";

    /// D-03: a removal does not wait longer than the bound for a route that is never acknowledged or rejected.
    a_removal_goes_in_the_end => both "
        client has cds * [c0@1 c1@1]
        client has rds r [r@c1]
        origin put rds r@c0, drop cds c1
        client <- rds [r@c0]
        nothing for 1s
        wait 1s
        client <- cds sotw [c0@1] | delta -[c1]
        client gates 1
        client ack
    ";

    /// D-01, L-27: gates ignore what is unknown, absent or rejected.
    gates_ignore_what_cannot_come => both "
        origin put cds x@1:eds, put lds l@1, silent eds
        client subscribe cds *
        client <- cds [x@1]
        client subscribe eds x
        client ack cds
        client gets lds * [l@1]
        second subscribe cds *
        second <- cds [x@1], nack
        second gets lds * [l@1]
        third gets cds ghost * sotw [x@1] ![ghost=5] | delta [x@1] -[ghost]
        third gets lds * [l@1]
    ";

    /// D-06: a per-type stream knows nothing of other types.
    a_stream_of_one_service_has_no_order => both "
        origin put cds c@1, put rds r@1
        clusters speaks cds
        clusters subscribe cds *
        clusters <- cds [c@1]
        routes speaks rds
        routes gets rds r [r@1]
        origin drop cds c, put rds r@2
        routes <- rds [r@2], ack
        clusters ack
        clusters <- cds sotw [] | delta -[c], ack
    ";

    /// C-26, K-20: a message that removes one resource and adds another is one response, if no other type depends on it.
    a_swap_is_one_response => both "
        origin put lds a@1, put rds r@1
        client gets lds * [a@1]
        origin put lds b@1, drop lds a
        client <- lds [b@1]
        delta client <- lds -[a]
        client ack
        client gets rds r [r@1]
        origin put lds a@1, drop lds b
        client <- lds sotw [a@1] | delta [a@1], ack
        delta client <- lds -[b], ack
    ";

    /// D-01, B-21, M-08: a resource that comes back before its removal was sent was never gone.
    back_before_it_went => both "
        client has cds * [c0@1 c1@1]
        client has rds r [r@c1]
        origin put rds r@c0, put cds c2@1, drop cds c1
        client <- cds sotw [c0@1 c1@1 c2@1] | delta [c2@1]
        client <- rds [r@c0]
        client ack cds
        origin put cds c1@1
        nothing
        client ack rds
        nothing for 5s
        origin put rds r@c1, drop cds c0
        client <- rds [r@c1]
        origin put cds c0@2
        client <- cds sotw [c0@2 c1@1 c2@1] | delta [c0@2]
        client ack cds
        client ack rds
    ";

    /// D-01, D-04, B-20: a full state of clusters waits until all are known, and routes that may refer to clusters in it wait with it.
    a_route_waits_until_all_clusters_are_known => sotw "
        origin open cds, put cds b@1, put rds r@b
        client subscribe cds *
        client subscribe rds r
        nothing
        origin complete cds
        client <- cds [b@1], ack
        client <- rds [r@b], ack
        client gates 0
    ";

    /// D-01, G-20: a full state of clusters that waits for unknown names holds back the routes that may refer to clusters in it.
    a_route_waits_for_a_full_state_that_waits => sotw "
        origin behind cds, put cds b@1, put rds r@b
        client sends cds [* x] vold => first
        nothing
        client subscribe rds r
        nothing
        origin punctual cds
        client <- cds [b@1], ack
        client <- rds [r@b], ack
        client gates 0
    ";

    /// C-26, D-03: a listener that goes shares a response with one that takes its address, even while a route is still to be acknowledged.
    /// Any other listener that goes waits for that.
    an_address_goes_from_one_listener_to_another for (asked, error, absent) in EVERYTHING => both "
        origin put lds a@1:leads=0.0.0.0:80 b@1:leads=0.0.0.0:81, put rds r@1
        client gets lds {asked} sotw [a@1 b@1]{error} | delta [a@1 b@1]{absent}
        client subscribe rds r
        client <- rds [r@1]
        origin drop lds a b, put lds c@1:leads=0.0.0.0:80
        client <- lds sotw [b@1 c@1] | delta [c@1] -[a]
        client ack lds
        nothing for 1s
        client ack rds
        client <- lds sotw [c@1] | delta -[b], ack
    ";

    /// D-03, B-22: a rejected full state is no reason to leave out what other types may still need.
    a_removal_beside_a_rejected_full_state for (asked, error, _) in EVERYTHING => sotw "
        origin put cds a@1 b@1, put rds r@1
        client gets cds {asked} [a@1 b@1]{error}
        client subscribe rds r
        client <- rds [r@1]
        origin drop cds b, put cds a@bad
        client <- cds [a@bad b@1], nack
        nothing for 1s
        origin put cds a@good
        client <- cds [a@good b@1], ack
        client ack
        client <- cds [a@good], ack
    ";

    /// C-26: all addresses of a machine have the port of each, of IPv4 and IPv6 apart.
    an_address_that_is_a_part_of_another for (asked, error, absent) in EVERYTHING => both "
        origin put lds a@1:leads=0.0.0.0:80 b@1:leads=[::]:80, put rds r@1
        client gets lds {asked} sotw [a@1 b@1]{error} | delta [a@1 b@1]{absent}
        client subscribe rds r
        client <- rds [r@1]
        origin drop lds a b, put lds c@1:leads=127.0.0.1:80
        client <- lds sotw [b@1 c@1] | delta [c@1] -[a]
        client ack lds
        nothing for 1s
        client ack rds
        client <- lds sotw [c@1] | delta -[b], ack
        origin drop lds c, put lds d@1:leads=0.0.0.0:80
        client <- lds sotw [d@1] | delta [d@1] -[c], ack
    ";
}
