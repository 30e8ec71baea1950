// SPDX-License-Identifier: Apache-2.0
//! Sessions that are served by the view of another server: what they were served there last counts.

use std::sync::Arc;

use xds::{Changes, Cut, Dialect, GuardSettings, Phase, Reason, TypeUrl, Update, Within};

use super::plane::{Content, cluster, endpoints, listener, route, served_by};
use super::stage::{Stage, USUAL};
use super::{BOTH, settled};
use crate::{CDS, EDS, LDS, RDS, ms, secs};

/// A view without a memory, whose server has so many clusters of the ten that the sessions were served at another server.
fn knowing(dialect: Dialect, clusters: usize, wants: &[(&str, &str)]) -> Stage {
    let mut stage = Stage::new(dialect, USUAL, wants);
    stage.elsewhere = Some(settled(dialect, USUAL).upstream.cut.into());
    (0..clusters).for_each(|n| stage.put(CDS, &format!("c{n}"), cluster(&format!("c{n}"))));
    stage
}

/// D-10: sessions come from the view of another server, and this view has no memory of its own: what its server's first whole state
/// lacks of what they were served is held for all of them, once.
#[test]
fn another_server_knows_less() {
    for dialect in BOTH {
        let by_name = [(EDS, "c0"), (EDS, "c1"), (EDS, "c2"), (RDS, "r")];
        let mut stage = knowing(dialect, 5, &[&[(LDS, "*"), (CDS, "*")], &by_name[..]].concat());
        stage.put(LDS, "other", listener("other", "s", 81));
        stage.pass(secs(20));
        assert_eq!(stage.served(CDS), "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9", "{dialect:?}");
        assert_eq!(stage.why(CDS, "c7"), "mass");
        assert_eq!(stage.served(LDS), "other", "another name is no loss");
        if dialect == Dialect::Delta {
            assert_eq!(stage.served(RDS), "r");
            assert_eq!(stage.served(EDS), "c0 c1 c2 c5 c6 c7 c8 c9");
            assert_eq!(stage.body(EDS, "c1"), Some(endpoints("c1", 2)));
        }
        stage.put(CDS, "c7", cluster("c7"));
        assert_eq!(stage.after(secs(70)).served(CDS), "c0 c1 c2 c3 c4 c7");
        assert_eq!(stage.served(EDS), "");
        assert!(stage.holds.is_empty(), "{:?}", stage.holds);
    }
}

/// D-10: sessions move a second after the first answer of the other server, which says half of its clusters later than that: they have the
/// others still. What it lacks on its next stream is its own loss.
#[test]
fn another_server_is_late() {
    for dialect in BOTH {
        let mut stage = knowing(dialect, 5, &[(LDS, "*"), (CDS, "*"), (EDS, "c0")]);
        stage.put(LDS, "other", listener("other", "s", 81));
        stage.plane.habits.late.insert(CDS);
        stage.pass(secs(1));
        stage.elsewhere = None;
        stage.pass(secs(32));
        assert_eq!((stage.served(LDS), stage.served(CDS)), ("other".into(), String::new()));
        stage.plane.habits.late.clear();
        stage.pass(secs(20));
        assert_eq!(stage.served(CDS), "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9", "{dialect:?}");
        assert_eq!(
            (stage.why(CDS, "c7"), stage.served(EDS).contains("c7")),
            ("mass".to_owned(), true)
        );
        assert_eq!(stage.after(secs(60)).served(CDS), "c0 c1 c2 c3 c4", "{dialect:?}");
        stage.restart();
        assert_eq!(stage.after(secs(20)).served(CDS), "c0 c1 c2 c3 c4", "{dialect:?}");
    }
}

