// SPDX-License-Identifier: Apache-2.0
//! Who gives way, and when.

use super::*;

fn visits() -> Arc<Visits> {
    let (connections, answers) = (3, 2);
    Visits::new(VisitorRoom { connections, answers })
}

fn ended(visits: &Visits) -> Vec<u64> {
    let known = visits.known.lock();
    known
        .iter()
        .filter(|(_, visit)| visit.ended)
        .map(|(number, _)| *number)
        .collect()
}

/// Whoever has kept the relay waiting longest gives way; nobody does for whom the relay works.
#[test]
fn a_newcomer_gets_in() {
    let visits = visits();
    let start = clock::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let first = visits.enter(at(0)).0;
    let second = visits.enter(at(1)).0;
    let third = visits.enter(at(2)).0;
    let answering = first.request(true, at(3)).unwrap();
    assert!(visits.may_enter());
    let fourth = visits.enter(at(4)).0;
    assert_eq!(ended(&visits), [1], "the second one has asked nothing");
    drop(second);
    answering.works();
    let others = [
        third.request(true, at(5)).unwrap(),
        fourth.request(false, at(5)).unwrap(),
    ];
    others.iter().for_each(Answering::works);
    assert!(!visits.may_enter(), "the relay works for all of them");
    answering.sent(at(6));
    assert!(visits.may_enter());
    let _fifth = visits.enter(at(7));
    assert_eq!(ended(&visits), [0]);
}

/// Probes share no room with other requests. Of the others, the answer ends that is taken most slowly.
#[test]
fn a_question_gets_room() {
    let visits = visits();
    let start = clock::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let [one, other, probe] = [0, 0, 0].map(|second| visits.enter(at(second)).0);
    let slow = one.request(true, at(1)).unwrap();
    let quick = other.request(true, at(1)).unwrap();
    assert!(probe.request(false, at(2)).is_some(), "a probe needs no room");
    slow.works();
    quick.works();
    assert!(probe.request(true, at(2)).is_none());
    slow.sent(at(3));
    quick.sent(at(4));
    let third = probe.request(true, at(5));
    assert_eq!((third.is_some(), ended(&visits)), (true, vec![0]));
    quick.end(at(6));
    drop(quick);
    assert!(probe.request(true, at(6)).is_some());
    assert_eq!(ended(&visits), [0]);
}

/// Large answers have room together; one that is larger than all of it is alone.
#[test]
fn large_answers_give_way() {
    let visits = visits();
    let start = clock::now();
    let [one, other] = [0, 1].map(|second| visits.enter(start + Duration::from_secs(second)).0);
    let first = one.request(true, start).unwrap();
    let second = other.request(true, start).unwrap();
    assert!(first.weighs(BYTES_MAX + 1));
    first.works();
    assert!(!second.weighs(1), "the relay works on the other one");
    first.sent(start);
    assert!(second.weighs(BYTES_MAX));
    assert_eq!(ended(&visits), [0]);
}

#[test]
fn nobody_keeps_the_relay_waiting_for_long() {
    let start = clock::now();
    let bound = |begins: fn(&Answering, Instant), patience: Duration| {
        let visits = visits();
        let presence = visits.enter(start).0;
        let answering = presence.request(true, start).unwrap();
        begins(&answering, start);
        visits.end_overdue(start + patience.checked_sub(Duration::from_millis(1)).unwrap());
        assert_eq!(ended(&visits), [0; 0]);
        visits.end_overdue(start + patience);
        assert_eq!(ended(&visits), [0]);
    };
    bound(|_, _| (), BODY);
    bound(Answering::sent, ANSWER);
    bound(Answering::listens, STREAM);
    let visits = visits();
    let presence = visits.enter(start).0;
    visits.end_overdue(start + FIRST - Duration::from_millis(1));
    assert_eq!(ended(&visits), [0; 0]);
    let answering = presence.request(true, start + FIRST).unwrap();
    answering.works();
    visits.end_overdue(start + STREAM);
    answering.end(start + STREAM);
    visits.end_overdue(start + STREAM + NEXT - Duration::from_millis(1));
    assert_eq!(ended(&visits), [0; 0]);
    visits.end_overdue(start + STREAM + NEXT);
    assert_eq!(ended(&visits), [0]);
}
