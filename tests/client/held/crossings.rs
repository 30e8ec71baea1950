//! Changed routes and listeners that lead to what another source does not have yet (D-12).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::Crossings;
use xds::{Beside, Cut, Dialect, HoldAction, HoldReason, HoldTarget, ServerState, TypeUrl};

use super::BOTH;
use super::plane::{cluster, endpoints, listener, proxy, route};
use super::stage::{Stage, USUAL};
use crate::{CDS, EDS, LDS, RDS, ms};

/// A source with listeners, routes and clusters, and beside it one with the endpoints, and with the clusters whose names begin with `far`.
struct Pair {
    main: Stage,
    aside: Stage,
    shared: Arc<Mutex<Arc<Cut>>>,
    /// The clusters that clients ask for by name.
    leased: Arc<Mutex<BTreeSet<String>>>,
}

impl Pair {
    /// `l` names `r`, which leads to `a`, and all of it is there; of `b`, only the cluster is. `wants`: what clients want beside that.
    fn new(dialect: Dialect, wants: &[(&str, &str)]) -> Self {
        let mut main = Stage::new(dialect, USUAL, &[&[(LDS, "*"), (RDS, "r")], wants].concat());
        main.wanted.insert("r".to_owned());
        main.put(LDS, "l", listener("l", "r", 80));
        main.put(RDS, "r", route("r", &["a"]));
        main.put(CDS, "a", cluster("a"));
        main.put(CDS, "b", cluster("b"));
        let mut aside = Stage::new(dialect, USUAL, &[(EDS, "a"), (EDS, "b"), (EDS, "far"), (CDS, "far")]);
        aside.put(EDS, "a", endpoints("a", 1));
        let shared = Arc::new(Mutex::new(Arc::new(Cut::default())));
        let leased: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let (found, wanted) = (shared.clone(), leased.clone());
        let find = move |type_url: &TypeUrl, name: &xds::Name| {
            let theirs = *type_url == TypeUrl::new(EDS) || name.as_str().starts_with("far");
            theirs.then(|| found.lock().unwrap().clone())
        };
        let wants = move |_: &TypeUrl, name: &xds::Name| wanted.lock().unwrap().contains(name.as_str());
        main.crossings = Some((crossings(), Beside::new(find, wants)));
        let mut pair = Self {
            main,
            aside,
            shared,
            leased,
        };
        pair.tell(ServerState::Up);
        pair.main.pass(ms(500));
        pair.main.heard();
        pair
    }

    /// The usual one: somebody wants all clusters.
    fn usual(dialect: Dialect) -> Self {
        Self::new(dialect, &[(CDS, "*")])
    }

    /// The other source says what it has, and is in this state.
    fn tell(&mut self, state: ServerState) {
        self.aside.exchange();
        *self.shared.lock().unwrap() = Arc::new(self.aside.upstream.cut.with_server_state(state));
        self.main.publish(Vec::new());
    }

    /// The control plane's route leads to these clusters from now on.
    fn lead(&mut self, clusters: &[&str]) {
        self.main.put(RDS, "r", route("r", clusters));
        self.main.exchange();
    }

    /// Whether clients are served a route that leads to these.
    fn leads(&self, clusters: &[&str]) -> bool {
        self.main.body(RDS, "r") == Some(route("r", clusters))
    }
}

fn crossings() -> Crossings {
    let mut crossings = Crossings::default();
    crossings.set(ms(2000), USUAL.unready);
    crossings
}

#[test]
fn until_the_endpoints_are_there() {
    for dialect in BOTH {
        let mut pair = Pair::usual(dialect);
        pair.lead(&["b"]);
        pair.main.pass(ms(1500));
        assert!(pair.leads(&["a"]), "{dialect:?}");
        let hold = &pair.main.holds[0];
        assert_eq!(
            (hold.reason, hold.is_trouble(pair.main.upstream.now)),
            (HoldReason::Unready, false)
        );
        let by = hold.removals.get("r").unwrap().by.clone().unwrap();
        assert_eq!((by.type_url.word(), by.name.as_str(), by.said), ("eds", "b", true));
        pair.aside.put(EDS, "b", endpoints("b", 1));
        pair.tell(ServerState::Up);
        assert!(pair.leads(&["b"]), "{dialect:?}");
        assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready free");
        assert!(pair.main.holds.is_empty());
    }
}

