//! Variants of one name that are not for everybody (TP2), as clients see them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use bytes::{BufMut, BytesMut};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DynamicParameterConstraints, ResourceLocator,
    dynamic_parameter_constraints::{ConstraintList, SingleConstraint, Type, single_constraint},
};
use distributary::proto::xds::core::v3::ContextParams;
use distributary::protocol::{Limits, Opening, Server, Settings, Timers};
use distributary::xds::{
    Changes, Constraints, Cut, Dialect, Dirty, Parameters, Resource, ResourceParts, Sight, TypeUrl, Types, Unshared,
    Update,
};
use prost::Message;

const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

fn is(key: &str, value: Option<&str>) -> DynamicParameterConstraints {
    let constraint_type = value.map_or(
        single_constraint::ConstraintType::Exists(single_constraint::Exists {}),
        |value| single_constraint::ConstraintType::Value(value.to_owned()),
    );
    rule(Type::Constraint(SingleConstraint {
        key: key.to_owned(),
        constraint_type: Some(constraint_type),
    }))
}

fn rule(rule: Type) -> DynamicParameterConstraints {
    DynamicParameterConstraints { r#type: Some(rule) }
}

fn parameters(all: &[(&str, &str)]) -> Parameters {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    all.iter().map(own).collect()
}

/// F-16: equal, there, any, all, not; what is not asked about hinders nothing.
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

/// A relay with one delta stream, and a view of endpoints.
struct Stage {
    server: Server,
    cut: Cut,
    now: Instant,
}

impl Stage {
    fn new() -> Self {
        let settings = Settings {
            types: Types::default(),
            limits: Limits::default(),
            timers: Timers::default(),
            anonymous: true,
            relay_id: "relay-1".to_owned(),
        };
        let opening = Opening {
            dialect: Dialect::Delta,
            service: None,
            nonce_prefix: 1,
        };
        #[expect(clippy::disallowed_methods, reason = "some instant to begin from")]
        let now = Instant::now();
        Self {
            server: Server::new(Arc::new(settings), opening),
            cut: Cut::default(),
            now,
        }
    }

    fn resource(&self, env: &str, body: &str) -> Arc<Resource> {
        self.variant((!env.is_empty()).then(|| is("env", Some(env))), body)
    }

    fn variant(&self, constraints: Option<DynamicParameterConstraints>, body: &str) -> Arc<Resource> {
        let type_url = TypeUrl::new(EDS);
        let parts = ResourceParts {
            type_url: &type_url,
            name: "a".into(),
            aliases: Vec::new(),
            passed_on: &[],
            body: body.as_bytes(),
            endpoints: None,
            constraints: constraints.and_then(Constraints::new),
            received: self.now,
        };
        Arc::new(Resource::new(parts, 0))
    }

    fn publish(&mut self, updates: Vec<Update>) {
        let type_url = TypeUrl::new(EDS);
        let changes = Changes {
            type_url: type_url.clone(),
            wildcard: false,
            updates,
            complete: None,
            answered: Some(true),
        };
        let (cut, names) = self.cut.with(&changes);
        self.cut = cut;
        self.server.handle_dirty(&type_url, Dirty::Names(names));
    }

    fn says(&mut self, env: Option<&str>, request: DeltaDiscoveryRequest) {
        let own = env.map(|env| ContextParams {
            params: HashMap::from([("env".to_owned(), env.to_owned())])
                .into_iter()
                .collect(),
        });
        let node = Node {
            dynamic_parameters: own.into_iter().map(|own| (EDS.to_owned(), own)).collect(),
            ..Node::default()
        };
        let request = DeltaDiscoveryRequest {
            type_url: EDS.to_owned(),
            node: Some(node),
            ..request
        };
        let answers = Unshared { chunk: 1 };
        self.server
            .handle_delta(&request, &answers, self.now)
            .expect("a request");
    }

    fn subscribes(&mut self, env: Option<&str>) {
        let resource_names_subscribe = vec!["a".to_owned()];
        self.says(
            env,
            DeltaDiscoveryRequest {
                resource_names_subscribe,
                ..Default::default()
            },
        );
    }

    /// What it hears: `a=body`, `a[env]=body`, `-a`, `-a[env]`; everything is acknowledged.
    fn hears(&mut self, env: Option<&str>) -> Vec<String> {
        let sight = Sight::from(Arc::new(self.cut.clone()));
        let answers = Unshared { chunk: 1 };
        let mut heard = Vec::new();
        while let Some(response) = self.server.poll_response(&sight, &answers, self.now) {
            let mut bytes = BytesMut::new();
            let (pieces, _) = response.batch.encoded(response.chunk, response.dialect);
            pieces.iter().for_each(|piece| bytes.put_slice(piece));
            let said = DeltaDiscoveryResponse::decode(bytes.freeze()).expect("a response");
            let full = |name: &distributary::proto::envoy::service::discovery::v3::ResourceName| {
                let rule = name.dynamic_parameter_constraints.clone().expect("constraints");
                let Some(Type::Constraint(single)) = rule.r#type else {
                    panic!("{rule:?}")
                };
                let Some(single_constraint::ConstraintType::Value(env)) = single.constraint_type else {
                    panic!("no value")
                };
                format!("{}[{env}]", name.name)
            };
            let mut words = Vec::new();
            for resource in &said.resources {
                // C-23: one of the two, never both.
                let name = match &resource.resource_name {
                    Some(name) if resource.name.is_empty() => full(name),
                    Some(name) => panic!("{name:?} and {}", resource.name),
                    None => resource.name.clone(),
                };
                let body = &resource.resource.as_ref().expect("a body").value;
                words.push(format!("{name}={}", String::from_utf8_lossy(body)));
            }
            words.extend(said.removed_resources.iter().map(|name| format!("-{name}")));
            words.extend(
                said.removed_resource_names
                    .iter()
                    .map(|name| format!("-{}", full(name))),
            );
            heard.push(words.join(" "));
            let ack = DeltaDiscoveryRequest {
                response_nonce: response.nonce,
                ..Default::default()
            };
            self.says(env, ack);
        }
        heard
    }
}

