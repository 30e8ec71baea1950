// SPDX-License-Identifier: Apache-2.0
//! Control planes and people that do what nobody expects: what is held stays bounded, cheap, and in somebody's hands.

use std::time::Duration;

use bytes::Bytes;
use xds::{Dialect, HoldAction, HoldOrder, HoldReason, HoldTarget, Name, ServerState, TypeUrl};

use super::pair::Pair;
use super::plane::{aggregate, cluster, proxy, route};
use super::stage::{Stage, USUAL};
use super::{BOTH, hold, settled};
use crate::{CDS, EDS, LDS, RDS, ms, secs};

fn held(stage: &Stage) -> usize {
    stage.holds.iter().map(|hold| hold.removals.len()).sum()
}

/// A control plane that has everything in one second and nothing in the next one, for ever: clients notice nothing. Once it stays
/// empty, everything goes when the time of its last restart is over, and nothing is held any more.
#[test]
fn everything_is_removed_for_ever() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        let whole = stage.plane.content.clone();
        for turn in 0..200 {
            stage.plane.content = if turn % 2 == 0 {
                Default::default()
            } else {
                whole.clone()
            };
            stage.restart();
            assert_eq!(stage.after(secs(1)).served(LDS), "l", "{dialect:?} {turn}");
            assert_eq!(stage.served(CDS).len(), 29, "{dialect:?} {turn}");
            assert!(held(&stage) <= 24, "{:?}", stage.holds);
        }
        stage.plane.content.clear();
        stage.wanted.clear();
        assert_eq!(stage.after(secs(90)).served(LDS), "", "{dialect:?}");
        assert_eq!(stage.served(CDS), "", "{dialect:?}");
        assert!(
            stage.holds.is_empty() && stage.guard.poll_timeout().is_none(),
            "{:?}",
            stage.holds
        );
    }
}

/// All clusters have other names after each restart, and the route follows only later: what is held is bounded by what is referred to.
#[test]
fn names_that_change_for_ever() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        for turn in 0..50 {
            let clusters = stage.plane.content.entry(CDS.to_owned()).or_default();
            clusters.clear();
            let names: Vec<String> = (0..10).map(|n| format!("t{turn}-{n}")).collect();
            names.iter().for_each(|name| stage.put(CDS, name, cluster(name)));
            stage.restart();
            stage.pass(secs(5));
            assert!(held(&stage) <= 20, "{turn}: {:?}", stage.holds);
            assert!(
                stage.served(CDS).split(' ').count() <= 20,
                "{turn}: {}",
                stage.served(CDS)
            );
            if turn % 3 == 0 {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                stage.put(RDS, "r", route("r", &names));
                stage.pass(secs(5));
            }
        }
    }
}

/// A route waits in one view for a cluster of another, where a cluster is held because of the same route. An order reaches the rows of the
/// view that it is given to, and no others; one that has no such row does nothing.
#[test]
fn orders_for_rows_of_two_views() {
    for dialect in BOTH {
        let mut pair = Pair::new(dialect, &[CDS, EDS], &[(CDS, "*")]);
        pair.lead(&["a", "b"]);
        pair.remove(CDS, "a");
        pair.pass(ms(500));
        let why = |pair: &Pair| (pair.main.why(RDS, "r"), pair.aside.why(CDS, "a"));
        let both = ("unready".to_owned(), "referenced by rds r".to_owned());
        assert_eq!(why(&pair), both, "{dialect:?}");
        let (route, cluster) = (hold(RDS, HoldReason::Unready), hold(CDS, HoldReason::Referenced));
        let one = |kind: &str, name: &str| HoldTarget::Resource(TypeUrl::new(kind), Name::from(name));
        for target in [
            cluster.clone(),
            one(CDS, "a"),
            hold(RDS, HoldReason::Mass),
            one(RDS, "x"),
        ] {
            assert_eq!(pair.main.order(target, HoldAction::Release), 0, "{dialect:?}");
        }
        for target in [route.clone(), one(RDS, "r"), hold(CDS, HoldReason::Mass), one(CDS, "b")] {
            assert_eq!(pair.aside.order(target, HoldAction::Release), 0, "{dialect:?}");
        }
        assert_eq!(why(&pair), both, "{dialect:?}");
        assert_eq!(pair.aside.order(cluster, HoldAction::Release), 1);
        assert_eq!(why(&pair), (both.0, String::new()), "{dialect:?}");
        assert_eq!(pair.main.order(route, HoldAction::Release), 1);
        assert!(pair.leads(&["a", "b"]), "{dialect:?}");
    }
}

/// A route configuration of 1 MB changes each second while a removal waits that it holds: each content is read once, whatever else is
/// decided meanwhile. The figures are printed.
#[test]
fn a_huge_route_changes_each_second() {
    const BYTES: usize = 1 << 20;
    let mut stage = Stage::new(Dialect::Delta, USUAL, &[(CDS, "*"), (RDS, "r")]);
    stage.wanted.insert("r".to_owned());
    let names: Vec<String> = (0..60).map(|n| format!("c{n}")).collect();
    names.iter().for_each(|name| stage.put(CDS, name, cluster(name)));
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let part = route("r", &all);
    let whole = part.repeat(BYTES / part.len());
    let body = |turn: usize| Bytes::from([&whole[..], &route("r", &[&format!("c{turn}")])].concat());
    stage.put(RDS, "r", body(0));
    stage.pass(secs(20));
    stage.remove(CDS, "c0");
    stage.pass(secs(1));
    let (mut changes, mut others) = (Duration::ZERO, Duration::ZERO);
    for turn in 1..=10 {
        stage.put(RDS, "r", body(turn));
        stage.spent = Duration::ZERO;
        stage.pass(ms(500));
        changes += std::mem::take(&mut stage.spent);
        // Another removal is decided by what was read of the present content.
        stage.remove(CDS, &format!("c{}", 20 + turn));
        stage.pass(ms(500));
        others += std::mem::take(&mut stage.spent);
        assert_eq!(held(&stage), 1 + turn);
        assert_eq!(stage.why(CDS, "c0"), "referenced by rds r");
    }
    println!(
        "a route of {BYTES} bytes: {:?} for each change, {:?} for a removal",
        changes / 10,
        others / 10
    );
    assert!(others * 4 < changes, "{others:?}, {changes:?}");
}

