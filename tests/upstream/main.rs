// SPDX-License-Identifier: Apache-2.0
//! The upstream part on real sockets: a view, its writer, and a control plane that misbehaves.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod apart;
mod certificates;
mod cold_start;
mod deaf;
mod dialects;
mod endings;
mod identity;
mod overtime;
mod pollers;
mod polling;
mod reaching;
mod refusals;
mod rejections;
mod returning;
mod shown;
mod spiffe;
mod suspects;
mod unserved;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use distributary::cache::{self, Seat, View};
use distributary::classes::Class;
use distributary::config::{Credentials, Endpoint, Grpc, Rejections, Transport};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::protocol::ClientSettings;
use distributary::telemetry::{Metrics, UpstreamMetrics};
use distributary::upstream::{ClassFiles, FindOtherViews, ServerTarget, StreamStatus, UpstreamSettings, Writer};
use distributary::xds::{
    Cut, Known, Name, ServerFeatures, ServerState, State, Target as Wanted, Twins, TypeUrl, Types, Want,
};
use tokio::task::JoinHandle;

pub(crate) use peers::messages::{CDS, EDS, delta, sotw};
pub(crate) use peers::now;
use peers::{agent, folder, plane, secured};
use plane::{Call, Plane, soon};

/// A view with its writer, and one session that subscribes to resources.
pub(crate) struct Relay {
    pub(crate) view: Arc<View>,
    pub(crate) metrics: Arc<UpstreamMetrics>,
    pub(crate) all: Arc<Metrics>,
    seat: Seat,
    target: Arc<ServerTarget>,
    settings: Arc<UpstreamSettings>,
    status: Box<dyn Fn() -> Vec<StreamStatus> + Send + Sync>,
    /// What clients answer when they are asked what they reject.
    /// Where clients sit that reject something.
    pub(crate) rejecting: Mutex<Vec<Seat>>,
    task: JoinHandle<()>,
}

/// What a test changes before the relay starts.
pub(crate) struct Plan {
    pub(crate) server: Grpc,
    /// The credential files of the view's class.
    pub(crate) files: Option<ClassFiles>,
    pub(crate) does_not_exist: Duration,
    pub(crate) upstream_message: usize,
    pub(crate) keepalive: Duration,
    pub(crate) idle: Duration,
    pub(crate) reconnect_max: Duration,
    /// What the writer looks at while it reads, and while it publishes.
    pub(crate) looks: Option<(Twins, FindOtherViews)>,
}

impl Relay {
    /// A relay of this plane that subscribes to these resources.
    pub(crate) fn of(plane: &Plane, wanted: &[(&str, &str)]) -> Self {
        Self::with(plane.address, wanted, |_| ())
    }

    /// A relay that has subscribed to `a` and got it, with its control plane and its stream.
    pub(crate) async fn with_a() -> (Plane, Self, Call) {
        let mut plane = Plane::start().await;
        let relay = Self::of(&plane, &[(EDS, "a")]);
        let mut call = plane.call().await;
        relay.takes(&mut call, "a=1").await;
        (plane, relay, call)
    }

    /// Reads a request in this call, answers it with `put`, and waits until the view has it.
    pub(crate) async fn takes(&self, call: &mut Call, put: &str) {
        if call.path == dialects::DELTA {
            call.delta().await;
            call.send(&delta(EDS, "n1", &[put], &[]));
        } else {
            let (_, version) = put.split_once('=').unwrap();
            call.sotw().await;
            call.send(&sotw(EDS, version, "n1", &[put]));
        }
        self.knows(EDS, put).await;
    }

    /// `count` views of one control plane that share what they know about it.
    pub(crate) fn many(count: usize, address: SocketAddr, wanted: &[(&str, &str)]) -> Vec<Self> {
        let first = Self::with(address, wanted, |_| ());
        let mut all: Vec<Self> = (1..count).map(|_| first.beside(wanted)).collect();
        all.insert(0, first);
        all
    }

    pub(crate) fn with(address: SocketAddr, wanted: &[(&str, &str)], change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan {
            server: Grpc {
                endpoint: Endpoint::Tcp {
                    host: address.ip().to_string(),
                    port: address.port(),
                },
                credentials: Credentials::Insecure,
                token: None,
                transport: Transport::Delta,
                rejections: Rejections::Report,
            },
            files: None,
            does_not_exist: Duration::from_secs(15),
            upstream_message: 64 * 1024 * 1024,
            keepalive: Duration::from_secs(120),
            idle: Duration::from_millis(100),
            reconnect_max: Duration::from_secs(30),
            looks: None,
        };
        change(&mut plan);
        let settings = Arc::new(UpstreamSettings {
            client: Arc::new(ClientSettings {
                types: Types::default(),
                relay_id: "relay-1".to_owned(),
                does_not_exist: plan.does_not_exist,
                wildcard_quiet: Duration::from_millis(250),
                features: ServerFeatures::default(),
            }),
            upstream_message: plan.upstream_message,
            keepalive: plan.keepalive,
            ping: plan.keepalive,
            idle: plan.idle,
            reconnect_max: plan.reconnect_max,
            removal_quiet: Duration::from_millis(100),
            interval: Duration::from_millis(20),
            order_gate: Duration::from_secs(2),
        });
        let all = Metrics::new([]);
        let target = ServerTarget::new("cp", plan.server, all.upstreams.of("cp"));
        Self::begin(all, target, plan.files, settings, plan.looks, wanted)
    }

