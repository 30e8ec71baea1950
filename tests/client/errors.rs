// SPDX-License-Identifier: Apache-2.0
//! The errors of names that a server reports, and what they mean under each setting of the server entry.

use proto::envoy::service::discovery::v3::{ResourceError, ResourceName};
use proto::google::rpc::Status;
use xds::{Dialect, Name, ServerFeatures, Trouble, TypeUrl};

use crate::{CDS, EDS, RDS, Upstream, delta, ms, refusal, resource, sotw};

pub(crate) fn error(name: &str, code: i32) -> ResourceError {
    ResourceError {
        resource_name: Some(ResourceName {
            name: name.to_owned(),
            dynamic_parameter_constraints: Default::default(),
        }),
        error_detail: Some(Status {
            code,
            message: "it is wrong".to_owned(),
            details: Vec::new(),
        }),
    }
}

impl Upstream {
    fn hears_errors(&mut self, dialect: Dialect, nonce: &str, puts: &[&str], errors: &[(&str, i32)]) {
        let errors = errors.iter().map(|(name, code)| error(name, *code)).collect();
        match dialect {
            Dialect::Delta => {
                let mut response = delta(EDS, nonce, puts, &[]);
                response.resource_errors = errors;
                self.hears(response);
            }
            Dialect::Sotw => {
                let mut response = sotw(EDS, nonce, nonce, puts);
                response.resource_errors = errors;
                self.hears_sotw(response);
            }
        }
    }

    fn error(&self, name: &str) -> Option<i32> {
        let slot = self.cut.slot(&TypeUrl::new(EDS))?;
        slot.named.error(&Name::from(name)).map(|error| error.code)
    }
}

fn saying(dialect: Dialect, features: ServerFeatures, targets: &[&str]) -> Upstream {
    let mut upstream = Upstream::with_features(dialect, features);
    targets.iter().for_each(|target| upstream.want(EDS, target));
    upstream.connect();
    upstream.sent();
    upstream
}

/// E-09, C-24, E-08: an error ends the wait; a name that is not found or not allowed does not exist, any other name is unknown.
#[test]
fn errors_end_the_wait() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = saying(dialect, ServerFeatures::default(), &["a", "b", "c", "d", "e"]);
        let errors = [("a", 5), ("b", 7), ("c", 14), ("d", 99), ("nobody", 5)];
        upstream.hears_errors(dialect, "1", &[], &errors);
        assert_eq!(upstream.named(EDS), "a:Said b:Said");
        assert_eq!(
            ["a", "b", "c", "d", "e", "nobody"].map(|name| upstream.error(name).unwrap_or(0)),
            [5, 7, 14, 99, 0, 0]
        );
        assert_eq!(upstream.after(ms(60_000)).named(EDS), "a:Said b:Said e:TimedOut");
        assert!(refusal(&mut upstream).is_empty());
    }
}

/// E-09, G-19: an error is remembered until a new one or the resource comes, and over a reconnect.
#[test]
fn errors_are_remembered() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = saying(dialect, ServerFeatures::default(), &["a", "b"]);
        upstream.hears_errors(dialect, "1", &["b=1"], &[("a", 5)]);
        upstream.hears_errors(dialect, "2", &[], &[("a", 7), ("b", 14)]);
        assert_eq!((upstream.error("a"), upstream.error("b")), (Some(7), Some(14)));
        upstream.reconnect();
        upstream.sent();
        assert_eq!((upstream.error("a"), upstream.error("b")), (Some(7), Some(14)));
        upstream.hears_errors(dialect, "3", &["a=1", "b=1"], &[]);
        assert_eq!((upstream.error("a"), upstream.error("b")), (None, None));
        assert_eq!(upstream.named(EDS), "a=1 b=1");
        upstream.unwant(EDS, "a");
        assert_eq!(upstream.named(EDS), "b=1");
    }
}

/// B-31, E-02: an error entry without a name or without an error makes the relay reject the response; an error of a name whose
/// resource is in the same response does not count.
#[test]
fn errors_that_are_none() {
    let mut upstream = saying(Dialect::Delta, ServerFeatures::default(), &["a", "b"]);
    upstream.hears_errors(Dialect::Delta, "1", &["a=1"], &[("a", 5), ("b", 0)]);
    assert_eq!((upstream.error("a"), upstream.error("b")), (None, None));
    upstream.refuses("entry 1 of resource_errors");
    upstream.hears_errors(Dialect::Delta, "2", &[], &[("", 5)]);
    upstream.refuses("entry 0 of resource_errors");
}

