// SPDX-License-Identifier: Apache-2.0
//! Removals wait for the routes that leave what is removed, in simulated time.

use std::time::Duration;

use prost::Message;
use protocol::Holds;
use xds::{Changes, Dialect, GuardSettings, Name, Phase, Reason, TypeUrl, Update, Version};

use crate::{CDS, EDS, LDS, RDS, Upstream, cut, delta, ms, sotw};

const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

/// A machine whose view is behind the waiting removals.
struct View {
    upstream: Upstream,
    guard: Holds,
}

impl View {
    fn new(dialect: Dialect) -> Self {
        let upstream = Upstream::new(dialect);
        Self {
            upstream,
            guard: Holds::new(ms(100), ms(2000), GuardSettings::default()),
        }
    }

    /// One that has clusters `a` and `b`, a listener, endpoints of `a`, a secret, and a route to `a`.
    fn settled(dialect: Dialect) -> Self {
        let mut view = Self::new(dialect);
        let wanted = [(CDS, "*"), (LDS, "*"), (EDS, "a"), (RDS, "r"), (SDS, "s")];
        wanted.iter().for_each(|(kind, name)| view.upstream.want(kind, name));
        view.upstream.connect();
        drop(view.upstream.sent());
        for (kind, puts) in [
            (CDS, "a=1 b=1"),
            (LDS, "l=1"),
            (EDS, "a=1"),
            (RDS, "r=to-a"),
            (SDS, "s=1"),
        ] {
            view.hears(kind, puts, "");
        }
        view.pass(1000);
        assert_eq!(view.all(), "a=1 b=1 complete | l=1 complete | a=1 | r=to-a");
        view
    }

    /// Resources come, and names go: in SotW those that are missing.
    fn hears(&mut self, kind: &str, puts: &str, gone: &str) {
        let (puts, gone): (Vec<&str>, Vec<&str>) = (words(puts), words(gone));
        let now = self.upstream.now;
        let client = &mut self.upstream.client;
        let changes = match client.dialect() {
            Dialect::Delta => {
                let response = cut(delta(kind, "n", &puts, &gone).encode_to_vec());
                client.handle_response(response.finish(Dialect::Delta).unwrap(), now)
            }
            Dialect::Sotw => client.handle_response(sotw(kind, "v", "n", &puts), now),
        };
        self.publish(changes);
        drop(self.upstream.sent());
    }

    fn publish(&mut self, mut changes: Vec<Changes>) {
        self.guard.hear(&mut changes, &self.upstream.cut, self.upstream.now);
        self.apply(&changes);
        let released = self
            .guard
            .look(&self.upstream.cut, None, |_, _| true, self.upstream.now);
        self.apply(&released);
    }

    fn apply(&mut self, changes: &[Changes]) {
        for change in changes {
            self.upstream.cut = self.upstream.cut.with(change).0;
        }
    }

    /// Lets time pass, with everything that happens in it.
    fn pass(&mut self, time: u64) {
        let end = self.upstream.now + ms(time);
        loop {
            let due = self
                .upstream
                .client
                .poll_timeout()
                .into_iter()
                .chain(self.guard.poll_timeout());
            let Some(at) = due.min().filter(|at| *at <= end) else {
                break;
            };
            self.upstream.now = self.upstream.now.max(at);
            let changes = self.upstream.client.handle_timeout(self.upstream.now);
            self.publish(changes);
        }
        self.upstream.now = end;
    }

    /// The version of all clusters.
    fn clusters(&self) -> Option<Version> {
        let slot = self.upstream.cut.slot(&TypeUrl::new(CDS))?;
        Some(slot.wildcard.as_ref()?.sum())
    }

    /// What the view has: clusters, listeners, endpoints, routes.
    fn all(&self) -> String {
        let (cds, lds) = (self.upstream.wildcard(CDS), self.upstream.wildcard(LDS));
        format!(
            "{cds} | {lds} | {} | {}",
            self.upstream.named(EDS),
            self.upstream.named(RDS)
        )
    }

