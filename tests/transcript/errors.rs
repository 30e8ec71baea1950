// SPDX-License-Identifier: Apache-2.0
//! Errors of single names, for other relays and for all others.

use crate::story::{both, delta, sotw};

/// B-31, C-24, K-16: clients are sent errors, once per change, and only a relay before anything else.
#[test]
fn once_per_change() {
    both(
        "
        origin fails rds a=5 b=7
        plain subscribe rds a b
        plain <- rds sotw nothing | delta -[a b] ![a=5 b=7]
        delta plain ack
        reader via lower
        reader subscribe rds a b
        reader <- rds sotw ![a=5 b=7] | delta -[a b] ![a=5 b=7]
        reader ack
        nothing for 20s
        origin fails rds a=7
        reader <- rds ![a=7], ack
        delta plain <- rds ![a=7], ack
        origin put rds a@1
        plain <- rds sotw [a@1] ![b=7] | delta [a@1]
        plain ack
        reader <- rds [a@1], ack
        nothing for 20s
        ",
    );
}

/// E-09, G-18: a client learns of a temporary error by the end of its stream, if it was sent nothing: a type for which the control plane
/// ends streams has such an error for each of its names. Others keep their streams.
#[test]
fn who_was_sent_nothing_is_not_left_waiting() {
    both(
        "
        origin put rds x@1
        origin put sds z@1
        origin fails rds a=14
        plain subscribe rds a
        served subscribe sds z
        served <- sds [z@1], ack
        served subscribe rds a
        served <- rds ![a=14], ack
        reader via lower
        reader subscribe rds a
        reader <- rds ![a=14], ack
        nothing for 7s
        wait 1s
        plain ends Unavailable no upstream has answered
        nothing for 20s
        ",
    );
}

/// E-09, G-18: a client that asks for a whole type which the control plane refuses learns of it in the same way. Other relays and clients
/// that were sent something keep their streams.
#[test]
fn who_asks_for_a_type_that_is_refused_is_not_left_waiting() {
    both(
        "
        origin put sds z@1
        origin fails cds *=14
        plain subscribe cds *
        served subscribe sds z
        served <- sds [z@1], ack
        served subscribe cds *
        tier via lower
        tier subscribe sds z
        tier <- sds [z@1], ack
        tier subscribe cds *
        nothing for 7s
        wait 1s
        plain ends Unavailable it is wrong
        nothing for 20s
        ",
    );
}

/// B-31: gRPC reads errors.
#[test]
fn grpc_reads_errors() {
    both(
        "
        origin put lds x@1
        origin fails rds a=14
        client runs gRPC Go
        client subscribe lds x
        client <- lds [x@1], ack
        client subscribe rds a
        client <- rds ![a=14], ack
        nothing for 20s
        origin fails rds a=5
        client <- rds sotw ![a=5] | delta -[a] ![a=5]
        client ack
        origin put rds a@1
        client <- rds [a@1], ack
        envoy runs envoy
        envoy subscribe rds b
        nothing for 4s
        ",
    );
}

/// B-31, G-18: gRPC takes only a stream that ends before its first response for a failure of its server. So errors wait for something
/// else, and the stream ends without any if there is nothing.
#[test]
fn errors_are_not_the_first_that_grpc_is_sent() {
    both(
        "
        origin put lds x@1
        origin fails rds a=14
        client runs gRPC Go
        client subscribe rds a
        nothing for 1s
        client subscribe lds x
        client <- lds [x@1], ack
        client <- rds ![a=14], ack
        nothing for 20s
        alone runs gRPC Java
        alone subscribe rds a
        nothing for 7s
        wait 1s
        alone ends Unavailable no upstream has answered
        nothing for 20s
        ",
    );
}

/// C-21, B-31: for a virtual host that does not exist, no error is sent beside the entry without a body: Envoy needs the entry.
#[test]
fn virtual_hosts() {
    delta(
        "
        origin fails vhds rc/a=12
        plain subscribe vhds rc/a
        plain <- vhds [rc/a@-:aka=rc/a], ack
        reader via lower
        reader subscribe vhds rc/a
        reader <- vhds -[rc/a] ![rc/a=12], ack
        origin put vhds rc/a@1
        plain <- vhds [rc/a@1], ack
        reader <- vhds [rc/a@1], ack
        ",
    );
}

/// E-09, B-31: the error of a resource that exists removes it from no client; the resource itself, sent again, ends the error.
#[test]
fn what_exists_and_fails() {
    both(
        "
        origin put rds a@1
        reader subscribe rds a
        reader <- rds [a@1], ack
        origin fails rds a=14
        reader <- rds ![a=14], ack
        nothing for 20s
        late subscribe rds a
        late <- rds [a@1], ack
        late <- rds ![a=14], ack
        origin put rds a@1
        reader <- rds [a@1], ack
        late <- rds [a@1], ack
        nothing for 20s
        ",
    );
}

/// B-31, B-16: a full state with errors still lists all that exists.
#[test]
fn full_states() {
    sotw(
        "
        origin put cds a@1
        reader subscribe cds a b
        reader <- cds [a@1] ![b=5], ack
        origin fails cds b=7
        reader <- cds [a@1] ![b=7], ack
        origin put cds b@1
        reader <- cds [a@1 b@1], ack
        ",
    );
}

/// F-02, F-09, K-16: any text that the server does not know is reported as not found, in the client's own spelling.
#[test]
fn nothing() {
    sotw(
        "
        reader via lower
        reader subscribe rds xdstp:x xdstp://nowhere/RDS/x?b=1&a=1
        reader <- rds ![xdstp:x=5 xdstp://nowhere/RDS/x?b=1&a=1=5], ack
        nothing for 20s
        ",
    );
}

/// K-24: an error in one view is not visible in another.
#[test]
fn errors_are_not_shared() {
    delta(
        "
        origin fails rds a=7
        other put rds a@1
        reader subscribe rds a
        reader <- rds -[a] ![a=7], ack
        reader moves other
        reader <- rds [a@1], ack
        reader moves origin
        reader <- rds -[a] ![a=7], ack
        ",
    );
}

/// B-31, B-18: Envoy may reject a response without resources of the other types in SotW, polls are read strictly, and v2 has no such field.
#[test]
fn who_is_not_sent_errors() {
    sotw(
        "
        origin put cds x@1
        origin put sds s@1
        client subscribe cds x
        client <- cds [x@1], ack
        client subscribe sds s t
        client <- sds [s@1], ack
        client subscribe ecds e
        client subscribe rtds r
        nothing for 20s
        client subscribe eds e
        wait 15s
        client <- eds ![e=5], ack
        nothing for 20s
        ",
    );
}
