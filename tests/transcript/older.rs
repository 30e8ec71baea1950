// SPDX-License-Identifier: Apache-2.0
//! K-37: what a client uses of what it rejects, and what it is sent if it has nothing.

use crate::story::{EVERYTHING, stories};

stories! {
    /// Who rejects a change keeps what it had, and is sent nothing in its place, whatever there is.
    who_has_something_keeps_it for (asked, error, absent) in EVERYTHING => both "
        client finds cds a@0
        origin put cds a@1
        client gets cds {asked} sotw [a@1]{error} | delta [a@1]{absent}
        origin put cds a@bad
        client <- cds [a@bad], nack
        client holds cds a own
        nothing for 20s
        client status cds Error
        origin put cds a@worse
        client <- cds [a@worse], nack
        client holds cds a own
        origin put cds a@2
        client <- cds [a@2], ack
        client holds cds a all
        client status cds Synced
    ";

    /// Who has nothing is sent the older contents, one after the other, each once, until it accepts one. What comes next is for all.
    who_has_nothing_is_sent_older_content for (asked, error, absent) in EVERYTHING => both "
        client finds cds a@1 a@0
        origin put cds a@bad
        client subscribe cds {asked}
        client <- cds sotw [a@bad]{error} | delta [a@bad]{absent}
        client nack
        client <- cds [a@1], nack
        client <- cds [a@0], ack
        client holds cds a older
        nothing for 20s
        client status cds Error
        origin put cds a@worse
        client <- cds [a@worse], nack
        nothing for 20s
        client holds cds a older
        origin put cds a@2
        client <- cds [a@2], ack
        client holds cds a all
        client status cds Synced
    ";

    /// Each older content is sent once on a stream, whatever the control plane says in between.
    each_older_content_once => both "
        client finds rds a@1 a@bad
        origin put rds a@bad
        client subscribe rds a
        client <- rds [a@bad], nack
        client <- rds [a@1], nack
        client holds rds a nothing
        nothing for 20s
        origin put rds a@worse
        client <- rds [a@worse], nack
        nothing for 20s
        client reconnects
        client subscribe rds a
        client <- rds [a@worse], nack
        client <- rds [a@1], ack
        client holds rds a older
    ";

    /// Each content that it rejects is a reason to look for older content: there may be some by now.
    each_rejection_looks_for_older_content => both "
        origin put rds a@bad
        client subscribe rds a
        client <- rds [a@bad], nack
        nothing for 20s
        client finds rds a@1
        origin put rds a@worse
        client <- rds [a@worse], nack
        client <- rds [a@1], ack
        client holds rds a older
    ";

    /// Older keys may be what must not be used, older endpoints lead nowhere, and a relay accepts nothing by itself.
    what_is_never_older for (topic, who) in [("sds", ""), ("eds", ""), ("rds", "client via relay-2")] => both "
        {who}
        client finds {topic} a@1
        origin put {topic} a@bad
        client subscribe {topic} a
        client <- {topic} [a@bad], nack
    ";

    /// What a delta client brings is what it holds. In state of the world nobody knows what it holds that brings a version.
    who_brings_a_version => delta "
        client finds cds a@0
        client has cds * [a@1]
        client reconnects
        origin put cds a@bad
        client subscribe cds *
        client <- cds [a@bad], nack
        client holds cds a version
    ", sotw "
        client finds cds a@0
        client has cds * [a@1 b@1]
        client reconnects
        client blames a
        origin put cds a@bad
        client subscribe cds *
        client <- cds [a@bad b@1], nack
        client holds cds a unknown
        nothing for 20s
        origin put cds b@2                       # Envoy takes the rest
        client <- cds [a@bad b@2], nack
        nothing for 20s
        origin put cds a@2
        client <- cds [a@2 b@2], ack
        client status cds Synced
    ";

    /// B-22: nine good changes and a bad one: the good ones arrive, and the bad one is rejected once.
    good_changes_beside_a_bad_one for (asked, error, _) in EVERYTHING => sotw "
        origin put cds a@1 b@1 c@1
        client gets cds {asked} [a@1 b@1 c@1]{error}
        client blames c
        origin put cds a@2 b@2 c@bad
        client <- cds [a@2 b@2 c@bad], nack
        client <- cds [a@2 b@2 c@1], ack
        nothing for 20s
        client status cds Error
        client holds cds a all
        client holds cds c own
        origin put cds b@3
        client <- cds [a@2 b@3 c@1], ack
        nothing for 20s
        origin put cds c@2
        client <- cds [a@2 b@3 c@2], ack
        client status cds Synced
    ";

    /// B-22: a change of one bad member offers the others again.
    a_repair_offers_everything => sotw "
        client has cds * [a@1 b@1]
        client blames a b
        origin put cds a@bad b@bad
        client <- cds [a@bad b@bad], nack
        client <- cds [a@bad b@1], nack
        client <- cds [a@1 b@bad], nack
        nothing for 20s
        origin put cds a@2
        client blames b
        client <- cds [a@2 b@bad], nack
        client <- cds [a@2 b@1], ack
    ";

    /// A client that has just started waits for its listeners while it is tried with its clusters, at most `order_gate`.
    listeners_wait_for_the_clusters_of_a_newcomer => both "
        client finds cds a@1
        origin put cds a@bad, put lds l@1
        client subscribe cds *
        client <- cds [a@bad], nack
        client <- cds [a@1]
        client subscribe lds *
        nothing for 1s
        client ack cds
        client <- lds [l@1], ack
    ", both "
        client finds cds a@1
        origin put cds a@bad, put lds l@1
        client subscribe cds *
        client <- cds [a@bad], nack
        client <- cds [a@1]
        client subscribe lds *
        nothing for 1999ms
        wait 1ms
        client <- lds [l@1], ack
        client ack cds
    ";

    /// A listener that was rejected because a cluster was missing is tried once more after each further cluster.
    a_listener_that_was_rejected_for_a_missing_cluster for (asked, error, absent) in EVERYTHING => both "
        origin put cds b@1, put lds l@1
        client subscribe cds *
        client <- cds [b@1], nack
        client subscribe lds {asked}
        client <- lds sotw [l@1]{error} | delta [l@1]{absent}
        client nack
        nothing for 20s
        origin put cds b@2
        client <- cds [b@2], ack
        client <- lds [l@1], nack
        origin put cds d@1
        client <- cds sotw [b@2 d@1] | delta [d@1], ack
        nothing for 20s
        origin put lds l@2
        client <- lds [l@2], ack
        client status lds Synced
    ";
}
