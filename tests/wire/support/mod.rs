// SPDX-License-Identifier: Apache-2.0
//! A relay on real sockets, without control planes: tests publish straight into its view.

pub(crate) mod certificates;
pub(crate) mod polls;
pub(crate) mod process;
pub(crate) mod raw;

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use distributary::cache::{self, Library, Scopes, Seat, View};
use distributary::census::{Census, ClientStatus};
use distributary::classes::{Classes, Node};
use distributary::clock;
use distributary::config::{Config, Flags, SocketFile, system_path};
use distributary::downstream::{
    Admission, AdmissionLimits, ConnectionLimits, ConnectionSettings, ConnectionTimers, Entrance, Handshakes, Shared,
    TokenLog, serve,
};
use distributary::proto::envoy::config::core::v3 as core;
use distributary::protocol;
use distributary::shutdown::{DrainTrigger, after, drain};
use distributary::telemetry::{Health, Metrics, RelayStatus};
use distributary::token::Tokens;
use distributary::wire::{Budget, Listener};
use distributary::xds::{Access, Changes, Name, Phase, Resource, ResourceParts, TypeUrl, Types, Update};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpStream;
use tonic::Code;

use client::{Client, Ended};
pub(crate) use peers::client::{self, Address};
pub(crate) use peers::messages::{CDS, EDS, node_of, of_node, wants, wants_sotw};
pub(crate) use peers::{PATIENCE, agent, now, path, soon, spawn, subscriber as messages};

pub(crate) const ADS: &str = "envoy.service.discovery.v3.AggregatedDiscoveryService";

pub(crate) struct Relay {
    pub(crate) address: Address,
    pub(crate) entrance: Arc<Entrance>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) trigger: DrainTrigger,
    /// Keeps the view of the default class while clients come and go.
    seat: Seat,
}

/// What a test changes before the relay starts.
pub(crate) struct Plan {
    pub(crate) settings: ConnectionSettings,
    pub(crate) protocol: protocol::StreamSettings,
    pub(crate) views: usize,
    /// How many servers there are, by priority: clients leave one that fails.
    pub(crate) servers: usize,
    pub(crate) names_per_view: usize,
    pub(crate) pinned_bytes_per_view: usize,
    pub(crate) history_bytes: usize,
    /// How many bytes of unused answers the library keeps.
    pub(crate) library: u64,
    pub(crate) unix: Option<std::path::PathBuf>,
    pub(crate) tls: Option<Handshakes>,
    pub(crate) tokens: Tokens,
    /// The balancers.
    pub(crate) proxies: Vec<ipnet::IpNet>,
    pub(crate) admission: AdmissionLimits,
}

impl Plan {
    fn usual() -> Self {
        let protocol = protocol::StreamSettings {
            types: Types::default(),
            limits: protocol::StreamLimits::default(),
            // There is no upstream to answer: on a slow machine this timer must not end a test's streams.
            timers: protocol::StreamTimers {
                unanswered: Duration::from_secs(300),
                ..protocol::StreamTimers::default()
            },
            classes: Classes::default(),
            anonymous: false,
            relay_id: "relay".to_owned(),
            access: Arc::default(),
        };
        Self {
            settings: ConnectionSettings {
                protocol: Arc::new(protocol.clone()),
                transport_v2: true,
                limits: ConnectionLimits::default(),
                timers: ConnectionTimers::default(),
            },
            protocol,
            views: 256,
            servers: 1,
            names_per_view: 1_000_000,
            pinned_bytes_per_view: 256 << 20,
            history_bytes: 16 << 20,
            library: 64 << 20,
            unix: None,
            tls: None,
            tokens: Tokens::default(),
            proxies: Vec::new(),
            admission: AdmissionLimits::default(),
        }
    }
}

impl Relay {
    pub(crate) fn start() -> Self {
        Self::with(|_| ())
    }

