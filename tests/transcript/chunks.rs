// SPDX-License-Identifier: Apache-2.0
//! Large answers: parts of one change, and what happens between two of them.

use crate::story::{delta, sotw, stories};

fn clusters(count: usize, item: impl Fn(usize) -> String) -> String {
    (1..=count).map(item).collect::<Vec<_>>().join("")
}

/// C-26, L-29: the chunks of a large delta are on their way together: an Envoy acknowledges none of them before the endpoints are there.
#[test]
fn chunks_do_not_wait_for_each_other() {
    let story = "relay chunk 1\n".to_owned()
        + &format!("origin put cds{}\n", clusters(20, |n| format!(" c{n:02}@1:eds")))
        + &format!("origin put eds{}\n", clusters(20, |n| format!(" c{n:02}@1")))
        + "client subscribe cds *\n"
        + &clusters(20, |n| format!("client <- cds [c{n:02}@1]\n"))
        + &format!("client subscribe eds{}\n", clusters(20, |n| format!(" c{n:02}")))
        + &clusters(20, |n| format!("client <- eds [c{n:02}@1]\n"))
        + "client ack\n";
    delta(&story);
}

stories! {
    /// B-24, C-26: in SotW the parts of a large answer follow each other, one at a time.
    parts_follow_each_other => sotw "
        relay chunk 1
        origin put eds a@1 b@1 c@1
        client subscribe eds a b c
        client <- eds [a@1]
        nothing
        client ack
        client <- eds [b@1], ack
        client <- eds [c@1], ack
    ";
}

/// B-14, A-11: one response says of at most 2,048 names that they do not exist, so that other clients have their turns between two.
#[test]
fn very_many_names_that_do_not_exist() {
    let names = |of: std::ops::Range<usize>| of.map(|n| format!("n{n:04}")).collect::<Vec<_>>().join(" ");
    let story = format!("origin put eds other@1\nclient subscribe eds {}\n", names(0..5000))
        + &format!("client <- eds -[{}]\n", names(0..2048))
        + &format!("client <- eds -[{}]\n", names(2048..4096))
        + &format!("client <- eds -[{}]\n", names(4096..5000))
        + "client ack\n";
    delta(&story);
}

stories! {
    /// B-24: if nothing is left to send of an answer that has begun, what changed meanwhile is sent at once.
    nothing_is_left_of_an_answer => sotw "
        relay chunk 1
        origin put eds b@1 c@1
        client subscribe eds * b c
        client <- eds [b@1]
        origin drop eds c, put eds d@1
        client ack
        client <- eds ![c=5], ack
        client <- eds [d@1], ack
    ";
}

/// B-24, C-26: names that change all the time do not hold back the names behind them, in whatever way each was asked for.
#[test]
fn nothing_starves_behind_what_changes_all_the_time() {
    let names = |revision: usize| clusters(12, |n| format!(" n{n:02}@{revision}"));
    let rest = |revision: usize| {
        clusters(11, |n| {
            format!(
                "client <- eds [n{:02}@2], ack\norigin put eds n01@{}\n",
                n + 1,
                revision + n
            )
        })
    };
    let begins = "relay chunk 1\n".to_owned() + &format!("origin put eds{}\n", names(1));
    let changes = format!(
        "client stalls\norigin put eds{}\nclient reads 1\nclient <- eds [n01@2], ack\n",
        names(2)
    ) + "origin put eds n01@3\nclient reads\n";
    let ends = "client <- eds [n01@13], ack\nclient <- eds [n01@14], ack\nnothing\n";
    let first = clusters(12, |n| format!("client <- eds [n{n:02}@1], ack\n"));
    let by_name = format!("client subscribe eds{}\n", clusters(12, |n| format!(" n{n:02}")));
    sotw(&(begins.clone() + &by_name + &first + &changes + &rest(3) + ends));
    sotw(&(begins + "client subscribe eds *\n" + &first + &changes + &rest(3) + ends));
}

