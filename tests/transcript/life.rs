// SPDX-License-Identifier: Apache-2.0
//! Time to live: resources that end by themselves, and the heartbeats that keep them.

use crate::story::stories;

/// Who reads a time to live: whoever says so, and an Envoy, which names no features (B-30).
const READERS: [&str; 2] = [
    "can xds.config.supports-resource-ttl xds.config.resource-in-sotw",
    "runs envoy",
];

stories! {
    /// B-30, K-17, K-18, L-24: the remaining time to live is passed on, never the original one; heartbeats go to clients that understand
    /// them; at the end the resource goes. In SotW only what has a time to live is in the wrapper.
    time_to_live for reads in READERS => both "
        origin put rds x@1:ttl=10s y@1
        client {reads}
        plain gets rds x [x@1]
        wait 4s
        client gets rds x y sotw [x@1:ttl=6s:wrapped y@1] | delta [x@1:ttl=6s y@1]
        wait 4s
        origin put rds x@1:ttl=10s
        client <- rds sotw [x@1:ttl=10s:wrapped] | delta [x@-:ttl=10s], ack
        plain <- rds nothing
        nothing for 9s
        wait 1s
        client <- rds sotw ![x=5] | delta -[x], ack
        plain <- rds sotw ![x=5] | delta -[x], ack
    ";

    /// B-30, K-17, K-18, L-24: in a full state a heartbeat is the whole state again, each resource with its body. The relay resends
    /// nothing of it by itself.
    time_to_live_in_a_full_state for reads in READERS => both "
        origin put cds x@1:ttl=10s y@1
        client {reads}
        client gets cds * sotw [x@1:ttl=10s:wrapped y@1] | delta [x@1:ttl=10s y@1]
        wait 8s
        origin put cds x@1:ttl=10s
        client <- cds sotw [x@1:ttl=10s:wrapped y@1] | delta [x@-:ttl=10s], ack
        origin put cds x@1
        client <- cds sotw [x@1 y@1] | delta [x@1], ack
        nothing for 60s
        origin put cds x@1:ttl=10s
        client <- cds sotw [x@1:ttl=10s:wrapped y@1] | delta [x@-:ttl=10s], ack
        nothing for 9s
        wait 1s
        client <- cds sotw [y@1] | delta -[x], ack
    ";

    /// K-18, M-04: no time to live for endpoints in SotW, and none for clients that do not read it.
    no_time_to_live_for_who_cannot_read_it => both "
        origin put eds x@1:ttl=10s
        client can xds.config.supports-resource-ttl xds.config.resource-in-sotw
        client gets eds x sotw [x@1] | delta [x@1:ttl=10s]
        half can xds.config.supports-resource-ttl
        half gets eds x sotw [x@1] | delta [x@1:ttl=10s]
        none gets eds x [x@1]
        origin put eds x@1:ttl=10s
        delta client <- eds [x@-:ttl=10s], ack
        delta half <- eds [x@-:ttl=10s], ack
        wait 10s
        client <- eds sotw ![x=5] | delta -[x], ack
        half <- eds sotw ![x=5] | delta -[x], ack
        none <- eds sotw ![x=5] | delta -[x], ack
    ";

    /// E-11, K-17: a resource that loses its time to live is sent once more, because the client would let it expire.
    no_more_time_to_live => both "
        origin put rds x@1:ttl=10s, put cds y@1:ttl=10s
        client can xds.config.supports-resource-ttl xds.config.resource-in-sotw
        client gets rds x sotw [x@1:ttl=10s:wrapped] | delta [x@1:ttl=10s]
        client gets cds * sotw [y@1:ttl=10s:wrapped] | delta [y@1:ttl=10s]
        plain gets rds x [x@1]
        plain gets cds * [y@1]
        origin put rds x@1, put cds y@1
        client <- cds [y@1], ack
        client <- rds [x@1], ack
        nothing for 20s
        origin put rds x@1:ttl=10s, put cds y@1:ttl=10s
        client <- cds sotw [y@1:ttl=10s:wrapped] | delta [y@-:ttl=10s], ack
        client <- rds sotw [x@1:ttl=10s:wrapped] | delta [x@-:ttl=10s], ack
        wait 10s
        client <- rds sotw ![x=5] | delta -[x], ack
        plain <- rds sotw ![x=5] | delta -[x], ack
        sotw client <- cds [], ack
        sotw plain <- cds [], ack
        delta client <- cds -[y], ack
        delta plain <- cds -[y], ack
    ";

    /// K-13, E-11: a cluster that is sent once more only because it has lost its time to live has not changed, and its endpoints are
    /// not sent again.
    no_more_time_to_live_for_a_cluster => both "
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
    ";

    /// K-17, B-22: an Envoy rejects a heartbeat that comes after its own timer has ended. It has accepted the content before, and gets
    /// it again; what came with the heartbeat is tried alone.
    a_heartbeat_that_comes_too_late for (topic, names) in [("rds", "x y"), ("cds", "*")] => delta "
        origin put {topic} x@1:ttl=10s y@1
        client runs envoy
        client gets {topic} {names} [x@1:ttl=10s y@1]
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
    ";

    /// B-30, M-04: an Envoy is sent no time to live for endpoints in SotW, and none for types of v2, whose wrapper has no such field.
    /// Other programs must say that they read it.
    no_time_to_live_for_an_envoy => both "
        origin put eds x@1:ttl=10s, put cds_v2 x@1:ttl=10s, put rds x@1:ttl=10s
        client runs envoy
        client gets eds x sotw [x@1] | delta [x@1:ttl=10s]
        client gets cds_v2 * [x@1]
        plain runs gRPC
        plain gets rds x [x@1]
        origin put cds_v2 x@1:ttl=10s, put rds x@1:ttl=10s
        nothing
        wait 10s
        client <- eds sotw ![x=5] | delta -[x]
        client ack eds
        client <- cds_v2 sotw [] | delta -[x], ack
        plain <- rds sotw ![x=5] | delta -[x], ack
    ";

    /// K-17: what is left of a time to live may be shorter than the way to the client, and may be years.
    times_to_live_of_any_length => both "
        origin put rds none@1:ttl=0s short@1:ttl=1ms years@1:ttl=315360000s
        client runs envoy
        client gets rds none short years sotw [short@1:ttl=1ms:wrapped years@1:ttl=315360000s:wrapped] ![none=5] | delta [short@1:ttl=1ms years@1:ttl=315360000s]
        wait 1ms
        client <- rds sotw ![short=5] | delta -[short], ack
        nothing for 60s
        origin put rds short@1:ttl=1s
        client <- rds sotw [short@1:ttl=1s:wrapped] | delta [short@1:ttl=1s], ack
        wait 1s
        client <- rds sotw ![short=5] | delta -[short], ack
    ";

    /// C-21, K-17: an entry of a virtual host without a body would mean that there is none, so what refreshes one is sent whole.
    time_to_live_of_a_virtual_host => delta "
        origin put vhds r/x@1:ttl=10s
        client runs envoy
        client gets vhds r/x [r/x@1:ttl=10s]
        wait 8s
        origin put vhds r/x@1:ttl=10s
        client <- vhds [r/x@1:ttl=10s], ack
        nothing for 9s
        wait 1s
        client <- vhds -[r/x], ack
    ";
}