    /// Starts with what `plan` changes.
    pub(crate) fn with(plan: impl FnOnce(&mut Plan)) -> Self {
        let mut planned = Plan::usual();
        plan(&mut planned);
        let classes = planned.protocol.classes.clone();
        planned.settings.protocol = Arc::new(planned.protocol);
        let of_views = cache::ViewSettings {
            linger: Duration::from_secs(30),
            names_per_view: planned.names_per_view,
            pinned_bytes_per_view: planned.pinned_bytes_per_view,
            history_bytes: planned.history_bytes,
        };
        let health = Arc::new(Health::new());
        health.advance(RelayStatus::Ready);
        let budget = Arc::new(Budget::new(4 * planned.settings.limits.request));
        let scopes = Arc::new(Scopes::new(
            classes.clone(),
            routes(planned.servers),
            of_views,
            planned.views,
        ));
        let own = core::Node {
            id: "relay".to_owned(),
            ..core::Node::default()
        };
        let schemas = json::Schemas::standard();
        let shared = Arc::new(Shared {
            status: ClientStatus::new(Census::new(scopes.clone()), own, schemas.clone()),

            admission: Arc::new(Admission::new(planned.admission, clock::now())),
            budget,
            tokens: planned.tokens,
            token_log: TokenLog::default(),
            returns: Arc::default(),
            scopes,
            library: Arc::new(Library::new(planned.library, 2 << 20)),
            settings: ArcSwap::from_pointee(planned.settings),
            metrics: Metrics::new([]),
            health,
            identifier: "distributary/relay".to_owned(),
            schemas,
        });
        let (listener, address) = listen(planned.unix);
        let (trigger, draining) = drain();
        // The view of clients that say nothing of themselves.
        let plain = Node {
            class: Arc::new(classes.class(&Node::default(), &[])),
            ..Node::default()
        };
        let seat = shared.scopes.enter(&Arc::new(plain), None, 0, &Arc::default()).unwrap();
        // No session is behind it.
        seat.watch(true);
        let entrance = Arc::new(Entrance::new(planned.tls, planned.proxies));
        spawn(serve(listener, entrance.clone(), shared.clone(), draining));
        Self {
            address,
            entrance,
            shared,
            trigger,
            seat,
        }
    }

    /// The listener's address, unless it is a Unix socket.
    pub(crate) fn port(&self) -> SocketAddr {
        match self.address {
            Address::Tcp(address) => address,
            Address::Unix(_) => panic!("no port"),
        }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(&self.address).await
    }

    /// The view of the default class.
    pub(crate) fn view(&self) -> &Arc<View> {
        self.seat.view()
    }

    /// Puts resources, each name with a body that says `content`, into both halves of the view.
    pub(crate) fn put(&self, type_url: &str, names: &[&str], content: &str) {
        let type_url = TypeUrl::new(type_url);
        let updates: Vec<Update> = names
            .iter()
            .map(|name| Update::Put(resource(&type_url, name, content.as_bytes()), None))
            .collect();
        self.publish(&type_url, updates);
    }

    pub(crate) fn publish(&self, type_url: &TypeUrl, updates: Vec<Update>) {
        Self::publish_in(self.view(), type_url, updates);
    }

    /// Publishes in the view of a class.
    pub(crate) fn publish_in(view: &View, type_url: &TypeUrl, updates: Vec<Update>) {
        let half = |wildcard| Changes {
            type_url: type_url.clone(),
            wildcard,
            updates: updates.clone(),
            complete: wildcard.then_some(true),
            answered: Some(true),
            phase: Phase::Steady,
        };
        view.publish(&[half(true), half(false)]);
    }

    /// These are the rules from now on.
    pub(crate) fn allow(&self, access: Arc<Access>) {
        let mut settings = ConnectionSettings::clone(&self.shared.settings.load());
        settings.protocol = Arc::new(protocol::StreamSettings {
            access,
            ..protocol::StreamSettings::clone(&settings.protocol)
        });
        self.shared.settings.store(Arc::new(settings));
        self.shared.scopes.call_sessions();
    }

    /// Asserts that the metrics have this line.
    #[track_caller]
    pub(crate) fn shows(&self, line: &str) {
        let text = self.shared.metrics.encode().unwrap();
        assert!(text.contains(&format!("distributary_{line}\n")), "no {line} in {text}");
    }

    pub(crate) fn begin_drain(&self, within: Duration) {
        self.shared.health.advance(RelayStatus::Draining);
        self.trigger.begin(Duration::ZERO, after(within));
    }

