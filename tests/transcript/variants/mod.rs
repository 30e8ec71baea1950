//! Variants of one name that are not for all clients (TP2), as clients see them.

mod everything;
mod passing_on;
mod random;
mod stage;
mod unsure;

use std::collections::BTreeMap;
use std::sync::Arc;

use distributary::proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DynamicParameterConstraints, ResourceLocator,
    dynamic_parameter_constraints::{ConstraintList, Type},
};
use distributary::xds::{Constraints, Dialect, Parameters, Sight, Unshared, Update};

use everything::rejects;
use stage::{CDS, Stage, is, rule};

fn parameters(all: &[(&str, &str)]) -> Parameters {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    all.iter().map(own).collect()
}

/// F-16: equal, exists, any, all, not; parameters that no constraint mentions do not matter.
#[test]
fn who_matches() {
    let list = |all: &[DynamicParameterConstraints]| ConstraintList {
        constraints: all.to_vec(),
    };
    let (prod, any) = (is("env", Some("prod")), is("env", None));
    let allows = |rule: DynamicParameterConstraints, own: &[(&str, &str)]| {
        Constraints::new(rule).is_none_or(|constraints| constraints.allow(&parameters(own)))
    };
    for (rule, own, expected) in [
        (prod.clone(), &[("env", "prod"), ("x", "y")][..], true),
        (prod.clone(), &[("env", "test")], false),
        (prod.clone(), &[], false),
        (any.clone(), &[("env", "")], true),
        (any.clone(), &[("x", "env")], false),
        (
            rule(Type::NotConstraints(Box::new(prod.clone()))),
            &[("env", "test")],
            true,
        ),
        (
            rule(Type::OrConstraints(list(&[prod.clone(), is("x", None)]))),
            &[("x", "")],
            true,
        ),
        (rule(Type::OrConstraints(list(&[]))), &[], false),
        (
            rule(Type::AndConstraints(list(&[prod.clone(), is("x", None)]))),
            &[("x", "")],
            false,
        ),
        (rule(Type::AndConstraints(list(&[prod, any]))), &[("env", "prod")], true),
        (DynamicParameterConstraints { r#type: None }, &[], true),
    ] {
        assert_eq!(allows(rule.clone(), own), expected, "{rule:?} {own:?}");
    }
}

/// C-23, F-16: a client is sent the variant that it matches, by its full name; a plain client never sees one.
#[test]
fn each_gets_its_own() {
    for (env, expected) in [(Some("prod"), "a[prod]=1"), (Some("other"), "a=3"), (None, "a=3")] {
        let mut stage = Stage::new().in_chunks();
        let all = [("prod", "1"), ("test", "2"), ("", "3")];
        let all = all.map(|(env, body)| Update::Put(stage.resource(env, body), None));
        stage.publish(all.to_vec());
        stage.subscribes(env);
        assert_eq!(stage.hears(env), [expected]);
        let other = Update::Put(stage.resource("test", "4"), None);
        stage.publish(vec![other]);
        assert!(stage.hears(env).is_empty());
    }
}

/// C-23, C-26: a swap of one variant for another is one response, whether the server changed them or the client changed its
/// parameters.
#[test]
fn a_swap_is_never_split() {
    let mut stage = Stage::new().in_chunks();
    let (prod, test) = (stage.resource("prod", "1"), stage.resource("test", "2"));
    stage.publish(vec![Update::Put(prod.clone(), None), Update::Put(test.clone(), None)]);
    stage.subscribes(Some("prod"));
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=1"]);
    // B-01: a client's parameters may change.
    stage.says(Some("test"), DeltaDiscoveryRequest::default());
    assert_eq!(stage.hears(Some("test")), ["a[test]=2 -a[prod]"]);
    let plain = stage.resource("", "3");
    stage.publish(vec![Update::Put(plain, None), Update::Withdraw(test)]);
    assert_eq!(stage.hears(Some("test")), ["a=3 -a[test]"]);
    stage.says(Some("prod"), DeltaDiscoveryRequest::default());
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=1"]);
    stage.publish(vec![
        Update::Withdraw(prod),
        Update::Absent("a".into(), xds::Reason::Said),
    ]);
    assert_eq!(stage.hears(Some("prod")), ["-a[prod]"]);
}

/// F-16: parameters sent with a single name count for that name.
#[test]
fn said_with_a_name() {
    let mut stage = Stage::new().in_chunks();
    let all = [("prod", "1"), ("", "3")].map(|(env, body)| Update::Put(stage.resource(env, body), None));
    stage.publish(all.to_vec());
    let locator = ResourceLocator {
        name: "a".to_owned(),
        dynamic_parameters: BTreeMap::from([("env".to_owned(), "prod".to_owned())])
            .into_iter()
            .collect(),
    };
    stage.says(
        None,
        DeltaDiscoveryRequest {
            resource_locators_subscribe: vec![locator.clone()],
            ..Default::default()
        },
    );
    assert_eq!(stage.hears(None), ["a[prod]=1"]);
    stage.says(
        None,
        DeltaDiscoveryRequest {
            resource_locators_unsubscribe: vec![locator],
            ..Default::default()
        },
    );
    stage.subscribes(None);
    assert_eq!(stage.hears(None), ["a=3"]);
}

/// C-25, C-23: a rejected variant of a wildcard goes by its full name; also if it was sent again, and goes before the client says what
/// it makes of that.
#[test]
fn a_rejected_variant_that_was_sent_again() {
    let prod = Some("prod");
    for asks_again in [false, true] {
        let mut stage = Stage::of(CDS, Dialect::Delta);
        stage.cover(vec![stage.put("a[prod]=1")]);
        stage.subscribes_to(prod, "*");
        rejects(&mut stage);
        let again = asks_again.then(|| {
            stage.subscribes_to(prod, "*");
            stage.response().expect("what it asks for again")
        });
        stage.cover(vec![stage.withdraw("a[prod]")]);
        if let Some(again) = again {
            assert!(stage.response().is_none(), "B-24");
            let yes = DeltaDiscoveryRequest {
                response_nonce: again.nonce.to_string(),
                ..Default::default()
            };
            stage.says(prod, yes);
        }
        assert_eq!(stage.hears(prod), ["-a[prod]"], "{asks_again}");
    }
}

/// F-16: of several variants that match, the client always gets the same one, in whatever order they came, and that is counted;
/// if one or none matches, nothing is counted.
#[test]
fn several_match() {
    let mut sent = Vec::new();
    for turned in [false, true] {
        let mut stage = Stage::new().in_chunks();
        let [exact, any] = [Some("prod"), None].map(|value| stage.variant("a", Some(is("env", value)), "body"));
        let mut all = vec![Update::Put(exact.clone(), None), Update::Put(any, None)];
        if turned {
            all.reverse();
        }
        stage.publish(all);
        stage.subscribes(Some("prod"));
        let sight = Sight::from(Arc::new(stage.cut.clone()));
        let response = stage.server.poll_response(&sight, &Unshared { chunk: 1 }, stage.now);
        let response = response.expect("a response");
        sent.push(response.batch.items()[0].resource.version());
        assert_eq!(stage.server.ambiguous(), 1);

        // Another client matches only one, so nothing is counted for it.
        let mut other = Stage::new().in_chunks();
        std::mem::swap(&mut other.cut, &mut stage.cut);
        other.subscribes(Some("test"));
        let response = other.server.poll_response(&sight, &Unshared { chunk: 1 }, other.now);
        assert!(response.is_some());
        assert_eq!(other.server.ambiguous(), 0);
    }
    assert_eq!(sent[0], sent[1]);
}
