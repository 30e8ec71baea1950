// SPDX-License-Identifier: Apache-2.0
//! What a stream must not do, and what it may do without harm.

use crate::story::{delta, sotw, stories};

stories! {
    /// which type a request means if it names none, or another one.
    the_type_of_a_request => both "
        origin put eds a@1
        client speaks eds
        sotw client sends none [a]
        delta client sends none +a
        client <- eds [a@1], ack
        sotw client sends cds [a]
        delta client sends cds +a
        client ends InvalidArgument on a stream of the envoy.config.endpoint.v3.ClusterLoadAssignment service
        second sends none []
        second ends InvalidArgument type_url is empty
    ";

    /// a type is the text after the last slash; any type is carried.
    any_type_is_carried => both "
        client has example.made.up.Type a [a@1]
    ";

    /// B-01: a stream begins with a node, unless the operator lets clients be anonymous.
    a_stream_begins_with_a_node => both "
        client nameless
        client subscribe cds
        client ends InvalidArgument must carry a node
    ", both "
        relay anonymous
        origin put cds a@1
        client nameless
        client gets cds [a@1]
    ";

    /// B-01: the first node counts.
    the_first_node_counts => both "
        origin put cds a@1
        client subscribe cds
        client <- cds [a@1]
        client renames itself
        client ack
        client is client
    ";

    /// K-25: a stream that has come through this very relay is refused.
    a_loop_is_refused => both "
        client via relay-0 relay-1
        client subscribe cds
        client ends FailedPrecondition has already come through relay `relay-1`
        second via relay-0
        second has cds [a@1]
    ";

    /// K-25: a loop that is closed later is detected when a request shows it; other clients are not affected.
    a_loop_that_is_closed_later => both "
        origin put cds a@1
        client via relay-0
        client gets cds [a@1]
        second gets cds [a@1]
        client via relay-2 relay-0
        client renames itself
        client subscribe eds
        client via relay-2 relay-1
        client subscribe cds
        client ends FailedPrecondition has already come through relay `relay-1`
        origin put cds a@2
        second <- cds [a@2], ack
    ";

    /// B-02: a stream over a limit is refused with the name of the key that raises the limit.
    limits_are_named => both "
        relay limit types_per_stream 1
        client has cds a [a@1]
        client subscribe eds a
        client ends ResourceExhausted `types_per_stream`
    ", both "
        relay limit names_per_stream 2
        client has cds a b [a@1 b@1]
        client subscribe eds a
        client ends ResourceExhausted limits.names_per_stream
        second subscribe cds a b c
        second ends ResourceExhausted limits.names_per_stream
    ";

    /// B-32, B-11: an empty name is one that does not exist; the rest of the request counts, and `['']` is a list with a name.
    an_empty_name => both "
        origin put eds a@1
        sotw client sends eds ['' a]
        delta client sends eds + +a
        sotw client <- eds [a@1], ack
        delta client <- eds [a@1] -[''], ack
        origin put eds a@2
        client <- eds [a@2], ack
        client status eds Synced
    ", both "
        origin put cds a@1
        sotw client sends cds ['']
        delta client sends cds +
        sotw client <- cds [], ack
        delta client <- cds -[''], ack
        origin put cds b@1
        nothing
        sotw client sends cds []
        delta client sends cds -
    ";

    /// B-32: the slip is corrected on the same stream, in either order.
    an_empty_name_is_corrected => sotw "
        origin put rds r@1
        client sends rds ['']
        nothing
        client sends rds [r]
        client <- rds [r@1], ack
        client sends rds [r '']
        nothing
        origin put rds r@2
        client <- rds [r@2], ack
    ", delta "
        origin put rds r@1
        client sends rds +
        client <- rds -[''], ack
        client sends rds +r -
        client <- rds [r@1], ack
        client sends rds -
        nothing
        origin put rds r@2
        client <- rds [r@2], ack
    ";

    /// B-32, C-08: an empty name that was never asked for is given up without an answer, also under a wildcard.
    an_empty_name_is_given_up => delta "
        client has cds * [a@1]
        client sends cds -
    ";

    /// B-32: a name over the limit is answered as one that does not exist where that can be said, and the rest of the request counts. B-11: it is a name.
    a_name_that_is_too_long => both "
        relay limit name_bytes 10
        origin put eds a@1 abcdefghijk@1
        client gets eds abcdefghijk a sotw [a@1] | delta [a@1] -[abcdefghijk]
        origin put eds abcdefghijk@2
        nothing
        client unsubscribe eds abcdefghijk
        nothing
        origin put eds a@2
        client <- eds [a@2], ack
    ", both "
        relay limit name_bytes 10
        origin put cds a@1
        client subscribe cds abcdefghijk
        delta client <- cds -[abcdefghijk], ack
        nothing
        origin put cds a@2
    ";

    /// C-12: a client that brings a version for each of its names is not over the limit of names.
    versions_are_not_names => delta "
        relay limit names_per_stream 3
        client has rds a b c [a@1 b@1 c@1]
        client reconnects
        client subscribe rds
        nothing
        origin put rds a@2
        client <- rds [a@2], ack
    ";

    /// F-01: a name is any bytes that are text.
    names_are_opaque => both "
        client has rds a\0b ü/?x [a\0b@1 ü/?x@1]
    ";

    /// B-08, C-03, K-11: nonces that were never sent, and those of another stream, acknowledge and reject nothing.
    foreign_nonces => both "
        origin put rds a@1
        sotw client sends rds [a] nnever => first
        delta client sends rds +a nnever => first
        client <- rds [a@1]
        sotw client sends rds [a] n00000000-1 => stale
        delta client sends rds n00000000-1 => stale
        sotw client sends rds [a] n5eed0001-2 ! => stale
        delta client sends rds n5eed0001-2 ! => stale
        client status rds Stale
        client ack
        client status rds Synced
    ";

    /// B-24, K-21: a client that reads nothing costs nothing, and gets the latest.
    a_client_that_stops_reading => both "
        client has cds * [a@1]
        client has rds r [r@1]
        client stalls
        origin put cds a@2 b@1, put rds r@2
        origin drop cds b, put rds r@3
        origin put cds a@3
        nothing for 60s
        client reads
        client <- cds [a@3]
        client <- rds [r@3]
        client ack
    ";

    /// B-12: the same name many times in one request is one name.
    repeated_names => sotw "
        origin put eds a@1
        client sends eds [a a a]
        client <- eds [a@1], ack
    ", delta "
        origin put eds a@1
        client sends eds +a +a +a
        client <- eds [a@1], ack
        client sends eds -a -a
    ";
}

