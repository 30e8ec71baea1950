// SPDX-License-Identifier: Apache-2.0
//! gRPC clients while all servers are lost: they turn to their next server only if a stream ends before its first response.

use crate::story::{both, stories};

stories! {
    /// G-18: a gRPC client that waits for a cluster of a control plane that is gone is sent elsewhere, although it was sent something,
    /// well before it would take the silence for an answer.
    grpc_does_not_wait_for_a_lost_control_plane => both "
        origin put lds l@1, put cds known@1
        client runs gRPC C-core linux
        client gets lds l [l@1]
        origin lost
        nothing for 60s
        client subscribe cds c
        nothing for 7s
        wait 1s
        client ends Unavailable no upstream is left to ask for envoy.config.cluster.v3.Cluster

        # The next stream gets no response at all: only that is a failure for gRPC.
        client subscribe lds l
        client subscribe cds c
        client <- lds nothing
        wait 49ms
        client <- lds nothing
        wait 1ms
        client ends Unavailable no upstream is left

        # A stream that can be answered as a whole is.
        next runs gRPC C-core linux
        next subscribe lds l
        next <- lds nothing
        wait 50ms
        next <- lds [l@1], ack
        nothing for 60s
        next subscribe cds c
        nothing for 7s
        origin back, put cds c@1
        next <- cds [c@1], ack
    ";

    /// G-18: all others keep their streams: an Envoy, and a relay that passes on the name of its clients' software.
    only_grpc_is_sent_elsewhere_with_something => both "
        origin put lds l@1
        envoy runs envoy
        relay2 runs gRPC Go
        relay2 via relay-2
        third runs grpc-proxy
        envoy subscribe lds l
        relay2 subscribe lds l
        third subscribe lds l
        envoy <- lds [l@1], ack
        relay2 <- lds [l@1], ack
        third <- lds [l@1], ack
        origin lost
        envoy subscribe cds c
        relay2 subscribe cds c
        third subscribe cds c
        nothing for 60s
        another runs envoy
        another gets lds l [l@1]
    ";

    /// G-18: whoever asks once is told after a second that nothing is known. If anything is known, it is shown, and the rest is waited for.
    who_asks_once => both "
        holder has eds A [A@1]
        origin lost
        one can distributary.asks-once
        one subscribe eds B
        nothing for 949ms
        wait 1ms
        one ends Unavailable no upstream is left
        next can distributary.asks-once
        next gets eds A B [A@1]
    ";

    /// G-18: what counts is each name, not each type: a name that is still unknown is waited for, whatever else of its type was sent,
    /// and whenever the servers are lost.
    one_name_of_several_is_lost => both "
        origin put eds A@1, silent eds
        holder subscribe eds A
        origin speaks
        holder <- eds [A@1], ack
        origin silent eds
        client runs gRPC Go
        client gets eds A B [A@1]
        nothing for 3s
        origin lost
        nothing for 4s
        wait 1s
        client ends Unavailable no upstream is left

        second runs gRPC Java
        origin back
        second gets eds A B [A@1]
        nothing for 14s
        origin lost
        second ends Unavailable no upstream is left
    ";
}

/// G-18: a new stream is read until its requests pause, and for a second at most: a client that never stops asking is answered in the end.
#[test]
fn who_never_pauses_is_answered() {
    let names = |some: std::ops::Range<usize>, suffix| {
        let names: Vec<String> = some.map(|name| format!("e{name}{suffix}")).collect();
        names.join(" ")
    };
    let all = names(0..26, "@1");
    let mut story = format!("origin put eds {all}\nholder subscribe eds {}\n", names(0..26, ""));
    story += &format!("holder <- eds [{all}], ack\norigin lost\nclient runs gRPC Go\n");
    for name in 0..25 {
        story += &format!("client subscribe eds e{name}\nclient <- eds nothing\nwait 40ms\n");
    }
    both(&(story + &format!("client <- eds [{}], ack", names(0..25, "@1"))));
}

stories! {
    /// G-18: where nothing at all can be said, a gRPC client is sent elsewhere after a second, and others later. The second begins
    /// when the servers are known to be lost.
    nothing_can_be_said_at_all => both "
        origin trying
        early runs gRPC Go
        early subscribe lds l
        early subscribe cds c
        nothing for 3s
        origin lost
        late runs gRPC Java
        late subscribe lds l
        envoy subscribe lds l
        nothing for 949ms
        wait 1ms
        early ends Unavailable no upstream is left
        late ends Unavailable no upstream is left
        nothing for 7049ms
        wait 1ms
        envoy ends Unavailable no upstream has answered
    ";

    /// G-18: a control plane that comes back within the second is in time.
    a_control_plane_comes_in_time => both "
        origin lost
        client runs gRPC Go
        client subscribe lds l
        nothing for 900ms
        origin back, put lds l@1
        client <- lds [l@1], ack
    ";

    /// G-18: a control plane that is only silent, or is still being tried, may answer yet.
    a_control_plane_is_not_lost_yet => both "
        origin put lds l@1, silent cds
        client runs gRPC Go
        client gets lds l [l@1]
        client subscribe cds c
        nothing for 10s
        origin trying
        nothing for 10s
        second runs gRPC Go
        second gets lds l [l@1]
    ";
}