/// The same of a server whose view has clusters of its own: its sessions are served these by then, so what it lacks of them is lost. Of
/// assignments, of which it has none, it lacks what they were served before.
#[test]
fn another_server_is_late_for_a_view_with_a_memory() {
    let wants = [(LDS, "*"), (CDS, "*"), (EDS, "c0"), (EDS, "c1"), (EDS, "c2")];
    let [mut other, mut stage] = [5, 10].map(|clusters| {
        let mut stage = Stage::new(Dialect::Delta, USUAL, &wants);
        stage.put(LDS, "other", listener("other", "s", 81));
        (0..clusters).for_each(|n| stage.put(CDS, &format!("c{n}"), cluster(&format!("c{n}"))));
        stage
    });
    (0..3).for_each(|n| other.put(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 2)));
    other.pass(secs(20));
    stage.pass(secs(20));
    stage.elsewhere = Some(other.upstream.cut.into());
    stage.plane.habits.late.extend([CDS, EDS]);
    stage.restart();
    stage.pass(secs(1));
    stage.elsewhere = None;
    (5..10).for_each(|n| stage.remove(CDS, &format!("c{n}")));
    stage.plane.habits.late.clear();
    assert_eq!(stage.after(secs(20)).served(CDS), "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9");
    assert_eq!(
        (stage.why(CDS, "c7"), stage.served(EDS)),
        ("mass".to_owned(), "c0 c1 c2".to_owned())
    );
}

/// D-09: another server has half of the clusters, and says nothing of the endpoints of the others, which nobody has asked it for. What is
/// taken over brings along what it names, so a client that comes now is served what those before it are; and goes together.
#[test]
fn what_is_taken_over_brings_along_what_it_names() {
    for dialect in BOTH {
        let mut stage = knowing(dialect, 5, &[(LDS, "*"), (CDS, "*"), (EDS, "c0")]);
        stage.put(LDS, "other", listener("other", "s", 81));
        stage.put(EDS, "c0", endpoints("c0", 1));
        assert_eq!(stage.after(secs(20)).served(EDS), "c0 c5 c6 c7 c8 c9", "{dialect:?}");
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 1)), "{dialect:?}");
        assert_eq!(stage.why(CDS, "c7"), "mass");
        assert_eq!(stage.why(EDS, "c7"), "referenced by cds c7");

        // A client asks for it here, and the server does not answer.
        stage.plane.habits.late.insert(EDS);
        stage.upstream.want(EDS, "c7");
        stage.pass(secs(20));
        assert_eq!(stage.body(EDS, "c7"), Some(endpoints("c7", 2)), "{dialect:?}");

        // What the server says of it itself counts.
        stage.plane.habits.late.clear();
        stage.put(EDS, "c7", endpoints("c7", 3));
        assert_eq!(stage.after(secs(1)).body(EDS, "c7"), Some(endpoints("c7", 3)));
        assert_eq!(stage.why(EDS, "c7"), "");

        assert_eq!(stage.after(secs(70)).served(CDS), "c0 c1 c2 c3 c4", "{dialect:?}");
        assert_eq!(stage.served(EDS), "c0 c7", "{dialect:?}");
        assert!(stage.holds.is_empty(), "{:?}", stage.holds);
    }
}

/// The same of a listener: its route comes along, and the clusters that only this leads to, with their endpoints.
#[test]
fn what_a_listener_brings_along() {
    for dialect in BOTH {
        let wants = [(LDS, "*"), (RDS, "r"), (CDS, "n"), (EDS, "n")];
        let mut other = Stage::new(dialect, USUAL, &wants);
        other.put(LDS, "l", listener("l", "r", 80));
        other.put(RDS, "r", route("r", &["n"]));
        other.put(CDS, "n", cluster("n"));
        other.put(EDS, "n", endpoints("n", 2));
        other.pass(secs(20));
        let mut stage = Stage::new(dialect, USUAL, &[(LDS, "*")]);
        stage.elsewhere = Some(other.upstream.cut.into());
        stage.pass(secs(20));
        let served = |stage: &Stage| [LDS, RDS, CDS, EDS].map(|kind| stage.served(kind)).join(", ");
        assert_eq!(served(&stage), "l, r, n, n", "{dialect:?}");
        assert_eq!(
            [(LDS, "l"), (RDS, "r"), (CDS, "n"), (EDS, "n")].map(|(kind, name)| stage.why(kind, name)),
            [
                "mass",
                "referenced by lds l",
                "referenced by rds r",
                "referenced by cds n"
            ],
            "{dialect:?}"
        );
        stage.pass(secs(70));
        assert_eq!(served(&stage), ", , , ", "{dialect:?}");
        assert!(stage.holds.is_empty(), "{:?}", stage.holds);
    }
}

