// SPDX-License-Identifier: Apache-2.0
//! Secrets in SotW: with several on one stream, Envoy rejects a response that leaves one out. In delta they are like any type.

use crate::rejecting::{halves, names};
use crate::story::{delta, sotw, stories};

stories! {
    /// B-18: what is new of secrets comes with all others that the client wants and that are known, in one response.
    secrets_come_together => sotw "
        client has sds a b [a@1]
        origin put sds b@1
        client <- sds [a@1 b@1], ack
        origin put sds a@2
        client <- sds [a@2 b@1], ack
        client subscribe sds c
        nothing for 2s
        origin put sds c@1
        client <- sds [a@2 b@1 c@1], ack
        client unsubscribe sds a
        nothing for 2s
        origin put sds b@2
        client <- sds [b@2 c@1], ack
    ", sotw "
        origin put sds a@1 b@1
        client sends sds [*]
        client <- sds [a@1 b@1], ack
        origin put sds b@2
        client <- sds [a@1 b@2], ack
        client sends sds [* d]
        origin put sds d@1
        client <- sds [a@1 b@2 d@1], ack
    ";

    /// B-18: secrets are not split, however large they are.
    secrets_are_not_split => sotw "
        relay chunk 1
        origin put sds a@1 b@1 c@1, put rds a@1 b@1
        client gets rds a b [a@1]
        client <- rds [b@1], ack
        client gets sds a b c [a@1 b@1 c@1]
        origin put sds b@2 c@2
        client <- sds [a@1 b@2 c@2], ack
    ";

    /// B-18, K-19: a secret that goes is no reason for a response. The next one lists it as the client was sent it, because Envoy may
    /// want it until a listener is drained; a client that can read errors is told instead.
    a_secret_that_goes => both "
        client has sds a b [a@1 b@1]
        origin drop sds a
        delta client <- sds -[a], ack
        nothing for 2s
        origin put sds b@2
        client <- sds sotw [a@1 b@2] | delta [b@2], ack
        origin put sds a@3
        client <- sds sotw [a@3 b@2] | delta [a@3], ack
    ";

    /// B-18, K-17: the same for a secret that ends by itself. A client that reads times to live drops it then.
    a_secret_that_ends_by_itself => sotw "
        origin put sds a@1:ttl=10s b@1
        plain gets sds a b [a@1 b@1]
        client can xds.config.supports-resource-ttl xds.config.resource-in-sotw
        client gets sds a b [a@1:ttl=10s:wrapped b@1]
        nothing for 10s
        origin put sds b@2
        plain <- sds [a@1 b@2], ack
        client <- sds [b@2], ack
        other put sds b@3
        plain moves other
        plain <- sds [a@1 b@3], ack
        client moves other
        client <- sds [b@3], ack
    ";

    /// B-18, B-22: the client keeps what it accepted when it rejects a response that lists it again. What it rejected is listed with
    /// the next news, because nobody else knows whether it was bad.
    a_rejected_secret => sotw "
        client has sds a b [a@1 b@1]
        origin put sds a@bad
        client <- sds [a@bad b@1], nack
        nothing for 2s
        origin drop sds b
        nothing for 2s
        origin put sds b@2
        client <- sds [a@1 b@2], ack
        nothing for 2s
        client subscribe sds c
        origin put sds c@1
        client <- sds [a@1 b@2 c@1], ack
        nothing for 2s
        origin put sds a@2
        client <- sds [a@2 b@2 c@1], ack
    ";

    /// B-18, G-11, G-20: a server that does not know a secret takes it from nobody.
    a_secret_that_is_unknown_elsewhere => sotw "
        client has sds a b [a@1 b@1]
        other put sds a@2
        client moves other
        client <- sds [a@2 b@1], ack
    ";
}

/// B-18, B-22: of 32 secrets one is bad. Over delta the 31 others arrive, whether the client says which it is or not. Over SotW they do
/// if the client says it; else nothing says that it takes a response without all secrets, and all are held back as one.
#[test]
fn one_bad_secret_of_many() {
    let all = names(32);
    let asked = format!(
        "origin put sds {}@1\nclient subscribe sds {}\n",
        all.join("@1 "),
        all.join(" ")
    );
    let listed = |names: &[String]| format!("{}@1", names.join("@1 "));
    let good: Vec<String> = all.iter().filter(|name| *name != "n017").cloned().collect();
    delta(&(asked.clone() + &halves("sds", all.clone(), &["n017"], usize::MAX) + "nothing for 20s\n"));
    let blamed = format!(
        "client blames n017\n{asked}client <- sds [{}], nack\nclient <- sds [{}], ack\n",
        listed(&all),
        listed(&good)
    );
    let alone = "client <- sds [n017@1], nack\nnothing for 20s\n";
    delta(&(blamed.clone() + alone));
    let beside = format!("client <- sds [{}], nack\nnothing for 20s\n", listed(&all));
    sotw(&(blamed + &beside));
    sotw(&(asked + &beside));
}

stories! {
    /// B-18, B-22: who has accepted a response without all its secrets is sent news of the others without the one that it has rejected.
    a_rejected_secret_is_left_out => sotw "
        origin put sds a@1
        client sends sds [a b]
        client <- sds [a@1], ack
        origin put sds a@2 b@bad
        client <- sds [a@2 b@bad], nack
        client <- sds [a@2], ack
        client <- sds [a@2 b@bad], nack
        origin put sds a@3
        client <- sds [a@3], ack
    ";

    /// B-18, B-22: secrets that were held back as one are sent when one of them is given up: it may have been the bad one.
    a_rejected_secret_is_given_up => sotw "
        origin put sds a@bad b@1
        client sends sds [a b]
        client <- sds [a@bad b@1], nack
        nothing for 2s
        client sends sds [b]
        client <- sds [b@1], ack
        client status sds Synced
    ";

    /// B-18, B-22: the same when the server drops one of them, before or after the client rejects them.
    a_rejected_secret_goes => sotw "
        origin put sds a@bad b@1
        client sends sds [a b]
        client <- sds [a@bad b@1], nack
        nothing for 2s
        origin drop sds a
        client <- sds [b@1], ack
    ", sotw "
        origin put sds a@bad b@1
        client sends sds [a b]
        client <- sds [a@bad b@1]
        origin drop sds a
        client sends sds [a b] n1 ! => nack
        client <- sds [b@1], ack
    ";

    /// B-18, B-22: the same when the bad one is repaired, which may be before the client rejects it.
    a_rejected_secret_is_repaired => sotw "
        origin put sds a@1 b@1
        client sends sds [a b]
        client <- sds [a@1 b@1], ack
        origin put sds a@bad b@2
        client <- sds [a@bad b@2], nack
        client <- sds [a@bad b@1], nack
        client <- sds [a@1 b@2], ack
        nothing for 2s
        origin put sds a@3
        client <- sds [a@3 b@2], ack
    ", sotw "
        origin put sds a@1 b@1
        client sends sds [a b]
        client <- sds [a@1 b@1], ack
        origin put sds a@2 b@bad
        client <- sds [a@2 b@bad]
        origin put sds b@3
        client sends sds [a b] n2 ! => nack
        client <- sds [a@2 b@1], ack
        client <- sds [a@2 b@3], ack
    ";
}