/// C-08, K-21: a client that drops names faster than it reads answers is owed no more than it may ask for.
#[test]
fn answers_that_are_owed_are_bounded() {
    let mut story =
        String::from("relay limit names_per_stream 2\nclient subscribe cds *\nclient <- cds [], ack\nclient stalls\n");
    for at in 1..=4 {
        story.push_str(&format!("client sends cds +x{at}\nclient sends cds -x{at}\n"));
    }
    story.push_str("client sends cds +x5\nclient ends ResourceExhausted limits.names_per_stream\n");
    delta(&story);
}

/// K-21: names that a request leaves out make room for as many new ones, also if the request is taken in slices.
#[test]
fn all_names_are_replaced_at_the_limit() {
    let names = |first: &str| (0..1500).map(|at| format!("{first}{at}")).collect::<Vec<_>>().join(" ");
    let (old, new) = (names("a"), names("b"));
    let missing: Vec<&str> = new.split(' ').filter(|name| *name != "b7").collect();
    let errors = missing
        .iter()
        .map(|name| format!("{name}=5"))
        .collect::<Vec<_>>()
        .join(" ");
    sotw(&format!(
        "
        relay limit names_per_stream 1500
        origin put rds r@1 b7@1
        client sends rds [{old}]
        client sends rds [{new}]
        client <- rds [b7@1] ![{errors}], ack
        nothing
        "
    ));
    delta(&format!(
        "
        relay limit names_per_stream 1500
        origin put rds r@1 b7@1
        client sends rds {}
        client <- rds -[{old}], ack
        client sends rds {} {}
        client <- rds [b7@1] -[{}], ack
        nothing
        ",
        names("+a"),
        names("+b"),
        names("-a"),
        missing.join(" ")
    ));
}

/// B-24, C-11, K-21: a client that asks again and again has to acknowledge first what is on its way.
#[test]
fn what_is_unsettled_is_bounded() {
    let names: Vec<String> = (100..200).map(|at| format!("n{at}")).collect();
    let (put, ask) = (names.join("@1 ") + "@1", names.join(" +"));
    let mut story = format!("origin put rds {put}\nclient sends rds +{ask}\nclient <- rds [{put}]\n");
    story.push_str(&format!(
        "client sends rds +{ask}\nnothing\nclient ack\nclient <- rds [{put}], ack\n"
    ));
    delta(&story);
}