#[test]
fn at_most_for_the_order_gate() {
    for dialect in BOTH {
        let mut pair = Pair::usual(dialect);
        pair.lead(&["b"]);
        pair.main.pass(ms(1999));
        assert!(pair.leads(&["a"]), "{dialect:?}");
        pair.main.pass(ms(1));
        assert!(pair.leads(&["b"]), "{dialect:?}");
        assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready clock");
    }
}

/// Its server is away: a minute at most. When it is back, it has as long to answer as any.
#[test]
fn while_the_server_is_away() {
    let mut pair = Pair::usual(Dialect::Delta);
    pair.tell(ServerState::Failing);
    pair.lead(&["b"]);
    pair.main.pass(Duration::from_secs(59));
    assert!(pair.leads(&["a"]));
    assert!(!pair.main.holds[0].removals.get("r").unwrap().by.clone().unwrap().said);
    pair.main.pass(Duration::from_secs(1));
    assert!(pair.leads(&["b"]));

    let mut pair = Pair::usual(Dialect::Delta);
    pair.tell(ServerState::Failing);
    pair.lead(&["b"]);
    pair.main.pass(Duration::from_secs(30));
    pair.tell(ServerState::Up);
    pair.main.pass(ms(1900));
    assert!(pair.leads(&["a"]));
    pair.aside.put(EDS, "b", endpoints("b", 1));
    pair.tell(ServerState::Up);
    assert!(pair.leads(&["b"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready free");
}

/// Only the latest content waits, and what changes all the time is not kept back for ever.
#[test]
fn the_latest_content() {
    let mut pair = Pair::usual(Dialect::Delta);
    for clusters in [&["b"][..], &["a", "b"], &["b"], &["a", "b"]] {
        pair.lead(clusters);
        pair.main.pass(ms(499));
    }
    assert!(pair.leads(&["a"]));
    pair.main.pass(ms(4));
    assert!(pair.leads(&["a", "b"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready clock");

    // What leads to nothing new does not wait, and takes the place of what did.
    let mut pair = Pair::usual(Dialect::Delta);
    pair.lead(&["b"]);
    pair.lead(&["a", "a"]);
    assert!(pair.leads(&["a", "a"]));
    pair.main.pass(Duration::from_secs(70));
    assert!(pair.leads(&["a", "a"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready server");
}

/// What was not served before is new: no client has anything better.
#[test]
fn new_resources_never_wait() {
    let mut pair = Pair::usual(Dialect::Delta);
    pair.main.put(LDS, "m", proxy("m", "b", 81));
    pair.main.exchange();
    assert_eq!(pair.main.served(LDS), "l m");
    assert_eq!(pair.main.heard(), "");
}

/// Nobody would ever ask for the cluster, because clients do so once a route names it.
#[test]
fn clusters_that_nobody_asks_for() {
    for (leased, waits) in [(false, false), (true, true)] {
        let mut pair = Pair::new(Dialect::Delta, &[(CDS, "a"), (CDS, "b")]);
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
    let mut pair = Pair::usual(Dialect::Delta);
    pair.leased.lock().unwrap().insert("far".to_owned());
    pair.lead(&["far"]);
    assert!(pair.leads(&["a"]));
    pair.aside.put(CDS, "far", cluster("far"));
    pair.tell(ServerState::Up);
    assert!(pair.leads(&["a"]));
    pair.aside.put(EDS, "far", endpoints("far", 1));
    pair.tell(ServerState::Up);
    assert!(pair.leads(&["far"]));
}

/// Where nothing comes from elsewhere, the control plane's order is its own.
#[test]
fn one_source_orders_its_own() {
    let mut pair = Pair::usual(Dialect::Delta);
    let alone = Beside::new(|_, _| None, |_, _| true);
    pair.main.crossings = Some((crossings(), alone));
    pair.lead(&["b", "unknown"]);
    assert!(pair.leads(&["b", "unknown"]));
}

#[test]
fn a_person_lets_it_go() {
    let hold = || HoldTarget::Hold(TypeUrl::new(RDS), HoldReason::Unready, None);
    let mut pair = Pair::usual(Dialect::Delta);
    pair.lead(&["b"]);
    // Another hold of the type is no business of it.
    let other = HoldTarget::Hold(TypeUrl::new(RDS), HoldReason::Referenced, None);
    assert_eq!(pair.main.order(other, HoldAction::Release), 0);
    assert!(pair.leads(&["a"]));
    assert_eq!(pair.main.order(hold(), HoldAction::Release), 1);
    assert!(pair.leads(&["b"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready person");

    // Or waits longer: until it is ready, or for that long.
    let mut pair = Pair::usual(Dialect::Delta);
    pair.lead(&["b"]);
    let one = HoldTarget::Resource(TypeUrl::new(RDS), "r".into());
    assert_eq!(pair.main.order(one, HoldAction::Extend(Duration::from_secs(600))), 1);
    pair.main.pass(Duration::from_secs(599));
    assert!(pair.leads(&["a"]));
    pair.main.pass(Duration::from_secs(1));
    assert!(pair.leads(&["b"]));
}

/// The route is removed while it waits, or nobody wants it any more: nothing of it comes later.
#[test]
fn what_goes_meanwhile() {
    let mut pair = Pair::usual(Dialect::Delta);
    pair.main.put(LDS, "p", proxy("p", "a", 81));
    pair.main.exchange();
    pair.main.put(LDS, "p", proxy("p", "b", 81));
    pair.main.exchange();
    pair.main.remove(LDS, "p");
    pair.main.pass(Duration::from_secs(10));
    assert_eq!(pair.main.served(LDS), "l");
    assert!(pair.main.heard().contains("-lds unready server"));

    let mut pair = Pair::usual(Dialect::Delta);
    pair.lead(&["b"]);
    pair.main.unwant(RDS, "r");
    pair.main.pass(Duration::from_secs(10));
    assert_eq!(pair.main.body(RDS, "r"), None);
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready gone");
}

/// A client cannot have two listeners at one address.
#[test]
fn an_address_that_is_taken() {
    let mut pair = Pair::usual(Dialect::Delta);
    pair.main.put(LDS, "p", proxy("p", "a", 81));
    pair.main.exchange();
    pair.main.put(LDS, "p", proxy("p", "b", 82));
    pair.main.exchange();
    assert_eq!(pair.main.body(LDS, "p"), Some(proxy("p", "a", 81)));
    pair.main.put(LDS, "q", proxy("q", "a", 81));
    pair.main.exchange();
    assert_eq!(pair.main.body(LDS, "p"), Some(proxy("p", "b", 82)));
    assert_eq!(pair.main.served(LDS), "l p q");
    assert_eq!(pair.main.heard(), "+lds unready 1, -lds unready replaced");
}

/// With `unready: 0s` nothing waits, and what waits goes.
#[test]
fn without_the_rule() {
    let mut pair = Pair::usual(Dialect::Delta);
    pair.lead(&["b"]);
    let (crossings, _) = pair.main.crossings.as_mut().unwrap();
    crossings.set(ms(2000), Duration::ZERO);
    pair.main.publish(Vec::new());
    assert!(pair.leads(&["b"]));
    assert_eq!(pair.main.heard(), "+rds unready 1, -rds unready settings");
    pair.lead(&["a"]);
    pair.lead(&["b"]);
    assert!(pair.leads(&["b"]));
}
