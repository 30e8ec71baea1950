// SPDX-License-Identifier: Apache-2.0
//! The upstream machine as a server sees it: transcripts of its requests and of what the view then knows.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod completeness;
mod delta;
mod demand;
mod division;
mod errors;
mod faults;
mod held;
mod multitudes;
mod names;
mod rejections;
mod restored;
mod silence;
mod silencers;
mod sotw;
mod spellings;
mod stream;
mod twins;
mod types;
mod variants;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
pub(crate) use peers::messages::{CDS, EDS, LDS, RDS, body, delta, resource, sotw};
use prost::Message;
use proto::envoy::config::core::v3::{ControlPlane, Node};
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, Resource};
use proto::google::protobuf::{Any, Duration as Seconds};
use protocol::{Arrival, Client, ClientSettings, Cutter, Request};
use xds::{Changes, Cut, Dialect, Known, Name, ServerFeatures, State, Target, TypeUrl, Types, Want};

pub(crate) const VHDS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";
const WRAPPER: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

/// A machine, the view that it fills, and the time.
pub(crate) struct Upstream {
    pub(crate) client: Client,
    pub(crate) cut: Cut,
    pub(crate) now: Instant,
    pub(crate) published: Vec<Changes>,
}

impl Upstream {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self::with_features(dialect, ServerFeatures::default())
    }

    pub(crate) fn with_features(dialect: Dialect, features: ServerFeatures) -> Self {
        Self::with_types(dialect, features, Types::default())
    }

    pub(crate) fn with_types(dialect: Dialect, features: ServerFeatures, types: Types) -> Self {
        let settings = ClientSettings {
            types,
            relay_id: "relay-1".to_owned(),
            does_not_exist: Duration::from_secs(15),
            wildcard_quiet: Duration::from_millis(250),
            features,
        };
        let node = Node {
            id: "n".to_owned(),
            ..Node::default()
        };
        #[expect(clippy::disallowed_methods, reason = "some instant to begin from; tests add to it")]
        let now = Instant::now();
        Self {
            client: Client::new(Arc::new(settings), dialect, node),
            cut: Cut::default(),
            now,
            published: Vec::new(),
        }
    }

    /// A machine on a stream on which these are wanted, with its first requests sent.
    pub(crate) fn streaming(dialect: Dialect, type_url: &str, targets: &[&str]) -> Self {
        let mut upstream = Self::new(dialect);
        targets.iter().for_each(|target| upstream.want(type_url, target));
        upstream.connect();
        upstream.sent();
        upstream
    }

    pub(crate) fn want(&mut self, type_url: &str, target: &str) {
        self.tell(type_url, target, true);
    }

    pub(crate) fn unwant(&mut self, type_url: &str, target: &str) {
        self.tell(type_url, target, false);
    }

    fn tell(&mut self, type_url: &str, target: &str, wanted: bool) {
        let type_url = TypeUrl::new(type_url);
        let name = Name::read(target, &type_url);
        let written = name.written(target).filter(|_| wanted);
        let target = match target {
            "*" => Target::Wildcard,
            _ => Target::Name(name),
        };
        let changes = self.client.handle_want(&Want {
            type_url,
            target,
            wanted,
            written,
        });
        self.publish(changes);
    }

    pub(crate) fn connect(&mut self) {
        self.client.handle_connected(Duration::from_millis(1));
    }

    pub(crate) fn disconnect(&mut self) {
        let changes = self.client.handle_disconnected();
        self.publish(changes);
    }

    pub(crate) fn hears(&mut self, response: DeltaDiscoveryResponse) {
        self.hears_bytes(Bytes::from(response.encode_to_vec()));
    }

    pub(crate) fn hears_bytes(&mut self, response: Bytes) {
        let changes = self
            .client
            .handle_response(cut(response).finish(Dialect::Delta).unwrap(), self.now);
        self.publish(changes);
    }

    pub(crate) fn hears_sotw(&mut self, response: impl Into<Arrival>) {
        let changes = self.client.handle_response(response, self.now);
        self.publish(changes);
    }

    /// The server sends this in its dialect.
    pub(crate) fn hears_puts(&mut self, type_url: &str, version: &str, nonce: &str, puts: &[&str]) {
        self.hears_with(type_url, (version, nonce), puts, []);
    }

    /// The same, and some entries more.
    pub(crate) fn hears_with(
        &mut self,
        type_url: &str,
        (version, nonce): (&str, &str),
        puts: &[&str],
        more: impl IntoIterator<Item = Resource>,
    ) {
        match self.client.dialect() {
            Dialect::Delta => {
                let mut response = delta(type_url, nonce, puts, &[]);
                response.resources.extend(more);
                self.hears(response);
            }
            Dialect::Sotw => {
                let mut response = sotw(type_url, version, nonce, puts);
                response.resources.extend(more.into_iter().map(|entry| wrapped(&entry)));
                self.hears_sotw(response);
            }
        }
    }

    /// Hears a response, and answers it.
    pub(crate) fn accepts(&mut self, response: DeltaDiscoveryResponse) {
        self.hears(response);
        self.sent();
    }

    pub(crate) fn accepts_sotw(&mut self, response: impl Into<Arrival>) {
        self.hears_sotw(response);
        self.sent();
    }

    /// The stream is lost, and the next one begins.
    pub(crate) fn reconnect(&mut self) {
        self.disconnect();
        self.connect();
    }

    /// Lets time pass, with all timers that are due in it.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.client.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let changes = self.client.handle_timeout(self.now);
            self.publish(changes);
        }
        self.now = end;
    }

    /// The same, after this time.
    pub(crate) fn after(&mut self, time: Duration) -> &mut Self {
        self.pass(time);
        self
    }

    fn publish(&mut self, changes: Vec<Changes>) {
        for change in &changes {
            self.cut = self.cut.with(change).0;
        }
        self.published.extend(changes);
    }

    /// The number of changes that were published since the last call.
    pub(crate) fn news(&mut self) -> usize {
        std::mem::take(&mut self.published).len()
    }

    /// The requests that are sent now, one line for each.
    pub(crate) fn sent(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(request) = self.client.poll_request(self.now) {
            lines.push(match &request {
                Request::Sotw(request) => sotw_line(request),
                Request::Delta(request) => delta_line(request),
            });
        }
        lines
    }

    /// Checks what the rejection says in the next request that has one.
    #[track_caller]
    pub(crate) fn refuses(&mut self, words: &str) {
        let text = refusal(self);
        assert!(text.contains(words), "{text}");
    }

    /// The nodes of the requests that are sent now.
    pub(crate) fn nodes(&mut self) -> Vec<Option<Bytes>> {
        let mut nodes = Vec::new();
        while self.client.poll_request(self.now).is_some() {
            nodes.push(self.client.take_node());
        }
        nodes
    }

    /// What is known by name, in one line: `a=1 b:absent`, and `complete` at the end if the wildcard is complete.
    pub(crate) fn named(&self, type_url: &str) -> String {
        let slot = self.cut.slot(&TypeUrl::new(type_url));
        slot.map_or_else(String::new, |slot| state_line(&slot.named))
    }

    pub(crate) fn wildcard(&self, type_url: &str) -> String {
        let slot = self.cut.slot(&TypeUrl::new(type_url));
        let state = slot.and_then(|slot| slot.wildcard.as_ref());
        state.map_or_else(String::new, |state| state_line(state))
    }

    pub(crate) fn answered(&self, type_url: &str) -> bool {
        self.cut.slot(&TypeUrl::new(type_url)).is_some_and(|slot| slot.answered)
    }
}

