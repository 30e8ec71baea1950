// SPDX-License-Identifier: Apache-2.0
//! Removals that are held: because something refers to what is removed, or because too much is lost at once.

mod above;
mod abroad;
mod bad_input;
mod by_turns;
mod clocks;
mod crossings;
mod elsewhere;
mod endpoints;
mod many;
mod overdue;
mod pair;
mod quiet;
mod reading;
mod silence;
mod spots;
mod stage;
mod stand_ins;
mod worlds;

use std::sync::Arc;

use xds::{
    Changes, Dialect, GuardSettings, HeldRemoval, Hold, HoldAction, HoldClock, HoldReason, HoldTarget, Name, Phase,
    Reason, ResourceError, Trouble, TypeUrl, Update, Within,
};

use crate::{CDS, EDS, LDS, RDS, ms, secs};
use peers::state as plane;
use plane::{aggregate, cluster, endpoints, listener, plain, proxy, route};
use stage::{Stage, USUAL};

const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const POLICY: &str = "type.googleapis.com/cilium.NetworkPolicy";

pub(crate) const BOTH: [Dialect; 2] = [Dialect::Delta, Dialect::Sotw];
const ALWAYS: GuardSettings = GuardSettings {
    within: Within::Always,
    ..USUAL
};

/// A stage with one listener, whose route leads to ten clusters.
fn settled(dialect: Dialect, settings: GuardSettings) -> Stage {
    let names: Vec<String> = (0..10).map(|n| format!("c{n}")).collect();
    let mut wants = vec![(LDS, "*"), (CDS, "*"), (RDS, "r"), (SDS, "s"), (POLICY, "p")];
    wants.extend(names.iter().map(|name| (EDS, name.as_str())));
    let mut stage = Stage::new(dialect, settings, &wants);
    stage.wanted.insert("r".to_owned());
    stage.put(LDS, "l", listener("l", "r", 80));
    let clusters: Vec<&str> = names.iter().map(String::as_str).collect();
    stage.put(RDS, "r", route("r", &clusters));
    stage.put(SDS, "s", plain("s"));
    stage.put(POLICY, "p", plain("p"));
    for name in &names {
        stage.put(CDS, name, cluster(name));
        stage.put(EDS, name, endpoints(name, 2));
    }
    assert_eq!(stage.after(secs(20)).served(CDS), "c0 c1 c2 c3 c4 c5 c6 c7 c8 c9");
    assert_eq!((stage.served(LDS).as_str(), stage.heard().as_str()), ("l", ""));
    stage.cuts = 0;
    stage
}

fn hold(kind: &str, reason: HoldReason) -> HoldTarget {
    HoldTarget::Hold(TypeUrl::new(kind), reason, None)
}

/// D-09: a removed cluster stays as long as a route leads to it, with its endpoints, and goes as soon as no route does.
#[test]
fn a_cluster_that_a_route_names() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.remove(CDS, "c0");
        stage.remove(EDS, "c0");
        assert_eq!(stage.after(ms(99)).why(CDS, "c0"), "", "the quiet time is no hold");
        assert_eq!(stage.after(secs(3600)).why(CDS, "c0"), "referenced by rds r");
        assert!(stage.served(CDS).starts_with("c0 ") && stage.served(EDS).starts_with("c0 "));
        stage.say(RDS, "r", route("r", &["c1"]));
        assert!(stage.served(CDS).starts_with("c1 "), "{dialect:?}");
        if dialect == Dialect::Delta {
            assert_eq!(
                stage.heard(),
                "+cds referenced 1, +eds referenced 1, -cds referenced free, -eds referenced free"
            );
            assert!(stage.served(EDS).starts_with("c1 "));
        }
    }
}

/// D-09: what is removed as a whole goes in one step, when the quiet time is over: listener, route, cluster, endpoints.
#[test]
fn a_listener_with_all_that_it_leads_to() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.wanted.clear();
    stage.remove(LDS, "l");
    stage.remove(RDS, "r");
    for n in 0..10 {
        stage.remove(CDS, &format!("c{n}"));
        stage.remove(EDS, &format!("c{n}"));
    }
    assert_eq!((stage.after(ms(99)).cuts, stage.served(RDS).as_str()), (0, "r"));
    stage.pass(ms(1));
    let all = [LDS, RDS, CDS, EDS].map(|kind| stage.served(kind));
    assert_eq!((stage.cuts, all), (1, [const { String::new() }; 4]));
    assert_eq!(stage.heard(), "+rds referenced 1, -rds referenced free");
}

