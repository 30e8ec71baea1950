// SPDX-License-Identifier: Apache-2.0
//! The stage of a story: servers whose views a test writes, and sessions with seats at these views.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use distributary::cache::{Route, Routes, Scopes, View, ViewSettings};
use distributary::classes::{Classes, Rule, Selector};
use distributary::downstream::Seats;
use distributary::identity::Identity;
use distributary::proto::envoy::config::core::v3::Node as Said;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::protocol::{self, End, Opening, Server, StreamLimits, StreamTimers};
use distributary::xds::{
    Changes, Cut, Dialect, Name, Phase, Reason, Resource, ResourceParts, ServerState, TypeUrl, Types, Unshared, Update,
};

pub(crate) const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
pub(crate) const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// Views that tests write, and the time.
pub(crate) struct Stage {
    pub(crate) scopes: Scopes,
    classes: Classes,
    pub(crate) now: Instant,
}

/// A delta client's stream.
pub(crate) struct Session {
    pub(crate) server: Server,
    cluster: String,
    /// The name of its software.
    pub(crate) agent: &'static str,
    pub(crate) place: Option<Seats>,
    pub(crate) ended: Option<End>,
    task: Arc<Task>,
}

/// The task of a session, and whether it was woken since it last looked.
#[derive(Debug, Default)]
struct Task(AtomicBool);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a session was sent of names since the last look: content, or removals.
pub(crate) type Told = BTreeMap<String, Option<String>>;

impl Stage {
    /// The servers of names of old style, and the authority `a` with its servers.
    pub(crate) fn new(top: &[usize], authority: &[usize], reachability_only: bool) -> Self {
        Self::with(Classes::default(), top, authority, reachability_only)
    }

    fn with(classes: Classes, top: &[usize], authority: &[usize], reachability_only: bool) -> Self {
        let route = |servers: &[usize], reachability_only, shared| Route {
            servers: servers.into(),
            reachability_only,
            shared,
        };
        let authorities = BTreeMap::from([(Arc::from("a"), route(authority, reachability_only, true))]);
        let settings = ViewSettings {
            linger: Duration::from_secs(30),
            names_per_view: 1000,
            pinned_bytes_per_view: 0,
            history_bytes: 16 << 20,
        };
        #[expect(clippy::disallowed_methods, reason = "some instant to begin from")]
        let now = Instant::now();
        let routes = Routes::new(route(top, false, false), authorities);
        Self {
            scopes: Scopes::new(classes.clone(), routes, settings, 0),
            classes,
            now,
        }
    }

    /// The same, with a class for each cluster.
    pub(crate) fn by_cluster(top: &[usize], authority: &[usize]) -> Self {
        let rule = Rule {
            key: vec![Selector::Cluster],
            ..Rule::default()
        };
        Self::with(Classes::new(vec![rule]), top, authority, false)
    }

    pub(crate) fn session(&self, prefix: u32) -> Session {
        self.session_of(prefix, "")
    }

    /// Creates a session of a client in this cluster.
    pub(crate) fn session_of(&self, prefix: u32, cluster: &str) -> Session {
        let settings = protocol::StreamSettings {
            types: Types::default(),
            limits: StreamLimits::default(),
            timers: StreamTimers::default(),
            classes: self.classes.clone(),
            anonymous: false,
            relay_id: "relay".to_owned(),
            access: Arc::default(),
        };
        let opening = Opening {
            dialect: Dialect::Delta,
            service: None,
            nonce_prefix: prefix,
            identity: Identity::default(),
            polls: false,
        };
        Session {
            server: Server::new(Arc::new(settings), opening),
            cluster: cluster.to_owned(),
            agent: "",
            place: None,
            ended: None,
            task: Arc::default(),
        }
    }

    /// The view of a server, if it exists.
    pub(crate) fn view(&self, server: usize) -> Option<Arc<View>> {
        self.scopes.all().into_iter().find(|view| view.server() == server)
    }

    pub(crate) fn stands(&self, server: usize, server_state: ServerState) {
        let views = self.scopes.all();
        let views = views.iter().filter(|view| view.server() == server);
        views.for_each(|view| view.publish_server_state(server_state));
    }

    /// The server sends the content of these names; `None`: the name does not exist.
    pub(crate) fn says(&self, server: usize, type_url: &str, named: &[(&str, Option<&str>)]) {
        let type_url = TypeUrl::new(type_url);
        let updates = named.iter().map(|(name, body)| match body {
            Some(body) => Update::Put(self.resource(&type_url, name, body), None),
            None => Update::Absent(Name::from(*name), Reason::Said),
        });
        let changes = Changes {
            type_url: type_url.clone(),
            wildcard: false,
            updates: updates.collect(),
            complete: None,
            answered: Some(true),
            phase: Phase::Steady,
        };
        self.view(server).expect("somebody is there").publish(&[changes]);
    }

