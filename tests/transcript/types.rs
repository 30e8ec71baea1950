// SPDX-License-Identifier: Apache-2.0
//! Types as control planes have them: with other prefixes, without names, and types that are not passed on.

use crate::story::{both, delta, sotw};

/// a resource without any name is the only one of its type, and is sent without a name, in SotW without a wrapper.
#[test]
fn the_only_one() {
    for topic in ["nds", "pcds", "acme.v1.Table"] {
        both(
            &"
            origin put T @1
            client can xds.config.resource-in-sotw
            client subscribe T *
            client <- T [@1], ack
            origin put T @2
            client <- T [@2], ack
            "
            .replace('T', topic),
        );
    }
}

/// A-09, B-10: an empty list asks for all of Istio's types, as its agents do.
#[test]
fn as_agents_ask() {
    for topic in ["nds", "pcds"] {
        both(
            &"
            origin put T @1
            client subscribe T
            client wants T *
            client <- T [@1], ack
            client reconnects
            client subscribe T
            client <- T sotw [@1] | delta [], ack
            nothing
            "
            .replace('T', topic),
        );
    }
}

/// A-09, B-10: an empty list asks for all of the types of ztunnel, whatever the version of Istio calls them.
#[test]
fn as_ztunnel_asks() {
    for topic in ["address", "workload"] {
        delta(
            &"
            origin put T a@1 b@1
            client subscribe T
            client wants T *
            client <- T [a@1 b@1], ack
            origin put T a@2
            client <- T [a@2], ack
            "
            .replace('T', topic),
        );
    }
}

/// C-12, C-05, C-13: ztunnel that loads on demand takes `*` back at once on a new stream, and names what it holds in its versions
/// alone: these are subscriptions. Of other types they are not.
#[test]
fn as_ztunnel_comes_back() {
    for topic in ["address", "workload"] {
        delta(
            &"
            origin put T a@1 b@1 c@1
            client sends T +* -* +a +b
            client <- T [a@1 b@1], ack
            client reconnects
            origin put T b@2
            client sends T +* -* =a@1 =b@1 =gone@old
            client <- T [b@2], ack
            client <- T -[gone], ack
            origin put T a@2 c@2
            client <- T [a@2], ack
            client sends T -a
            client <- T -[a], ack
            origin put T a@3 b@3
            client <- T [b@3], ack
            second sends T +* -*
            second <- T [], ack
            nothing for 20s
            "
            .replace('T', topic),
        );
    }
    delta(
        "
        origin put cds a@1
        client sends cds +* -* =a@old
        client <- cds [], ack
        origin put cds a@2
        nothing for 20s
        ",
    );
}

/// a client that asks by any name gets it as well; its changes and its removal hold for all names.
#[test]
fn by_any_name() {
    for topic in ["nds", "acme.v1.Table"] {
        both(
            &"
            client subscribe T x y
            client wants T x y
            delta client <- T -[x y], ack
            origin put T @1
            client <- T [@1], ack
            two subscribe T z
            two <- T [@1], nack
            origin put T @2
            client <- T [@2], ack
            two <- T [@2], ack
            client unsubscribe T x
            origin put T @3
            client <- T [@3], ack
            two <- T [@3], ack
            "
            .replace('T', topic),
        );
    }
}

/// by name and by wildcard it is the same one, sent once.
#[test]
fn by_name_and_wildcard() {
    both(
        "
        origin put nds @1
        client subscribe nds x *
        client <- nds [@1], ack
        origin put nds @2
        client <- nds [@2], ack
        client unsubscribe nds *
        origin put nds @3
        client <- nds [@3], ack
        ",
    );
}

/// another prefix is another type.
#[test]
fn another_prefix() {
    both(
        "
        origin put acme.com/envoy.config.cluster.v3.Cluster a@1
        origin put cds a@2
        client subscribe acme.com/envoy.config.cluster.v3.Cluster a
        client <- acme.com/envoy.config.cluster.v3.Cluster [a@1], ack
        client subscribe cds a
        client <- cds [a@2], ack
        ",
    );
}

/// No server is asked for Istio's debug types and health reports; no resource of them exists, and the stream goes on.
#[test]
fn what_is_not_passed_on() {
    for topic in ["debug", "connections", "health"] {
        delta(
            &"
            origin put T a@1
            origin put cds c@1
            client subscribe T a
            client <- T -[a], ack
            client subscribe T *
            client <- T []
            client wants T
            client subscribe cds c
            client <- cds [c@1], ack
            wait 60s
            nothing
            "
            .replace('T', topic),
        );
        sotw(
            &"
            origin put T a@1
            origin put cds c@1
            client subscribe T a
            client wants T
            nothing for 60s
            client subscribe cds c
            client <- cds [c@1], ack
            nothing
            "
            .replace('T', topic),
        );
    }
}