/// In SotW nobody says that a route is gone: it counts as long as a client wants it, or a listener names it.
#[test]
fn a_route_that_only_a_client_wants() {
    let mut stage = settled(Dialect::Sotw, USUAL);
    stage.remove(LDS, "l");
    stage.remove(CDS, "c0");
    assert_eq!(stage.after(secs(30)).served(LDS), "");
    assert_eq!(stage.why(CDS, "c0"), "referenced by rds r");
    stage.wanted.clear();
    stage.pass(ms(1));
    stage.set(USUAL);
    assert!(stage.served(CDS).starts_with("c1 "));
}

/// D-03: a listener changes the name of its route, and clients give the old one up before they have the new one: what the old one leads
/// to stays until the new one is known, at most for the bound.
#[test]
fn a_listener_takes_another_route() {
    for (dialect, comes) in [(0, true), (0, false), (1, true), (1, false)].map(|(at, comes)| (BOTH[at], comes)) {
        let mut stage = settled(dialect, USUAL);
        stage.remove(CDS, "c0");
        stage.remove(EDS, "c0");
        assert_eq!(stage.after(secs(30)).why(CDS, "c0"), "referenced by rds r");
        stage.say(LDS, "l", listener("l", "next", 80));
        stage.wanted.clear();
        stage.unwant(RDS, "r");
        stage.pass(ms(1000));
        assert_eq!(stage.why(CDS, "c0"), "referenced by lds l", "{dialect:?}");
        assert!(stage.served(EDS).starts_with("c0 "));
        if comes {
            stage.put(RDS, "next", route("next", &["c1"]));
            stage.wanted.insert("next".to_owned());
            stage.upstream.want(RDS, "next");
            stage.exchange();
        } else {
            assert!(stage.after(ms(999)).served(CDS).starts_with("c0 "));
            stage.pass(ms(1));
        }
        assert!(stage.served(CDS).starts_with("c1 "), "{dialect:?} {comes}");
        let end = if comes {
            "-cds referenced free"
        } else {
            "-cds referenced clock"
        };
        assert!(stage.heard().contains(end));
    }
}

/// The same where a person has held the cluster before, and that time is over: it is looked at once, and not without end.
#[test]
fn a_listener_takes_another_route_after_an_order() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.remove(CDS, "c0");
        stage.pass(ms(200));
        let extend = HoldAction::Extend(secs(20));
        assert_eq!(stage.order(hold(CDS, HoldReason::Referenced), extend), 1);
        stage.pass(secs(30));
        stage.say(LDS, "l", listener("l", "next", 80));
        stage.wanted.clear();
        stage.unwant(RDS, "r");
        assert_eq!(stage.after(ms(1)).why(CDS, "c0"), "referenced by lds l", "{dialect:?}");
        assert!(stage.after(secs(3)).served(CDS).starts_with("c1 "), "{dialect:?}");
    }
}

/// A route that leaves the view because nobody wants it holds nothing after the bound, though a listener names it.
#[test]
fn a_route_that_leaves_the_view() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.remove(CDS, "c0");
        assert_eq!(stage.after(ms(200)).why(CDS, "c0"), "referenced by rds r");
        stage.wanted.clear();
        stage.unwant(RDS, "r");
        assert_eq!(stage.after(ms(2000)).served(RDS), "");
        assert!(stage.served(CDS).starts_with("c1 "), "{dialect:?}");
    }
}

/// The same for the last one, which the control plane did not confirm in time: until then it counts for what it names (K-16).
#[test]
fn an_unconfirmed_route_that_leaves_the_view() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.remove(CDS, "c0");
    stage.pass(ms(200));
    let late = Update::Absent(Name::from("r"), Reason::TimedOut);
    stage.publish(vec![Changes::of((TypeUrl::new(RDS), false), vec![late])]);
    assert_eq!(stage.after(secs(60)).why(CDS, "c0"), "referenced by rds r");
    stage.wanted.clear();
    // Of a type that nobody wants any more the view keeps nothing.
    stage.upstream.cut = stage.upstream.cut.without(&TypeUrl::new(RDS));
    stage.publish(Vec::new());
    stage.pass(ms(2000));
    assert!(stage.served(CDS).starts_with("c1 "), "{}", stage.why(CDS, "c0"));
}

