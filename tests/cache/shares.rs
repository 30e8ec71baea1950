// SPDX-License-Identifier: Apache-2.0
//! Limits that all connections share: whoever takes as much as possible leaves as much for each of the others.

use std::collections::BTreeSet;

use cache::{Claims, Routes, Scopes};
use classes::Node;

use super::scopes::{by_cluster, node};
use super::*;

/// A type that no table has.
fn invented(name: &str) -> TypeUrl {
    TypeUrl::new(&format!("type.googleapis.com/invented.{name}"))
}

/// Five connections take as many names as they can get; a sixth gets as many as each of them.
#[test]
fn names() {
    let view = view();
    let greedy: Vec<Seat> = (0..5).map(|_| view.enter()).collect();
    let mut taken = [0; 5];
    for round in 0..1000 {
        for (n, seat) in greedy.iter().enumerate() {
            let wanted = seat.want(&want(&eds(), &format!("{n}-{round}"), true));
            taken[n] += usize::from(wanted.is_ok());
        }
    }
    assert!(taken.iter().all(|taken| (160..=175).contains(taken)), "{taken:?}");
    let refused = greedy[0]
        .want(&want(&eds(), "one-more", true))
        .expect_err("it has its share");
    assert!(
        refused.to_string().contains("this connection has 16")
            && refused.to_string().contains("limits.names_per_view of 1000"),
        "{refused}"
    );
    // What others want already takes nothing.
    assert_eq!(greedy[0].want(&want(&eds(), "1-0", true)), Ok(()));
    let honest = view.enter();
    for n in 0..80 {
        assert_eq!(honest.want(&want(&eds(), &format!("honest-{n}"), true)), Ok(()));
    }
}

/// All streams of a connection count together, and a name counts for another one that wants it when the first one goes.
#[test]
fn streams_of_a_connection() {
    let view = view();
    let (one, two) = (Arc::<Claims>::default(), Arc::<Claims>::default());
    let streams = [view.enter_by(&one), view.enter_by(&one)];
    let name = |n: usize| want(&eds(), &n.to_string(), true);
    let got = (0..1000).filter(|n| streams[n % 2].want(&name(*n)).is_ok()).count();
    assert_eq!((got, one.names()), (500, 500));
    let other = view.enter_by(&two);
    (0..500).for_each(|n| assert_eq!(other.want(&name(n)), Ok(())));
    assert_eq!(two.names(), 0);
    drop(streams);
    assert_eq!((one.names(), two.names()), (0, 500));
    assert!(other.want(&want(&eds(), "more", true)).is_err());
}

/// One connection cannot take all views with values that it invents.
#[test]
fn views() {
    let scopes = by_cluster(8);
    let (greedy, honest) = (scopes.claims(), scopes.claims());
    let enter = |name: &str, claims| scopes.enter(&node(name), None, 0, claims);
    let invented = (0..20).filter_map(|n| enter(&format!("invented{n}"), &greedy).ok());
    let invented: Vec<Seat> = invented.collect();
    assert_eq!(invented.len(), 4);
    let refused = enter("one more", &greedy).err().expect("it has its share");
    assert_eq!(
        refused.to_string(),
        "this connection has 4 of limits.views of 8, and the 4 that are left are for others; raise it if so many are intended"
    );
    assert!(enter("invented0", &greedy).is_ok());
    assert!(enter("a", &honest).is_ok());
}

/// Takes wants as a writer does: until none are left.
fn all_wants(view: &View, now: Instant) -> Vec<Want> {
    let mut all = view.take_wants(now);
    while view.demand().is_behind() {
        all.extend(view.take_wants(now));
    }
    all
}

/// Clients invent types, five thousand a second on five connections: upstream is asked for few of them, types of the table do not
/// wait, and another connection's new type does not wait behind theirs.
#[test]
fn new_types() {
    let scopes = Scopes::new(Classes::default(), Routes::default(), settings(), 0);
    let mut now = start();
    let greedy: Vec<_> = (0..5).map(|_| scopes.claims()).collect();
    let honest = scopes.claims();
    let enter = |claims| scopes.enter(&Arc::new(Node::default()), None, 0, claims).unwrap();
    let view = enter(&honest).view().clone();
    let mut streams = Vec::new();
    let mut asked = 0;
    for tick in 0..300 {
        for (n, claims) in greedy.iter().enumerate() {
            let stream = enter(claims);
            for nth in 0..30 {
                let _ = stream.want(&want(&invented(&format!("{n}.{tick}.{nth}")), "a", true));
            }
            streams.push(stream);
        }
        if streams.len() > 20 {
            streams.drain(..5);
        }
        asked += all_wants(&view, now).len();
        now += Duration::from_millis(10);
    }
    assert!((64..=130).contains(&asked), "{asked} requests in three seconds");
    assert!(view.demand().waiting_types() > 0);

    let stream = enter(&honest);
    stream.want(&want(&cds(), "*", true)).unwrap();
    assert!(all_wants(&view, now).iter().any(|want| want.type_url == cds()));
    let mine = invented("mine");
    stream.want(&want(&mine, "a", true)).unwrap();
    stream.want(&want(&mine, "b", true)).unwrap();
    let begun = now;
    let mut told = BTreeSet::new();
    while told.len() < 2 {
        let wants = all_wants(&view, now);
        told.extend(
            wants
                .into_iter()
                .filter(|want| want.type_url == mine)
                .map(|want| want.target),
        );
        now = view.demand().poll_timeout().expect("types wait").max(now);
    }
    assert!(now - begun <= Duration::from_millis(400), "{:?}", now - begun);

    // Of what ended before upstream was asked for it, nothing is left.
    streams.clear();
    let _ = all_wants(&view, now);
    assert_eq!(view.demand().waiting_types(), 0);
    drop(stream);
    let _ = all_wants(&view, now);
    let _ = all_wants(&view, now + LINGER * 2);
    assert!(view.demand().is_idle());
    assert_eq!(view.demand().poll_timeout(), None);
}

/// Types that stay have a bound, of which one connection gets a half.
#[test]
fn new_types_that_stay() {
    let unbounded = ViewSettings {
        names_per_view: 0,
        ..settings()
    };
    let scopes = Scopes::new(Classes::default(), Routes::default(), unbounded, 0);
    let mut now = start();
    let enter = |claims| scopes.enter(&Arc::new(Node::default()), None, 0, claims).unwrap();
    let (greedy, honest) = (scopes.claims(), scopes.claims());
    let (stream, other) = (enter(&greedy), enter(&honest));
    let view = stream.view().clone();
    let mut turn = |seconds: u64| {
        let end = now + Duration::from_secs(seconds);
        let mut wants = Vec::new();
        while now < end {
            wants.extend(all_wants(&view, now));
            now = view
                .demand()
                .poll_timeout()
                .unwrap_or(end)
                .clamp(now + Duration::from_millis(1), end);
        }
        wants
    };
    for n in 0..600 {
        stream.want(&want(&invented(&n.to_string()), "a", true)).unwrap();
    }
    assert_eq!(turn(60).len(), 512);
    other.want(&want(&invented("mine"), "a", true)).unwrap();
    assert_eq!(turn(60).len(), 1);
    assert_eq!(view.demand().waiting_types(), 88);
    // What nobody wants makes room at once, because there are so many.
    drop(stream);
    let ended = turn(60);
    assert!(
        ended.len() == 512 && ended.iter().all(|want| !want.wanted),
        "{}",
        ended.len()
    );
    assert_eq!((view.demand().waiting_types(), view.summary().leased), (0, 1));
}
