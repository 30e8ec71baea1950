// SPDX-License-Identifier: Apache-2.0
//! Errors of single names, for other relays and for all others.

use crate::story::stories;

stories! {
    /// B-31, C-24, K-16: clients are sent errors, once per change, and only a relay before anything else.
    once_per_change => both "
        origin fails rds a=5 b=7
        plain gets rds a b sotw nothing | delta -[a b] ![a=5 b=7]
        reader via lower
        reader gets rds a b sotw ![a=5 b=7] | delta -[a b] ![a=5 b=7]
        nothing for 20s
        origin fails rds a=7
        reader <- rds ![a=7], ack
        delta plain <- rds ![a=7], ack
        origin put rds a@1
        plain <- rds sotw [a@1] ![b=7] | delta [a@1], ack
        reader <- rds [a@1], ack
    ";

    /// E-09, G-18: a client learns of a temporary error by the end of its stream, if it was sent nothing: a type for which the control plane
    /// ends streams has such an error for each of its names. Others keep their streams.
    who_was_sent_nothing_is_not_left_waiting => both "
        origin put rds x@1
        origin put sds z@1
        origin fails rds a=14
        plain subscribe rds a
        served gets sds z [z@1]
        served gets rds a ![a=14]
        reader via lower
        reader gets rds a ![a=14]
        nothing for 7s
        wait 1s
        plain ends Unavailable no upstream has answered
    ";

    /// E-09, G-18: a client that asks for a whole type which the control plane refuses learns of it in the same way. Other relays and clients
    /// that were sent something keep their streams.
    who_asks_for_a_type_that_is_refused_is_not_left_waiting => both "
        origin put sds z@1
        origin fails cds *=14
        plain subscribe cds *
        served gets sds z [z@1]
        served subscribe cds *
        tier via lower
        tier gets sds z [z@1]
        tier subscribe cds *
        nothing for 7s
        wait 1s
        plain ends Unavailable it is wrong
    ";

    /// B-31: gRPC reads errors.
    grpc_reads_errors => both "
        origin put lds x@1
        origin fails rds a=14
        client runs gRPC Go
        client gets lds x [x@1]
        client gets rds a ![a=14]
        nothing for 20s
        origin fails rds a=5
        client <- rds sotw ![a=5] | delta -[a] ![a=5], ack
        origin put rds a@1
        client <- rds [a@1], ack
        envoy runs envoy
        envoy subscribe rds b
    ";

    /// B-31, G-18: gRPC takes only a stream that ends before its first response for a failure of its server. So errors wait for something
    /// else, and the stream ends without any if there is nothing.
    errors_are_not_the_first_that_grpc_is_sent => both "
        origin put lds x@1
        origin fails rds a=14
        client runs gRPC Go
        client subscribe rds a
        nothing for 1s
        client gets lds x [x@1]
        client <- rds ![a=14], ack
        nothing for 20s
        alone runs gRPC Java
        alone subscribe rds a
        nothing for 7s
        wait 1s
        alone ends Unavailable no upstream has answered
    ";

    /// C-21, B-31: for a virtual host that does not exist, no error is sent beside the entry without a body: Envoy needs the entry.
    virtual_hosts => delta "
        origin fails vhds rc/a=12
        plain gets vhds rc/a [rc/a@-:aka=rc/a]
        reader via lower
        reader gets vhds rc/a -[rc/a] ![rc/a=12]
        origin put vhds rc/a@1
        plain <- vhds [rc/a@1], ack
        reader <- vhds [rc/a@1], ack
    ";

    /// E-09, B-31: the error of a resource that exists removes it from no client; the resource itself, sent again, ends the error.
    what_exists_and_fails => both "
        reader has rds a [a@1]
        origin fails rds a=14
        reader <- rds ![a=14], ack
        nothing for 20s
        late gets rds a [a@1]
        late <- rds ![a=14], ack
        origin put rds a@1
        reader <- rds [a@1], ack
        late <- rds [a@1], ack
    ";

    /// B-31, B-16: a full state with errors still lists all that exists.
    full_states => sotw "
        origin put cds a@1
        reader gets cds a b [a@1] ![b=5]
        origin fails cds b=7
        reader <- cds [a@1] ![b=7], ack
        origin put cds b@1
        reader <- cds [a@1 b@1], ack
    ";

    /// F-02, F-09, K-16: any text that the server does not know is reported as not found, in the client's own spelling.
    nothing => sotw "
        reader via lower
        reader gets rds xdstp:x xdstp://nowhere/RDS/x?b=1&a=1 ![xdstp:x=5 xdstp://nowhere/RDS/x?b=1&a=1=5]
    ";

    /// B-31, B-18: Envoy may reject a response without resources of the other types in SotW, polls are read strictly, and v2 has no such field.
    who_is_not_sent_errors => sotw "
        origin put cds x@1
        origin put sds s@1
        client gets cds x [x@1]
        client gets sds s t [s@1]
        client subscribe ecds e
        client subscribe rtds r
        nothing for 20s
        client subscribe eds e
        wait 15s
        client <- eds ![e=5], ack
    ";
}
