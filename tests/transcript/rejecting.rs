// SPDX-License-Identifier: Apache-2.0
//! Rejected responses: what is held back, and for how long.

use std::collections::VecDeque;

use crate::story::{both, stories};

stories! {
    /// B-22, L-26, M-02: what was rejected with others is tried again in halves. Only what was rejected alone is held back until it
    /// changes.
    rejected_and_repaired => both "
        origin put eds A@1 B@bad
        client subscribe eds A B
        client <- eds [A@1 B@bad], nack
        client <- eds [A@1], ack
        client <- eds [B@bad], nack
        nothing for 2s
        client status eds Error
        origin put eds A@2
        client <- eds [A@2], ack
        client status eds Error
        origin put eds B@good
        client <- eds [B@good], ack
        client status eds Synced
    ";

    /// B-22: the members that the error does not name go again first, then each named one alone: an error may name a good one too.
    rejected_by_name => both "
        origin put eds A@bad B@1 C@1 D@1
        client blames A B
        client subscribe eds A B C D
        client <- eds [A@bad B@1 C@1 D@1], nack
        client <- eds [C@1 D@1], ack
        client <- eds [A@bad], nack
        client <- eds [B@1], ack
        nothing for 20s
        client status eds Error
        origin put eds A@2
        client <- eds [A@2], ack
        client status eds Synced
    ";

    /// B-22: a wildcard's resources are tried in the same way, and then the client has what all others have.
    rejected_of_a_wildcard => delta "
        origin put cds a@1 b@1 c@bad d@1
        client subscribe cds *
        client <- cds [a@1 b@1 c@bad d@1], nack
        client <- cds [a@1 b@1], ack
        client <- cds [c@bad d@1], nack
        client <- cds [c@bad], nack
        client <- cds [d@1], ack
        nothing for 20s
        origin put cds a@2
        client <- cds [a@2], ack
        origin put cds c@2
        client <- cds [c@2], ack
        client status cds Synced
    ";

    /// B-22: a name that is given up is tried no more. C-25: what goes meanwhile is removed, since the client may hold it.
    rejected_and_given_up_or_gone => delta "
        origin put eds A@1 B@bad C@1
        client subscribe eds A B C
        client <- eds [A@1 B@bad C@1], nack
        client <- eds [A@1]
        client unsubscribe eds B
        client <- eds [C@1], ack
        client status eds Synced
    ", delta "
        origin put eds A@1 B@bad
        client subscribe eds A B
        client <- eds [A@1 B@bad], nack
        client <- eds [A@1]
        origin drop eds B
        client ack
        client <- eds -[B], ack
        client status eds Synced
    ";

    /// B-22: a listener that was rejected is tried once more after a removal, which may have freed its address; once for each content.
    rejected_for_what_goes => delta "
        client has lds * [a@1]
        origin put lds b@1, drop lds a
        client <- lds [b@1], nack
        client <- lds -[a], ack
        client <- lds [b@1], ack
        client status lds Synced
    ", delta "
        client has lds * [a@1 c@1]
        origin put lds b@1, drop lds a
        client <- lds [b@1], nack
        client <- lds -[a], ack
        client <- lds [b@1], nack
        origin drop lds c
        client <- lds -[c], ack
        nothing for 20s
        client status lds Error
    ";

    /// C-25, C-26: a listener that goes beside the one that takes its address goes once more if the client rejects that response: it may
    /// hold any part of it.
    rejected_with_a_removal => delta "
        client has lds * [a@1:leads=0.0.0.0:80]
        origin put lds b@bad:leads=0.0.0.0:80, drop lds a
        client <- lds [b@bad] -[a], nack
        client <- lds -[a], ack
        client <- lds [b@bad], nack
    ";

    /// C-26: a client applies the removals of a response that it rejects, so a response of removals counts as accepted.
    a_rejected_response_of_removals => delta "
        client has eds * [a@1 b@1]
        origin drop eds a
        client <- eds -[a], nack
        nothing for 20s
        client status eds Synced
    ";

    /// B-05, B-06, B-07, L-5: only the error makes a request a rejection; the version beside it says nothing.
    rejected_with_the_current_version => sotw "
        origin put eds A@1 B@1
        client sends eds [A]
        client <- eds [A@1]
        client sends eds [A] v1 n1 => ack
        client status eds Synced
        client sends eds [A B] v1 n1 => update
        client <- eds [B@1]
        client status eds Stale
        client sends eds [A B] v1 n2 ! => nack
        client status eds Error
        client sends eds [A B] v1 n2 => update
        client status eds Error
    ";

    /// B-07, B-21, B-22, L-6: a rejected state is not sent again, whatever version the rejection carries, until it changes.
    rejections_do_not_loop for version in ["", "v1", "v2"] => sotw "
        client has cds [a@1]
        origin put cds a@2
        client <- cds [a@2]
        client sends cds [] {version} n2 ! => nack
        nothing for 2s
        client status cds Error
        origin put cds a@3
        client <- cds [a@3], ack
        client status cds Synced
    ";

    /// B-23: the names of a rejection count.
    a_rejection_that_names_more => sotw "
        origin put rds A@1 B@1
        client sends rds [A]
        client <- rds [A@1]
        client sends rds [A B] n1 ! => nack
        client <- rds [B@1]
        client sends rds [B] v2 n2 => ack
        nothing
        origin put rds A@2
    ";

    /// B-22, L-26: a rejected full state is taken apart, and what was rejected alone waits until it changes.
    a_rejected_full_state => sotw "
        origin put cds A@1 B@bad
        client subscribe cds *
        client <- cds [A@1 B@bad], nack
        client <- cds [A@1], ack
        nothing for 2s
        origin put cds B@good
        client <- cds [A@1 B@good], ack
        origin put cds A@worse
        client <- cds [A@worse B@good], nack
        nothing for 2s
        origin drop cds A
        client <- cds [B@good], ack
    ";

    /// B-22, C-25: a rejection does not hold back what was not in the response.
    neighbours_of_a_rejection_go_on => both "
        client has eds A B [A@1 B@1]
        origin put eds B@bad
        client <- eds [B@bad], nack
        origin put eds A@2
        client <- eds [A@2], ack
        nothing for 2s
        client status eds Error
        origin put eds B@1
        client <- eds [B@1], ack                 # what it holds is unknown after a rejection
        client status eds Synced
    ";

    /// K-06, K-07, L-16: a client's rejection has no effect on other clients or the upstream.
    one_of_three_rejects => both "
        first has cds * [x@1]
        second gets cds * [x@1]
        third gets cds * [x@1]
        origin put cds x@2
        first <- cds [x@2], ack
        second <- cds [x@2], nack
        third <- cds [x@2], ack
        nothing for 2s
        second status cds Error
        first status cds Synced
        origin put cds x@3
        first <- cds [x@3], ack
        second <- cds [x@3], ack
        third <- cds [x@3], ack
        second status cds Synced
    ";
}