/// D-09: sessions come to a view at whose server something is new. What it says and takes back in its first seconds was served to them, though
/// the view that they read before never had it.
#[test]
fn what_the_server_says_and_takes_back() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.elsewhere = Some(stage.upstream.cut.clone().into());
        stage.put(CDS, "new", cluster("new"));
        stage.restart();
        stage.pass(secs(1));
        stage.say(RDS, "r", route("r", &["new"]));
        stage.remove(CDS, "new");
        stage.pass(secs(3));
        assert_eq!(stage.why(CDS, "new"), "referenced by rds r", "{dialect:?}");
        stage.put(RDS, "r", route("r", &["c0"]));
        assert!(!stage.after(secs(1)).served(CDS).contains("new"), "{dialect:?}");
    }
}

/// A view that has a memory of its own, or whose server knows nearly as much, takes nothing over.
#[test]
fn another_server_knows_as_much() {
    for dialect in BOTH {
        let mut stage = knowing(dialect, 9, &[(CDS, "*")]);
        stage.pass(secs(20));
        // The endpoints of the tenth came along, and have gone with it.
        let told = "+eds referenced 1, -eds referenced free";
        assert_eq!(stage.served(CDS).len(), 26, "{dialect:?}");
        assert_eq!(stage.served(EDS), "", "{dialect:?}");
        assert_eq!(stage.heard(), told, "{dialect:?}");
    }
}

/// D-10: what is no large loss goes, and does not come back when the server says once more that it is gone.
#[test]
fn what_was_let_go_is_not_taken_over_again() {
    for dialect in BOTH {
        let mut stage = knowing(dialect, 9, &[(CDS, "*"), (EDS, "c0"), (EDS, "c1")]);
        stage.put(EDS, "c0", endpoints("c0", 2));
        let served = |stage: &Stage| (stage.served(CDS).len(), stage.served(EDS));
        stage.pass(ms(3_000));
        assert_eq!(served(&stage), (26, "c0".to_owned()), "{dialect:?}");
        stage.put(CDS, "c8", served_by("c8", "other"));
        stage.plane.repeat(EDS, "c1");
        stage.exchange();
        assert_eq!(served(&stage), (26, "c0".to_owned()), "{dialect:?}");
    }
}

/// What the sessions of both servers have of these kinds: listeners `l1` to `l4` by a wildcard, assignments `c0` and `c1` by name.
fn both() -> Content {
    let listeners = (1..5).map(|n| (format!("l{n}"), listener(&format!("l{n}"), "r", 10_000 + n)));
    let assignments = (0..2).map(|n| (format!("c{n}"), endpoints(&format!("c{n}"), 2)));
    [
        (LDS.to_owned(), listeners.collect()),
        (EDS.to_owned(), assignments.collect()),
    ]
    .into()
}

fn stage(dialect: Dialect) -> Stage {
    let mut stage = Stage::new(dialect, USUAL, &[(LDS, "*"), (EDS, "c0"), (EDS, "c1")]);
    stage.plane.content = both();
    assert_eq!(stage.after(secs(20)).served(LDS), "l1 l2 l3 l4");
    assert_eq!(stage.served(EDS), "c0 c1");
    stage
}

/// What a server serves from which this has been removed.
fn served_without(dialect: Dialect, gone: &[(&str, &str)]) -> Arc<Cut> {
    let mut other = stage(dialect);
    gone.iter().for_each(|(kind, name)| other.remove(kind, name));
    other.pass(secs(20));
    other.upstream.cut.into()
}

