// SPDX-License-Identifier: Apache-2.0
//! Removals in one source of what another source still refers to (D-11). In SotW, nobody says that a route or an assignment is gone.

use xds::Dialect;

use super::BOTH;
use super::pair::Pair;
use super::plane::{aggregate, cluster, endpoints, listener, proxy, route, served_by};
use super::stand_ins::{leave, reject};
use crate::{CDS, EDS, LDS, RDS, ms, secs};

/// Listeners and routes from one, clusters and endpoints from the other.
fn usual(dialect: Dialect) -> Pair {
    Pair::new(dialect, &[CDS, EDS], &[(CDS, "*")])
}

/// With another relay between the source beside and its control plane, or without.
fn beside(mut pair: Pair, is_behind: bool) -> Pair {
    if is_behind {
        pair.aside.put_between();
        pair.pass(secs(20));
    }
    pair
}

/// The cluster stays as long as the other control plane's route leads there, and goes with that. Another relay knows nothing of that route.
#[test]
fn a_cluster_that_a_route_elsewhere_names() {
    for (dialect, is_behind) in [(0, false), (0, true), (1, false), (1, true)].map(|(at, behind)| (BOTH[at], behind)) {
        let mut pair = beside(usual(dialect), is_behind);
        pair.remove(CDS, "a");
        assert_eq!(pair.after(secs(30)).aside.served(CDS), "a b", "{dialect:?}");
        assert_eq!(pair.aside.why(CDS, "a"), "referenced by rds r");
        pair.put(EDS, "b", endpoints("b", 1));
        pair.lead(&["b"]);
        pair.exchange();
        assert_eq!(pair.aside.served(CDS), "b", "{dialect:?}");
        assert_eq!(pair.aside.heard(), "+cds referenced 1, -cds referenced free");
    }
}

/// A listener elsewhere names the route configuration; a listener that has a cluster of its own does so by itself.
#[test]
fn a_route_that_a_listener_elsewhere_names() {
    for is_behind in [false, true] {
        let pair = Pair::new(Dialect::Delta, &[RDS, CDS, EDS], &[(CDS, "*"), (RDS, "q")]);
        let mut pair = beside(pair, is_behind);
        pair.say(RDS, "q", route("q", &["b"]));
        pair.remove(RDS, "r");
        assert!(pair.after(secs(30)).leads(&["a"]));
        assert_eq!(pair.aside.why(RDS, "r"), "referenced by lds l");
        pair.say(LDS, "l", listener("l", "q", 80));
        assert_eq!(pair.aside.served(RDS), "q");
        pair.say(LDS, "p", proxy("p", "a", 81));
        pair.remove(CDS, "a");
        assert_eq!(pair.after(secs(10)).aside.why(CDS, "a"), "referenced by lds p");
        pair.remove(LDS, "p");
        assert_eq!(pair.after(ms(300)).aside.served(CDS), "b");
    }
}

/// The chain goes over three sources and back: listeners here, routes there, clusters here.
#[test]
fn a_route_elsewhere_counts_if_it_is_used() {
    let mut pair = Pair::new(Dialect::Delta, &[RDS], &[(CDS, "*")]);
    pair.remove(CDS, "a");
    assert_eq!(pair.after(secs(10)).main.why(CDS, "a"), "referenced by rds r");
    // No listener names it any more, but a client has it.
    pair.remove(LDS, "l");
    assert_eq!(pair.after(secs(10)).main.served(LDS), "");
    assert_eq!(pair.main.served(CDS), "a b");
    pair.leased.lock().unwrap().clear();
    pair.exchange();
    assert_eq!(pair.main.served(CDS), "b");
}

