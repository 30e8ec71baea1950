// SPDX-License-Identifier: Apache-2.0
//! The metrics: every number that the relay shows.
//!
//! Owns the metrics that belong to no part below, and how all of them are shown. Knows nothing of those who read them.

use std::collections::BTreeMap;
use std::sync::Arc;

use prometheus_client::encoding::{prometheus_protobuf, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::arrivals::ArrivalMetrics;
use super::certificates::CertificateMetrics;
use super::configuration::ConfigurationMetrics;
use super::exposition::{self, Exposition};
use super::faults::Faults;
use super::handshakes::HandshakeCounters;
use super::holds::HoldMetrics;
use super::labels::{Labels, TypeLabels, WordCounters, register};
use super::model::MetricFamily;
use super::overload::OverloadMetrics;
use super::process::{ProcessMetrics, register_build};
use super::snapshots::SnapshotMetrics;
use super::traces::Traces;
use super::turns::TurnMetrics;
use super::types::{AllTypes, TypeMetrics};
use super::upstream::Upstreams;
use crate::xds::TypeUrl;
const PREFIX: &str = "distributary";

/// The keys of the limits that peers may exceed. `request` stands for what the relay holds of unfinished requests.
const LIMITS: &str = "connections connections_per_identity streams streams_per_identity new_streams_per_second subscriptions \
    memory request node_bytes name_bytes names_per_stream types_per_stream names_per_view views";

/// Every number that the relay shows. Counting is an atomic addition: look a type up once, not for every event.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    process: Option<ProcessMetrics>,
    labels: Arc<TypeLabels>,
    types: AllTypes,
    /// What servers and files are counted by.
    pub upstreams: Upstreams,
    /// What became of handshakes with clients.
    pub handshakes: HandshakeCounters,
    refused: WordCounters,
    name_faults: WordCounters,
    /// The certificates and lists of revoked ones.
    pub certificates: CertificateMetrics,
    reading_bytes: Gauge,
    /// Client connections that are open.
    pub connections: Gauge,
    /// Open client streams in the delta dialect.
    pub streams_delta: Gauge,
    /// Open client streams in the state-of-the-world dialect.
    pub streams_sotw: Gauge,
    /// Views that exist.
    pub views: Gauge,
    /// Tasks of the runtime.
    pub tasks: Gauge,
    /// K-28: views that began with the node id of another view of the same server.
    pub shared_node_ids: Counter,
    /// How often a listener or route was sent because its wait for clusters and endpoints had timed out.
    pub gates_expired: Counter,
    /// Health reports of clients, which the relay does not pass on.
    pub health_reports: Counter,
    /// How often a client's wait for its control plane timed out.
    pub unanswered: Counter,
    /// Streams and polls of clients without credentials, because their node has a value that cannot be part of a path.
    pub refused_classes: Counter,
    /// Streams, polls and calls that the rules refuse.
    pub denied: Counter,
    /// Connections that the relay could not accept.
    pub not_accepted: Counter,
    /// Streams that ended because their client did not read.
    pub send_stalls: Counter,
    /// Clients that hang now, or were cut off for it within ten minutes.
    pub hanging_clients: Gauge,
    /// Streams that ended because their client did not answer a ping.
    pub unanswered_pings: Counter,
    /// The changes that are traced.
    pub traces: Arc<Traces>,
    /// The metrics of held removals.
    pub holds: Arc<HoldMetrics>,
    /// The metrics of overload.
    pub overload: OverloadMetrics,
    /// How long the turns of tasks take.
    pub turns: TurnMetrics,
    /// What clients show before they are served.
    pub arrivals: ArrivalMetrics,
    /// What is wrong with the relay's own files.
    pub faults: Arc<Faults>,
    /// The counters of snapshots.
    pub snapshots: SnapshotMetrics,
    /// The metrics of the configuration.
    pub configuration: ConfigurationMetrics,
}