/// What was read to find what refers to a removal is not kept once none waits: there may be very many views.
#[test]
fn nothing_is_kept_of_what_was_read() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.remove(CDS, "c0");
    stage.pass(ms(200));
    stage.say(RDS, "r", route("r", &["c1"]));
    assert!(stage.guard.is_empty());
    let read = Arc::downgrade(stage.upstream.cut.half(&TypeUrl::new(RDS), false).unwrap());
    stage.say(RDS, "r", route("r", &["c2"]));
    assert!(read.upgrade().is_none());
}

/// A route configuration stays as long as a listener names it.
#[test]
fn a_route_that_a_listener_names() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.remove(RDS, "r");
    assert_eq!(stage.after(secs(60)).served(RDS), "r");
    assert_eq!(stage.why(RDS, "r"), "referenced by lds l");
    stage.say(LDS, "l", proxy("l", "c0", 80));
    assert_eq!(stage.served(RDS), "");
}

/// A TCP proxy and an aggregate cluster name clusters. Two aggregate clusters that name each other do not hold each other.
#[test]
fn what_names_clusters() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.put(LDS, "tcp", proxy("tcp", "all", 90));
    stage.put(CDS, "all", aggregate("all", &["member"]));
    stage.put(CDS, "member", aggregate("member", &["all"]));
    stage.pass(ms(500));
    stage.remove(CDS, "all");
    stage.remove(CDS, "member");
    assert_eq!(stage.after(ms(500)).why(CDS, "all"), "referenced by lds tcp");
    assert_eq!(stage.why(CDS, "member"), "referenced by cds all");
    stage.remove(LDS, "tcp");
    assert!(!stage.after(ms(100)).served(CDS).contains("all") && !stage.served(CDS).contains("member"));
}

/// Settings without the rule end a hold, at once.
#[test]
fn references_off() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.remove(CDS, "c0");
    assert!(stage.after(secs(3600)).served(CDS).starts_with("c0 "));
    stage.set(GuardSettings {
        references: false,
        ..USUAL
    });
    assert!(stage.served(CDS).starts_with("c1 "));
    assert_eq!(stage.heard(), "+cds referenced 1, -cds referenced free");
}

/// D-10: a control plane that restarts with half of its clusters: they stay, and one that returns was never gone.
#[test]
fn half_a_state() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        let whole = stage.plane.content.clone();
        stage.say(RDS, "r", route("r", &["c9"]));
        stage.cuts = 0;
        (0..5).for_each(|n| stage.remove(CDS, &format!("c{n}")));
        stage.restart();
        assert_eq!(stage.after(secs(10)).served(CDS).len(), 29, "{dialect:?}");
        assert_eq!(stage.why(CDS, "c0"), "mass", "{dialect:?}");
        stage.plane.content = whole;
        stage.put(RDS, "r", route("r", &["c9"]));
        stage.pass(secs(120));
        assert_eq!(stage.served(CDS).len(), 29, "nothing changed for anybody");
        assert_eq!(stage.cuts, 0, "nothing changed for anybody");
        assert_eq!(stage.heard(), "+cds mass 5, -cds mass server");
    }
}

/// D-10: what the wildcard covers and clients have asked for by name as well counts once: one of four is much, one of eight is not.
#[test]
fn a_loss_of_what_both_halves_have() {
    let mut stage = settled(Dialect::Delta, USUAL);
    (1..4).for_each(|n| stage.put(LDS, &format!("l{n}"), listener(&format!("l{n}"), "r", 80 + n)));
    assert_eq!(stage.after(secs(1)).served(LDS), "l l1 l2 l3");
    let covered = stage.upstream.cut.half(&TypeUrl::new(LDS), true).unwrap();
    let named = covered.resources().map(|one| Update::Put(one.clone(), None));
    let named = Changes::of((TypeUrl::new(LDS), false), named.collect());
    stage.publish(vec![named]);
    stage.remove(LDS, "l1");
    stage.restart();
    assert_eq!(stage.after(secs(1)).why(LDS, "l1"), "mass");
}

