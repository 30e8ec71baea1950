//! A stream whose client has parameters, and the view that it reads.
//!
//! Owns the notation of what the client is sent. Does not know what is right.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use distributary::identity::Identity;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, DynamicParameterConstraints,
    Resource as Wrapper, ResourceLocator, ResourceName,
    dynamic_parameter_constraints::{SingleConstraint, Type, single_constraint},
};
use distributary::proto::xds::core::v3::ContextParams;
use distributary::protocol::{Opening, Poll, PollAnswer, Response, Server, StreamLimits, StreamSettings, StreamTimers};
use distributary::xds::{
    Changes, Classes, Constraints, Cut, Dialect, Dirty, Expiry, Phase, Resource, ResourceParts, Sight, TypeUrl, Types,
    Unshared, Update, WRAPPER_URL,
};
use prost::Message;

pub(crate) const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(crate) const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
pub(crate) const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

pub(crate) fn is(key: &str, value: Option<&str>) -> DynamicParameterConstraints {
    let constraint_type = value.map_or(
        single_constraint::ConstraintType::Exists(single_constraint::Exists {}),
        |value| single_constraint::ConstraintType::Value(value.to_owned()),
    );
    rule(Type::Constraint(SingleConstraint {
        key: key.to_owned(),
        constraint_type: Some(constraint_type),
    }))
}