impl Metrics {
    /// Creates the metrics of one relay. `configured` are full names of types that get their own label, as the known types do.
    #[must_use]
    #[rustfmt::skip]
    pub fn new<'a>(configured: impl IntoIterator<Item = &'a str>) -> Arc<Self> {
        let labels = Arc::new(TypeLabels::new(configured));
        let mut registry = Registry::default();
        let process = ProcessMetrics::register(&mut registry);
        let handshakes = HandshakeCounters::register(&mut registry, PREFIX);
        let traces = Traces::register(registry.sub_registry_with_prefix(PREFIX));
        let holds = HoldMetrics::register(registry.sub_registry_with_prefix(PREFIX), labels.clone());
        let upstreams = Upstreams::register(&mut registry, PREFIX, labels.clone(), traces.clone(), holds.clone());
        let own = registry.sub_registry_with_prefix(PREFIX);
        register_build(own);
        let types = AllTypes::register(own);
        for label in labels.all_own() {
            drop(types.of(&label));
        }
        let streams: Family<Labels<1>, Gauge> = register(own, "streams", "Open client streams", Family::default());
        let streams = |dialect: &str| streams.get_or_create(&[("dialect", dialect.to_owned())]).clone();
        Arc::new(Self {
            streams_delta: streams("delta"),
            streams_sotw: streams("sotw"),
            connections: register(own, "connections", "Open client connections", Gauge::default()),
            views: register(own, "views", "Views", Gauge::default()),
            tasks: register(own, "tasks", "Tasks of the runtime", Gauge::default()),
            shared_node_ids: register(own, "shared_node_ids", "Views that began with the node id of another view of the same server", Counter::default()),
            health_reports: register(own, "health_reports", "Health reports of clients (istio.v1.HealthInformation), which the relay does not pass on", Counter::default()),
            gates_expired: register(own, "gates_expired", "Listeners and routes sent without the clusters or endpoints they waited for", Counter::default()),
            unanswered: register(own, "unanswered", "Client requests that a control plane left unanswered", Counter::default()),
            denied: register(own, "denied", "Streams, polls and calls that the rules refuse", Counter::default()),
            refused: WordCounters::new("limit", LIMITS).register(own, "refused", "Peers that exceeded a limit"),
            refused_classes: register(own, "refused_classes", "Clients whose class has a value that cannot be part of a path in `credentials`", Counter::default()),
            not_accepted: register(own, "accept_failures", "Connections that the relay could not accept, for example because file descriptors ran out", Counter::default()),
            hanging_clients: register(own, "hanging_clients", "Clients that have not answered a response for 10 s, or were cut off in the last ten minutes because they hung", Gauge::default()),
            send_stalls: register(own, "send_stalls", "Streams that ended because their client did not read for 60s", Counter::default()),
            unanswered_pings: register(own, "unanswered_pings", "Streams that ended because their client did not answer a ping", Counter::default()),
            name_faults: WordCounters::new("fault", "empty malformed long denied").register(own, "name_faults", "Names in requests of clients that are empty, malformed, of more than 4096 bytes or denied by the rules"),
            reading_bytes: register(own, "reading_bytes", "Bytes held of unfinished requests", Gauge::default()),
            overload: OverloadMetrics::register(own),
            turns: TurnMetrics::register(own),
            arrivals: ArrivalMetrics::register(own),
            faults: Arc::new(Faults::register(own)),
            certificates: CertificateMetrics::register(own),
            configuration: ConfigurationMetrics::register(own),
            snapshots: SnapshotMetrics::register(own),
            registry,
            process,
            labels,
            traces,
            holds,
            types,
            upstreams,
            handshakes,
        })
    }

    /// Returns the counters of a type.
    pub fn of(&self, type_url: &TypeUrl) -> Arc<TypeMetrics> {
        self.types.of(self.labels.own(type_url))
    }

    /// Counts a peer that was refused. `limit` is the key of the limit that it exceeded.
    pub fn refused(&self, limit: &'static str) {
        self.refused.of(limit).inc();
    }

    /// B-32: counts names in requests of clients with which something is wrong.
    pub fn name_fault(&self, fault: &'static str, count: u64) {
        self.name_faults.of(fault).inc_by(count);
    }

    /// Sets the bytes held of unfinished requests, and counts the requests for which there was no memory.
    pub fn show_reading(&self, bytes: usize, refused: u64) {
        self.reading_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.refused.of("request").inc_by(refused);
    }

    /// Sets the number and the bytes of the resources held; `held` has one entry for each type of each view.
    pub fn show_cache(&self, held: impl Iterator<Item = (TypeUrl, usize, usize)>) {
        let mut sums: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (type_url, resources, bytes) in held {
            let sum = sums.entry(self.labels.own(&type_url).to_owned()).or_default();
            *sum = (sum.0.saturating_add(resources), sum.1.saturating_add(bytes));
        }
        self.types.show_cache(&sums);
    }

    /// Sets how many client streams reject something, lag and wait, by type.
    pub fn show_clients(&self, counts: impl Iterator<Item = (TypeUrl, [usize; 4])>) {
        let mut sums: BTreeMap<String, [usize; 4]> = BTreeMap::new();
        for (type_url, counts) in counts {
            let sum = sums.entry(self.labels.own(&type_url).to_owned()).or_default();
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        self.types.show_clients(&sums);
    }

    /// Returns all metrics as values.
    pub fn families(&self) -> Vec<MetricFamily> {
        self.read_process();
        // Only a text can fail.
        prometheus_protobuf::encode(&self.registry).unwrap_or_default()
    }

    /// Returns all metrics in Prometheus's own text form.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        self.encode_as(Exposition::Prometheus)
    }

    /// Returns all metrics in a text form.
    pub fn encode_as(&self, form: Exposition) -> Result<String, std::fmt::Error> {
        self.read_process();
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(match form {
            Exposition::Prometheus => exposition::prometheus(&text),
            Exposition::OpenMetrics => text,
        })
    }

    fn read_process(&self) {
        self.process.iter().for_each(ProcessMetrics::read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded() {
        let metrics = Metrics::new(["acme.Known"]);
        metrics
            .of(&TypeUrl::new("type.googleapis.com/envoy.config.cluster.v3.Cluster"))
            .acks
            .inc();
        metrics.of(&TypeUrl::new("type.googleapis.com/acme.Known")).acks.inc();
        for invented in 0..1000 {
            metrics
                .of(&TypeUrl::new(&format!("type.googleapis.com/acme.Invented{invented}")))
                .acks
                .inc();
        }
        let text = metrics.encode().unwrap();
        let mut lines: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("distributary_acks_total{") && !line.ends_with(" 0"))
            .collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "distributary_acks_total{type=\"acme.Known\"} 1",
                "distributary_acks_total{type=\"cds\"} 1",
                "distributary_acks_total{type=\"other\"} 1000",
            ]
        );
    }

    /// A78: gRPC's metrics have full names of types, and no more of them than the relay's own.
    #[test]
    fn types_have_their_full_names_for_grpc() {
        let metrics = Metrics::new(["acme.Known", "envoy.config.cluster.v3.Cluster"]);
        let server = metrics.upstreams.of("cp:1");
        for name in [
            "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            "acme.Known",
            "other.example/envoy.config.cluster.v3.Cluster",
            "acme.Invented",
        ] {
            server.resources(&TypeUrl::new(name), 1, 2, 0);
        }
        let text = metrics.encode().unwrap();
        let labels = "grpc_target=\"#relay\",grpc_xds_server=\"cp:1\",grpc_xds_resource_type";
        for (name, count) in [
            ("envoy.config.cluster.v3.Cluster", 1),
            ("envoy.config.listener.v3.Listener", 0),
            ("acme.Known", 1),
            ("other", 2),
        ] {
            for (result, count) in [("valid", count), ("invalid", 2 * count)] {
                let line =
                    format!("\ngrpc_xds_client_resource_updates_{result}_total{{{labels}=\"{name}\"}} {count}\n");
                assert!(text.contains(&line), "{line} is missing in\n{text}");
            }
        }
        assert!(!text.contains("acme.Invented"));
        let own = text.lines().filter(|line| line.starts_with("distributary_acks_total{"));
        let known = TypeUrl::short_names().count();
        assert_eq!(
            own.count(),
            known + 2,
            "a known type has one label, even if it is configured"
        );
    }

    /// A server that is gone has no series, and one that comes back begins anew.
    #[test]
    fn servers_are_forgotten() {
        let metrics = Metrics::new([]);
        let of = |uri: &str| metrics.encode().unwrap().matches(&format!("=\"{uri}\"")).count();
        let stays = metrics.upstreams.of("stays:1");
        drop((metrics.upstreams.of("gone:1"), metrics.upstreams.of_files("files")));
        let series = of("stays:1");
        assert!(series > 10 && of("gone:1") == series && of("files") > 0);
        metrics.upstreams.forget("gone:1");
        metrics.upstreams.forget("files");
        assert_eq!((of("stays:1"), of("gone:1"), of("files")), (series, 0, 0));
        stays.failures.inc();
        assert_eq!(
            (metrics.upstreams.of("gone:1").failures.get(), of("gone:1")),
            (0, series)
        );
    }

    #[test]
    fn a_server_is_connected_while_any_stream_works() {
        let metrics = Metrics::new([]);
        let server = metrics.upstreams.of("cp:1");
        let shown = |value: u8| {
            let text = metrics.encode().unwrap();
            for line in [
                format!("distributary_upstream_connected{{server=\"cp:1\"}} {value}"),
                format!("grpc_xds_client_connected{{grpc_target=\"#relay\",grpc_xds_server=\"cp:1\"}} {value}"),
            ] {
                assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
            }
        };
        shown(0);
        let one = server.stream_of("delta", "preferred");
        let other = metrics.upstreams.of("cp:1").polls();
        shown(1);
        drop(one);
        shown(1);
        drop(other);
        shown(0);
    }
}