/// A loss that the control plane does not repair goes when its time is over, in one step.
#[test]
fn a_loss_that_stays() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.say(RDS, "r", route("r", &["c9"]));
        (0..5).for_each(|n| stage.remove(CDS, &format!("c{n}")));
        stage.restart();
        stage.exchange();
        stage.cuts = 0;
        assert_eq!(stage.after(ms(59_900)).served(CDS).len(), 29);
        // It runs once the first state is over.
        assert_eq!(stage.after(secs(12)).served(CDS), "c5 c6 c7 c8 c9", "{dialect:?}");
        assert_eq!(stage.cuts, 1, "{dialect:?}");
        assert_eq!(stage.heard(), "+cds mass 5, -cds mass clock");
    }
}

/// kuma #2171: a new stream begins with an empty state; the right one comes seconds later. No listener is ever gone.
#[test]
fn an_empty_state() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        let whole = std::mem::take(&mut stage.plane.content);
        stage.restart();
        stage.pass(secs(5));
        assert_eq!((stage.served(LDS).as_str(), stage.served(CDS).len()), ("l", 29));
        assert_eq!(stage.why(LDS, "l"), "mass", "{dialect:?}");
        assert_eq!(stage.why(CDS, "c0"), "mass", "{dialect:?}");
        stage.plane.content = whole;
        stage.pass(secs(100));
        assert_eq!((stage.served(LDS).as_str(), stage.served(CDS).len()), ("l", 29));
        assert!(stage.holds.is_empty(), "{:?}", stage.holds);
        assert_eq!((stage.served(RDS).as_str(), stage.served(POLICY).as_str()), ("r", "p"));
    }
}

/// Names that change during a restart are no loss: the old ones go as fast as without the rule.
#[test]
fn renamed_clusters() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        let green: Vec<String> = (0..10).map(|n| format!("g{n}")).collect();
        for (n, name) in green.iter().enumerate() {
            stage.remove(CDS, &format!("c{n}"));
            stage.put(CDS, name, cluster(name));
        }
        stage.put(
            RDS,
            "r",
            route("r", &green.iter().map(String::as_str).collect::<Vec<_>>()),
        );
        stage.restart();
        stage.exchange();
        // In delta the relay has told the server what it holds, so the removals come at once.
        assert_eq!(stage.after(ms(100)).served(CDS), green.join(" "), "{dialect:?}");
        assert_eq!(stage.heard(), "");
    }
}

/// wso2 #3197: the first state after a restart has other names, and the old routes. They keep their clusters for as long as they
/// name them.
#[test]
fn routes_that_lead_nowhere() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        for n in 0..10 {
            stage.remove(CDS, &format!("c{n}"));
            stage.put(CDS, &format!("g{n}"), cluster(&format!("g{n}")));
        }
        stage.restart();
        assert_eq!(stage.after(secs(3600)).served(CDS).len(), 59, "{dialect:?}");
        assert_eq!(stage.why(CDS, "c0"), "referenced by rds r");
    }
}

/// istio #25100: a restarted control plane says that clusters have no endpoints, until somebody restarts it again.
#[test]
fn emptied_endpoints() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        (0..6).for_each(|n| stage.put(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 0)));
        stage.restart();
        stage.pass(secs(30));
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 2)), "{dialect:?}");
        assert_eq!(
            stage.order(hold(EDS, HoldReason::Mass), HoldAction::Extend(secs(1800))),
            6
        );
        assert_eq!(stage.after(secs(1700)).body(EDS, "c0"), Some(endpoints("c0", 2)));
        (0..6).for_each(|n| stage.put(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 3)));
        stage.exchange();
        assert_eq!(stage.body(EDS, "c0"), Some(endpoints("c0", 3)));
        assert_eq!(stage.heard(), "+eds mass 6, -eds mass server");
    }
}

/// Types that the view has given up are not waited for at the end of a stream: what the next one says first has its own time.
#[test]
fn types_that_were_given_up() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        for (kind, name) in [(SDS, "s"), (POLICY, "p")] {
            stage.unwant(kind, name);
            stage.upstream.cut = stage.upstream.cut.without(&TypeUrl::new(kind));
        }
        stage.restart();
        stage.pass(secs(2));
        (0..6).for_each(|n| stage.put(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 0)));
        stage.pass(secs(10));
        assert_eq!(stage.why(EDS, "c0"), "mass", "{dialect:?}");
    }
}