    /// Another view of the same control plane.
    pub(crate) fn beside(&self, wanted: &[(&str, &str)]) -> Self {
        Self::begin(
            self.all.clone(),
            self.target.clone(),
            None,
            self.settings.clone(),
            None,
            wanted,
        )
    }

    fn begin(
        all: Arc<Metrics>,
        target: Arc<ServerTarget>,
        files: Option<ClassFiles>,
        settings: Arc<UpstreamSettings>,
        looks: Option<(Twins, FindOtherViews)>,
        wanted: &[(&str, &str)],
    ) -> Self {
        let bounds = cache::ViewSettings {
            linger: Duration::from_millis(50),
            names_per_view: 0,
            pinned_bytes_per_view: 0,
            history_bytes: 16 << 20,
        };
        let view = View::new(Class::default(), bounds);
        let seat = view.enter();
        let metrics = all.upstreams.of("cp");
        let node = Node {
            id: "relay".to_owned(),
            ..Node::default()
        };
        let mut writer = Writer::new(view.clone(), &node.into(), &target, files, &settings);
        if let Some((twins, find)) = looks {
            writer = writer.sharing(&twins).seeing(find);
        }
        let status = Box::new(writer.statuses());
        #[expect(clippy::disallowed_methods, reason = "the writer runs beside the test")]
        let task = tokio::spawn(writer.run());
        let relay = Self {
            view,
            metrics,
            all,
            seat,
            target,
            settings,
            status,
            rejecting: Mutex::default(),
            task,
        };
        wanted
            .iter()
            .for_each(|(type_url, target)| relay.want(type_url, target, true));
        relay
    }

    pub(crate) fn want(&self, type_url: &str, target: &str, wanted: bool) {
        let type_url = TypeUrl::new(type_url);
        let name = Name::read(target, &type_url);
        let written = name.written(target);
        let want = Want {
            type_url,
            target: match target {
                "*" => Wanted::Wildcard,
                _ => Wanted::Name(name),
            },
            wanted,
            written,
        };
        self.seat.want(&want).unwrap();
    }

    /// Waits until this is what the view knows of the type: `a=1 b:Said`; a wildcard ends with `complete`.
    pub(crate) async fn knows(&self, type_url: &str, expected: &str) {
        let type_url = TypeUrl::new(type_url);
        let mut last = String::new();
        let found = tokio::time::timeout(plane::PATIENCE, async {
            loop {
                let _ = self.seat.bell().take();
                last = known(&self.view.cut(), &type_url);
                if last == expected {
                    return;
                }
                poll_fn(|cx| self.seat.bell().poll(cx)).await;
            }
        });
        assert!(found.await.is_ok(), "the view knows `{last}`, not `{expected}`");
    }

    /// Waits until the view knows nothing of the type. No bell rings for that.
    pub(crate) async fn forgets(&self, type_url: &str) {
        soon("the end of interest", async {
            while !self.known(type_url).is_empty() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    pub(crate) fn known(&self, type_url: &str) -> String {
        known(&self.view.cut(), &TypeUrl::new(type_url))
    }

    /// Waits until this is the server's state.
    pub(crate) async fn stands(&self, server_state: ServerState) {
        soon("the server's state", async {
            while self.view.cut().server_state() != server_state {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    /// Waits until the main stream's status satisfies the condition, and returns it.
    pub(crate) async fn status(&self, what: &str, right: impl Fn(&StreamStatus) -> bool) -> StreamStatus {
        let wait = async {
            loop {
                let status = (self.status)().swap_remove(0);
                if right(&status) {
                    return status;
                }
                // A status is for people; no bell rings when it changes.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        soon(what, wait).await
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn known(cut: &Cut, type_url: &TypeUrl) -> String {
    let Some(slot) = cut.slot(type_url) else {
        return String::new();
    };
    let wildcard = slot.wildcard.iter().flat_map(|state| words(state));
    let named = words(&slot.named);
    let complete = slot.wildcard.as_ref().is_some_and(|state| state.complete());
    let mut all: Vec<String> = wildcard.chain(named).collect();
    all.extend(complete.then(|| "complete".to_owned()));
    all.join(" ")
}

fn words(state: &State) -> Vec<String> {
    let one = |(name, known): (&Name, &Known)| match known {
        Known::Absent(reason) => format!("{name}:{reason:?}"),
        Known::Held(version) => format!("{name} is held in {version:?}"),
        Known::Present(resource) => {
            let body = resource.body();
            let text = String::from_utf8_lossy(&body).into_owned();
            format!("{name}={}", text.rsplit('=').next().unwrap_or_default())
        }
    };
    state.entries().iter().map(one).collect()
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