fn state_line(state: &State) -> String {
    let one = |(name, known): (&Name, &Known)| match known {
        Known::Absent(reason) => format!("{name}:{reason:?}"),
        Known::Held(version) => format!("{name} is held in {version:?}"),
        // The tests' bodies end with their content.
        Known::Present(resource) => {
            format!(
                "{name}={}",
                String::from_utf8_lossy(&resource.body())
                    .split('=')
                    .next_back()
                    .unwrap()
            )
        }
    };
    let complete = state.complete().then(|| "complete".to_owned());
    state
        .entries()
        .iter()
        .map(one)
        .chain(complete)
        .collect::<Vec<_>>()
        .join(" ")
}

fn short(url: &str) -> String {
    format!("{:?}", TypeUrl::new(url))
}

fn delta_line(request: &DeltaDiscoveryRequest) -> String {
    let mut words = vec![short(&request.type_url)];
    words.extend(request.resource_names_subscribe.iter().map(|name| format!("+{name}")));
    words.extend(request.resource_names_unsubscribe.iter().map(|name| format!("-{name}")));
    words.extend(
        request
            .initial_resource_versions
            .iter()
            .map(|(name, version)| format!("{name}@{version}")),
    );
    words.extend(answer(&request.response_nonce, request.error_detail.is_some()));
    words.join(" ")
}

fn sotw_line(request: &DiscoveryRequest) -> String {
    let names = request.resource_names.join(" ");
    let mut words = vec![short(&request.type_url), format!("[{names}]")];
    words.push(format!("v{}", request.version_info));
    words.extend(answer(&request.response_nonce, request.error_detail.is_some()));
    words.join(" ")
}

fn answer(nonce: &str, error: bool) -> Option<String> {
    match (nonce, error) {
        ("", false) => None,
        (nonce, false) => Some(format!("ack {nonce}")),
        (nonce, true) => Some(format!("nack {nonce}")),
    }
}

/// A response that came in one piece.
pub(crate) fn cut(message: impl AsRef<[u8]>) -> Cutter {
    let mut cutter = Cutter::new(message.as_ref().len(), usize::MAX);
    cutter.push(message.as_ref());
    cutter
}

/// The rejection in the next request that has one.
pub(crate) fn refusal(upstream: &mut Upstream) -> String {
    while let Some(request) = upstream.client.poll_request(upstream.now) {
        let error = match request {
            Request::Sotw(request) => request.error_detail,
            Request::Delta(request) => request.error_detail,
        };
        if let Some(error) = error {
            return error.message;
        }
    }
    String::new()
}

pub(crate) fn wrapped(resource: &Resource) -> Any {
    Any {
        type_url: WRAPPER.to_owned(),
        value: Bytes::from(resource.encode_to_vec()),
    }
}

pub(crate) fn seconds(seconds: i64) -> Option<Seconds> {
    Some(Seconds { seconds, nanos: 0 })
}

pub(crate) fn relay() -> Option<ControlPlane> {
    Some(ControlPlane {
        identifier: "distributary/0.1".to_owned(),
    })
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
