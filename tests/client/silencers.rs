// SPDX-License-Identifier: Apache-2.0
//! E-27: which names silence a SotW server, and when that is found out.

use std::collections::BTreeSet;

use crate::division::{Both, Java};
use crate::{EDS, LDS, sotw};

/// E-27: the first list of a type has a name that the server lacks already, on the first stream and on a later one, of what is held.
#[test]
fn a_first_list_that_silences() {
    let server = Java(&["a", "b", "c"]);
    let mut both = Both::new(&["a", "b", "c", "missing"]);
    let lists = [
        "main [a b c missing]",
        "aside [a b c missing]",
        "aside [a b]",
        "main [a b]",
        "aside [c missing]",
        "aside [c]",
        "main [a b c]",
        "aside [missing]",
    ];
    assert_eq!(both.at(&server, 90), lists);
    let mut both = Both::new(&["a", "b", "c"]);
    assert_eq!(both.at(&server, 1), ["main [a b c]"]);
    both.main.disconnect();
    both.want("missing");
    both.known = Default::default();
    both.main.connect();
    assert_eq!(both.at(&server, 90), lists);
    assert_eq!(both.main.named(EDS), "a=1 b=1 c=1 missing:TimedOut");
}

/// E-27: the answer to an earlier list comes after names were added. It says nothing about these, and they silence the server.
#[test]
fn an_answer_to_an_earlier_list() {
    let server = Java(&["a", "b"]);
    let mut both = Both::new(&["a"]);
    assert_eq!(both.sent(), [vec!["eds [a] v".to_owned()], vec![]]);
    ["b", "missing"].iter().for_each(|name| both.want(name));
    assert_eq!(both.sent(), [vec!["eds [a b missing] v".to_owned()], vec![]]);
    both.main.hears_sotw(server.answer("a", 0).unwrap());
    both.known[0] = BTreeSet::from(["a".to_owned()]);
    let lists = both.at(&server, 90);
    assert_eq!(
        lists,
        [
            "main [a b missing]",
            "main [a]",
            "aside [b missing]",
            "aside [b]",
            "main [a b]",
            "aside [missing]"
        ]
    );
}

/// E-27: an answer that is rejected does not show that the server answers whatever it lacks.
#[test]
fn an_answer_that_is_rejected() {
    let server = Java(&["a", "b"]);
    let mut both = Both::new(&["a"]);
    both.sent();
    both.main.hears_sotw(sotw(EDS, "1", "bad", &["a=1", "a=2"]));
    both.sent();
    both.main.hears_sotw(server.answer("a", 0).unwrap());
    both.known[0] = BTreeSet::from(["a".to_owned()]);
    ["b", "missing"].iter().for_each(|name| both.want(name));
    let lists = both.at(&server, 90);
    assert_eq!(lists.last().unwrap(), "aside [missing]", "{lists:?}");
    assert_eq!(both.main.named(EDS), "a=1 b=1 missing:TimedOut");
}

/// E-27: an answer comes when another part has its turn. Only what it answers goes back.
#[test]
fn an_answer_after_its_turn() {
    let server = Java(&["b"]);
    let mut both = Both::new(&["b", "missing"]);
    let mut answered = Vec::new();
    for _ in 0..60 {
        let [main, aside] = both.sent();
        if aside.iter().any(|line| line.starts_with("eds [missing]")) && answered.is_empty() {
            both.aside.hears_sotw(server.answer("b", 1).unwrap());
            answered = both.sent().concat();
        } else if let Some(line) = main.iter().find(|line| line.starts_with("eds [b]")) {
            answered.push(line.clone());
        }
        both.pass(1);
    }
    assert_eq!(answered, ["eds [b] v", "eds [missing] vcurrent ack j1"]);
}

/// E-27: no name of a type is left at home. News of other types are reason to try again, seldom.
#[test]
fn news_of_other_types() {
    let mut both = Both::new(&["b", "missing"]);
    both.at(&Java(&[]), 300);
    assert_eq!(both.at(&Java(&["b"]), 3600), [""; 0], "the server says nothing at all");
    both.clusters("1", &["x"]);
    let lists = both.at(&Java(&["b"]), 120);
    assert!(lists.contains(&"main [b]".to_owned()), "{lists:?}");
    let mut both = Both::new(&["c", "missing"]);
    let mut requests = 0;
    for round in 0..24 * 6 {
        both.clusters(&format!("{round}"), &["x"]);
        requests += both.at(&Java(&[]), 600).len();
    }
    assert!(requests < 200, "{requests} in a day");
}

/// E-07, E-27: a name silences the first stream, which is asked for it twice, and does not exist, as the other stream says at once. It
/// stays there.
#[test]
fn a_name_that_does_not_exist() {
    let mut both = Both::new(&[]);
    both.want_of(LDS, "a");
    both.sent_of("lds");
    both.main.hears_sotw(sotw(LDS, "1", "n1", &["a=1"]));
    both.want_of(LDS, "gone");
    let (mut away, mut home) = (0, 0);
    for _ in 0..900 {
        let [main, aside] = both.sent_of("lds");
        home += main.iter().filter(|line| line.contains("[a gone]")).count();
        if aside
            .iter()
            .any(|line| line.starts_with("lds [gone]") && !line.contains(" ack "))
        {
            away += 1;
            both.aside.hears_sotw(sotw(LDS, "1", &format!("j{away}"), &[]));
        }
        both.pass(1);
    }
    assert!(away > 0 && home == 2, "{away} and {home} times");
    assert!(both.aside.named(LDS).contains("gone:"), "{}", both.aside.named(LDS));
}

/// E-27: there is no other stream for longer than names that silence the first one have their turns there. Nothing is concluded from that.
#[test]
fn no_stream_to_be_answered_on() {
    let server = Java(&["a", "b", "c"]);
    let mut both = Both::new(&["a"]);
    both.at(&server, 1);
    both.aside.disconnect();
    ["b", "c", "missing"].iter().for_each(|name| both.want(name));
    let lists = both.at(&server, 60);
    assert_eq!(lists.last().unwrap(), "main [a]", "{lists:?}");
    both.aside.connect();
    let lists = both.at(&server, 30);
    assert_eq!(lists.last().unwrap(), "aside [missing]", "{lists:?}");
    assert_eq!(both.main.named(EDS), "a=1 b=1 c=1 missing:TimedOut");
}
