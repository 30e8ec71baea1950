// SPDX-License-Identifier: Apache-2.0
//! Changed routes and listeners that lead to what another source does not have yet (D-12).

use std::sync::Arc;
use std::time::Duration;

use xds::{
    Changes, Dialect, GuardSettings, HoldAction, HoldReason, HoldTarget, Link, Reason, Resource, ResourceParts,
    ServerState, TypeUrl, Update,
};

use super::BOTH;
use super::pair::Pair;
use super::plane::{cluster, endpoints, proxy, route, scope, served_by};
use super::stage::USUAL;
use crate::{CDS, EDS, LDS, RDS, ms, secs};

/// Somebody wants all clusters, and the endpoints come from the source beside.
fn usual(dialect: Dialect) -> Pair {
    Pair::new(dialect, &[EDS], &[(CDS, "*")])
}

#[test]
fn until_the_endpoints_are_there() {
    for dialect in BOTH {
        let mut pair = usual(dialect);
        pair.lead(&["b"]);
        assert!(pair.after(ms(1500)).leads(&["a"]), "{dialect:?}");
        let hold = &pair.main.holds[0];
        assert_eq!(hold.reason, HoldReason::Unready);
        assert!(!hold.is_trouble(pair.main.upstream.now));
        let by = hold.removals.get("r").unwrap().by.clone().unwrap();
        assert_eq!(by.type_url.word(), "eds");
        assert_eq!(by.name.as_str(), "b");
        assert_eq!(by.link, Link::Sent);
        pair.put(EDS, "b", endpoints("b", 1));
        pair.tell(ServerState::Up);
        assert!(pair.leads(&["b"]), "{dialect:?}");
        assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready free");
        assert!(pair.main.holds.is_empty());
    }
}

/// A scoped route that has its route configuration in itself leads to clusters like any.
#[test]
fn a_scope_with_routes_of_its_own() {
    const SRDS: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
    for dialect in BOTH {
        let mut pair = Pair::new(dialect, &[EDS], &[(CDS, "*"), (SRDS, "*")]);
        pair.say(SRDS, "s", scope("s", "a"));
        pair.put(SRDS, "s", scope("s", "b"));
        pair.pass(ms(1500));
        assert_eq!(pair.main.body(SRDS, "s"), Some(scope("s", "a")), "{dialect:?}");
        pair.say(EDS, "b", endpoints("b", 1));
        assert_eq!(pair.main.body(SRDS, "s"), Some(scope("s", "b")), "{dialect:?}");
    }
}

#[test]
fn at_most_for_the_order_gate() {
    for dialect in BOTH {
        let mut pair = usual(dialect);
        pair.lead(&["b"]);
        assert!(pair.after(ms(1999)).leads(&["a"]), "{dialect:?}");
        assert!(pair.after(ms(1)).leads(&["b"]), "{dialect:?}");
        assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready clock");
    }
}

/// Some clients have fallen back, and read the endpoints from the server of the routes. The others do not have them yet.
#[test]
fn until_all_have_the_endpoints() {
    for dialect in BOTH {
        let mut pair = usual(dialect);
        pair.fall_back_to_main(&[None]);
        pair.main.upstream.want(EDS, "b");
        pair.main.put(EDS, "b", endpoints("b", 1));
        pair.lead(&["b"]);
        assert!(pair.after(ms(1500)).leads(&["a"]), "{dialect:?}");
        pair.say(EDS, "b", endpoints("b", 1));
        assert!(pair.leads(&["b"]), "{dialect:?}");
    }

    // Who has fallen back reads both from one server, which says them in its own order.
    let mut pair = usual(Dialect::Delta);
    pair.fall_back_to_main(&[None]);
    pair.say(EDS, "b", endpoints("b", 1));
    pair.lead(&["b"]);
    assert!(pair.leads(&["b"]));
}