/// Emptied endpoints are not held if they are few, or come later on the same stream.
#[test]
fn endpoints_that_are_emptied_on_purpose() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        (0..4).for_each(|n| stage.put(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 0)));
        stage.restart();
        assert_eq!(stage.after(ms(500)).body(EDS, "c0"), Some(endpoints("c0", 0)));
        // What has endpoints again does not count with what is emptied later.
        (0..4).for_each(|n| stage.put(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 2)));
        stage.exchange();
        (4..8).for_each(|n| stage.put(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 0)));
        assert_eq!(stage.after(ms(500)).body(EDS, "c4"), Some(endpoints("c4", 0)));
        stage.pass(secs(20));
        (0..9).for_each(|n| stage.put(EDS, &format!("c{n}"), endpoints(&format!("c{n}"), 0)));
        stage.exchange();
        assert_eq!(stage.body(EDS, "c8"), Some(endpoints("c8", 0)));
        assert_eq!(stage.heard(), "");
    }
}

/// kgateway #13963, cilium #47624: with `within: always` each message is judged: one listener, all of a type.
#[test]
fn each_message() {
    for dialect in BOTH {
        let mut stage = settled(dialect, ALWAYS);
        let whole = stage.plane.content.clone();
        stage.remove(LDS, "l");
        assert_eq!(stage.after(secs(50)).served(LDS), "l");
        assert_eq!(stage.why(LDS, "l"), "mass");
        stage.plane.content = whole;
        stage.pass(secs(50));
        assert_eq!((stage.served(LDS).as_str(), stage.why(LDS, "l").as_str()), ("l", ""));
        stage.remove(CDS, "c0");
        stage.put(RDS, "r", route("r", &["c1"]));
        stage.pass(ms(100));
        assert!(stage.served(CDS).starts_with("c1 "), "one of ten clusters is not much");
        if dialect == Dialect::Delta {
            stage.remove(POLICY, "p");
            assert_eq!(stage.after(secs(59)).why(POLICY, "p"), "mass");
            assert_eq!(stage.after(secs(1)).served(POLICY), "");
        }
    }
}

/// The same in the first moments of the first stream, before which nothing was served.
#[test]
fn each_message_from_the_start() {
    for dialect in BOTH {
        let mut stage = Stage::new(dialect, ALWAYS, &[(LDS, "*"), (CDS, "*")]);
        stage.say(LDS, "l", listener("l", "r", 80));
        stage.remove(LDS, "l");
        assert_eq!(stage.after(secs(1)).served(LDS), "l");
        assert_eq!(stage.why(LDS, "l"), "mass");
    }
}

/// D-10: secrets are never held, nor is what another relay says.
#[test]
fn what_is_never_held() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.remove(SDS, "s");
    stage.restart();
    stage.exchange();
    assert_eq!((stage.served(SDS).as_str(), stage.heard().as_str()), ("", ""));
    let mut stage = settled(Dialect::Delta, ALWAYS);
    stage.plane.habits.identifier = "distributary/1.0";
    stage.plane.content.clear();
    stage.restart();
    stage.exchange();
    stage.pass(ms(100));
    assert_eq!((stage.served(LDS).as_str(), stage.served(CDS).as_str()), ("", ""));
    assert_eq!(stage.heard(), "");
}

/// An order releases what is held, and what only that referred to goes with it, in one step.
#[test]
fn a_person_releases() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.wanted.clear();
    stage.plane.content.clear();
    stage.restart();
    stage.pass(secs(10));
    stage.cuts = 0;
    for kind in [RDS, CDS, EDS] {
        assert!(stage.order(hold(kind, HoldReason::Mass), HoldAction::Release) <= 10);
    }
    assert_eq!(stage.order(hold(LDS, HoldReason::Mass), HoldAction::Release), 1);
    stage.pass(ms(1));
    let all = [LDS, RDS, CDS, EDS].map(|kind| stage.served(kind));
    assert_eq!(all, [const { String::new() }; 4]);
    assert_eq!(
        stage.order(hold(LDS, HoldReason::Mass), HoldAction::Release),
        0,
        "it is gone"
    );
}