/// The other server has removed a listener and an assignment. This one returns without them, and does not serve them for a moment; the
/// rest it lists in several messages, and serves all the time.
#[test]
fn what_is_gone_elsewhere_does_not_come_back() {
    for dialect in BOTH {
        let mut stage = stage(dialect);
        stage.elsewhere = Some(served_without(dialect, &[(LDS, "l1"), (EDS, "c0")]));
        stage.remove(LDS, "l1");
        stage.remove(EDS, "c0");
        stage.plane.habits.split = Some(1);
        stage.restart();
        stage.exchange();
        // In SotW, nobody says that an assignment is gone.
        let assignments = if dialect == Dialect::Delta { "c1" } else { "c0 c1" };
        assert_eq!(stage.served(LDS), "l2 l3 l4", "{dialect:?}");
        assert_eq!(stage.served(EDS), assignments, "{dialect:?}");
        assert_eq!(stage.after(secs(60)).served(LDS), "l2 l3 l4", "{dialect:?}");
        assert_eq!(stage.served(EDS), assignments, "{dialect:?}");
        assert_eq!(stage.heard(), "", "{dialect:?}");
    }
}

/// The other server has removed an assignment that this one says on one of its two streams, before the other stream begins: it stays, judged or
/// not. What the first one to begin does not say is not served until the other one does.
#[test]
fn what_one_of_two_streams_says_is_not_gone() {
    for (within, later) in [Within::FirstState, Within::Never]
        .into_iter()
        .flat_map(|within| [(within, 0), (within, 20)])
    {
        for (first, second, between) in [("c0", "c1", "c0 c1"), ("c1", "c0", "c1")] {
            let mut stage = stage(Dialect::Delta);
            stage.set(GuardSettings { within, ..USUAL });
            let slot = stage.upstream.cut.slot(&TypeUrl::new(EDS)).unwrap().clone();
            let begins = |name: &str| Changes {
                answered: Some(true),
                phase: Phase::Anew,
                ..Changes::of(
                    (TypeUrl::new(EDS), false),
                    vec![Update::Put(slot.resource(&name.into()).unwrap().clone(), None)],
                )
            };
            stage.lose();
            stage.elsewhere = Some(served_without(Dialect::Delta, &[(EDS, "c0")]));
            stage.publish(vec![begins(first)]);
            assert_eq!(stage.after(secs(later)).served(EDS), between, "{within:?}, {later} s");
            stage.publish(vec![begins(second)]);
            assert_eq!(stage.served(EDS), "c0 c1", "{within:?}, {later} s");
        }
    }
}

/// The other server has removed what this one still has, unchanged: it is served as soon as this one says it.
#[test]
fn what_the_server_still_has_is_served() {
    for dialect in BOTH {
        let mut stage = stage(dialect);
        stage.elsewhere = Some(served_without(dialect, &[(LDS, "l1"), (LDS, "l4"), (EDS, "c1")]));
        stage.plane.habits.split = Some(1);
        stage.restart();
        stage.exchange();
        assert_eq!(stage.served(LDS), "l1 l2 l3 l4", "{dialect:?}");
        assert_eq!(stage.served(EDS), "c0 c1", "{dialect:?}");
        assert_eq!(stage.heard(), "", "{dialect:?}");
        assert_eq!(stage.after(secs(60)).served(LDS), "l1 l2 l3 l4", "{dialect:?}");
    }
}

/// The other server has removed an assignment that this one has emptied meanwhile: it is served as it is now, for nobody has the old one.
#[test]
fn what_is_gone_elsewhere_and_emptied_here() {
    for dialect in BOTH {
        let mut stage = stage(dialect);
        stage.elsewhere = Some(served_without(Dialect::Delta, &[(EDS, "c0")]));
        stage.put(EDS, "c0", endpoints("c0", 0));
        stage.plane.habits.split = Some(1);
        stage.restart();
        stage.exchange();
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 0)), "{dialect:?}");
        assert_eq!(stage.heard(), "", "{dialect:?}");
    }
}

