// SPDX-License-Identifier: Apache-2.0
//! A removed cluster waits for the routes that the client's listeners name now.

use crate::story::stories;

stories! {
    /// D-03: a listener changes the name of its route, and what the old route led to goes in the same moment, or was held until then: the
    /// client first gets the new route, and the old cluster goes a moment later, because requests may still be on the old listener.
    a_listener_takes_another_route => both "
        client has cds * [a@1 b@1]
        client has lds * [l@1:rds=route-a]
        client has rds route-a [route-a@a]
        wait 10s
        origin silent rds
        origin put lds l@2:rds=route-b, drop cds a
        client <- lds [l@2], ack
        nothing for 100ms
        client subscribe rds route-b
        client unsubscribe rds route-a
        nothing for 1s
        origin speaks, put rds route-b@b
        client <- rds [route-b@b]
        nothing for 500ms
        client ack
        nothing for 99ms
        wait 1ms
        client <- cds sotw [b@1] | delta -[a], ack
        client gates 0
    ";

    /// D-03: the same for a client that asks for each cluster by name, as gRPC does, and is told of the removal in delta.
    a_client_that_names_its_clusters => both "
        origin put cds a@1 b@1, put lds l@1:rds=route-a, put rds route-a@a route-b@b
        client gets lds l [l@1]
        client gets rds route-a [route-a@a]
        client gets cds a [a@1]
        wait 10s
        origin put lds l@2:rds=route-b, drop cds a
        client <- lds [l@2], ack
        nothing for 100ms
        client gets rds route-b [route-b@b]
        nothing for 90ms
        client gets cds b sotw [a@1 b@1] | delta [b@1]
        nothing for 90ms
        wait 10ms
        client <- cds sotw [b@1] ![a=5] | delta -[a], ack
        client gates 0
    ";

    /// D-03: the same client asks for the new cluster and its endpoints when it has the route, and uses the old one until it has both.
    the_endpoints_of_the_new_cluster_come_late => both "
        origin put cds a@1 b@1, put eds a@1, put lds l@1:rds=route-a, put rds route-a@a route-b@b
        client gets lds l [l@1]
        client gets rds route-a [route-a@a]
        client gets cds a [a@1]
        client gets eds a [a@1]
        wait 10s
        origin silent eds
        origin put lds l@2:rds=route-b, drop cds a
        client <- lds [l@2], ack
        client subscribe rds route-b
        client <- rds [route-b@b]
        client subscribe cds b
        client <- cds sotw [a@1 b@1] | delta [b@1]
        client subscribe eds b
        client ack rds
        client ack cds
        nothing for 1s
        origin speaks, put eds b@1
        client <- eds [b@1]
        nothing for 500ms
        client ack
        nothing for 90ms
        wait 10ms
        client <- cds sotw [b@1] ![a=5] | delta -[a], ack
        client gates 0
    ";

    /// D-03: a session that moves to another server meets a listener with another route there, and its old clusters are unknown there.
    a_session_moves_to_another_server => both "
        origin put cds a@1, put lds l@1:rds=route-a, put rds route-a@a
        other put cds b@1, put lds l@2:rds=route-b, put rds route-b@b
        client gets cds a [a@1]
        client gets lds l [l@1]
        client gets rds route-a [route-a@a]
        wait 10s
        client moves other
        client <- lds [l@2], ack
        sotw client <- rds ![route-a=5], ack
        nothing for 1s
        client subscribe rds route-b
        client <- rds [route-b@b]
        nothing for 1s
        client ack
        delta client <- rds -[route-a], ack
        nothing for 90ms
        wait 10ms
        client <- cds sotw ![a=5] | delta -[a], ack
        client gates 0
    ";

    /// D-03: nothing waits for a route that never comes for longer than the bound after the client has asked for it, and that is counted.
    a_route_that_never_comes => both "
        client has cds * [a@1 b@1]
        client has lds * [l@1:rds=route-a m@1:rds=route-m]
        client has rds route-a route-m [route-a@a route-m@b]
        wait 10s
        origin silent rds
        origin put lds l@2:rds=route-b, drop cds a
        client <- lds sotw [l@2 m@1] | delta [l@2], ack
        nothing for 1s
        client subscribe rds route-b
        nothing for 1900ms
        wait 100ms
        client <- cds sotw [b@1] | delta -[a], ack
        client gates 1
    ";

    /// D-03: a client that never asks for what its listener names does not keep its clusters.
    a_client_that_asks_for_no_route => both "
        client has cds * [a@1 b@1]
        client has lds * [l@1:rds=elsewhere]
        origin drop cds a
        nothing for 1900ms
        wait 100ms
        client <- cds sotw [b@1] | delta -[a], ack
        client gates 1
        origin drop cds b
        client <- cds sotw [] | delta -[b], ack
        client gates 1
    ";

    /// D-03: that a route does not exist is known as well, and ends the wait.
    a_route_that_does_not_exist => delta "
        client has cds * [a@1 b@1]
        client has lds * [l@1:rds=route-a]
        client has rds route-a [route-a@a]
        wait 10s
        origin put lds l@2:rds=none, drop cds a
        client <- lds [l@2], ack
        nothing for 1s
        client gets rds none -[none]
        wait 100ms
        client <- cds -[a], ack
        client gates 0
    ";

    /// D-03: the listener goes back to its old route meanwhile: the wait is over, and a cluster that has returned was never gone.
    a_listener_goes_back => sotw "
        client has cds * [a@1 b@1 c@1]
        client has lds * [l@1:rds=route-a]
        client has rds route-a [route-a@a]
        wait 10s
        origin put lds l@2:rds=route-b, drop cds a c
        client <- lds [l@2], ack
        nothing for 100ms
        origin put lds l@1:rds=route-a, put cds a@1
        client <- lds [l@1]
        nothing
        client ack
        wait 100ms
        client <- cds [a@1 b@1], ack
        client gates 0
    ";
}
