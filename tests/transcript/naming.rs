// SPDX-License-Identifier: Apache-2.0
//! A removed cluster waits for the routes that the client's listeners name now.

use crate::story::{both, delta, sotw};

/// D-03: a listener changes the name of its route, and what the old route led to goes in the same moment, or was held until then: the
/// client first gets the new route, and the old cluster goes a moment later, because requests may still be on the old listener.
#[test]
fn a_listener_takes_another_route() {
    both(
        "
        origin put cds a@1 b@1, put lds l@1:rds=route-a, put rds route-a@a
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        client subscribe lds *
        client <- lds [l@1], ack
        client subscribe rds route-a
        client <- rds [route-a@a], ack
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
        client <- cds sotw [b@1] | delta -[a]
        client ack
        client gates 0
        ",
    );
}

/// D-03: the same for a client that asks for each cluster by name, as gRPC does, and is told of the removal in delta.
#[test]
fn a_client_that_names_its_clusters() {
    both(
        "
        origin put cds a@1 b@1, put lds l@1:rds=route-a, put rds route-a@a route-b@b
        client subscribe lds l
        client <- lds [l@1], ack
        client subscribe rds route-a
        client <- rds [route-a@a], ack
        client subscribe cds a
        client <- cds [a@1], ack
        wait 10s
        origin put lds l@2:rds=route-b, drop cds a
        client <- lds [l@2], ack
        nothing for 100ms
        client subscribe rds route-b
        client <- rds [route-b@b]
        client ack
        nothing for 90ms
        client subscribe cds b
        client <- cds sotw [a@1 b@1] | delta [b@1]
        client ack
        nothing for 90ms
        wait 10ms
        client <- cds sotw [b@1] ![a=5] | delta -[a]
        client ack
        client gates 0
        ",
    );
}

/// D-03: the same client asks for the new cluster and its endpoints when it has the route, and uses the old one until it has both.
#[test]
fn the_endpoints_of_the_new_cluster_come_late() {
    both(
        "
        origin put cds a@1 b@1, put eds a@1, put lds l@1:rds=route-a, put rds route-a@a route-b@b
        client subscribe lds l
        client <- lds [l@1], ack
        client subscribe rds route-a
        client <- rds [route-a@a], ack
        client subscribe cds a
        client <- cds [a@1], ack
        client subscribe eds a
        client <- eds [a@1], ack
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
        client <- cds sotw [b@1] ![a=5] | delta -[a]
        client ack
        client gates 0
        ",
    );
}

/// D-03: a session that moves to another server meets a listener with another route there, and its old clusters are unknown there.
#[test]
fn a_session_moves_to_another_server() {
    both(
        "
        origin put cds a@1, put lds l@1:rds=route-a, put rds route-a@a
        other put cds b@1, put lds l@2:rds=route-b, put rds route-b@b
        client subscribe cds a
        client <- cds [a@1], ack
        client subscribe lds l
        client <- lds [l@1], ack
        client subscribe rds route-a
        client <- rds [route-a@a], ack
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
        client <- cds sotw ![a=5] | delta -[a]
        client ack
        client gates 0
        ",
    );
}

/// D-03: nothing waits for a route that never comes for longer than the bound after the client has asked for it, and that is counted.
#[test]
fn a_route_that_never_comes() {
    both(
        "
        origin put cds a@1 b@1, put lds l@1:rds=route-a m@1:rds=route-m, put rds route-a@a route-m@b
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        client subscribe lds *
        client <- lds [l@1 m@1], ack
        client subscribe rds route-a route-m
        client <- rds [route-a@a route-m@b], ack
        wait 10s
        origin silent rds
        origin put lds l@2:rds=route-b, drop cds a
        client <- lds sotw [l@2 m@1] | delta [l@2]
        client ack
        nothing for 1s
        client subscribe rds route-b
        nothing for 1900ms
        wait 100ms
        client <- cds sotw [b@1] | delta -[a]
        client ack
        client gates 1
        ",
    );
}

/// D-03: a client that never asks for what its listener names does not keep its clusters.
#[test]
fn a_client_that_asks_for_no_route() {
    both(
        "
        origin put cds a@1 b@1, put lds l@1:rds=elsewhere
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        client subscribe lds *
        client <- lds [l@1], ack
        origin drop cds a
        nothing for 1900ms
        wait 100ms
        client <- cds sotw [b@1] | delta -[a]
        client ack
        client gates 1
        origin drop cds b
        client <- cds sotw [] | delta -[b]
        client ack
        client gates 1
        ",
    );
}

/// D-03: that a route does not exist is known as well, and ends the wait.
#[test]
fn a_route_that_does_not_exist() {
    delta(
        "
        origin put cds a@1 b@1, put lds l@1:rds=route-a, put rds route-a@a
        client subscribe cds *
        client <- cds [a@1 b@1], ack
        client subscribe lds *
        client <- lds [l@1], ack
        client subscribe rds route-a
        client <- rds [route-a@a], ack
        wait 10s
        origin put lds l@2:rds=none, drop cds a
        client <- lds [l@2], ack
        nothing for 1s
        client subscribe rds none
        client <- rds -[none], ack
        wait 100ms
        client <- cds -[a], ack
        client gates 0
        ",
    );
}

/// D-03: the listener goes back to its old route meanwhile: the wait is over, and a cluster that has returned was never gone.
#[test]
fn a_listener_goes_back() {
    sotw(
        "
        origin put cds a@1 b@1 c@1, put lds l@1:rds=route-a, put rds route-a@a
        client subscribe cds *
        client <- cds [a@1 b@1 c@1], ack
        client subscribe lds *
        client <- lds [l@1], ack
        client subscribe rds route-a
        client <- rds [route-a@a], ack
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
        ",
    );
}

/// D-03: a thousand listeners take other routes at once, and the clusters of the old routes wait for the last of the new ones.
#[test]
fn a_thousand_listeners_at_once() {
    let listed = |word: &dyn Fn(usize) -> String| (0..1000).map(word).collect::<Vec<_>>().join(" ");
    let listeners = |step: usize| listed(&|at| format!("l{at:03}@{step}:rds=r{step}-{at:03}"));
    let sent = |step: usize| listed(&|at| format!("l{at:03}@{step}"));
    let routes = |step: usize| listed(&|at| format!("r{step}-{at:03}@c{step}"));
    let names = |step: usize| listed(&|at| format!("r{step}-{at:03}"));
    both(&format!(
        "
        origin put cds c1@1 c2@1, put lds {}, put rds {}
        client subscribe cds *
        client <- cds [c1@1 c2@1], ack
        client subscribe lds *
        client <- lds [{}], ack
        client subscribe rds {}
        client <- rds [{}], ack
        wait 10s
        origin put lds {}, drop cds c1
        client <- lds [{}], ack
        nothing for 100ms
        origin put rds {}
        client subscribe rds {}
        client <- rds [{}]
        nothing for 1s
        client ack
        wait 100ms
        client <- cds sotw [c2@1] | delta -[c1]
        client ack
        client gates 0
        ",
        listeners(1),
        routes(1),
        sent(1),
        names(1),
        routes(1),
        listeners(2),
        sent(2),
        routes(2),
        names(2),
        routes(2),
    ));
}