/// An assignment waits for its cluster to go, but not for longer than changes wait for each other.
#[test]
fn an_assignment_whose_cluster_stays() {
    let mut pair = Pair::new(Dialect::Delta, &[EDS], &[(CDS, "*")]);
    pair.remove(EDS, "a");
    assert_eq!(pair.after(ms(1900)).aside.served(EDS), "a");
    assert_eq!(pair.aside.why(EDS, "a"), "referenced by cds a");
    assert!(pair.aside.holds[0].removals.get("a").unwrap().until.is_some());
    assert_eq!(pair.after(ms(150)).aside.served(EDS), "");
    assert_eq!(pair.aside.heard(), "+eds referenced 1, -eds referenced clock");

    // The cluster goes before that.
    let mut pair = Pair::new(Dialect::Delta, &[EDS], &[(CDS, "*")]);
    pair.lead(&["b"]);
    pair.pass(ms(3000));
    pair.remove(EDS, "a");
    assert_eq!(pair.after(ms(500)).aside.served(EDS), "a");
    pair.remove(CDS, "a");
    assert_eq!(pair.after(ms(300)).main.served(CDS), "b");
    assert_eq!(pair.aside.served(EDS), "");
    assert_eq!(pair.aside.heard(), "+eds referenced 1, -eds referenced free");
}

/// So is an assignment that a restart has emptied, if it is removed after that.
#[test]
fn an_emptied_assignment_whose_cluster_is_held() {
    let all = ["a", "c", "d"];
    let mut pair = Pair::new(Dialect::Delta, &[EDS], &[(CDS, "*"), (EDS, "c"), (EDS, "d")]);
    all.iter().for_each(|name| pair.say(EDS, name, endpoints(name, 1)));
    pair.remove(CDS, "a");
    all.iter().for_each(|name| pair.put(EDS, name, endpoints(name, 0)));
    pair.aside.restart();
    pair.pass(secs(10));
    assert_eq!(pair.aside.why(EDS, "a"), "mass");
    pair.remove(EDS, "a");
    pair.pass(secs(100));
    assert_eq!(pair.aside.why(EDS, "a"), "referenced by cds a");
    pair.lead(&[]);
    pair.pass(ms(500));
    assert_eq!(pair.aside.served(EDS), "c d");
}

/// If the cluster is held, its endpoints are held as long.
#[test]
fn an_assignment_whose_cluster_is_held() {
    let mut pair = Pair::new(Dialect::Delta, &[EDS], &[(CDS, "*")]);
    pair.remove(CDS, "a");
    pair.remove(EDS, "a");
    assert_eq!(pair.after(secs(100)).main.why(CDS, "a"), "referenced by rds r");
    assert_eq!(pair.aside.why(EDS, "a"), "referenced by cds a");
    assert_eq!(pair.aside.served(EDS), "a");
    pair.put(EDS, "b", endpoints("b", 1));
    pair.lead(&["b"]);
    pair.exchange();
    assert_eq!(pair.main.served(CDS), "b");
    assert_eq!(pair.aside.served(EDS), "b");

    // Or the cluster returns: then the assignment has waited long enough.
    let mut pair = Pair::new(Dialect::Delta, &[EDS], &[(CDS, "*")]);
    pair.remove(CDS, "a");
    pair.remove(EDS, "a");
    assert_eq!(pair.after(secs(10)).aside.served(EDS), "a");
    pair.say(CDS, "a", cluster("a"));
    assert_eq!(pair.main.served(CDS), "a b");
    assert_eq!(pair.aside.served(EDS), "");
}

/// What directs traffic comes from the other source, and counts as well: a cluster that nothing names any more goes when that is quiet.
#[test]
fn the_quiet_time_is_that_of_both() {
    let mut pair = usual(Dialect::Delta);
    pair.lead(&["b"]);
    pair.pass(ms(3000));
    pair.remove(CDS, "a");
    for n in 0..6 {
        pair.put(LDS, "m", listener("m", "r", 8000 + n));
        assert_eq!(pair.after(ms(60)).aside.served(CDS), "a b", "{n}");
    }
    assert_eq!(pair.after(ms(200)).aside.served(CDS), "b");
}

/// Some clients are served the older route of the other source, because they reject the one that it says now: what that leads to stays, too.
#[test]
fn what_an_older_route_elsewhere_names() {
    for dialect in BOTH {
        let mut pair = usual(dialect);
        pair.say(EDS, "b", endpoints("b", 1));
        reject(&mut pair.main, RDS, "r", route("r", &["b"]));
        pair.remove(CDS, "a");
        assert_eq!(pair.after(secs(30)).aside.served(CDS), "a b", "{dialect:?}");
        assert_eq!(pair.aside.why(CDS, "a"), "referenced by rds r");
        // Here, too, some are served what is older.
        reject(&mut pair.aside, CDS, "b", served_by("b", "new"));
        leave(&mut pair.main);
        pair.exchange();
        assert_eq!(pair.aside.served(CDS), "b", "{dialect:?}");
    }
}

