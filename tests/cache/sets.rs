// SPDX-License-Identifier: Apache-2.0
//! Sessions that lease the same names share one set, and sharing changes nothing for them.

use super::*;

fn settled(view: &View) -> usize {
    view.settle();
    view.settle();
    view.summary().sets
}

#[test]
fn equal_sets_are_one_once_they_are_quiet() {
    let view = view();
    let names = ["a", "b", "c"];
    let seats: Vec<_> = (0..10).map(|_| seat(&view, &eds(), &names)).collect();
    let other = seat(&view, &eds(), &["a", "b"]);
    let everything = seat(&view, &cds(), &["*"]);
    assert_eq!(view.summary().sets, 12);
    view.settle();
    assert_eq!(view.summary().sets, 12, "they have only just changed their minds");
    view.settle();
    assert_eq!(view.summary().sets, 3);
    let heard_by = |seats: &[Seat]| seats.iter().filter(|seat| heard(seat) == ["eds c"]).count();
    view.publish(&[named(&eds(), vec![put(&eds(), "c", "1")])]);
    assert_eq!(
        (heard_by(&seats), heard(&other), heard(&everything)),
        (10, vec![], vec![])
    );
    drop(seats);
    assert_eq!((view.summary().sets, view.summary().wanted), (2, 3));
}

/// Small sets are merged at once, when their session has sent all that it wants; large ones are merged once the session is quiet.
#[test]
fn little_sets_are_one_at_once() {
    let view = view();
    let much: Vec<_> = (0..20).map(|n| format!("n{n}")).collect();
    let much: Vec<_> = much.iter().map(String::as_str).collect();
    let seats: Vec<_> = (0..10)
        .map(|_| {
            let seat = seat(&view, &cds(), &["*"]);
            for name in &much {
                assert_eq!(seat.want(&want(&eds(), name, true)), Ok(()));
            }
            seat.rest();
            seat
        })
        .collect();
    assert_eq!(view.summary().sets, 11, "one of clusters, and of endpoints one each");
    assert_eq!(seats[0].want(&want(&cds(), "*", false)), Ok(()));
    view.publish(&[covered(&cds(), vec![put(&cds(), "c", "1")])]);
    let heard = |seat: &Seat| heard(seat).concat();
    assert_eq!(
        (heard(&seats[0]), heard(&seats[9])),
        (String::new(), "cds wildcard".to_owned())
    );
    assert_eq!(settled(&view), 2);
    drop(seats);
    assert_eq!((view.summary().sets, view.summary().wanted), (0, 0));
}

/// A session that changes its names does not change those of others.
#[test]
fn a_shared_set_is_copied_before_it_changes() {
    let view = view();
    let seats: Vec<_> = (0..3).map(|_| seat(&view, &eds(), &["a", "b"])).collect();
    assert_eq!(settled(&view), 1);
    assert_eq!(seats[0].want(&want(&eds(), "a", true)), Ok(()));
    assert_eq!(seats[0].want(&want(&eds(), "z", false)), Ok(()));
    assert_eq!(view.summary().sets, 1, "nothing has changed");
    assert_eq!(seats[0].want(&want(&eds(), "a", false)), Ok(()));
    assert_eq!(seats[1].want(&want(&eds(), "c", true)), Ok(()));
    assert_eq!((view.summary().sets, view.summary().wanted), (3, 3));
    let updates = ["a", "b", "c"].map(|name| put(&eds(), name, "1"));
    view.publish(&[named(&eds(), updates.to_vec())]);
    let heard: Vec<_> = seats.iter().map(|seat| heard(seat).concat()).collect();
    assert_eq!(heard, ["eds b", "eds aeds beds c", "eds aeds b"]);
    assert_eq!(seats[0].want(&want(&eds(), "a", true)), Ok(()));
    assert_eq!(seats[1].want(&want(&eds(), "c", false)), Ok(()));
    assert_eq!(settled(&view), 1, "they are of one mind again");
}

/// Lets the writer end what no session has any more. Returns how many sets there are.
fn turned(view: &View) -> usize {
    for _ in 0..1_000 {
        let _ = view.take_wants(start());
    }
    view.summary().sets
}

/// Only a limited amount is merged at a time, and the rest later.
#[test]
fn coming_to_rest_takes_only_moments() {
    let settings = ViewSettings {
        names_per_view: 0,
        ..settings()
    };
    let view = View::new(Class::default(), settings);
    let names: Vec<_> = (0..4000).map(|n| format!("n{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let seats: Vec<_> = (0..100).map(|_| seat(&view, &eds(), &names)).collect();
    settled(&view);
    assert!((30..40).contains(&turned(&view)), "{}", view.summary().sets);
    view.settle();
    assert_eq!(turned(&view), 1);
    drop(seats);
    assert_eq!((turned(&view), view.summary().wanted), (0, 0));
}