    /// How long it takes from now until the cluster `a` is gone, at most that long.
    fn time_to_go(&mut self, most: u64) -> Option<Duration> {
        let began = self.upstream.now;
        (0..=most).find_map(|_| {
            let gone = !self.upstream.wildcard(CDS).contains("a=");
            let waited = self.upstream.now - began;
            self.pass(u64::from(!gone));
            gone.then_some(waited)
        })
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

const BOTH: [Dialect; 2] = [Dialect::Delta, Dialect::Sotw];

/// D-03: a route that leaves a cluster after the cluster was removed is known before the cluster goes, and the cluster goes when
/// no route has come for a while.
#[test]
fn the_route_comes_first() {
    for dialect in BOTH {
        for late in [0, 1, 5, 20, 80, 99] {
            let mut view = View::settled(dialect);
            view.hears(CDS, "b=1", "a");
            view.pass(late);
            assert_eq!(
                view.all(),
                "a=1 b=1 complete | l=1 complete | a=1 | r=to-a",
                "{late} ms"
            );
            view.hears(RDS, "r=to-b", "");
            assert_eq!(
                view.all(),
                "a=1 b=1 complete | l=1 complete | a=1 | r=to-b",
                "{late} ms"
            );
            assert_eq!(view.time_to_go(200), Some(ms(100)), "{dialect:?}, {late} ms");
        }
    }
}

/// D-03: without any route, a removal waits for the quiet time, and listeners and endpoints do as well. What adds or changes
/// something does not wait.
#[test]
fn what_waits() {
    let mut view = View::settled(Dialect::Delta);
    view.hears(EDS, "", "a");
    view.hears(LDS, "l2=1", "l");
    view.hears(CDS, "b=2 c=1", "a");
    assert_eq!(view.all(), "a=1 b=2 c=1 complete | l=1 l2=1 complete | a=1 | r=to-a");
    view.pass(99);
    assert_eq!(view.all(), "a=1 b=2 c=1 complete | l=1 l2=1 complete | a=1 | r=to-a");
    view.pass(1);
    assert_eq!(view.all(), "b=2 c=1 complete | l2=1 complete | a:Said | r=to-a");
}

/// D-03: routes are never held back, and neither are secrets.
#[test]
fn routes_go_at_once() {
    let mut view = View::settled(Dialect::Delta);
    view.hears(RDS, "", "r");
    view.hears(SDS, "", "s");
    assert_eq!(view.all(), "a=1 b=1 complete | l=1 complete | a=1 | r:Said");
    assert_eq!(view.upstream.named(SDS), "s:Said");
}

/// D-03: endpoints, secrets and clusters do not prolong the wait. Routes do, but not over the bound.
#[test]
fn what_prolongs_it() {
    for (kind, put, expected) in [
        (EDS, "a=", 100),
        (SDS, "s=", 100),
        (CDS, "b=", 100),
        (RDS, "r=", 2000),
        (LDS, "l=", 2000),
    ] {
        let mut view = View::settled(Dialect::Delta);
        view.hears(CDS, "", "a");
        let began = view.upstream.now;
        for round in 0..100 {
            view.hears(kind, &format!("{put}{}", round + 2), "");
            view.pass(50);
            let gone = !view.upstream.wildcard(CDS).contains("a=");
            let waited = view.upstream.now - began;
            assert_eq!(gone, waited >= ms(expected), "{kind} after {waited:?}");
        }
    }
}

/// D-03: each removal has its own bound. At the bound, a listener that goes does not stay longer than the cluster that it leads to.
#[test]
fn the_bound() {
    let mut view = View::settled(Dialect::Delta);
    view.hears(CDS, "", "a");
    for round in 0..19 {
        view.pass(99);
        view.hears(RDS, &format!("r={round}"), "");
    }
    view.pass(90);
    view.hears(CDS, "", "b");
    view.hears(LDS, "", "l");
    view.pass(28);
    assert!(
        view.all().starts_with("a=1 b=1 complete | l=1 complete"),
        "{}",
        view.all()
    );
    view.pass(1);
    assert!(view.all().starts_with("b=1 complete | complete"), "{}", view.all());
    view.pass(70);
    assert!(view.all().starts_with("b=1 complete"), "{}", view.all());
    view.pass(1);
    assert!(view.all().starts_with("complete"), "{}", view.all());
}

/// D-03: a name that returns while it waits was never gone; if it goes once more, it waits anew.
#[test]
fn a_name_that_returns() {
    for dialect in BOTH {
        let mut view = View::settled(dialect);
        let before = view.clusters();
        view.hears(CDS, "b=1", "a");
        view.pass(50);
        view.hears(CDS, "a=1 b=1", "");
        view.pass(500);
        assert_eq!(view.all(), "a=1 b=1 complete | l=1 complete | a=1 | r=to-a");
        assert!(before.is_some() && view.clusters() == before);
        view.hears(CDS, "b=1", "a");
        view.pass(50);
        view.hears(CDS, "a=2 b=1", "");
        view.pass(25);
        view.hears(CDS, "b=1", "a");
        assert_eq!(view.time_to_go(200), Some(ms(100)), "{dialect:?}");
    }
}

/// D-03, K-16: the end of a time to live and a missing answer never wait; nor does what nobody wants any more.
#[test]
fn what_never_waits() {
    let mut view = View::settled(Dialect::Delta);
    let gone = |reason| Changes {
        type_url: TypeUrl::new(EDS),
        wildcard: false,
        updates: vec![Update::Absent(Name::from("a"), reason)],
        complete: None,
        answered: None,
        phase: Phase::Steady,
    };
    for reason in [Reason::Expired, Reason::TimedOut] {
        view.publish(vec![gone(reason)]);
        assert_eq!(view.upstream.named(EDS), format!("a:{reason:?}"));
        view.hears(EDS, "a=1", "");
    }
    // What waits is forgotten with the name, and does not come back with it.
    view.hears(EDS, "", "a");
    view.upstream.unwant(EDS, "a");
    assert_eq!(view.upstream.named(EDS), "");
    view.pass(200);
    assert_eq!(view.upstream.named(EDS), "");
    assert_eq!(view.guard.poll_timeout(), None);
}

/// D-03: that a name does not exist, as an answer to the request for it, does not wait.
#[test]
fn an_answer_does_not_wait() {
    let mut view = View::settled(Dialect::Delta);
    view.upstream.want(EDS, "x");
    drop(view.upstream.sent());
    view.hears(EDS, "", "x");
    assert_eq!(view.upstream.named(EDS), "a=1 x:Said");
}

/// D-03, E-11: a removal does not wait if the resource would expire while it waits.
#[test]
fn a_short_life_does_not_wait() {
    let mut view = View::settled(Dialect::Delta);
    let mut response = delta(EDS, "n", &["a=2"], &[]);
    response.resources[0].ttl = Some(proto::google::protobuf::Duration { seconds: 1, nanos: 0 });
    let changes = view.upstream.client.handle_response(
        cut(response.encode_to_vec()).finish(Dialect::Delta).unwrap(),
        view.upstream.now,
    );
    view.publish(changes);
    view.hears(EDS, "", "a");
    assert_eq!(view.upstream.named(EDS), "a:Said");
}

/// Memory does not grow with a name that goes and returns again and again.
#[test]
fn a_name_that_cannot_decide() {
    let mut view = View::settled(Dialect::Delta);
    for round in 0..10_000 {
        view.hears(CDS, "", "a");
        view.hears(CDS, &format!("a={round}"), "");
        view.pass(1);
    }
    view.pass(100);
    assert_eq!(view.guard.poll_timeout(), None);
    assert!(view.all().starts_with("a=9999 b=1 complete"));
}