/// What is asked for by its name here the other server covers with its wildcard: it is not gone there, so the cluster stays as long as the
/// route.
#[test]
fn what_is_covered_elsewhere_is_not_gone() {
    for dialect in BOTH {
        let mut named = Stage::new(dialect, USUAL, &[(CDS, "x")]);
        named.put(CDS, "x", cluster("x"));
        named.pass(secs(20));
        let x = named.upstream.cut.slot(&TypeUrl::new(CDS)).unwrap().named.resources();
        let also_x = x.map(|x| Update::Put(x.clone(), None)).collect();
        let also_x = Changes::of((TypeUrl::new(CDS), false), also_x);
        let (there, _) = settled(dialect, USUAL).upstream.cut.with(&also_x);

        let mut stage = Stage::new(dialect, USUAL, &[(LDS, "*"), (RDS, "r"), (CDS, "c0"), (CDS, "c1")]);
        stage.wanted.insert("r".to_owned());
        stage.put(LDS, "l", listener("l", "r", 80));
        stage.put(RDS, "r", route("r", &["c0", "c1"]));
        (0..2).for_each(|n| stage.put(CDS, &format!("c{n}"), cluster(&format!("c{n}"))));
        stage.pass(secs(20));
        stage.elsewhere = Some(there.into());
        stage.remove(CDS, "c0");
        stage.restart();
        stage.pass(secs(20));
        assert_eq!(stage.why(CDS, "c0"), "referenced by rds r", "{dialect:?}");
    }
}

/// What another server serves, which has neither this cluster nor a route to it.
fn where_no_route_leads_to_c0(dialect: Dialect) -> Cut {
    let mut other = settled(dialect, USUAL);
    other.remove(CDS, "c0");
    other.put(RDS, "r", route("r", &["c1"]));
    other.pass(secs(20));
    other.upstream.cut
}

/// K-16: the other server does not answer for a cluster to which a route leads that the sessions have kept. It is not gone there.
#[test]
fn what_is_unanswered_elsewhere_is_not_gone() {
    for dialect in BOTH {
        let there = where_no_route_leads_to_c0(dialect);
        let unanswered = Update::Absent("c0".into(), Reason::TimedOut);
        let unanswered = Changes::of((TypeUrl::new(CDS), false), vec![unanswered]);
        let mut stage = settled(dialect, USUAL);
        stage.elsewhere = Some(there.with(&unanswered).0.into());
        stage.remove(CDS, "c0");
        stage.restart();
        stage.pass(secs(20));
        assert_eq!(stage.why(CDS, "c0"), "referenced by rds r", "{dialect:?}");
    }
}

/// A session has stayed: what it has is not taken from it before the server has listed all.
#[test]
fn who_has_stayed_keeps_everything() {
    let mut stage = stage(Dialect::Delta);
    stage.elsewhere = Some(served_without(Dialect::Delta, &[(LDS, "l1"), (LDS, "l4")]));
    stage.some_stayed = true;
    stage.remove(LDS, "l1");
    stage.plane.habits.split = Some(1);
    stage.restart();
    stage.exchange();
    assert_eq!(stage.after(ms(4_900)).served(LDS), "l1 l2 l3 l4");
    stage.pass(ms(5_000));
    assert_eq!((stage.served(LDS).as_str(), stage.heard().as_str()), ("l2 l3 l4", ""));
}

/// A session has stayed, and its route leads to a cluster that the other server has removed: the cluster stays as long as the route.
#[test]
fn who_has_stayed_keeps_what_its_routes_name() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.elsewhere = Some(where_no_route_leads_to_c0(dialect).into());
        stage.some_stayed = true;
        stage.remove(CDS, "c0");
        stage.restart();
        stage.pass(secs(20));
        assert_eq!(stage.why(CDS, "c0"), "referenced by rds r", "{dialect:?}");
    }
}
