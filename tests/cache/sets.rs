// SPDX-License-Identifier: Apache-2.0
//! Sessions that lease the same names share one set: when, and how much of that at a time. That sharing changes nothing for them is
//! what the model in `leases` shows.

use super::*;

fn settled(view: &View) -> usize {
    view.settle();
    view.settle();
    view.summary().sets
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
    assert_eq!(heard(&seats[0]), "");
    assert_eq!(heard(&seats[9]), "cds wildcard");
    assert_eq!(settled(&view), 2);
    drop(seats);
    assert_eq!((view.summary().sets, view.summary().wanted), (0, 0));
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
    let view = view_of(0);
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
