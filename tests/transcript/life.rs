// SPDX-License-Identifier: Apache-2.0
//! Time to live: resources that end by themselves, and the heartbeats that keep them.

use crate::story::{both, delta};

/// K-17, K-18, L-24: the remaining time to live is passed on, never the original one; heartbeats go to clients that understand
/// them; at the end the resource goes.
#[test]
fn time_to_live() {
    both(
        "
        origin put rds x@1:ttl=10s
        client can xds.config.supports-resource-ttl xds.config.resource-in-sotw
        plain subscribe rds x
        plain <- rds [x@1], ack
        wait 4s
        client subscribe rds x
        client <- rds sotw [x@1:ttl=6s:wrapped] | delta [x@1:ttl=6s]
        client ack
        wait 4s
        origin put rds x@1:ttl=10s
        client <- rds sotw [x@1:ttl=10s:wrapped] | delta [x@-:ttl=10s]
        client ack
        plain <- rds nothing
        nothing for 9s
        wait 1s
        client <- rds sotw ![x=5] | delta -[x]
        client ack
        plain <- rds sotw ![x=5] | delta -[x]
        plain ack
        nothing
        ",
    );
}

/// K-17, K-18, L-24: in a full state a heartbeat is the whole state again, each resource with its body.
#[test]
fn time_to_live_in_a_full_state() {
    both(
        "
        origin put cds x@1:ttl=10s y@1
        client can xds.config.supports-resource-ttl xds.config.resource-in-sotw
        client subscribe cds *
        client <- cds sotw [x@1:ttl=10s:wrapped y@1] | delta [x@1:ttl=10s y@1]
        client ack
        wait 8s
        origin put cds x@1:ttl=10s
        client <- cds sotw [x@1:ttl=10s:wrapped y@1] | delta [x@-:ttl=10s]
        client ack
        nothing for 9s
        wait 1s
        client <- cds sotw [y@1] | delta -[x]
        client ack
        ",
    );
}

/// K-18, M-04: no time to live for endpoints in SotW, and none for clients that do not read it.
#[test]
fn no_time_to_live_for_who_cannot_read_it() {
    both(
        "
        origin put eds x@1:ttl=10s
        client can xds.config.supports-resource-ttl xds.config.resource-in-sotw
        client subscribe eds x
        client <- eds sotw [x@1] | delta [x@1:ttl=10s]
        client ack
        half can xds.config.supports-resource-ttl
        half subscribe eds x
        half <- eds sotw [x@1] | delta [x@1:ttl=10s]
        half ack
        none subscribe eds x
        none <- eds [x@1], ack
        origin put eds x@1:ttl=10s
        delta client <- eds [x@-:ttl=10s], ack
        delta half <- eds [x@-:ttl=10s], ack
        wait 10s
        client <- eds sotw ![x=5] | delta -[x]
        client ack
        half <- eds sotw ![x=5] | delta -[x]
        half ack
        none <- eds sotw ![x=5] | delta -[x]
        none ack
        nothing
        ",
    );
}

/// E-11, K-17: a resource that loses its time to live is sent once more, because the client would let it expire.
#[test]
fn no_more_time_to_live() {
    both(
        "
        origin put rds x@1:ttl=10s, put cds y@1:ttl=10s
        client can xds.config.supports-resource-ttl xds.config.resource-in-sotw
        client subscribe rds x
        client <- rds sotw [x@1:ttl=10s:wrapped] | delta [x@1:ttl=10s]
        client ack
        client subscribe cds *
        client <- cds sotw [y@1:ttl=10s:wrapped] | delta [y@1:ttl=10s]
        client ack
        plain subscribe rds x
        plain <- rds [x@1], ack
        plain subscribe cds *
        plain <- cds [y@1], ack
        origin put rds x@1, put cds y@1
        client <- cds [y@1], ack
        client <- rds [x@1], ack
        nothing for 20s
        origin put rds x@1:ttl=10s, put cds y@1:ttl=10s
        client <- cds sotw [y@1:ttl=10s:wrapped] | delta [y@-:ttl=10s]
        client ack
        client <- rds sotw [x@1:ttl=10s:wrapped] | delta [x@-:ttl=10s]
        client ack
        wait 10s
        client <- rds sotw ![x=5] | delta -[x]
        client ack
        plain <- rds sotw ![x=5] | delta -[x]
        plain ack
        sotw client <- cds [], ack
        sotw plain <- cds [], ack
        delta client <- cds -[y], ack
        delta plain <- cds -[y], ack
        ",
    );
}

/// K-13, E-11: a cluster that is sent once more only because it has lost its time to live has not changed, and its endpoints are
/// not sent again.
#[test]
fn no_more_time_to_live_for_a_cluster() {
    both(
        "
        origin put cds x@1:eds:ttl=10s, put eds x@1
        client can xds.config.supports-resource-ttl xds.config.resource-in-sotw
        client subscribe cds *
        client <- cds sotw [x@1:ttl=10s:wrapped] | delta [x@1:ttl=10s]
        client subscribe eds x
        client <- eds [x@1]
        client ack
        origin put cds x@1:eds
        client <- cds [x@1], ack
        nothing for 20s
        origin put cds x@2:eds
        client <- cds [x@2]
        client <- eds [x@1]
        client ack
        ",
    );
}

/// K-17, B-22: no heartbeat for what the client has rejected.
#[test]
fn no_heartbeat_for_what_was_rejected() {
    for (topic, name) in [("rds", "x"), ("cds", "*")] {
        delta(&format!(
            "
            origin put {topic} x@1:ttl=10s
            client can xds.config.supports-resource-ttl
            client subscribe {topic} {name}
            client <- {topic} [x@1:ttl=10s], nack
            wait 5s
            origin put {topic} x@1:ttl=10s
            nothing
            origin put {topic} x@2:ttl=10s
            client <- {topic} [x@2:ttl=10s], ack
            wait 10s
            client <- {topic} -[x], ack
            ",
        ));
    }
}