/// Of two people with opposite orders who do not know of each other, the one who lets go decides: what went cannot be held.
#[test]
fn opposite_orders() {
    let extend = HoldAction::Extend(secs(600));
    for actions in [[HoldAction::Release, extend], [extend, HoldAction::Release]] {
        let mut stage = settled(Dialect::Delta, USUAL);
        stage.say(RDS, "r", route("r", &["c9"]));
        (0..5).for_each(|n| stage.remove(CDS, &format!("c{n}")));
        stage.restart();
        stage.pass(secs(10));
        for (action, concerned) in actions.into_iter().zip([5, if actions[0] == extend { 5 } else { 0 }]) {
            let order = HoldOrder {
                target: hold(CDS, HoldReason::Mass),
                action,
                reason: "one of two".into(),
            };
            assert_eq!(stage.guard.handle_order(&order, stage.upstream.now), concerned);
        }
        stage.pass(ms(1));
        stage.publish(Vec::new());
        assert_eq!((stage.served(CDS).as_str(), held(&stage)), ("c5 c6 c7 c8 c9", 0));
        // The hold is gone, and so an order for it is for nothing.
        let target: HoldTarget = hold(CDS, HoldReason::Mass);
        assert_eq!(stage.order(target, extend), 0);
    }
}

/// The server of the other source is there in one second and away in the next one. A change that leads there waits as long as for one that
/// is away, and what is served meanwhile stays.
#[test]
fn a_source_that_flaps_each_second() {
    for dialect in BOTH {
        let mut pair = Pair::new(dialect, &[EDS], &[(CDS, "*")]);
        pair.lead(&["b"]);
        pair.remove(CDS, "a");
        let mut seconds = 0;
        while pair.leads(&["a"]) {
            assert!(seconds < 65, "{dialect:?}");
            assert_eq!(pair.main.served(CDS), "a b", "{dialect:?}, {seconds} s");
            assert!(held(&pair.main) <= 2, "{:?}", pair.main.holds);
            seconds += 1;
            pair.tell(match seconds % 2 {
                0 => ServerState::Up,
                _ => ServerState::Failing,
            });
            pair.tick(secs(1));
        }
        assert!(seconds >= 59 && pair.leads(&["b"]), "{dialect:?}: {seconds} s");
        assert_eq!(pair.after(secs(3)).main.served(CDS), "b", "{dialect:?}");
        assert_eq!(held(&pair.main), 0, "{dialect:?}");
    }
}

/// A thousand views, one after the other: the sessions of each move to the next one, of which the server has half as much as the first one
/// had. What is held does not grow on the way, and newcomers are served what those before them were.
#[test]
fn views_that_follow_each_other() {
    let mut before = settled(Dialect::Delta, USUAL).upstream.cut;
    let mut first = None;
    for view in 0..1000 {
        let mut stage = Stage::new(
            Dialect::Delta,
            USUAL,
            &[(LDS, "*"), (CDS, "*"), (RDS, "r"), (EDS, "c0")],
        );
        stage.elsewhere = Some(before.with_holds(stage.holds.clone()).into());
        (0..5).for_each(|n| stage.put(CDS, &format!("c{n}"), cluster(&format!("c{n}"))));
        stage.pass(secs(7));
        assert_eq!(stage.served(CDS), "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9", "{view}");
        assert_eq!(stage.served(LDS), "l", "{view}");
        assert_eq!(stage.served(EDS), "c5 c6 c7 c8 c9", "{view}");
        let rows = held(&stage);
        assert_eq!(*first.get_or_insert(rows), rows, "{view}: {:?}", stage.holds);
        before = stage.upstream.cut;
    }
}

/// A hundred aggregate clusters in a circle, all of them removed: the one that a listener names stays, and its member with it. Once nothing
/// outside leads there, the circle goes in one step.
#[test]
fn a_circle_of_aggregates() {
    let mut stage = settled(Dialect::Delta, USUAL);
    let name = |n: usize| format!("ring-{:02}", n % 100);
    (0..100).for_each(|n| stage.put(CDS, &name(n), aggregate(&name(n), &[&name(n + 1)])));
    stage.put(LDS, "tcp", proxy("tcp", "ring-50", 90));
    stage.pass(ms(500));
    (0..100).for_each(|n| stage.remove(CDS, &name(n)));
    stage.pass(secs(60));
    let rings = |stage: &Stage| stage.served(CDS).matches("ring-").count();
    assert_eq!((rings(&stage), held(&stage)), (2, 2));
    stage.remove(LDS, "tcp");
    let cuts = stage.cuts;
    stage.pass(ms(200));
    assert_eq!((rings(&stage), held(&stage)), (0, 0));
    assert!(stage.cuts <= cuts + 2, "{}", stage.cuts - cuts);
}