    /// The server sends everything that its wildcard covers.
    pub(crate) fn covers(&self, server: usize, type_url: &str, all: &[(&str, &str)]) {
        let type_url = TypeUrl::new(type_url);
        let view = self.view(server).expect("somebody is there");
        let cut: Arc<Cut> = view.cut();
        let before = cut.slot(&type_url).and_then(|slot| slot.wildcard.clone());
        let gone = before.iter().flat_map(|state| state.entries().keys());
        let gone = gone.filter(|name| all.iter().all(|(kept, _)| *kept != name.as_str()));
        let mut updates: Vec<Update> = gone.cloned().map(Update::Forget).collect();
        let puts = all
            .iter()
            .map(|(name, body)| Update::Put(self.resource(&type_url, name, body), None));
        updates.extend(puts);
        view.publish(&[Changes {
            type_url,
            wildcard: true,
            updates,
            complete: Some(true),
            answered: Some(true),
            phase: Phase::Steady,
        }]);
    }

    fn resource(&self, type_url: &TypeUrl, name: &str, body: &str) -> Arc<Resource> {
        let parts = ResourceParts {
            type_url,
            name: Name::from(name),
            aliases: Vec::new(),
            passed_on: &[],
            body: body.as_bytes(),
            endpoints: None,
            received: self.now,
        };
        Arc::new(Resource::new(parts, 0))
    }
}

impl Session {
    /// Sends a delta request, after acknowledging all responses.
    pub(crate) fn asks(&mut self, stage: &Stage, type_url: &str, subscribe: &[&str]) {
        let request = DeltaDiscoveryRequest {
            node: Some(Said {
                id: "client".to_owned(),
                cluster: self.cluster.clone(),
                user_agent_name: self.agent.to_owned(),
                ..Said::default()
            }),
            type_url: type_url.to_owned(),
            resource_names_subscribe: subscribe.iter().map(|name| (*name).to_owned()).collect(),
            ..DeltaDiscoveryRequest::default()
        };
        self.send(stage, &request);
    }

    fn send(&mut self, stage: &Stage, request: &DeltaDiscoveryRequest) {
        let answers = Unshared { chunk: 1 << 20 };
        self.server
            .handle(request.clone(), &answers, stage.now)
            .expect("the request is in order");
        let node = self.server.node().expect("the request has one").clone();
        let patience = StreamTimers::default().move_after;
        let place = match self.place.take() {
            Some(place) => place,
            None => Seats::enter(&stage.scopes, &node, &Arc::default(), patience).expect("there is room"),
        };
        let place = self.place.insert(place);
        while let Some(want) = self.server.poll_want() {
            place.want(&stage.scopes, &want).expect("there is room");
        }
        place.rest();
    }

    /// Returns what the session is sent now, in the order of the session's shell; each response is acknowledged at once.
    pub(crate) fn hears(&mut self, stage: &Stage) -> Told {
        let answers = Unshared { chunk: 1 << 20 };
        let mut told = Told::new();
        loop {
            let Some(place) = &mut self.place else { return told };
            self.task.0.store(false, Ordering::Relaxed);
            let waker = Waker::from(self.task.clone());
            let server = &mut self.server;
            place.poll_bells(&mut Context::from_waker(&waker), |type_url, dirty| {
                server.handle_dirty(type_url, dirty);
            });
            if place.settle(&stage.scopes, &self.server, stage.now) {
                self.server.handle_moved(stage.now);
            }
            let sight = place.sight();
            self.server.handle_timeout(stage.now);
            let Some(response) = self.server.poll_response(&sight, &answers, stage.now) else {
                self.ended = self.ended.take().or_else(|| self.server.poll_end());
                return told;
            };
            for item in response.batch.items() {
                let body = String::from_utf8_lossy(&item.resource.body()).into_owned();
                told.insert(item.resource.name().to_string(), Some(body));
            }
            for name in response.batch.removed() {
                told.insert(name.to_string(), None);
            }
            let request = DeltaDiscoveryRequest {
                type_url: response.type_url.url().to_owned(),
                response_nonce: response.nonce.to_string(),
                ..DeltaDiscoveryRequest::default()
            };
            self.send(stage, &request);
        }
    }

    /// Looks at what has rung, and sends nothing.
    pub(crate) fn looks(&mut self, stage: &Stage) {
        let Some(place) = &mut self.place else { return };
        let server = &mut self.server;
        place.poll_bells(&mut Context::from_waker(Waker::noop()), |type_url, dirty| {
            server.handle_dirty(type_url, dirty);
        });
        if place.settle(&stage.scopes, &self.server, stage.now) {
            self.server.handle_moved(stage.now);
        }
    }

    /// What it is sent if it was woken, again and again; else nothing.
    pub(crate) fn wakes(&mut self, stage: &Stage) -> Told {
        let mut told = Told::new();
        while self.task.0.load(Ordering::Relaxed) {
            told.extend(self.hears(stage));
        }
        told
    }

    /// The server that it reads for names of old style.
    pub(crate) fn reads(&self) -> Option<usize> {
        self.place.as_ref()?.server(None)
    }
}

/// What was sent, as pairs.
pub(crate) fn told(pairs: &[(&str, Option<&str>)]) -> Told {
    let pairs = pairs.iter();
    pairs
        .map(|(name, body)| ((*name).to_owned(), body.map(str::to_owned)))
        .collect()
}