    /// The same, but closes connections one after the other within `spread`.
    pub(crate) fn begin_spread_drain(&self, spread: Duration, within: Duration) {
        self.shared.health.advance(RelayStatus::Draining);
        self.trigger.begin(spread, after(within));
    }

    /// Streams and connections that are open.
    pub(crate) fn open(&self) -> (i64, i64) {
        let metrics = &self.shared.metrics;
        (
            metrics.streams_sotw.get() + metrics.streams_delta.get(),
            metrics.connections.get(),
        )
    }

    /// Waits until this number of streams is open, and no other seat at the view is left.
    pub(crate) async fn settles_at(&self, streams: i64) {
        let settled =
            || self.open().0 == streams && self.view().demand().seats() == usize::try_from(streams).unwrap() + 1;
        until(settled, || {
            format!(
                "{streams} streams wanted: {:?} open, {} seats",
                self.open(),
                self.view().demand().seats()
            )
        })
        .await;
    }
}

fn routes(servers: usize) -> cache::Routes {
    let route = cache::Route {
        servers: (0..servers).collect(),
        reachability_only: servers > 1,
        shared: false,
    };
    cache::Routes::new(route, std::collections::BTreeMap::new())
}

/// Asserts that a call ended with this code and these words.
#[track_caller]
pub(crate) fn says(ended: &Ended, code: Code, words: &str) {
    assert_eq!(ended.code, code as i32, "{ended:?}");
    assert!(ended.message.contains(words), "{ended:?} does not say {words}");
}

/// A configuration with one control plane.
pub(crate) fn config(text: &str) -> Config {
    let text = format!("upstream: {{xds_servers: [{{server_uri: cp:1}}]}}\n{text}");
    Config::parse(&text, "relay.yaml", &Flags::default()).unwrap()
}

/// Clients whose streams and connections have these windows.
pub(crate) fn windows(stream: u32, connection: u32) -> h2::client::Builder {
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(stream)
        .initial_connection_window_size(connection);
    builder
}

/// The connection is closed without any answer.
pub(crate) async fn is_closed(mut socket: impl AsyncRead + Unpin) {
    let read = tokio::time::timeout(PATIENCE, socket.read(&mut [0])).await;
    assert!(matches!(read.unwrap(), Ok(0) | Err(_)), "the connection is open");
}

/// Waits until the relay closes a connection, on a clock that jumps whenever nothing else happens. Returns how long it took on that clock.
pub(crate) async fn closed_after(mut socket: TcpStream) -> Duration {
    tokio::time::pause();
    #[expect(clippy::disallowed_methods, reason = "the time of the paused clock")]
    let began = tokio::time::Instant::now();
    let ended = tokio::time::timeout(PATIENCE * 6, socket.read_to_end(&mut Vec::new())).await;
    let took = began.elapsed();
    tokio::time::resume();
    assert!(ended.is_ok(), "the connection goes on after {took:?}");
    took
}

/// Waits for a condition without a notification, by looking again and again.
pub(crate) async fn until<W: Display>(mut done: impl FnMut() -> bool, why: impl Fn() -> W) {
    let start = now();
    loop {
        let looked = now();
        if done() {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{}", why());
        // What it waits for may need this thread, which a look at a process keeps for long on a busy machine.
        tokio::time::sleep((2 * looked.elapsed()).max(Duration::from_millis(2))).await;
    }
}

fn listen(unix: Option<std::path::PathBuf>) -> (Listener, Address) {
    if let Some(path) = unix {
        return (
            Listener::unix(&path, &SocketFile::default()).unwrap(),
            Address::Unix(system_path(&path).into_owned()),
        );
    }
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.tcp_address().unwrap();
    (listener, Address::Tcp(address))
}

pub(crate) fn resource(type_url: &TypeUrl, name: &str, body: &[u8]) -> Arc<Resource> {
    let parts = ResourceParts {
        type_url,
        name: Name::from(name),
        aliases: Vec::new(),
        passed_on: &[],
        body,
        endpoints: None,
        received: now(),
    };
    Arc::new(Resource::new(parts, 0))
}
