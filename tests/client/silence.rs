// SPDX-License-Identifier: Apache-2.0
//! Questions that a server passes over while it answers for other types of the same stream.

use protocol::Decided;
use xds::{Dialect, Target};

use crate::{CDS, EDS, Upstream, ms};

const BOTH: [Dialect; 2] = [Dialect::Delta, Dialect::Sotw];

impl Upstream {
    /// The server sends this in a response of its own.
    fn hears_of(&mut self, type_url: &str, version: &str, puts: &[&str]) {
        self.pass(ms(1));
        self.hears_puts(type_url, version, version, puts);
        self.sent();
    }

    /// What was passed over by now: `eds a b`.
    fn passed_over(&mut self) -> Option<String> {
        let doubt = self.client.take_doubt(false)?;
        let targets = doubt.wants().iter().map(|want| match &want.target {
            Target::Wildcard => "*".to_owned(),
            Target::Name(name) => name.to_string(),
        });
        let targets: Vec<String> = targets.collect();
        let decided = self.client.handle_outcome(&doubt, true);
        assert!(matches!(decided, Some(Decided::Deaf(_))));
        let word = doubt.type_url().short().unwrap_or_default().to_owned();
        Some(format!("{word} {}", targets.join(" ")))
    }

    /// A stream on which clusters are answered, and these endpoints are asked for.
    fn beside_clusters(dialect: Dialect, names: &[&str]) -> Self {
        let mut upstream = Self::streaming(dialect, CDS, &["*"]);
        upstream.hears_of(CDS, "1", &["c=1"]);
        upstream.pass(ms(1000));
        names.iter().for_each(|name| upstream.want(EDS, name));
        upstream.sent();
        upstream
    }
}

/// E-27: a question is passed over if nothing of its type was said for as long as a name may take, while another type was: once, with
/// what is not known, be it the first of the type or a later one.
#[test]
fn what_is_passed_over() {
    for dialect in BOTH {
        let mut upstream = Upstream::beside_clusters(dialect, &["a", "b"]);
        upstream.hears_of(CDS, "2", &["c=2"]);
        assert_eq!(upstream.after(ms(14_998)).passed_over(), None, "{dialect:?}");
        upstream.pass(ms(1));
        assert_eq!(upstream.passed_over().as_deref(), Some("eds a b"), "{dialect:?}");
        upstream.hears_of(CDS, "3", &["c=3"]);
        assert_eq!(upstream.after(ms(60_000)).passed_over(), None, "{dialect:?}: once");
        // The server speaks again, and then falls silent.
        upstream.hears_of(EDS, "1", &["a=1"]);
        upstream.want(EDS, "d");
        upstream.sent();
        upstream.pass(ms(5000));
        upstream.hears_of(CDS, "4", &["c=4"]);
        upstream.pass(ms(10_000));
        assert_eq!(
            upstream.passed_over().as_deref(),
            Some("eds d"),
            "{dialect:?}: also a later one"
        );
    }
}

/// E-27: a server that says nothing at all is not deaf, nor is one that speaks of the type: the name may not exist. What was held before
/// a reconnect, and declared, need not be said again.
#[test]
fn what_is_not_passed_over() {
    for dialect in BOTH {
        let mut upstream = Upstream::beside_clusters(dialect, &["a"]);
        upstream.pass(ms(60_000));
        assert_eq!(upstream.passed_over(), None, "{dialect:?}: the server is silent");

        let mut upstream = Upstream::beside_clusters(dialect, &["a", "b"]);
        upstream.hears_of(CDS, "2", &["c=2"]);
        upstream.hears_of(EDS, "1", &["a=1"]);
        upstream.pass(ms(60_000));
        assert_eq!(upstream.passed_over(), None, "{dialect:?}: only `b` does not exist");

        let mut upstream = Upstream::beside_clusters(dialect, &["a"]);
        upstream.unwant(EDS, "a");
        upstream.hears_of(CDS, "2", &["c=2"]);
        upstream.pass(ms(60_000));
        assert_eq!(upstream.passed_over(), None, "{dialect:?}: nobody wants it");
    }
    let mut upstream = Upstream::beside_clusters(Dialect::Delta, &["a"]);
    upstream.hears_of(EDS, "1", &["a=1"]);
    upstream.reconnect();
    upstream.sent();
    upstream.pass(ms(1));
    upstream.hears_of(CDS, "2", &["c=2"]);
    assert_eq!(upstream.after(ms(60_000)).passed_over(), None, "it was declared");
}

/// E-27: a wildcard can be passed over too.
#[test]
fn a_wildcard() {
    for dialect in BOTH {
        let mut upstream = Upstream::beside_clusters(dialect, &["a"]);
        upstream.hears_of(EDS, "1", &["a=1"]);
        upstream.want(crate::LDS, "*");
        upstream.sent();
        upstream.hears_of(EDS, "2", &["a=2"]);
        upstream.pass(ms(15_000));
        assert_eq!(upstream.passed_over().as_deref(), Some("lds *"), "{dialect:?}");
    }
}
