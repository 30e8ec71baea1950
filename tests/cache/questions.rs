// SPDX-License-Identifier: Apache-2.0
//! Which sessions an operator's question reaches.

use std::task::{Context, Waker};

use inquiry::{Depth, Inquiry, Question, Whom};

use super::*;

fn about(name: &str) -> Question {
    let depth = Depth::Resource(eds(), Name::read(name, &eds()));
    question(depth)
}

fn question(depth: Depth) -> Question {
    let whom = Whom::default();
    Question { whom, depth }
}

/// Asks some at a time, and returns for each seat whether it was asked.
fn reached(view: &Arc<View>, question: Question, seats: &[&Seat]) -> Vec<bool> {
    let question = Arc::new(question);
    let mut respondents = view.respondents(&question);
    let (inquiry, _answers) = Inquiry::new(question, 1, None);
    while respondents.ask_some(2, &inquiry) {}
    let rang = seats.iter().map(|seat| {
        let rang = seat
            .bell()
            .poll_rang(&mut Context::from_waker(Waker::noop()), |_, _| ());
        rang.is_some_and(|rang| {
            assert!(!rang.changed, "a question is no change");
            rang.inquiries.is_some()
        })
    });
    rang.collect()
}

#[test]
fn who_asks_for_nothing_of_it_is_left_alone() {
    let view = view();
    let member = "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/a/1";
    let all = "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/a/*";
    let [a, ab, b, wildcard] = [&["a"][..], &["b", "a"], &["b"], &["*"]].map(|names| seat(&view, &eds(), names));
    let [of_member, of_all] = [member, all].map(|name| seat(&view, &eds(), &[name]));
    let other = seat(&view, &cds(), &["a", "*"]);
    let seats = [&a, &ab, &b, &wildcard, &of_member, &of_all, &other];
    let reached = |question| reached(&view, question, &seats);
    assert_eq!(reached(about("a")), [true, true, false, true, false, false, false]);
    assert_eq!(reached(about(member)), [false, false, false, true, true, true, false]);
    assert_eq!(
        reached(about("nobody's")),
        [false, false, false, true, false, false, false]
    );
    assert_eq!(reached(question(Depth::Types)), [true; 7]);
}

/// The answers come once each session has answered, or is gone: also if it goes after the question, without having looked.
#[test]
fn who_leaves_keeps_nobody_waiting() {
    let view = view();
    let [early, late, stays] = ["a"; 3].map(|name| seat(&view, &eds(), &[name]));
    let question = Arc::new(about("a"));
    let mut respondents = view.respondents(&question);
    let (inquiry, mut answers) = Inquiry::new(question, 1, None);
    drop(early);
    assert!(respondents.ask_some(usize::MAX, &inquiry) && !respondents.ask_some(usize::MAX, &inquiry));
    drop(inquiry);
    drop(late);
    assert!(answers.try_recv().is_err(), "one has not answered");
    drop(
        stays
            .bell()
            .poll_rang(&mut Context::from_waker(Waker::noop()), |_, _| ()),
    );
    assert!(answers.try_recv().is_ok_and(|answers| answers.is_empty()));
}