/// G-13: the error of a resource that is held removes it only if the server entry says so.
#[test]
fn data_errors() {
    for (fail_on_data_errors, after) in [(false, "a=1 b=1 c=1 d=1"), (true, "a:Said b:Said c=1 d:Said")] {
        let features = ServerFeatures {
            fail_on_data_errors,
            ..ServerFeatures::default()
        };
        let mut upstream = saying(Dialect::Delta, features, &["a", "b", "c", "d"]);
        upstream.hears_errors(Dialect::Delta, "1", &["a=1", "b=1", "c=1", "d=1"], &[]);
        upstream.hears_errors(Dialect::Delta, "2", &[], &[("a", 5), ("b", 7), ("c", 14)]);
        upstream.hears_with(EDS, ("", "3"), &[], [resource(RDS, "d", "2")]);
        assert_eq!(upstream.named(EDS), after);
    }
}

/// G-13: a removal is passed on, unless the server entry says that removed resources are kept.
#[test]
fn deletions() {
    for (ignore_resource_deletion, after) in [(false, "a:Said"), (true, "a=1")] {
        let features = ServerFeatures {
            ignore_resource_deletion,
            ..ServerFeatures::default()
        };
        let mut upstream = saying(Dialect::Delta, features, &["a"]);
        upstream.hears(delta(EDS, "1", &["a=1"], &[]));
        upstream.hears(delta(EDS, "2", &[], &["a"]));
        assert_eq!(upstream.named(EDS), after);
        let mut upstream = Upstream::with_features(Dialect::Sotw, features);
        upstream.want(CDS, "a");
        upstream.connect();
        upstream.sent();
        upstream.hears_sotw(sotw(CDS, "1", "n1", &["a=1"]));
        upstream.hears_sotw(sotw(CDS, "2", "n2", &[]));
        assert_eq!(upstream.named(CDS), after);
    }
}

/// G-14: for a server that reports errors itself, thirty seconds of silence are an error of the server, not absence.
#[test]
fn silence_of_a_server_that_speaks() {
    let features = ServerFeatures {
        resource_timer_is_transient_error: true,
        ..ServerFeatures::default()
    };
    let mut upstream = saying(Dialect::Delta, features, &["a"]);
    upstream.pass(ms(29_999));
    assert_eq!((upstream.named(EDS), upstream.error("a")), (String::new(), None));
    upstream.pass(ms(1));
    assert_eq!((upstream.named(EDS), upstream.error("a")), (String::new(), Some(14)));
    upstream.hears(delta(EDS, "1", &["a=1"], &[]));
    assert_eq!((upstream.named(EDS), upstream.error("a")), ("a=1".to_owned(), None));
}

impl Upstream {
    fn trouble(&self, type_url: &str, wildcard: bool, name: &str) -> Option<Trouble> {
        let slot = self.cut.slot(&TypeUrl::new(type_url))?;
        let state = if wildcard { slot.wildcard.as_ref()? } else { &slot.named };
        state.error(&Name::from(name)).map(|error| error.trouble)
    }
}

/// G-15, E-13, K-06: that a resource came with a fault is known of its name until a sound one comes or the name goes; what was
/// held stays.
#[test]
fn what_was_rejected_is_known() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = saying(dialect, ServerFeatures::default(), &["a", "b"]);
        let say = |upstream: &mut Upstream, nonce: &str, puts: &[&str], bad: &[&str]| {
            let bad = bad.iter().map(|name| resource(RDS, name, "2"));
            upstream.hears_with(EDS, (nonce, nonce), puts, bad);
        };
        say(&mut upstream, "1", &["a=1"], &["b", "nobody"]);
        assert_eq!(upstream.named(EDS), "a=1");
        let trouble = |upstream: &Upstream| ["a", "b", "nobody"].map(|name| upstream.trouble(EDS, false, name));
        assert_eq!(trouble(&upstream), [None, Some(Trouble::Rejected), None]);
        say(&mut upstream, "2", &["b=1"], &["a"]);
        assert_eq!(upstream.named(EDS), "a=1 b=1");
        assert_eq!(trouble(&upstream), [Some(Trouble::Rejected), None, None]);
        // A more specific reason replaces it, and nothing of it is left with the name.
        upstream.hears_errors(dialect, "3", &[], &[("a", 14)]);
        assert_eq!(trouble(&upstream)[0], Some(Trouble::Said));
        say(&mut upstream, "4", &[], &["a"]);
        upstream.unwant(EDS, "a");
        assert_eq!(trouble(&upstream), [None; 3]);
        say(&mut upstream, "5", &["b=1"], &[]);
        assert_eq!(trouble(&upstream), [None; 3]);
    }
}

