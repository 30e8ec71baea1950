//! What the library computes once, keeps, and drops.

use cache::{Library, Uses};
use proto::envoy::service::discovery::v3::DynamicParameterConstraints;
use proto::envoy::service::discovery::v3::dynamic_parameter_constraints::{
    SingleConstraint, Type, single_constraint::ConstraintType,
};
use xds::{Answers, Choice, Chosen, Constraints, Lens, Seen, State};

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

/// The bound in bytes may drop an answer, but never makes a second copy of one that is in use.
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
        let _ = library.difference(&Seen::default(), &state);
        library.purge();
    }
    assert_eq!(library.uses()[0], Uses { asked: 5, computed: 1 });
}

/// The variant of a name for clients with `key=value`.
fn variant(name: &str, key: &str, value: &str, body: &str) -> Update {
    variant_of(&cds(), name, key, value, body)
}

pub(super) fn variant_of(type_url: &TypeUrl, name: &str, key: &str, value: &str, body: &str) -> Update {
    let rule = DynamicParameterConstraints {
        r#type: Some(Type::Constraint(SingleConstraint {
            key: key.to_owned(),
            constraint_type: Some(ConstraintType::Value(value.to_owned())),
        })),
    };
    let parts = ResourceParts {
        constraints: Constraints::new(rule),
        type_url,
        name: Name::from(name),
        aliases: Vec::new(),
        passed_on: &[],
        body: body.as_bytes(),
        endpoints: None,
        received: start(),
    };
    Update::Put(Arc::new(Resource::new(parts, 0)), None)
}

fn says(all: &[(&str, &str)]) -> Choice {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Choice::One(all.iter().map(own).collect())
}

/// A client that may have everything.
fn lens(own: &Choice) -> Lens<'_> {
    Lens {
        choice: Some(own),
        rights: None,
    }
}

/// F-16: there are as many forms of a state as outcomes of the choice, however many clients have however many different
/// parameters.
#[test]
fn clients_that_say_different_things_see_one_state() {
    let library = Library::new(1 << 20, 1 << 20);
    let of = |body: &str| vec![variant("c1", "env", "prod", body), variant("c1", "env", "test", body)];
    let first = Arc::new(state(100, 10).with(&of("1"), Some(true)).0);
    let second = Arc::new(first.with(&of("2"), None).0);
    let fleet: Vec<Choice> = (0..3000)
        .map(|n| {
            says(&[
                ("env", ["prod", "test", &format!("e{n}")][n % 3]),
                ("id", &n.to_string()),
            ])
        })
        .collect();
    let mut seen: Vec<Option<Arc<Chosen>>> = vec![None; fleet.len()];
    for now in [&first, &second] {
        for (own, before) in fleet.iter().zip(&mut seen) {
            *before = Some(library.chosen(now, lens(own), before.as_deref()));
        }
        let ids = seen.iter().flatten().map(|chosen| chosen.seen.id());
        let ids: std::collections::BTreeSet<u64> = ids.collect();
        assert_eq!(ids.len(), 3);
        assert!(ids.contains(&now.id()), "who matches nothing sees what everybody sees");
    }
}

/// Prints what it costs if every client has variants of its own. Run with `EACH=1 cargo test --test cache -- --ignored
/// --nocapture own_variants`.
#[test]
#[ignore = "prints figures and takes a while"]
fn own_variants() {
    let each = std::env::var("EACH")
        .ok()
        .and_then(|each| each.parse().ok())
        .unwrap_or(1);
    let clients = (10_000 / each).min(2000);
    let library = Library::new(1 << 20, 1 << 20);
    let own = |n: usize| (0..each).map(move |k| variant(&format!("c{}", n + k * clients), "id", &n.to_string(), "own"));
    let all: Vec<_> = (0..clients).flat_map(own).collect();
    let state = Arc::new(state(10_000, 10).with(&all, Some(true)).0);
    let (before, begun) = (memory::resident(), start());
    let seen = (0..clients).map(|n| library.chosen(&state, lens(&says(&[("id", &n.to_string())])), None));
    let seen: Vec<_> = seen.collect();
    let took = begun.elapsed() / u32::try_from(clients).unwrap_or(1);
    let bytes = (memory::resident() - before) / seen.len();
    println!("{each} variants of 10,000 names for each of {clients}: {bytes} bytes and {took:?} each");
}
