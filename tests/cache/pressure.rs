// SPDX-License-Identifier: Apache-2.0
//! How much laggards may hold back: over the limit the streams of the slowest end.

use std::task::{Context, Waker};

use super::*;

fn budget(bytes: usize) -> Arc<View> {
    let settings = ViewSettings {
        pinned_bytes_per_view: bytes,
        history_bytes: 16 << 20,
        ..settings()
    };
    View::new(Class::default(), settings)
}

fn publish(view: &View, name: &str, n: u8) {
    let put = Update::Put(resource(&cds(), name, &[], &[n; 2000]), None);
    view.publish(&[covered(&cds(), vec![put])]);
}

fn look(seat: &Seat) {
    let _ = seat.bell().take();
    seat.bell().looked(|_| true);
}

/// Whether the session is told to end.
fn told(seat: &Seat) -> bool {
    let rang = seat
        .bell()
        .poll_rang(&mut Context::from_waker(Waker::noop()), |_, _| ());
    rang.is_some_and(|rang| rang.dismissed)
}

/// Old content counts while a session that has not handled the change keeps it in memory. Over the budget, the sessions that lag
/// longest are told to end (K-21).
#[test]
fn laggards_are_found_by_what_they_pin() {
    let view = budget(5000);
    let (slow, quick) = (seat(&view, &cds(), &["*"]), seat(&view, &cds(), &["*"]));
    publish(&view, "a", 0);
    let mut held = vec![view.cut()];
    [&slow, &quick].into_iter().for_each(look);
    for n in 1..=4 {
        publish(&view, "a", n);
        look(&quick);
        // It is woken for the changes, but cannot send anything to its client.
        assert_eq!(heard(&slow), ["cds wildcard"]);
        held.push(view.cut());
        assert_eq!(view.demand().laggards(), [(2, slow.number())]);
        assert_eq!(view.relieve(), n >= 3, "three old contents are over the budget");
        assert_eq!((told(&slow), told(&quick)), (n >= 3, false));
    }
    assert!(view.pinned() > 4 * 2000);
    held.clear();
    assert_eq!(view.pinned(), 0, "nobody keeps it");
    publish(&view, "a", 9);
    [&slow, &quick].into_iter().for_each(look);
    assert_eq!(view.pinned(), 0, "everybody has dealt with it");
    assert!(view.demand().laggards().is_empty(), "everybody has dealt with it");
}

/// Only as many sessions are told as necessary: sessions that lag less go on as before, and those that have only just begun.
#[test]
fn those_that_lag_longest_are_told() {
    let view = budget(5000);
    let seats: Vec<_> = (0..4).map(|_| seat(&view, &cds(), &["*"])).collect();
    publish(&view, "a", 0);
    seats.iter().for_each(look);
    let mut held = Vec::new();
    for n in 1..=4 {
        held.push(view.cut());
        publish(&view, "a", n);
        // The first two lag from the beginning, the third one from the third change on.
        seats.iter().skip(if n < 3 { 2 } else { 3 }).for_each(look);
    }
    assert!(!view.relieve() && view.relieve());
    let told: Vec<_> = seats.iter().map(told).collect();
    assert_eq!(told, [true, true, false, false]);
}

/// While memory is short, laggards may hold back little, also without a limit of the view.
#[test]
fn laggards_while_memory_is_short() {
    let view = budget(0);
    let (slow, quick) = (seat(&view, &cds(), &["*"]), seat(&view, &cds(), &["*"]));
    let mut held = Vec::new();
    for n in 0..=17 {
        let put = Update::Put(resource(&cds(), "a", &[], &vec![n; 1 << 20]), None);
        view.publish(&[covered(&cds(), vec![put])]);
        held.push(view.cut());
        look(&quick);
        assert!(!view.relieve(), "there is no limit");
        view.release_laggards();
        assert_eq!((told(&slow), told(&quick)), (n >= 16, false), "{n}");
    }
}