pub(crate) fn rule(rule: Type) -> DynamicParameterConstraints {
    DynamicParameterConstraints { r#type: Some(rule) }
}

fn settings() -> Arc<StreamSettings> {
    Arc::new(StreamSettings {
        types: Types::default(),
        limits: StreamLimits::default(),
        timers: StreamTimers::default(),
        classes: Classes::default(),
        anonymous: true,
        relay_id: "relay-1".to_owned(),
        access: Arc::default(),
    })
}

/// A relay with one stream, and a view of one type.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) cut: Cut,
    pub(crate) now: Instant,
    type_url: TypeUrl,
    dialect: Dialect,
    /// The features that the node declares.
    features: Vec<String>,
    program: &'static str,
    chunk: usize,
    nonce: String,
    /// SotW: what it asks for.
    asked: Vec<String>,
    authority: Option<Arc<str>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::of(EDS, Dialect::Delta)
    }

    pub(crate) fn of(type_url: &str, dialect: Dialect) -> Self {
        let opening = Opening {
            dialect,
            service: None,
            nonce_prefix: 1,
            identity: Identity::default(),
            polls: false,
        };
        #[expect(clippy::disallowed_methods, reason = "some instant to begin from")]
        let now = Instant::now();
        Self {
            server: Server::new(settings(), opening),
            cut: Cut::default(),
            now,
            type_url: TypeUrl::new(type_url),
            dialect,
            features: Vec::new(),
            program: "",
            chunk: usize::MAX,
            nonce: String::new(),
            asked: Vec::new(),
            authority: None,
        }
    }

    /// This authority is configured, with the same server.
    pub(crate) fn served(&mut self, authority: &str) {
        self.authority = Some(authority.into());
    }

    fn sight(&self) -> Sight {
        let cut = Arc::new(self.cut.clone());
        let mut sight = Sight::from(cut.clone());
        if let Some(authority) = &self.authority {
            sight.add(authority.clone(), cut);
        }
        sight
    }

    /// Sends each resource in a response of its own, where responses can be split.
    pub(crate) fn in_chunks(mut self) -> Self {
        self.chunk = 1;
        self
    }

    pub(crate) fn reading(mut self, feature: &str) -> Self {
        self.features.push(feature.to_owned());
        self
    }

    pub(crate) fn running(mut self, program: &'static str) -> Self {
        self.program = program;
        self
    }

    /// What a server has under `a`.
    pub(crate) fn resource(&self, env: &str, body: &str) -> Arc<Resource> {
        self.called("a", env, body)
    }

    pub(crate) fn called(&self, name: &str, env: &str, body: &str) -> Arc<Resource> {
        self.variant(name, (!env.is_empty()).then(|| is("env", Some(env))), body)
    }

    pub(crate) fn variant(
        &self,
        name: &str,
        constraints: Option<DynamicParameterConstraints>,
        body: &str,
    ) -> Arc<Resource> {
        let parts = ResourceParts {
            type_url: &self.type_url,
            name: name.into(),
            aliases: Vec::new(),
            passed_on: &[],
            body: body.as_bytes(),
            endpoints: None,
            constraints: constraints.and_then(Constraints::new),
            received: self.now,
        };
        Arc::new(Resource::new(parts, 0))
    }

    /// `a=1`, and `a[prod]=1` for some.
    pub(crate) fn read(&self, text: &str) -> Arc<Resource> {
        let (name, body) = text.split_once('=').unwrap_or((text, ""));
        let (name, env) = name.split_once('[').unwrap_or((name, "]"));
        self.called(name, env.trim_end_matches(']'), body)
    }

    pub(crate) fn put(&self, text: &str) -> Update {
        Update::Put(self.read(text), None)
    }

    /// The same, with a time to live.
    pub(crate) fn put_for(&self, text: &str, seconds: u64, beat: u32) -> Update {
        let at = self.now + Duration::from_secs(seconds);
        Update::Put(self.read(text), Some(Expiry { at, beat }))
    }

    pub(crate) fn withdraw(&self, text: &str) -> Update {
        Update::Withdraw(self.read(text))
    }

    /// A change of names that were asked for.
    pub(crate) fn publish(&mut self, updates: Vec<Update>) {
        self.change(updates, None);
    }

    /// A change of what a wildcard covers, which is complete.
    pub(crate) fn cover(&mut self, updates: Vec<Update>) {
        self.change(updates, Some(true));
    }

    fn change(&mut self, updates: Vec<Update>, complete: Option<bool>) {
        let changes = Changes {
            type_url: self.type_url.clone(),
            wildcard: complete.is_some(),
            updates,
            complete,
            answered: Some(true),
            phase: Phase::Steady,
        };
        let (cut, names) = self.cut.with(&changes);
        self.cut = cut;
        self.server.handle_dirty(&self.type_url, Dirty::Names(names));
    }

    /// The bodies in the answer to a poll for everything, or for one name.
    pub(crate) fn polls(&self, env: Option<&str>, name: Option<&str>) -> Vec<String> {
        let request = DiscoveryRequest {
            node: Some(self.node(env)),
            resource_names: name.into_iter().map(str::to_owned).collect(),
            ..Default::default()
        };
        let answers = Unshared { chunk: self.chunk };
        let poll = Poll::new(
            settings(),
            Identity::default(),
            self.type_url.clone(),
            request,
            &answers,
            self.now,
        );
        let mut poll = poll.unwrap_or_else(|_| panic!("a poll"));
        let sight = self.sight();
        poll.look(&sight, &answers);
        let PollAnswer::News(found) = poll.answer(&sight, false) else {
            return Vec::new();
        };
        let bodies = found.resources().map(|resource| resource.body());
        bodies.map(|body| String::from_utf8_lossy(&body).into_owned()).collect()
    }

    fn node(&self, env: Option<&str>) -> Node {
        let own = env.map(|env| ContextParams {
            params: HashMap::from([("env".to_owned(), env.to_owned())])
                .into_iter()
                .collect(),
        });
        let url = self.type_url.url().to_owned();
        Node {
            dynamic_parameters: own.into_iter().map(|own| (url.clone(), own)).collect(),
            client_features: self.features.clone(),
            user_agent_name: self.program.to_owned(),
            ..Node::default()
        }
    }

    pub(crate) fn says(&mut self, env: Option<&str>, request: DeltaDiscoveryRequest) {
        let type_url = match request.type_url.as_str() {
            "" => self.type_url.url().to_owned(),
            other => other.to_owned(),
        };
        let request = DeltaDiscoveryRequest {
            type_url,
            node: Some(self.node(env)),
            ..request
        };
        let answers = Unshared { chunk: self.chunk };
        self.server
            .handle_delta(&request, &answers, self.now)
            .expect("a request");
    }

    /// The client changes its parameters, and nothing else.
    pub(crate) fn becomes(&mut self, env: Option<&str>) {
        self.asks(env, Vec::new());
    }

    /// SotW: everything that it asks for, with the parameters that it sends with that.
    pub(crate) fn asks(&mut self, env: Option<&str>, resource_locators: Vec<ResourceLocator>) {
        if self.dialect == Dialect::Delta {
            let resource_locators_subscribe = resource_locators;
            return self.says(
                env,
                DeltaDiscoveryRequest {
                    resource_locators_subscribe,
                    ..Default::default()
                },
            );
        }
        let request = DiscoveryRequest {
            type_url: self.type_url.url().to_owned(),
            node: Some(self.node(env)),
            response_nonce: self.nonce.clone(),
            resource_names: self.asked.clone(),
            resource_locators,
            ..Default::default()
        };
        let answers = Unshared { chunk: self.chunk };
        self.server
            .handle_sotw(&request, &answers, self.now)
            .expect("a request");
    }

    /// Asks for `a`.
    pub(crate) fn subscribes(&mut self, env: Option<&str>) {
        self.subscribes_to(env, "a");
    }

    pub(crate) fn subscribes_to(&mut self, env: Option<&str>, name: &str) {
        let names = vec![name.to_owned()];
        match self.dialect {
            Dialect::Delta => self.says(
                env,
                DeltaDiscoveryRequest {
                    resource_names_subscribe: names,
                    ..Default::default()
                },
            ),
            Dialect::Sotw => {
                self.asked.extend(names);
                self.becomes(env);
            }
        }
    }

    /// SotW: it gives up a name.
    pub(crate) fn gives_up(&mut self, env: Option<&str>, name: &str) {
        self.asked.retain(|asked| asked != name);
        self.becomes(env);
    }

    pub(crate) fn response(&mut self) -> Option<Response> {
        let sight = self.sight();
        let answers = Unshared { chunk: self.chunk };
        self.server.poll_response(&sight, &answers, self.now)
    }

    /// What it is sent: `a=body`, `a[env]=body`, `-a`, `-a[env]`, in SotW without a wrapper `=body`; it acknowledges everything.
    pub(crate) fn hears(&mut self, env: Option<&str>) -> Vec<String> {
        let mut heard = Vec::new();
        while let Some(response) = self.response() {
            let mut bytes = BytesMut::new();
            let (pieces, _) = response.batch.encoded(response.dialect);
            pieces.iter().for_each(|piece| bytes.put_slice(piece));
            let words = match self.dialect {
                Dialect::Delta => delta_words(bytes.freeze()),
                Dialect::Sotw => sotw_words(bytes.freeze()),
            };
            heard.push(words.join(" "));
            self.nonce = response.nonce.to_string();
            match self.dialect {
                Dialect::Delta => self.says(
                    env,
                    DeltaDiscoveryRequest {
                        response_nonce: self.nonce.clone(),
                        ..Default::default()
                    },
                ),
                Dialect::Sotw => self.becomes(env),
            }
        }
        heard
    }
}

