// SPDX-License-Identifier: Apache-2.0
//! What an earlier run of the relay knew: it is served, not declared to the server, and removed only because of what the
//! server sends.

use xds::{Cut, Dialect, Target, TypeUrl};

use crate::{CDS, EDS, Upstream, delta, secs};

/// The snapshot of a run that had this content from a server.
fn stock(type_url: &str, targets: &[&str], resources: &[&str], removed: &[&str]) -> Cut {
    let mut earlier = Upstream::streaming(Dialect::Delta, type_url, targets);
    earlier.accepts(delta(type_url, "n1", resources, removed));
    earlier.pass(secs(1));
    earlier.cut
}

impl Upstream {
    /// A name is wanted that an earlier run knew.
    pub(crate) fn restore(&mut self, type_url: &str, target: &str, stock: &Cut) {
        self.want(type_url, target);
        let type_url = TypeUrl::new(type_url);
        let target = match target {
            "*" => Target::Wildcard,
            name => Target::Name(name.into()),
        };
        let slot = stock.slot(&type_url).unwrap();
        if let Some(changes) = self.client.handle_restored(&type_url, &target, slot) {
            self.cut = self.cut.restored(&changes).0;
        }
    }

    fn stale(&self, type_url: &str) -> bool {
        self.cut.slot(&TypeUrl::new(type_url)).unwrap().stale()
    }
}

/// K-16, E-04: restored content is served as it was; it is not declared to the server; what the server does not mention is gone
/// after some quiet.
#[test]
fn a_wildcard_goes_on_where_it_was() {
    let stock = stock(CDS, &["*"], &["a=1", "b=1"], &[]);
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.restore(CDS, "*", &stock);
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");
    assert!(upstream.stale(CDS) && !upstream.answered(CDS));
    upstream.pass(secs(3600));
    assert_eq!(
        upstream.wildcard(CDS),
        "a=1 b=1 complete",
        "nothing goes while nobody speaks"
    );

    upstream.connect();
    assert_eq!(upstream.sent(), ["cds"], "a clean start");
    upstream.news();
    upstream.hears(delta(CDS, "n1", &["a=1"], &[]));
    assert_eq!(upstream.sent(), ["cds ack n1"]);
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete");
    assert!(upstream.stale(CDS), "one message may not be all");
    assert!(!upstream.after(secs(1)).stale(CDS));
    assert_eq!(upstream.wildcard(CDS), "a=1 b=1 complete", "it may yet come");
    assert_eq!(upstream.after(secs(6)).wildcard(CDS), "a=1 complete");
}

/// E-04: a reconnect before everything is confirmed declares only what the server has sent itself.
#[test]
fn only_versions_of_the_server_itself_are_declared() {
    let stock = stock(CDS, &["*"], &["a=1", "b=1"], &[]);
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.restore(CDS, "*", &stock);
    upstream.connect();
    upstream.sent();
    upstream.accepts(delta(CDS, "n1", &["a=1"], &[]));
    upstream.pass(secs(1));
    upstream.reconnect();
    assert_eq!(upstream.sent(), ["cds a@unknown"]);
    upstream.accepts(delta(CDS, "n1", &["a=1", "c=1"], &[]));
    assert_eq!(upstream.after(secs(6)).wildcard(CDS), "a=1 c=1 complete");
}

/// E-08, K-16: names are asked for like new ones. A name that the server never answers for is gone, but that is no reason to
/// remove it from a client. A name that did not exist in an earlier run may exist now.
#[test]
fn names_go_on_where_they_were() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let stock = stock(EDS, &["a", "b", "gone"], &["a=1", "b=1"], &["gone"]);
        let mut upstream = Upstream::new(dialect);
        for name in ["a", "b", "gone", "new"] {
            upstream.restore(EDS, name, &stock);
        }
        assert_eq!(upstream.named(EDS), "a=1 b=1 gone:TimedOut");
        assert!(upstream.stale(EDS));
        upstream.connect();
        let asked = match dialect {
            Dialect::Delta => "eds +a +b +gone +new",
            Dialect::Sotw => "eds [a b gone new] vunknown",
        };
        assert_eq!(upstream.sent(), [asked]);
        upstream.hears_puts(EDS, "v1", "n1", &["a=2"]);
        assert!(!upstream.stale(EDS));
        assert_eq!(upstream.named(EDS), "a=2 b=1 gone:TimedOut");
        upstream.pass(secs(16));
        assert_eq!(upstream.named(EDS), "a=2 b:TimedOut gone:TimedOut new:TimedOut");
    }
}

/// Content of the server is never overwritten by restored content.
#[test]
fn nothing_is_restored_over_the_server() {
    let stock = stock(EDS, &["a", "b"], &["a=1", "b=1"], &[]);
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(delta(EDS, "n1", &["a=2"], &[]));
    upstream.restore(EDS, "b", &stock);
    assert_eq!(upstream.named(EDS), "a=2");
}