/// K-17, B-22: an Envoy rejects a heartbeat that comes after its own timer has ended. It has accepted the content before, and gets
/// it again; what came with the heartbeat is tried alone.
#[test]
fn a_heartbeat_that_comes_too_late() {
    for (topic, names) in [("rds", "x y"), ("cds", "*")] {
        delta(&format!(
            "
            origin put {topic} x@1:ttl=10s y@1
            client runs envoy
            client subscribe {topic} {names}
            client <- {topic} [x@1:ttl=10s y@1], ack
            wait 8s
            origin put {topic} x@1:ttl=10s y@bad
            client <- {topic} [x@-:ttl=10s y@bad], nack
            client <- {topic} [y@bad], nack
            client <- {topic} [x@1:ttl=10s], ack
            nothing for 5s
            origin put {topic} x@1:ttl=10s
            client <- {topic} [x@-:ttl=10s], nack
            client <- {topic} [x@1:ttl=10s], nack
            nothing for 8s
            origin put {topic} x@1:ttl=10s y@2
            client <- {topic} [y@2], ack
            wait 10s
            client <- {topic} -[x], ack
            ",
        ));
    }
}

/// B-30, K-17, K-18: an Envoy names no features, and reads time to live all the same. In SotW only what has one is in the wrapper.
#[test]
fn time_to_live_for_an_envoy() {
    both(
        "
        origin put rds x@1:ttl=10s y@1
        client runs envoy
        client subscribe rds x y
        client <- rds sotw [x@1:ttl=10s:wrapped y@1] | delta [x@1:ttl=10s y@1]
        client ack
        wait 8s
        origin put rds x@1:ttl=10s
        client <- rds sotw [x@1:ttl=10s:wrapped] | delta [x@-:ttl=10s]
        client ack
        nothing for 9s
        wait 1s
        client <- rds sotw ![x=5] | delta -[x]
        client ack
        nothing for 60s
        ",
    );
}

/// B-30, K-18: the same for a full state, of which the relay resends nothing by itself.
#[test]
fn time_to_live_in_a_full_state_for_an_envoy() {
    both(
        "
        origin put cds x@1:ttl=10s y@1
        client runs envoy
        client subscribe cds *
        client <- cds sotw [x@1:ttl=10s:wrapped y@1] | delta [x@1:ttl=10s y@1]
        client ack
        nothing for 8s
        origin put cds x@1:ttl=10s
        client <- cds sotw [x@1:ttl=10s:wrapped y@1] | delta [x@-:ttl=10s]
        client ack
        origin put cds x@1
        client <- cds sotw [x@1 y@1] | delta [x@1]
        client ack
        nothing for 60s
        origin put cds y@2
        client <- cds sotw [x@1 y@2] | delta [y@2]
        client ack
        ",
    );
}

/// B-30, M-04: an Envoy is sent no time to live for endpoints in SotW, and none for types of v2, whose wrapper has no such field.
/// Other programs must say that they read it.
#[test]
fn no_time_to_live_for_an_envoy() {
    both(
        "
        origin put eds x@1:ttl=10s, put cds_v2 x@1:ttl=10s, put rds x@1:ttl=10s
        client runs envoy
        client subscribe eds x
        client <- eds sotw [x@1] | delta [x@1:ttl=10s]
        client ack
        client subscribe cds_v2 *
        client <- cds_v2 [x@1], ack
        plain runs gRPC
        plain subscribe rds x
        plain <- rds [x@1], ack
        origin put cds_v2 x@1:ttl=10s, put rds x@1:ttl=10s
        nothing
        wait 10s
        client <- eds sotw ![x=5] | delta -[x]
        client ack eds
        client <- cds_v2 sotw [] | delta -[x]
        client ack
        plain <- rds sotw ![x=5] | delta -[x]
        plain ack
        ",
    );
}

/// K-17: what is left of a time to live may be shorter than the way to the client, and may be years.
#[test]
fn times_to_live_of_any_length() {
    both(
        "
        origin put rds none@1:ttl=0s short@1:ttl=1ms years@1:ttl=315360000s
        client runs envoy
        client subscribe rds none short years
        client <- rds sotw [short@1:ttl=1ms:wrapped years@1:ttl=315360000s:wrapped] ![none=5] | delta [short@1:ttl=1ms years@1:ttl=315360000s]
        client ack
        wait 1ms
        client <- rds sotw ![short=5] | delta -[short]
        client ack
        nothing for 60s
        origin put rds short@1:ttl=1s
        client <- rds sotw [short@1:ttl=1s:wrapped] | delta [short@1:ttl=1s]
        client ack
        wait 1s
        client <- rds sotw ![short=5] | delta -[short]
        client ack
        ",
    );
}

/// C-21, K-17: an entry of a virtual host without a body would mean that there is none, so what refreshes one is sent whole.
#[test]
fn time_to_live_of_a_virtual_host() {
    delta(
        "
        origin put vhds r/x@1:ttl=10s
        client runs envoy
        client subscribe vhds r/x
        client <- vhds [r/x@1:ttl=10s], ack
        wait 8s
        origin put vhds r/x@1:ttl=10s
        client <- vhds [r/x@1:ttl=10s], ack
        nothing for 9s
        wait 1s
        client <- vhds -[r/x], ack
        ",
    );
}
