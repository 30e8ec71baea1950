// SPDX-License-Identifier: Apache-2.0
//! Removals wait for the routes that leave what is removed, with every other rule off.

use prost::Message;
use xds::{Changes, Dialect, GuardSettings, Name, Reason, TypeUrl, Update};

use super::plane::{cluster, endpoints, listener, plain, route};
use super::stage::Stage;
use super::{BOTH, SDS};
use crate::{CDS, EDS, LDS, RDS, cut, delta, ms, secs};

/// A stage that has clusters `a` and `b`, a listener, endpoints of `a`, a secret, and a route to `a`.
fn settled(dialect: Dialect) -> Stage {
    let wants = [(CDS, "*"), (LDS, "*"), (EDS, "a"), (RDS, "r"), (SDS, "s")];
    let mut stage = Stage::new(dialect, GuardSettings::OFF, &wants);
    ["a", "b"].iter().for_each(|name| stage.put(CDS, name, cluster(name)));
    stage.put(LDS, "l", listener("l", "r", 80));
    stage.put(EDS, "a", endpoints("a", 1));
    stage.put(RDS, "r", route("r", &["a"]));
    stage.put(SDS, "s", plain("s"));
    stage.pass(secs(10));
    assert_eq!(served(&stage), "a b, l, a, r");
    stage
}

fn served(stage: &Stage) -> String {
    [CDS, LDS, EDS, RDS].map(|kind| stage.served(kind)).join(", ")
}

/// These are removed, and the control plane says so.
fn remove(stage: &mut Stage, gone: &[(&str, &str)]) {
    gone.iter().for_each(|(kind, name)| stage.remove(kind, name));
    stage.exchange();
}

/// D-03: a route that leaves a cluster after the cluster was removed is known before the cluster goes, and the cluster goes when
/// no route has come for a while.
#[test]
fn the_route_comes_first() {
    for (dialect, late) in BOTH
        .into_iter()
        .flat_map(|dialect| [0, 1, 20, 99].map(|late| (dialect, late)))
    {
        let mut stage = settled(dialect);
        remove(&mut stage, &[(CDS, "a")]);
        assert_eq!(stage.after(ms(late)).served(CDS), "a b", "{dialect:?}, {late} ms");
        stage.say(RDS, "r", route("r", &["b"]));
        assert_eq!(stage.body(RDS, "r"), Some(route("r", &["b"])), "{dialect:?}, {late} ms");
        assert_eq!(stage.after(ms(99)).served(CDS), "a b", "{dialect:?}, {late} ms");
        assert_eq!(stage.after(ms(1)).served(CDS), "b", "{dialect:?}, {late} ms");
    }
}

/// D-03: without any route, a removal waits for the quiet time, and listeners and endpoints do as well. What adds or changes
/// something does not wait, nor do routes and secrets.
#[test]
fn what_waits() {
    let mut stage = settled(Dialect::Delta);
    stage.put(LDS, "l2", listener("l2", "r", 81));
    stage.put(CDS, "c", cluster("c"));
    remove(&mut stage, &[(EDS, "a"), (LDS, "l"), (CDS, "a")]);
    assert_eq!(served(&stage), "a b c, l l2, a, r");
    stage.pass(ms(99));
    assert_eq!(served(&stage), "a b c, l l2, a, r");
    stage.pass(ms(1));
    assert_eq!(served(&stage), "b c, l2, , r");
    remove(&mut stage, &[(RDS, "r"), (SDS, "s")]);
    assert_eq!(served(&stage), "b c, l2, , ");
    assert_eq!(stage.served(SDS), "");
}

/// D-03: endpoints, secrets and clusters do not prolong the wait. Routes and listeners do, but not over the bound.
#[test]
fn what_prolongs_it() {
    for (kind, name, bound) in [
        (EDS, "a", 100),
        (SDS, "s", 100),
        (CDS, "b", 100),
        (RDS, "r", 2000),
        (LDS, "l", 2000),
    ] {
        let mut stage = settled(Dialect::Delta);
        remove(&mut stage, &[(CDS, "a")]);
        for waited in (50..5000).step_by(50) {
            stage.say(kind, name, plain(&format!("{name}{waited}")));
            stage.pass(ms(50));
            let gone = stage.served(CDS) == "b";
            assert_eq!(gone, waited >= bound, "{kind} after {waited} ms");
        }
    }
}