/// The older cluster of the other source takes its endpoints from elsewhere.
#[test]
fn endpoints_of_an_older_cluster_elsewhere() {
    let mut pair = Pair::new(Dialect::Delta, &[EDS], &[(CDS, "*")]);
    reject(&mut pair.main, CDS, "a", served_by("a", "new"));
    pair.remove(EDS, "a");
    assert_eq!(pair.after(secs(30)).aside.served(EDS), "a");
    assert_eq!(pair.aside.why(EDS, "a"), "referenced by cds a");
    leave(&mut pair.main);
    pair.exchange();
    assert_eq!(pair.aside.served(EDS), "");
}

/// Some clients have fallen back, and read routes from the server of the clusters as well. The routes of the others count, too.
#[test]
fn a_cluster_that_the_routes_of_others_name() {
    for dialect in BOTH {
        let mut pair = usual(dialect);
        pair.put(EDS, "b", endpoints("b", 1));
        pair.fall_back_to_aside(&[(LDS, "l", listener("l", "r", 80)), (RDS, "r", route("r", &["b"]))]);
        pair.remove(CDS, "a");
        assert_eq!(pair.after(secs(30)).aside.served(CDS), "a b", "{dialect:?}");
        assert_eq!(pair.aside.why(CDS, "a"), "referenced by rds r");
        pair.lead(&["b"]);
        pair.exchange();
        assert_eq!(pair.aside.served(CDS), "b", "{dialect:?}");
        // What their routes lead to stays, whatever the others have.
        pair.lead(&["c"]);
        pair.remove(CDS, "b");
        assert_eq!(pair.after(secs(30)).aside.served(CDS), "b", "{dialect:?}");
    }

    // Those that have fallen back are about to ask for a route that the others have.
    let mut pair = usual(Dialect::Delta);
    pair.fall_back_to_aside(&[(LDS, "l", listener("l", "r", 80))]);
    pair.remove(CDS, "b");
    assert_eq!(pair.after(ms(1500)).aside.served(CDS), "a b");
    assert_eq!(pair.after(ms(1000)).aside.served(CDS), "a");
}

/// What one source has, a client reads from one server: what the others read of the same source at another one does not count.
#[test]
fn what_others_read_of_the_same_source() {
    let mut pair = Pair::new(Dialect::Delta, &[RDS], &[(CDS, "*")]);
    pair.put(CDS, "all", aggregate("all", &["a"]));
    pair.put(LDS, "p", proxy("p", "a", 81));
    pair.fall_back_to_aside(&[
        (LDS, "l", listener("l", "r", 80)),
        (RDS, "r", route("r", &["b"])),
        (RDS, "s", route("s", &["b"])),
        (CDS, "a", cluster("a")),
        (CDS, "b", cluster("b")),
        (EDS, "a", endpoints("a", 1)),
    ]);
    reject(&mut pair.main, CDS, "a", served_by("a", "new"));
    pair.aside.remove(CDS, "a");
    pair.aside.remove(EDS, "a");
    assert_eq!(pair.after(ms(500)).aside.served(CDS), "b");
    assert_eq!(pair.aside.served(EDS), "");
    assert_eq!(pair.main.served(CDS), "a all b");

    // The listeners of both lead to routes of this source.
    pair.say(LDS, "m", listener("m", "s", 82));
    pair.aside.remove(RDS, "s");
    assert_eq!(pair.after(secs(30)).aside.why(RDS, "s"), "referenced by lds m");
}

/// A reload takes the source away, or brings one: what it has counts as long as clients read it.
#[test]
fn a_source_that_goes() {
    let mut pair = usual(Dialect::Delta);
    pair.remove(CDS, "a");
    assert_eq!(pair.after(secs(10)).aside.served(CDS), "a b");
    pair.aside.other_views = None;
    pair.aside.publish(Vec::new());
    assert_eq!(pair.aside.served(CDS), "b");
}