/// C-23, F-16: a client is sent the variant that it matches, by its full name; a plain client never sees one.
#[test]
fn each_gets_its_own() {
    for (env, expected) in [(Some("prod"), "a[prod]=1"), (Some("other"), "a=3"), (None, "a=3")] {
        let mut stage = Stage::new();
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

/// C-23, C-26: one variant for another is one response, whatever the reason: the server changed them, or the client itself.
#[test]
fn a_swap_is_never_split() {
    let mut stage = Stage::new();
    let (prod, test) = (stage.resource("prod", "1"), stage.resource("test", "2"));
    stage.publish(vec![Update::Put(prod.clone(), None), Update::Put(test.clone(), None)]);
    stage.subscribes(Some("prod"));
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=1"]);
    // B-01: what a client says of itself may change.
    stage.says(Some("test"), DeltaDiscoveryRequest::default());
    assert_eq!(stage.hears(Some("test")), ["a[test]=2 -a[prod]"]);
    let plain = stage.resource("", "3");
    stage.publish(vec![Update::Put(plain, None), Update::Withdraw(test)]);
    assert_eq!(stage.hears(Some("test")), ["a=3 -a[test]"]);
    stage.says(Some("prod"), DeltaDiscoveryRequest::default());
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=1"]);
    stage.publish(vec![
        Update::Withdraw(prod),
        Update::Absent("a".into(), distributary::xds::Reason::Said),
    ]);
    assert_eq!(stage.hears(Some("prod")), ["-a[prod]"]);
}

/// F-16: what is said with a name alone counts for that name.
#[test]
fn said_with_a_name() {
    let mut stage = Stage::new();
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

/// F-16: of several variants that match it is the same one whatever the order in which they came, and that is counted; of one, or of
/// none that matches, nothing is.
#[test]
fn several_match() {
    let mut sent = Vec::new();
    for turned in [false, true] {
        let mut stage = Stage::new();
        let [exact, any] = [Some("prod"), None].map(|value| stage.variant(Some(is("env", value)), "body"));
        let mut all = vec![Update::Put(exact.clone(), None), Update::Put(any, None)];
        if turned {
            all.reverse();
        }
        stage.publish(all);
        stage.subscribes(Some("prod"));
        let sight = Sight::from(Arc::new(stage.cut.clone()));
        let response = stage.server.poll_response(&sight, &Unshared { chunk: 1 }, stage.now);
        let response = response.expect("a response");
        sent.push(response.batch.items_of(0)[0].resource.version());
        assert_eq!(stage.server.ambiguous(), 1);

        // Somebody else matches one alone, and nobody's choice is counted for what it does not match.
        let mut other = Stage::new();
        std::mem::swap(&mut other.cut, &mut stage.cut);
        other.subscribes(Some("test"));
        let response = other.server.poll_response(&sight, &Unshared { chunk: 1 }, other.now);
        assert!(response.is_some());
        assert_eq!(other.server.ambiguous(), 0);
    }
    assert_eq!(sent[0], sent[1]);
}
