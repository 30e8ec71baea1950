//! What the library computes once, keeps, and gives back.

use distributary::cache::{Library, Uses};
use distributary::xds::{Answers, Seen, State};

use super::*;

fn state(names: usize, size: usize) -> Arc<State> {
    let put = |n: usize| Update::Put(resource(&cds(), &format!("c{n}"), &[], &vec![7; size]), None);
    Arc::new(
        State::new(cds())
            .with(&(0..names).map(put).collect::<Vec<_>>(), Some(true))
            .0,
    )
}

#[test]
fn an_answer_is_computed_once_for_all_who_ask_together() {
    let library = Library::new(1 << 20, 1 << 20);
    let state = state(100, 10);
    let gate = std::sync::Barrier::new(8);
    let first = library.full(&state, None);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                gate.wait();
                let difference = library.difference(&Seen::default(), &state);
                assert_eq!(difference.changed().len(), 100);
                assert!(Arc::ptr_eq(&first, &library.full(&state, None)));
            });
        }
    });
    let uses = |asked, computed| Uses { asked, computed };
    assert_eq!(library.uses(), [uses(8, 1), uses(9, 1)]);
}

/// The bound by bytes may throw an answer out, but never makes two of one that somebody has.
#[test]
fn what_is_in_use_is_found_and_what_is_not_is_bounded() {
    let library = Library::new(64 << 10, 1 << 20);
    let states: Vec<_> = (0..64).map(|_| state(10, 1000)).collect();
    let used = library.full(&states[0], None);
    for state in &states {
        let _ = library.full(state, None);
    }
    library.purge();
    assert!(Arc::ptr_eq(&used, &library.full(&states[0], None)));
    assert_eq!(library.uses()[1].computed, 64);
    let weak: Vec<_> = states
        .iter()
        .map(|state| Arc::downgrade(&library.full(state, None)))
        .collect();
    library.purge();
    let alive = weak.iter().filter(|batch| batch.strong_count() > 0).count();
    assert!((1..8).contains(&alive), "{alive} of 10 KB in 32 KB");
}

/// An answer bigger than the bound is kept all the same while it is the one that everybody asks for.
#[test]
fn the_answer_of_the_moment_is_kept_whatever_its_size() {
    let library = Library::new(1000, 1 << 20);
    let state = state(100, 1000);
    for _ in 0..5 {
        let _ = library.difference(&Seen::default(), &state);
        library.purge();
    }
    assert_eq!(library.uses()[0], Uses { asked: 5, computed: 1 });
}
