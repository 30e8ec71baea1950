// SPDX-License-Identifier: Apache-2.0
//! Types as control planes have them: with other prefixes, without names, and types that are not passed on.

use crate::story::stories;

stories! {
    /// a resource without any name is the only one of its type, and is sent without a name, in SotW without a wrapper.
    the_only_one for topic in ["nds", "pcds", "acme.v1.Table"] => both "
        origin put {topic} @1
        client can xds.config.resource-in-sotw
        client gets {topic} * [@1]
        origin put {topic} @2
        client <- {topic} [@2], ack
    ";

    /// A-09, B-10: an empty list asks for all of Istio's types, as its agents do.
    as_agents_ask for topic in ["nds", "pcds"] => both "
        origin put {topic} @1
        client subscribe {topic}
        client wants {topic} *
        client <- {topic} [@1], ack
        client reconnects
        client gets {topic} sotw [@1] | delta []
    ";

    /// A-09, B-10: an empty list asks for all of the types of ztunnel, whatever the version of Istio calls them.
    as_ztunnel_asks for topic in ["address", "workload"] => delta "
        origin put {topic} a@1 b@1
        client subscribe {topic}
        client wants {topic} *
        client <- {topic} [a@1 b@1], ack
        origin put {topic} a@2
        client <- {topic} [a@2], ack
    ";

    /// C-12, C-05, C-13: ztunnel that loads on demand takes `*` back at once on a new stream, and names what it holds in its versions
    /// alone: these are subscriptions.
    as_ztunnel_comes_back for topic in ["address", "workload"] => delta "
        origin put {topic} a@1 b@1 c@1
        client sends {topic} +* -* +a +b
        client <- {topic} [a@1 b@1], ack
        client reconnects
        origin put {topic} b@2
        client sends {topic} +* -* =a@1 =b@1 =gone@old
        client <- {topic} [b@2], ack
        client <- {topic} -[gone], ack
        origin put {topic} a@2 c@2
        client <- {topic} [a@2], ack
        client sends {topic} -a
        client <- {topic} -[a], ack
        origin put {topic} a@3 b@3
        client <- {topic} [b@3], ack
        second sends {topic} +* -*
        second <- {topic} [], ack
    ";

    /// C-05, C-12: of other types what is held is no subscription.
    what_is_held_is_no_subscription => delta "
        origin put cds a@1
        client sends cds +* -* =a@old
        client <- cds [], ack
        origin put cds a@2
    ";

    /// a client that asks by any name gets it as well; its changes and its removal hold for all names.
    by_any_name for topic in ["nds", "acme.v1.Table"] => both "
        client subscribe {topic} x y
        client wants {topic} x y
        delta client <- {topic} -[x y], ack
        origin put {topic} @1
        client <- {topic} [@1], ack
        two subscribe {topic} z
        two <- {topic} [@1], nack
        origin put {topic} @2
        client <- {topic} [@2], ack
        two <- {topic} [@2], ack
        client unsubscribe {topic} x
        origin put {topic} @3
        client <- {topic} [@3], ack
        two <- {topic} [@3], ack
    ";

    /// by name and by wildcard it is the same one, sent once.
    by_name_and_wildcard => both "
        client has nds x * [@1]
        origin put nds @2
        client <- nds [@2], ack
        client unsubscribe nds *
        origin put nds @3
        client <- nds [@3], ack
    ";

    /// another prefix is another type.
    another_prefix => both "
        origin put acme.com/envoy.config.cluster.v3.Cluster a@1
        origin put cds a@2
        client gets acme.com/envoy.config.cluster.v3.Cluster a [a@1]
        client gets cds a [a@2]
    ";

    /// No server is asked for Istio's debug types and health reports; no resource of them exists, and the stream goes on.
    what_is_not_passed_on for topic in ["debug", "connections", "health"] => delta "
        origin put {topic} a@1
        origin put cds c@1
        client gets {topic} a -[a]
        client subscribe {topic} *
        client <- {topic} []
        client wants {topic}
        client gets cds c [c@1]
        wait 60s
    ", sotw "
        origin put {topic} a@1
        origin put cds c@1
        client subscribe {topic} a
        client wants {topic}
        nothing for 60s
        client gets cds c [c@1]
    ";
}
