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