fn full(name: &ResourceName) -> String {
    let rule = name.dynamic_parameter_constraints.clone().expect("constraints");
    let Some(Type::Constraint(single)) = rule.r#type else {
        panic!("{rule:?}")
    };
    let Some(single_constraint::ConstraintType::Value(env)) = single.constraint_type else {
        panic!("no value")
    };
    format!("{}[{env}]", name.name)
}

fn entry(resource: &Wrapper) -> String {
    // C-23: one of the two, never both.
    let name = match &resource.resource_name {
        Some(name) if resource.name.is_empty() => full(name),
        Some(name) => panic!("{name:?} and {}", resource.name),
        None => resource.name.clone(),
    };
    let ttl = resource.ttl.map(|ttl| format!("/{}s", ttl.seconds)).unwrap_or_default();
    match &resource.resource {
        Some(body) => format!("{name}={}{ttl}", String::from_utf8_lossy(&body.value)),
        None => format!("{name}{ttl}"),
    }
}

fn delta_words(bytes: Bytes) -> Vec<String> {
    let said = DeltaDiscoveryResponse::decode(bytes).expect("a response");
    let removed = said.removed_resources.iter().map(|name| format!("-{name}"));
    let withdrawn = said
        .removed_resource_names
        .iter()
        .map(|name| format!("-{}", full(name)));
    let entries = said.resources.iter().map(entry);
    entries.chain(removed).chain(withdrawn).collect()
}

fn sotw_words(bytes: Bytes) -> Vec<String> {
    let said = DiscoveryResponse::decode(bytes).expect("a response");
    let words = said.resources.iter().map(|any| {
        if any.type_url == WRAPPER_URL {
            entry(&Wrapper::decode(any.value.clone()).expect("a wrapper"))
        } else {
            format!("={}", String::from_utf8_lossy(&any.value))
        }
    });
    words.collect()
}