/// One resource is released by its name.
#[test]
fn one_resource_is_released() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.remove(CDS, "c0");
    stage.remove(CDS, "c1");
    stage.pass(ms(200));
    let one = HoldTarget::Resource(TypeUrl::new(CDS), Name::from("c0"));
    assert_eq!(stage.order(one, HoldAction::Release), 1);
    assert!(stage.served(CDS).starts_with("c1 c2"));
}

/// A held listener gives its address to a new one at once.
#[test]
fn an_address_that_is_taken() {
    for dialect in BOTH {
        let mut stage = settled(dialect, USUAL);
        stage.put(LDS, "other", listener("other", "r", 443));
        stage.pass(secs(10));
        stage.remove(LDS, "l");
        stage.remove(LDS, "other");
        stage.restart();
        assert_eq!(stage.after(secs(10)).served(LDS), "l other");
        stage.say(LDS, "new", listener("new", "r", 80));
        assert_eq!(stage.served(LDS), "new other", "{dialect:?}");
    }
}

/// D-03, C-26: a listener does not wait for routes where another one takes its address, in the same message or later: no client could
/// have both.
#[test]
fn an_address_that_is_taken_at_once() {
    for dialect in BOTH {
        for later in [ms(0), ms(50)] {
            let mut stage = settled(dialect, USUAL);
            stage.put(LDS, "other", listener("other", "r", 443));
            stage.pass(secs(10));
            stage.remove(LDS, "l");
            stage.remove(LDS, "other");
            if !later.is_zero() {
                stage.exchange();
                assert_eq!(stage.served(LDS), "l other", "{dialect:?}");
                stage.pass(later);
            }
            stage.say(LDS, "new", listener("new", "r", 80));
            assert_eq!(stage.served(LDS), "new other", "{dialect:?}, {later:?}");
            assert_eq!(stage.after(ms(200)).served(LDS), "new", "{dialect:?}, {later:?}");
        }
    }
}

/// What nobody wants any more is not held.
#[test]
fn what_nobody_wants() {
    let mut stage = settled(Dialect::Delta, USUAL);
    (0..9).for_each(|n| stage.remove(EDS, &format!("c{n}")));
    stage.restart();
    assert_eq!(stage.after(secs(10)).why(EDS, "c0"), "mass");
    (0..9).for_each(|n| stage.unwant(EDS, &format!("c{n}")));
    assert!(stage.holds.is_empty(), "{:?}", stage.holds);
    assert_eq!(stage.heard(), "+eds mass 9, -eds mass gone");
    // Nor is what leaves the view by no word of the control plane.
    stage.remove(CDS, "c0");
    assert_eq!(stage.after(ms(200)).why(CDS, "c0"), "referenced by rds r");
    let gone = Update::Absent(Name::from("c0"), Reason::Expired);
    stage.publish(vec![Changes::of((TypeUrl::new(CDS), true), vec![gone])]);
    assert!(stage.holds.is_empty(), "{:?}", stage.holds);
    assert_eq!(stage.heard(), "+cds referenced 1, -cds referenced gone");
    // Nor is anything once the view ends.
    stage.remove(CDS, "c1");
    assert_eq!(stage.after(ms(200)).why(CDS, "c1"), "referenced by rds r");
    stage.guard.close();
    stage.publish(Vec::new());
    assert!(stage.holds.is_empty() && stage.guard.is_empty(), "{:?}", stage.holds);
    assert_eq!(stage.heard(), "+cds referenced 1, -cds referenced gone");
}

/// Settings without a rule let go at once what it holds.
#[test]
fn a_rule_that_is_switched_off() {
    let mut stage = settled(Dialect::Sotw, USUAL);
    stage.wanted.clear();
    stage.plane.content.clear();
    stage.restart();
    assert_eq!(stage.after(secs(10)).served(LDS), "l");
    stage.set(GuardSettings::OFF);
    assert_eq!((stage.served(LDS).as_str(), stage.served(CDS).as_str()), ("", ""));
    assert!(stage.holds.is_empty() && stage.guard.poll_timeout().is_none());
}