/// Only those that have fallen back have asked for the cluster: nobody else would ask for it before the route leads there.
#[test]
fn clusters_that_only_some_ask_for() {
    for (asking, waits) in [(&[None][..], false), (&[None, Some(1)], true)] {
        let mut pair = Pair::new(Dialect::Delta, &[CDS, EDS], &[(CDS, "a")]);
        pair.fall_back_to_main(asking);
        pair.leased.lock().unwrap().insert("far".to_owned());
        for (kind, body) in [(CDS, cluster("far")), (EDS, endpoints("far", 1))] {
            pair.main.upstream.want(kind, "far");
            pair.main.put(kind, "far", body);
        }
        pair.lead(&["far"]);
        assert_eq!(pair.leads(&["a"]), waits);
    }
}

/// Its server is away: a minute at most. When it is back, it has as long to answer as any.
#[test]
fn while_the_server_is_away() {
    let mut pair = usual(Dialect::Delta);
    pair.tell(ServerState::Failing);
    pair.lead(&["b"]);
    assert!(pair.after(secs(59)).leads(&["a"]));
    let by = pair.main.holds[0].removals.get("r").unwrap().by.clone();
    assert_eq!(by.unwrap().link, Link::Unsent);
    assert!(pair.after(secs(1)).leads(&["b"]));

    let mut pair = usual(Dialect::Delta);
    pair.tell(ServerState::Failing);
    pair.lead(&["b"]);
    pair.pass(secs(30));
    pair.tell(ServerState::Up);
    assert!(pair.after(ms(1900)).leads(&["a"]));
    pair.put(EDS, "b", endpoints("b", 1));
    pair.tell(ServerState::Up);
    assert!(pair.leads(&["b"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready free");
}

/// It has come back with empty endpoints, which are held: it does not have what it had, so it counts as away.
#[test]
fn while_the_server_has_forgotten_much() {
    for dialect in BOTH {
        let names = ["c", "d", "e"];
        let mut pair = Pair::new(dialect, &[EDS], &[(CDS, "*"), (EDS, "c"), (EDS, "d"), (EDS, "e")]);
        names.iter().for_each(|name| pair.put(EDS, name, endpoints(name, 1)));
        pair.pass(secs(20));
        names.iter().for_each(|name| pair.put(EDS, name, endpoints(name, 0)));
        pair.aside.restart();
        assert_eq!(pair.after(ms(1000)).aside.why(EDS, "c"), "mass", "{dialect:?}");
        pair.lead(&["b"]);
        assert!(pair.after(secs(30)).leads(&["a"]), "{dialect:?}");
        pair.say(EDS, "b", endpoints("b", 1));
        assert!(pair.leads(&["b"]), "{dialect:?}");
    }
}

/// D-09: a change that waits leads to what the served content names, also where references hold nothing, and where another relay holds
/// them, which serves the change already and passes the removal on.
#[test]
fn what_the_served_content_names() {
    let off = GuardSettings {
        references: false,
        ..USUAL
    };
    for (dialect, settings, said_by) in [
        (Dialect::Delta, off, ""),
        (Dialect::Sotw, off, ""),
        (Dialect::Delta, USUAL, "distributary/1.0"),
        (Dialect::Sotw, USUAL, "distributary/1.0"),
    ] {
        let mut pair = usual(dialect);
        pair.main.plane.habits.identifier = said_by;
        pair.main.restart();
        pair.main.set(settings);
        pair.pass(secs(20));
        pair.main.heard();
        pair.tell(ServerState::Failing);
        pair.lead(&["b"]);
        pair.remove(CDS, "a");
        assert!(pair.after(secs(10)).leads(&["a"]), "{dialect:?} {said_by}");
        assert_eq!(pair.main.served(CDS), "a b", "{dialect:?} {said_by}");
        assert_eq!(pair.main.why(CDS, "a"), "referenced by rds r");
        // It is there again, and has what the change leads to.
        pair.put(EDS, "b", endpoints("b", 1));
        pair.tell(ServerState::Up);
        assert!(pair.after(ms(200)).leads(&["b"]), "{dialect:?} {said_by}");
        assert_eq!(pair.main.served(CDS), "b", "{dialect:?} {said_by}");
        // Nothing waits any more, so nothing is held.
        pair.remove(CDS, "b");
        assert_eq!(pair.after(ms(200)).main.served(CDS), "", "{dialect:?} {said_by}");
    }
}

/// A client of gRPC asks for a cluster once a route names it: while the source of clusters is away, nobody could have it, so the route
/// waits as long as for any; when that is back, the client asks.
#[test]
fn clusters_that_nobody_can_ask_for() {
    let away = |pair: &mut Pair, state| {
        pair.tell(state);
        pair.lead(&["far"]);
    };
    for dialect in BOTH {
        let grpc = || Pair::new(dialect, &[CDS, EDS], &[(CDS, "a")]);
        let mut pair = grpc();
        away(&mut pair, ServerState::Failing);
        assert!(pair.after(secs(59)).leads(&["a"]), "{dialect:?}");
        assert!(pair.after(secs(1)).leads(&["far"]), "{dialect:?}");

        let mut pair = grpc();
        away(&mut pair, ServerState::Failing);
        pair.pass(secs(10));
        pair.tell(ServerState::Up);
        assert!(pair.leads(&["far"]), "{dialect:?}");

        let mut pair = grpc();
        away(&mut pair, ServerState::Up);
        assert!(pair.leads(&["far"]), "{dialect:?}");
    }
}

/// In one turn, a cluster gets other endpoints, which are not there, and the route leads to it; or the cluster goes when the change need
/// not wait for its endpoints any more; or the route goes after it has changed.
#[test]
fn what_is_said_together() {
    for dialect in BOTH {
        let mut pair = usual(dialect);
        pair.say(CDS, "b", served_by("b", "a"));
        pair.put(CDS, "b", served_by("b", "late"));
        pair.lead(&["b"]);
        assert!(pair.leads(&["a"]), "{dialect:?}");
        assert_eq!(pair.after(ms(2000)).main.heard(), "+rds unready 1, -rds unready clock");
    }

    let mut pair = usual(Dialect::Delta);
    pair.lead(&["b"]);
    pair.remove(CDS, "b");
    assert_eq!(pair.after(ms(99)).main.served(CDS), "a b");
    pair.put(EDS, "b", endpoints("b", 1));
    pair.main.upstream.now += ms(1);
    pair.exchange();
    assert_eq!(pair.main.served(CDS), "a");
    assert!(pair.leads(&["a"]));

    let mut pair = usual(Dialect::Delta);
    let half = || (TypeUrl::new(RDS), false);
    let parts = ResourceParts {
        type_url: &half().0,
        name: "r".into(),
        aliases: Vec::new(),
        passed_on: &[],
        body: &route("r", &["b"]),
        endpoints: None,
        received: pair.main.upstream.now,
    };
    let changed = Update::Put(Arc::new(Resource::new(parts, 0)), None);
    let gone = Update::Absent("r".into(), Reason::Said);
    pair.main.publish(vec![
        Changes::of(half(), vec![changed]),
        Changes::of(half(), vec![gone]),
    ]);
    assert!(pair.after(ms(4000)).leads(&["a"]), "the listener holds what was served");
    assert_eq!(pair.main.heard(), "+rds referenced 1");
}

/// Only the latest content waits, and what changes all the time is not kept back for ever.
#[test]
fn the_latest_content() {
    let mut pair = usual(Dialect::Delta);
    for clusters in [&["b"][..], &["a", "b"], &["b"], &["a", "b"]] {
        pair.lead(clusters);
        pair.pass(ms(499));
    }
    assert!(pair.leads(&["a"]));
    assert!(pair.after(ms(4)).leads(&["a", "b"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready clock");

    // What leads to nothing new does not wait, and takes the place of what did.
    let mut pair = usual(Dialect::Delta);
    pair.lead(&["b"]);
    pair.lead(&["a", "a"]);
    assert!(pair.leads(&["a", "a"]));
    assert!(pair.after(secs(70)).leads(&["a", "a"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready server");
}

/// What was not served before is new: no client has anything better.
#[test]
fn new_resources_never_wait() {
    let mut pair = usual(Dialect::Delta);
    pair.say(LDS, "m", proxy("m", "b", 81));
    assert_eq!(pair.main.served(LDS), "l m");
    assert_eq!(pair.main.heard(), "");
}

/// Nobody would ever ask for the cluster, because clients do so once a route names it.
#[test]
fn clusters_that_nobody_asks_for() {
    for (leased, waits) in [(false, false), (true, true)] {
        let mut pair = Pair::new(Dialect::Delta, &[EDS], &[(CDS, "a"), (CDS, "b")]);
        if leased {
            pair.leased.lock().unwrap().insert("b".to_owned());
        }
        pair.lead(&["b"]);
        assert_eq!(pair.leads(&["a"]), waits);
    }
}

/// The cluster itself comes from the other source: it and its endpoints are to be there.
#[test]
fn clusters_of_another_source() {
    let wants = [(CDS, "a"), (CDS, "far"), (EDS, "far")];
    let mut pair = Pair::new(Dialect::Delta, &[CDS, EDS], &wants);
    pair.leased.lock().unwrap().insert("far".to_owned());
    pair.lead(&["far"]);
    assert!(pair.leads(&["a"]));
    pair.say(CDS, "far", cluster("far"));
    assert!(pair.leads(&["a"]));
    pair.say(EDS, "far", endpoints("far", 1));
    assert!(pair.leads(&["far"]));
}

/// Where nothing comes from elsewhere, the control plane's order is its own.
#[test]
fn one_source_orders_its_own() {
    let mut pair = Pair::new(Dialect::Delta, &[], &[(CDS, "*")]);
    pair.lead(&["b", "unknown"]);
    assert!(pair.leads(&["b", "unknown"]));
}

#[test]
fn a_person_lets_it_go() {
    let hold = || HoldTarget::Hold(TypeUrl::new(RDS), HoldReason::Unready, None);
    let mut pair = usual(Dialect::Delta);
    pair.lead(&["b"]);
    // Another hold of the type is no business of it.
    let other = HoldTarget::Hold(TypeUrl::new(RDS), HoldReason::Referenced, None);
    assert_eq!(pair.main.order(other, HoldAction::Release), 0);
    assert!(pair.leads(&["a"]));
    assert_eq!(pair.main.order(hold(), HoldAction::Release), 1);
    assert!(pair.leads(&["b"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready person");

    // Or waits longer: until it is ready, or for that long.
    let mut pair = usual(Dialect::Delta);
    pair.lead(&["b"]);
    let one = HoldTarget::Resource(TypeUrl::new(RDS), "r".into());
    assert_eq!(pair.main.order(one, HoldAction::Extend(secs(600))), 1);
    assert!(pair.after(secs(599)).leads(&["a"]));
    assert!(pair.after(secs(1)).leads(&["b"]));
}

/// The route is removed while it waits, or nobody wants it any more: nothing of it comes later.
#[test]
fn what_goes_meanwhile() {
    let mut pair = usual(Dialect::Delta);
    pair.say(LDS, "p", proxy("p", "a", 81));
    pair.say(LDS, "p", proxy("p", "b", 81));
    pair.remove(LDS, "p");
    assert_eq!(pair.after(secs(10)).main.served(LDS), "l");
    assert!(pair.main.heard().contains("-lds unready server"));

    let mut pair = usual(Dialect::Delta);
    pair.lead(&["b"]);
    pair.main.unwant(RDS, "r");
    assert_eq!(pair.after(secs(10)).main.body(RDS, "r"), None);
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready gone");
}

/// A client cannot have two listeners at one address.
#[test]
fn an_address_that_is_taken() {
    let mut pair = usual(Dialect::Delta);
    pair.say(LDS, "p", proxy("p", "a", 81));
    pair.say(LDS, "p", proxy("p", "b", 82));
    assert_eq!(pair.main.body(LDS, "p"), Some(proxy("p", "a", 81)));
    pair.say(LDS, "q", proxy("q", "a", 81));
    assert_eq!(pair.main.body(LDS, "p"), Some(proxy("p", "b", 82)));
    assert_eq!(pair.main.served(LDS), "l p q");
    assert_eq!(pair.main.heard(), "+lds unready 1, -lds unready replaced");
}

/// With `unready: 0s` nothing waits, and what waits goes.
#[test]
fn without_the_rule() {
    let mut pair = usual(Dialect::Delta);
    pair.lead(&["b"]);
    pair.main.set(GuardSettings {
        unready: Duration::ZERO,
        ..USUAL
    });
    assert!(pair.leads(&["b"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready settings");
    pair.lead(&["a"]);
    pair.lead(&["b"]);
    assert!(pair.leads(&["b"]));
}