/// D-03: each removal has its own bound. At the bound, a listener that goes does not stay longer than the cluster that it leads to.
#[test]
fn the_bound() {
    let mut stage = settled(Dialect::Delta);
    remove(&mut stage, &[(CDS, "a")]);
    for round in 0..19 {
        stage.pass(ms(99));
        stage.say(RDS, "r", route("r", &[&format!("{round}")]));
    }
    stage.pass(ms(90));
    remove(&mut stage, &[(CDS, "b"), (LDS, "l")]);
    for (later, served) in [(28, "a b/l"), (1, "b/"), (70, "b/"), (1, "/")] {
        stage.pass(ms(later));
        assert_eq!([CDS, LDS].map(|kind| stage.served(kind)).join("/"), served);
    }
}

/// D-03: a name that returns while it waits was never gone; if it goes once more, it waits anew. Memory does not grow with that.
#[test]
fn a_name_that_returns() {
    for dialect in BOTH {
        let mut stage = settled(dialect);
        stage.cuts = 0;
        remove(&mut stage, &[(CDS, "a")]);
        stage.pass(ms(50));
        stage.say(CDS, "a", cluster("a"));
        stage.pass(ms(500));
        assert_eq!(
            (served(&stage).as_str(), stage.cuts),
            ("a b, l, a, r", 0),
            "{dialect:?}"
        );
        for round in 0..1000 {
            remove(&mut stage, &[(CDS, "a")]);
            stage.pass(ms(50));
            let other = if round % 2 == 0 { "other" } else { "a" };
            stage.say(CDS, "a", super::plane::served_by("a", other));
            stage.pass(ms(25));
        }
        remove(&mut stage, &[(CDS, "a")]);
        assert_eq!(stage.after(ms(99)).served(CDS), "a b", "{dialect:?}");
        assert_eq!(stage.after(ms(1)).served(CDS), "b", "{dialect:?}");
        assert_eq!(stage.guard.poll_timeout(), None);
        // What waits already goes by the times that are configured now.
        remove(&mut stage, &[(CDS, "b")]);
        stage.guard.set(ms(20), ms(2000));
        assert_eq!(stage.after(ms(20)).served(CDS), "", "{dialect:?}");
    }
}

/// D-03, K-16: the end of a time to live and a missing answer never wait; nor does what nobody wants any more.
#[test]
fn what_never_waits() {
    let mut stage = settled(Dialect::Delta);
    for reason in [Reason::Expired, Reason::TimedOut] {
        let gone = Update::Absent(Name::from("a"), reason);
        stage.publish(vec![Changes::of((TypeUrl::new(EDS), false), vec![gone])]);
        assert_eq!(stage.upstream.named(EDS), format!("a:{reason:?}"));
        stage.plane.repeat(EDS, "a");
        stage.exchange();
    }
    // What waits is forgotten with the name, and does not come back with it.
    remove(&mut stage, &[(EDS, "a")]);
    stage.unwant(EDS, "a");
    assert_eq!(stage.upstream.named(EDS), "");
    assert_eq!(stage.after(ms(200)).upstream.named(EDS), "");
    assert_eq!(stage.guard.poll_timeout(), None);
}

/// D-03, E-11: that a name does not exist, as an answer to the request for it, does not wait; nor does the removal of a resource that
/// would expire while it waits.
#[test]
fn an_answer_and_a_short_life() {
    let mut stage = settled(Dialect::Delta);
    stage.upstream.want(EDS, "x");
    stage.exchange();
    assert!(
        stage.upstream.named(EDS).ends_with("x:Said"),
        "{}",
        stage.upstream.named(EDS)
    );
    let mut response = delta(EDS, "n", &["a=2"], &[]);
    response.resources[0].ttl = crate::seconds(1);
    let response = cut(response.encode_to_vec()).finish(Dialect::Delta).unwrap();
    let changes = stage.upstream.client.handle_response(response, stage.upstream.now);
    stage.publish(changes);
    remove(&mut stage, &[(EDS, "a")]);
    assert_eq!(stage.upstream.named(EDS), "a:Said x:Said");
}