/// G-15: the same for what a wildcard covers: a name that never was sound is known as such until the server no longer mentions
/// it.
#[test]
fn what_was_rejected_of_a_wildcard() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["*"]);
    upstream.hears_with(CDS, ("1", "1"), &["a=1"], [resource(RDS, "b", "2")]);
    assert_eq!(upstream.trouble(CDS, true, "b"), Some(Trouble::Rejected));
    upstream.hears_sotw(sotw(CDS, "2", "2", &["a=1"]));
    assert_eq!(upstream.trouble(CDS, true, "b"), None);

    let mut upstream = Upstream::streaming(Dialect::Delta, CDS, &["*"]);
    upstream.hears_with(CDS, ("", "1"), &["a=1"], [resource(RDS, "b", "1")]);
    assert_eq!(upstream.trouble(CDS, true, "b"), Some(Trouble::Rejected));
    upstream.hears(delta(CDS, "2", &[], &["b"]));
    assert_eq!(upstream.trouble(CDS, true, "b"), None);
    // The number of such names has a bound, however many a server sends.
    let many = (0..5000).map(|n| resource(RDS, &format!("n{n}"), "1"));
    upstream.hears_with(CDS, ("", "3"), &[], many);
    let slot = upstream.cut.slot(&TypeUrl::new(CDS)).unwrap();
    assert_eq!(slot.wildcard.as_ref().unwrap().errors().len(), 1024);
}

/// E-17, G-15: what was rejected while nobody wanted the wildcard is known when it is wanted again.
#[test]
fn what_was_rejected_while_nobody_wanted_it() {
    let mut upstream = Upstream::streaming(Dialect::Delta, CDS, &["*"]);
    upstream.want(EDS, "e");
    upstream.unwant(CDS, "*");
    upstream.hears_with(CDS, ("", "1"), &["a=1"], [resource(RDS, "b", "1")]);
    assert_eq!(upstream.trouble(CDS, true, "b"), None);
    upstream.want(CDS, "*");
    assert_eq!(upstream.trouble(CDS, true, "b"), Some(Trouble::Rejected));
}

/// G-13, G-15: a resource that was removed and kept is known as such until it comes again.
#[test]
fn what_is_deleted_and_kept() {
    let features = ServerFeatures {
        ignore_resource_deletion: true,
        ..ServerFeatures::default()
    };
    let mut upstream = saying(Dialect::Delta, features, &["a"]);
    upstream.hears(delta(EDS, "1", &["a=1"], &[]));
    upstream.hears(delta(EDS, "2", &[], &["a"]));
    assert_eq!(upstream.named(EDS), "a=1");
    assert_eq!(upstream.trouble(EDS, false, "a"), Some(Trouble::Deleted));
    upstream.hears(delta(EDS, "3", &["a=1"], &[]));
    assert_eq!(upstream.trouble(EDS, false, "a"), None);
}

/// F-04, E-07: a full state with a faulty entry, in another spelling, removes nothing.
#[test]
fn a_bad_entry_in_another_spelling() {
    let name = "xdstp://a/envoy.config.cluster.v3.Cluster/x?a=1&b=2";
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &[name]);
    upstream.hears_with(CDS, ("1", "1"), &[], [resource(CDS, name, "1")]);
    let other = "xdstp://a/envoy.config.cluster.v3.Cluster/x?b=2&a=1";
    upstream.hears_with(CDS, ("2", "2"), &[], [resource(RDS, other, "2")]);
    assert_eq!(upstream.named(CDS), format!("{name}=1"));
    assert_eq!(upstream.trouble(CDS, false, name), Some(Trouble::Rejected));
}
