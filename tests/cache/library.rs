// SPDX-License-Identifier: Apache-2.0
//! What the library computes once, keeps, and drops.

use cache::{Library, Uses};
use classes::{Node, Pattern};
use xds::{Access, AccessRule, Answers, Caller, Permitted, Rights, State, Way};

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
    let first = library.full(&state);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                gate.wait();
                let difference = library.difference(None, None, &state);
                assert_eq!(difference.changed().count(), 100);
                assert!(Arc::ptr_eq(&first, &library.full(&state)));
            });
        }
    });
    let uses = |asked, computed| Uses { asked, computed };
    assert_eq!(library.uses(), [uses(8, 1), uses(9, 1)]);
}

/// The bound in bytes may drop an answer, but never makes a second copy of one that is in use.
#[test]
fn what_is_in_use_is_found_and_what_is_not_is_bounded() {
    let library = Library::new(64 << 10, 1 << 20);
    let states: Vec<_> = (0..64).map(|_| state(10, 1000)).collect();
    let used = library.full(&states[0]);
    for state in &states {
        let _ = library.full(state);
    }
    library.purge();
    assert!(Arc::ptr_eq(&used, &library.full(&states[0])));
    assert_eq!(library.uses()[1].computed, 64);
    let weak: Vec<_> = states
        .iter()
        .map(|state| Arc::downgrade(&library.full(state)))
        .collect();
    // A dropped answer is freed when no other thread can still read it, perhaps in another test's library.
    let alive = || weak.iter().filter(|batch| batch.strong_count() > 0).count();
    for _ in 0..10_000 {
        library.purge();
        if alive() < 8 {
            break;
        }
        std::thread::yield_now();
    }
    assert!((1..8).contains(&alive()), "{} of 10 KB in 32 KB", alive());
}

/// An answer over the bound is kept as long as all sessions ask for it.
#[test]
fn the_answer_of_the_moment_is_kept_whatever_its_size() {
    let library = Library::new(1000, 1 << 20);
    let state = state(100, 1000);
    for _ in 0..5 {
        let _ = library.difference(None, None, &state);
        library.purge();
    }
    assert_eq!(library.uses()[0], Uses { asked: 5, computed: 1 });
}

/// The rights of a client under one rule, which admits these names.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn rights(names: &str) -> Arc<Rights> {
    let rule = AccessRule {
        name: "rule".to_owned(),
        names: [Pattern::read(names).unwrap()].into(),
        ..AccessRule::default()
    };
    let caller = Caller {
        identity: &[],
        node: &Node::default(),
        way: Way::Delta,
    };
    let rights = Access::new(vec![rule], true).rights(&caller).unwrap();
    Arc::new(rights.unwrap())
}

/// There are as many forms of a state as outcomes of the rules, however many clients have however many different rights.
#[test]
fn clients_with_different_rights_see_one_state() {
    let library = Library::new(1 << 20, 1 << 20);
    let first = Arc::new(state(100, 10).with(&[put(&cds(), "c1", "1")], Some(true)).0);
    let second = Arc::new(first.with(&[put(&cds(), "c1", "2")], None).0);
    let fleet: Vec<Arc<Rights>> = (0..300)
        .map(|n| rights(["c1", "c*", &format!("e{n}")][n % 3]))
        .collect();
    let mut seen: Vec<Option<Arc<Permitted>>> = vec![None; fleet.len()];
    for now in [&first, &second] {
        for (rights, before) in fleet.iter().zip(&mut seen) {
            *before = Some(library.permitted(now, rights, before.as_deref()));
        }
        let ids = seen.iter().flatten().map(|permitted| permitted.seen.id());
        let ids: std::collections::BTreeSet<u64> = ids.collect();
        assert_eq!(ids.len(), 3);
        assert!(
            ids.contains(&now.id()),
            "who may have all that there is sees what everybody sees"
        );
    }
}
