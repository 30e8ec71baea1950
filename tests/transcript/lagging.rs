//! Laggards of which the relay keeps only hashes: when they read again, they are sent what differs and nothing else.

use crate::story::{both, delta, sotw};

/// K-09: what has not changed meanwhile is not sent again, whether it was asked for by name or by a wildcard.
#[test]
fn who_reads_again_gets_the_difference() {
    for topic in ["cds", "lds", "srds"] {
        both(&format!(
            "
            origin put {topic} a@1 b@1 c@1
            client subscribe {topic} *
            client <- {topic} [a@1 b@1 c@1], ack
            client stalls
            origin put {topic} b@2 d@1
            origin drop {topic} c
            client lags
            origin put {topic} b@3
            client reads
            client <- {topic} sotw [a@1 b@3 d@1] | delta [b@3 d@1]
            delta client <- {topic} -[c]
            client ack
            "
        ));
    }
    for topic in ["cds", "eds", "rds", "sds"] {
        both(&format!(
            "
            origin put {topic} a@1 b@1
            client subscribe {topic} a b
            client <- {topic} [a@1 b@1], ack
            client lags
            nothing
            client stalls
            origin put {topic} b@2
            client lags
            origin put {topic} b@1
            client reads
            nothing
            "
        ));
    }
}

/// B-24, B-22: a response on its way is acknowledged or rejected as usual: accepted content is held, rejected content is not sent
/// again.
#[test]
fn what_is_on_its_way_is_settled() {
    both(
        "
        origin put cds a@1 b@1
        client subscribe cds *
        client <- cds [a@1 b@1]
        client lags
        client ack
        nothing
        origin put cds b@2
        client <- cds sotw [a@1 b@2] | delta [b@2]
        client lags
        client nack
        nothing for 20s
        client lags
        nothing
        origin put cds b@3
        client <- cds sotw [a@1 b@3] | delta [b@3]
        client ack
        ",
    );
}

/// L-29: chunks that were not sent yet are sent when the client reads, with what is current then.
#[test]
fn what_was_not_sent_yet_is_sent() {
    delta(
        "
        relay chunk 1
        origin put cds a@1 b@1 c@1
        client stalls
        client subscribe cds *
        client reads 1
        client <- cds [a@1], ack
        client lags
        origin put cds c@2
        client reads
        client <- cds [b@1]
        client <- cds [c@2], ack
        ",
    );
}

/// D-03: a removal alone still comes last. A removal together with additions cannot be listed again, and is sent with them.
#[test]
fn removals_of_a_laggard() {
    sotw(
        "
        origin put cds a@1 b@1, put lds l@1
        client subscribe cds
        client <- cds [a@1 b@1], ack
        client subscribe lds
        client <- lds [l@1], ack
        client stalls
        origin put lds l@2, drop cds b
        client lags
        client reads
        client <- lds [l@2], ack
        client <- cds [a@1], ack
        client stalls
        origin put cds c@1, drop cds a, put lds l@3
        client lags
        client reads
        client <- cds [c@1], ack
        client <- lds [l@3], ack
        nothing
        origin put cds d@1, drop cds c, put lds l@4
        client <- cds [c@1 d@1], ack
        client <- lds [l@4], ack
        client <- cds [d@1], ack
        ",
    );
}

/// G-20: a full state can neither list nor omit a resource of which only the hash is left. While nothing is known of a name that
/// the client then asks for, the full state waits; it is sent when the server has answered.
#[test]
fn who_asks_by_name_for_what_is_left_as_hashes() {
    sotw(
        "
        origin put cds a@1 b@1
        other silent cds
        client sends cds [*]
        client <- cds [a@1 b@1]
        client sends cds [*] v1 n1 => ack
        client stalls
        client lags
        client moves other
        client sends cds [a c] v1 n1
        client reads
        nothing for 20s
        other put cds a@2, speaks cds
        client <- cds [a@2], ack
        ",
    );
}

/// K-16: if the server does not answer for the name in time, the resource goes, as for a client that held it when it connected.
/// What is still there with the content that was sent stays.
#[test]
fn who_asks_by_name_for_what_is_left_as_hashes_and_nobody_answers() {
    for (lags, then) in [
        ("client lags", "wait 16s\nclient <- cds [b@1], ack"),
        ("", "nothing for 20s"),
    ] {
        sotw(&format!(
            "
            origin put cds a@1 b@1
            other talks sotw, put cds b@1
            client sends cds [*]
            client <- cds [a@1 b@1]
            client sends cds [*] v1 n1 => ack
            client stalls
            {lags}
            client sends cds [* a] v1 n1
            client moves other
            client reads
            {then}
            "
        ));
    }
}