/// G-15: content that the relay rejects takes nothing from anybody, and a removal that is held stays held. E-09: with the error that
/// the control plane itself reports it goes.
#[test]
fn an_error_after_a_removal() {
    let mut stage = settled(Dialect::Delta, USUAL);
    stage.remove(CDS, "c0");
    stage.pass(ms(200));
    let fault = |name: &str, error| Update::Error(Name::from(name), Some(Arc::new(error)));
    let says = |updates| vec![Changes::of((TypeUrl::new(CDS), true), updates)];
    stage.publish(says(vec![fault("c0", ResourceError::rejected())]));
    assert_eq!(stage.after(secs(60)).why(CDS, "c0"), "referenced by rds r");
    let said = ResourceError {
        trouble: Trouble::Said,
        ..ResourceError::rejected()
    };
    stage.publish(says(vec![fault("c0", said)]));
    assert!(stage.after(ms(1)).served(CDS).starts_with("c1 "));
    // G-13: content for which the control plane wants the resource to go says both at once.
    let gone = Update::Forget(Name::from("c1"));
    stage.publish(says(vec![gone, fault("c1", ResourceError::rejected())]));
    assert!(stage.after(ms(200)).served(CDS).starts_with("c2 "));
}

/// Content that cannot be decoded refers to nothing.
#[test]
fn garbage_refers_to_nothing() {
    let mut stage = settled(Dialect::Delta, USUAL);
    let mut garbage = plain("r").to_vec();
    garbage.extend([0x12, 0x7f, 0xff]);
    stage.put(RDS, "r", garbage.into());
    stage.remove(CDS, "c0");
    assert!(stage.after(ms(100)).served(CDS).starts_with("c1 "));
}

/// What an earlier run has held for a reference waits for the word of the control plane, and says no time that has passed.
#[test]
fn a_memory_of_references() {
    for extended in [None, Some("a test".into())] {
        remembered_reference(extended);
    }
}

/// The control plane stays silent: after the time that a person gave, no other one is shown.
fn remembered_reference(extended: Option<Arc<str>>) {
    let mut stage = settled(Dialect::Delta, USUAL);
    let now = stage.upstream.now;
    let removal = HeldRemoval {
        since: now.checked_sub(secs(30)).unwrap_or(now),
        until: Some(now + secs(30)),
        by: None,
        emptied: false,
        wildcard: true,
        extended: extended.clone().map(|why| (now + secs(30), why)),
    };
    let hold = Hold {
        type_url: TypeUrl::new(CDS),
        reason: HoldReason::Referenced,
        judgement: None,
        clock: None,
        removals: [(Name::from("c0"), removal)].into_iter().collect(),
    };
    stage.guard.remember(&[hold], now);
    stage.publish(Vec::new());
    assert_eq!(stage.why(CDS, "c0"), "referenced");
    assert_eq!(stage.holds[0].until().is_some(), extended.is_some());
    // G-14: that it does not answer is an error of the name, and no word.
    let silence = Update::Error(Name::from("c0"), Some(Arc::new(ResourceError::silence())));
    let silence = Changes::of((TypeUrl::new(CDS), true), vec![silence]);
    stage.publish(vec![Changes {
        phase: Phase::First,
        ..silence
    }]);
    assert_eq!(stage.after(secs(60)).why(CDS, "c0"), "referenced");
    assert_eq!(stage.holds[0].until(), None);
}

/// What an earlier run has held goes on where it was: no new time begins. One that is over ends once the control plane has said what it
/// has.
#[test]
fn a_memory_of_holds() {
    for left in [30, 0] {
        let mut stage = settled(Dialect::Delta, USUAL);
        stage.say(RDS, "r", route("r", &["c9"]));
        let now = stage.upstream.now;
        let removal = HeldRemoval {
            since: now.checked_sub(secs(30)).unwrap_or(now),
            until: Some(now + secs(left)),
            by: None,
            emptied: false,
            wildcard: true,
            extended: None,
        };
        let removals = (0..5).map(|n| (Name::from(format!("c{n}")), removal.clone()));
        let hold = Hold {
            type_url: TypeUrl::new(CDS),
            reason: HoldReason::Mass,
            judgement: Some(1),
            clock: Some(HoldClock::standing(secs(left))),
            removals: removals.collect(),
        };
        stage.guard.remember(&[hold], now);
        (0..5).for_each(|n| stage.remove(CDS, &format!("c{n}")));
        stage.restart();
        assert!(stage.after(secs(1)).served(CDS).starts_with("c0 "));
        assert_eq!(stage.after(secs(left + 6)).served(CDS), "c5 c6 c7 c8 c9");
    }
}