/// The names `n000`, `n001`, ...
pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("n{n:03}")).collect()
}

/// The responses to a client that rejects those with a name in `bad` and blames nobody: halves, in the order in which they arise.
/// Ends when everything was tried, or after so many rejections. The resources have the version 1.
pub(crate) fn halves(topic: &str, names: Vec<String>, bad: &[&str], rejections: usize) -> String {
    let (mut tried, mut rejected, mut groups) = (String::new(), 0, VecDeque::from([names]));
    while let Some(group) = groups.pop_front().filter(|_| rejected < rejections) {
        let good = !group.iter().any(|name| bad.contains(&name.as_str()));
        let answer = if good { "ack" } else { "nack" };
        tried += &format!("client <- {topic} [{}@1], {answer}\n", group.join("@1 "));
        rejected += usize::from(!good);
        if !good && group.len() > 1 {
            let (first, second) = group.split_at(group.len() / 2);
            groups.extend([first.to_vec(), second.to_vec()]);
        }
    }
    tried
}

/// B-22: after 64 rejected tries in a row everything that is still to be tried is held back, each until it changes.
#[test]
fn tries_are_bounded() {
    let all = names(128);
    let bad: Vec<&str> = all.iter().map(String::as_str).collect();
    let story = format!(
        "origin put eds {}@1\nclient subscribe eds {}\n",
        all.join("@1 "),
        all.join(" ")
    ) + &halves("eds", all.clone(), &bad, 64)
        + "nothing for 60s\nclient status eds Error\n"
        + "origin put eds n000@2 n127@2\nclient <- eds [n000@2 n127@2], ack\n";
    both(&story);
}

stories! {
    /// E-24: a relay says of the last response, which it has accepted, that its own clients reject something in it. That counts as a
    /// rejection, and nothing is sent again; the next change is sent as always.
    a_relay_speaks_for_its_clients => sotw "
        client has cds * [a@1]
        client sends cds [*] v1 n1 ! => nack
        nothing for 20s
        client status cds Synced
        client sends cds [*] v1 n1 => update
        origin put cds a@2
        client <- cds [a@2]
        client sends cds [*] v1 n1 ! => stale
        client ack cds
        client status cds Synced
    ", delta "
        client has cds * [a@1]
        client sends cds n1 ! => nack
        nothing for 20s
        client status cds Synced
        origin put cds a@2
        client <- cds [a@2]
        client sends cds n1 ! => stale
        client ack cds
        client status cds Synced
    ",
    // What a client has rejected it does not reject twice.
    delta "
        origin put cds a@bad
        client subscribe cds *
        client <- cds [a@bad], nack
        client sends cds n1 ! => stale
        client status cds Error
    ";
}
