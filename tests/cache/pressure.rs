//! How much laggards may hold back: first they keep only hashes, then their streams end.

use std::task::{Context, Waker};

use xds::State;

use super::*;

fn budget(bytes: usize) -> Arc<View> {
    let settings = ViewSettings {
        pinned_bytes_per_view: bytes,
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

fn state(view: &View) -> Arc<State> {
    let cut = view.cut();
    let state = cut.slot(&cds()).and_then(|slot| slot.wildcard.clone());
    state.unwrap_or_else(|| Arc::new(State::new(cds())))
}

/// Whether the session is told to keep only hashes, and whether to end.
fn told(seat: &Seat) -> (bool, bool) {
    let rang = seat
        .bell()
        .poll_rang(&mut Context::from_waker(Waker::noop()), |_, _| ());
    rang.map_or((false, false), |rang| (rang.lighten, rang.dismissed))
}

/// Old content counts while a session that has not handled the change keeps it in memory. Over the budget, the sessions that lag
/// longest are told once to keep only hashes.
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
        assert_eq!(view.laggards(), [(2, slow.number())]);
        assert!(!view.relieve());
        let lightened = told(&slow).0;
        assert_eq!(
            lightened,
            n == 3,
            "three old contents are over the budget, and it is told once"
        );
    }
    // If it still holds back too much, its stream ends after a minute.
    assert!((0..57).all(|_| !view.relieve()));
    assert!(view.pinned() > 4 * 2000 && slow.bell().is_light() && !quick.bell().is_light());
    assert!(!told(&slow).1 && !told(&quick).0);
    let ended: Vec<_> = (0..3).map(|_| view.relieve()).collect();
    assert!(ended.contains(&true) && told(&slow).1 && !told(&quick).1);
    held.clear();
    assert_eq!(view.pinned(), 0, "nobody keeps it");
    held.push(view.cut());
    publish(&view, "a", 9);
    [&slow, &quick].into_iter().for_each(look);
    assert!(!slow.bell().is_light(), "it goes on");
    assert_eq!(
        (view.pinned(), view.laggards()),
        (0, Vec::new()),
        "everybody has dealt with it"
    );
}

/// Only as many sessions are told as necessary: sessions that lag less go on as before.
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
    assert!(!view.relieve() && !view.relieve());
    let told: Vec<_> = seats.iter().map(|seat| told(seat).0).collect();
    assert_eq!(told, [true, true, false, false]);
}

/// Sessions that hold the same share one copy of the hashes; if that is still over the budget, their streams end.
#[test]
fn hashes_are_shared_and_count() {
    let view = budget(3000);
    let seats: Vec<_> = (0..2).map(|_| seat(&view, &cds(), &["*"])).collect();
    (0..20).for_each(|n| publish(&view, &format!("n{n}"), 0));
    seats.iter().for_each(look);
    let old = state(&view);
    let copy = view.baselines().state(&old);
    assert!(Arc::ptr_eq(&copy, &view.baselines().state(&old)));
    assert!(Arc::ptr_eq(&copy, &view.baselines().state(&copy)));
    assert_eq!((copy.sum(), copy.present()), (old.sum(), old.present()));
    assert!(copy.bytes() < old.bytes() / 10 && (1000..8000).contains(&view.pinned()));
    let difference = xds::Difference::between(Some(&copy), None, &old);
    assert!(difference.is_empty());
    drop(old);
    publish(&view, "n1", 1);
    look(&seats[1]);
    assert!(!view.relieve(), "it has only just begun to lag");
    assert!(view.relieve() && told(&seats[0]).1 && !told(&seats[1]).1);
    drop((copy, difference));
    assert_eq!(view.baselines().bytes(), 0);
    assert!(!view.relieve());
}