stories! {
    /// C-26: a removal waits for additions of other names only for a time.
    a_removal_does_not_wait_for_ever for asked in ["a b c", "*"] => delta "
        relay chunk 1
        origin put eds a@1 b@1 c@1
        client gets eds {asked} [a@1]
        client <- eds [b@1], ack
        client <- eds [c@1], ack
        client stalls
        origin put eds a@2 b@2, drop eds c
        client reads 1
        client <- eds [a@2], ack
        origin put eds a@3
        wait 1s
        client reads 1
        client <- eds [b@2], ack
        origin put eds b@3
        wait 2s
        client reads 1
        client <- eds -[c], ack
        client reads
        client <- eds [a@3], ack
        client <- eds [b@3], ack
    ";

    /// B-14, B-29, C-26: a name that is given up while parts of an answer are still to come is not sent any more, and the rest is
    /// sent in full.
    interest_changes_between_two_parts => both "
        relay chunk 1
        origin put eds a@1 b@1 c@1
        client stalls
        client subscribe eds a b c
        client reads 1
        client <- eds [a@1]
        client unsubscribe eds b
        client reads                             # in SotW the request that gave up b has accepted a
        client <- eds [c@1], ack
        nothing
        client gets eds b [b@1]
    ", both "
        relay chunk 1
        origin put eds a@1 b@1 c@1
        client stalls
        client subscribe eds a b
        client reads 1
        client <- eds [a@1]
        client unsubscribe eds a b
        client reads
        nothing
        client gets eds c [c@1]
    ";

    /// B-14, C-07, C-26: if a wildcard begins or ends between two parts, everything that was asked for by name is still sent.
    a_wildcard_changes_between_two_parts => delta "
        relay chunk 1
        origin put eds a@1 b@1
        client stalls
        client subscribe eds a b
        client reads 1
        client <- eds [a@1], ack
        client subscribe eds *
        client reads
        client <- eds [b@1], ack
        client <- eds nothing
    ", delta "
        relay chunk 1
        origin put eds a@1 b@1 c@1
        client stalls
        client subscribe eds a c *
        client reads 1
        client <- eds [a@1], ack
        client unsubscribe eds *
        client reads
        client <- eds [c@1], ack
    ";

    /// C-11, C-22, C-26: a resource that is asked for again before it was sent is sent once.
    asked_for_again_between_two_parts => delta "
        relay chunk 1
        origin put eds a@1 b@1
        client stalls
        client subscribe eds a b
        client reads 1
        client <- eds [a@1]
        client subscribe eds b
        client reads
        client <- eds [b@1], ack
    ", delta "
        relay chunk 1
        origin put cds a@1 b@1
        client stalls
        client subscribe cds *
        client reads 1
        client <- cds [a@1]
        client subscribe cds *
        client reads
        client <- cds [a@1]
        client <- cds [b@1], ack
    ", delta "
        relay chunk 1
        origin put eds xdstp://a/EDS/a@1 xdstp://a/EDS/b@1
        client stalls
        client subscribe eds xdstp://a/EDS/*
        client reads 1
        client <- eds [xdstp://a/EDS/a@1]
        client subscribe eds xdstp://a/EDS/*
        client reads
        client <- eds [xdstp://a/EDS/b@1]
        client <- eds [xdstp://a/EDS/a@1], ack
    ";

    /// C-26, D-03: a cluster that was to be removed with a later part stays if a route changes before that part.
    a_route_changes_between_two_parts => delta "
        relay chunk 1
        origin put cds a@1 old@1, put rds r@old
        client subscribe cds *
        client <- cds [a@1]
        client <- cds [old@1], ack
        client gets rds r [r@old]
        client stalls
        origin put cds b@1, drop cds old
        client reads 1
        client <- cds [b@1]
        origin put rds r@a
        client reads
        client <- rds [r@a]
        nothing for 500ms
        client ack
        client <- cds -[old], ack
        client gates 0
    ";

    /// B-24, C-15, C-22: a collection of which something was sent counts as answered, even if that is gone before the next part.
    a_collection_is_emptied_between_two_parts => delta "
        relay chunk 1
        origin put rds r@old, put cds xdstp://a/CDS/a@1
        client gets rds r [r@old]
        client stalls
        client subscribe cds xdstp://a/CDS/* xdstp://a/CDS/gone
        client reads 1
        client <- cds [xdstp://a/CDS/a@1]
        origin put rds r@new
        client reads 1
        origin drop cds xdstp://a/CDS/a
        client reads
        client <- cds -[xdstp://a/CDS/gone]
        client <- rds [r@new]
        nothing for 500ms
        client ack
        client <- cds -[xdstp://a/CDS/a], ack
        client gates 0
    ";

    /// B-14, D-03: a client asks for a cluster that is about to be removed; if the cluster is back before the next part, the client
    /// is sent it.
    a_cluster_comes_again_between_two_parts => delta "
        relay chunk 1
        origin put cds a@1 c@1, put rds r@c
        client subscribe cds *
        client <- cds [a@1]
        client <- cds [c@1], ack
        client gets rds r [r@c]
        client stalls
        origin put cds b@1, drop cds c
        client subscribe cds c
        client reads 1
        client <- cds [b@1]
        origin put cds c@1, put rds r@a
        client reads
        client <- cds [c@1]
        client <- rds [r@a]
        client ack
    ";

    /// C-15, C-22: a collection whose only member goes before a part brings it is answered by its own name.
    a_collection_is_emptied_before_its_part => delta "
        relay chunk 1
        origin put cds c@1 xdstp://a/CDS/a@1
        client gets cds keeps -[keeps]
        client stalls
        client subscribe cds c xdstp://a/CDS/*
        client reads 1
        client <- cds [c@1]
        origin drop cds xdstp://a/CDS/a
        client reads
        client <- cds -[xdstp://a/CDS/*], ack
    ";

    /// B-22, C-22: the removal of a member does not answer its collection, and makes no answer owed.
    an_empty_collection_between_two_parts => delta "
        relay chunk 1
        origin put rds r@old, put cds xdstp://a/CDS/a@1
        client gets rds r [r@old]
        client subscribe cds xdstp://a/CDS/none/*
        client <- cds -[xdstp://a/CDS/none/*], nack
        client stalls
        client subscribe cds xdstp://a/CDS/a xdstp://a/CDS/none/gone
        client reads 1
        client <- cds [xdstp://a/CDS/a@1]
        origin put rds r@new
        client reads
        client <- cds -[xdstp://a/CDS/none/gone]
        client <- rds [r@new]
        client ack
    ";

    /// C-08, C-15, C-22: a client that gives up a name which is also in one of its collections is told the present state of the name,
    /// even if a route changes in between.
    a_name_given_up_between_two_parts => delta "
        relay chunk 1
        origin put rds r@old, put cds xdstp://a/CDS/a@1
        client gets rds r [r@old]
        client subscribe cds xdstp://a/CDS/* xdstp://a/CDS/gone
        client <- cds [xdstp://a/CDS/a@1]
        client <- cds -[xdstp://a/CDS/gone], ack
        client stalls
        origin put cds xdstp://a/CDS/a@2
        client unsubscribe cds xdstp://a/CDS/gone
        client reads 1
        client <- cds [xdstp://a/CDS/a@2]
        origin put rds r@new
        client reads
        client <- cds -[xdstp://a/CDS/gone]
        client <- rds [r@new]
        client ack
    ";

    /// K-09, K-19: what an answer of several parts leaves out, a SotW client holds no more once it has the first part, also if it then
    /// asks for that by name.
    a_name_that_the_first_part_left_out => sotw "
        relay chunk 1
        origin put rds a@1 b@1 c@1
        client gets rds * [a@1]
        client <- rds [b@1], ack
        client <- rds [c@1], ack
        origin put rds a@2 c@2, drop rds b
        client <- rds [a@2]
        client subscribe rds b # which acknowledges it, too
        client <- rds ![b=5], ack
        client <- rds [c@2], ack
        second gets rds a c [a@2]
        second <- rds [c@2], ack
        client shares rds second
    ";
}

/// B-24: in delta 64 responses of a type are on their way, and the next one waits until the client has answered.
#[test]
fn a_window_of_64_responses() {
    let of = |range: std::ops::RangeInclusive<usize>, item: fn(usize) -> String| range.map(item).collect::<String>();
    let story = "relay chunk 1\n".to_owned()
        + &format!("origin put cds{}\n", of(1..=66, |n| format!(" c{n:02}@1")))
        + "client subscribe cds *\n"
        + &of(1..=64, |n| format!("client <- cds [c{n:02}@1]\n"))
        + "nothing for 20s\norigin put cds c01@2\nnothing for 20s\nclient ack\n"
        + "client <- cds [c65@1]\nclient <- cds [c66@1]\nclient <- cds [c01@2]\nclient ack\n";
    delta(&story);
}
