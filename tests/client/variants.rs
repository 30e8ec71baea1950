//! Variants of one name that are not for everybody (TP2).

use distributary::proto::envoy::service::discovery::v3::{
    DeltaDiscoveryResponse, DynamicParameterConstraints, Resource, ResourceName,
    dynamic_parameter_constraints::{SingleConstraint, Type, single_constraint::ConstraintType},
};
use distributary::xds::{Dialect, Known, Name, Parameters, TypeUrl};

use crate::{EDS, Upstream, delta, refusal, resource, seconds, sotw, wrapped};

fn only(env: &str) -> Option<DynamicParameterConstraints> {
    let single = SingleConstraint {
        key: "env".to_owned(),
        constraint_type: Some(ConstraintType::Value(env.to_owned())),
    };
    Some(DynamicParameterConstraints {
        r#type: Some(Type::Constraint(single)),
    })
}

fn full_name(name: &str, env: &str) -> ResourceName {
    ResourceName {
        name: name.to_owned(),
        dynamic_parameter_constraints: only(env),
    }
}

/// The variant of `a` for an environment; for everybody without one.
fn variant(env: &str, content: &str) -> Resource {
    let plain = resource(EDS, "a", content);
    if env.is_empty() {
        return plain;
    }
    Resource {
        name: String::new(),
        resource_name: Some(full_name("a", env)),
        ..plain
    }
}

fn response(nonce: &str, resources: Vec<Resource>) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse {
        resources,
        ..delta(EDS, nonce, &[], &[])
    }
}

/// What a client gets that says this of itself.
fn chosen(upstream: &Upstream, env: Option<&str>) -> String {
    let own = env.map(|env| Parameters::from([("env".to_owned(), env.to_owned())]));
    let slot = upstream.cut.slot(&TypeUrl::new(EDS)).unwrap();
    match slot.choose(&Name::from("a"), own.as_ref()) {
        None => "unknown".to_owned(),
        Some(Known::Absent(reason)) => format!("{reason:?}"),
        Some(Known::Present(found)) => {
            let body = found.body();
            String::from_utf8_lossy(&body)
                .split('=')
                .next_back()
                .unwrap()
                .to_owned()
        }
    }
}

/// C-23, F-16: variants of one name are no duplicates; each client gets the one that it matches, a plain one what is for everybody.
#[test]
fn each_gets_its_own() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a"]);
        let all = vec![variant("prod", "1"), variant("test", "2"), variant("", "3")];
        match dialect {
            Dialect::Delta => upstream.hears(response("1", all)),
            Dialect::Sotw => {
                let mut response = sotw(EDS, "1", "n1", &[]);
                response.resources = all.iter().map(wrapped).collect();
                upstream.hears_sotw(response);
            }
        }
        assert!(refusal(&mut upstream).is_empty());
        let envs = [Some("prod"), Some("test"), Some("other"), None];
        assert_eq!(envs.map(|env| chosen(&upstream, env)), ["1", "2", "3", "3"]);
    }
}

/// C-23: a variant goes by its full name, and the name itself with the last one.
#[test]
fn variants_go() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(response("1", vec![variant("prod", "1"), variant("test", "2")]));
    let envs = [Some("prod"), Some("test"), Some("other"), None];
    assert_eq!(envs.map(|env| chosen(&upstream, env)), ["1", "2", "Said", "Said"]);
    let mut gone = response("2", vec![variant("test", "3")]);
    gone.removed_resource_names = vec![full_name("a", "prod"), full_name("b", "test")];
    upstream.hears(gone);
    assert_eq!(envs.map(|env| chosen(&upstream, env)), ["Said", "3", "Said", "Said"]);
    let mut gone = response("3", Vec::new());
    gone.removed_resource_names = vec![full_name("a", "test")];
    upstream.hears(gone);
    assert_eq!(upstream.named(EDS), "a:Said");
    upstream.hears(response("4", vec![variant("prod", "1")]));
    assert_eq!(envs.map(|env| chosen(&upstream, env)), ["1", "Said", "Said", "Said"]);
    upstream.unwant(EDS, "a");
    upstream.want(EDS, "a");
    assert_eq!(envs.map(|env| chosen(&upstream, env)), ["unknown"; 4]);
}

/// E-12, C-23: the same variant twice refuses the response.
#[test]
fn one_variant_twice() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(response(
        "1",
        vec![variant("prod", "1"), variant("prod", "2"), variant("", "3")],
    ));
    assert_eq!([Some("prod"), None].map(|env| chosen(&upstream, env)), ["3", "3"]);
    let text = refusal(&mut upstream);
    assert!(
        text.contains("resource \"a\" is in the response more than once"),
        "{text}"
    );
}

/// E-11, TP2: a variant whose life ends at once takes no other with it.
#[test]
fn a_dead_variant() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(response("n1", vec![variant("", "all"), variant("prod", "prod")]));
    let dead = Resource {
        ttl: seconds(0),
        ..variant("prod", "prod")
    };
    upstream.hears(response("n2", vec![dead]));
    assert_eq!(chosen(&upstream, None), "all");
    assert_eq!(chosen(&upstream, Some("prod")), "all");
}
