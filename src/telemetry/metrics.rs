//! The metrics: every number that the relay shows. Owns their meaning; `families` owns their names. Labels are bounded: a type has its
//! own label only if it is known or configured; all others share `other`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::arrivals::ArrivalMetrics;
use super::configuration::ConfigurationMetrics;
use super::families::Families;
use super::overload::OverloadMetrics;
use crate::xds::TypeUrl;

/// A78: the label for names without an authority.
const OLD_STYLE: &str = "#old";

/// Every number that the relay shows. Counting is an atomic addition: look a type up once, not for every event.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub(super) families: Families,
    configured: Arc<BTreeSet<String>>,
    types: Mutex<BTreeMap<String, Arc<TypeMetrics>>>,
    servers: Mutex<BTreeMap<String, Arc<UpstreamMetrics>>>,
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
    /// F-16: resources sent although the client matches several variants of them.
    pub ambiguous_variants: Counter,
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
    /// Types of views that are served from a snapshot and that the server has not confirmed yet.
    pub stale_serving: Gauge,
    /// The gauges of overload.
    pub overload: OverloadMetrics,
    /// What clients show before they are served.
    pub arrivals: ArrivalMetrics,
    /// The counters of snapshots.
    pub snapshots: SnapshotMetrics,
    /// The metrics of the configuration.
    pub configuration: ConfigurationMetrics,
}

/// The counters of snapshots.
#[derive(Debug)]
pub struct SnapshotMetrics {
    /// Snapshots that were written.
    pub written: Counter,
    /// Snapshots that could not be written.
    pub not_written: Counter,
    /// Snapshots that were loaded into a view.
    pub loaded: Counter,
    /// Snapshots that are damaged or cannot be read.
    pub not_loaded: Counter,
}

/// The counters of one resource type.
#[derive(Debug)]
pub struct TypeMetrics {
    /// Requests from clients.
    pub requests: Counter,
    /// Responses to clients.
    pub responses: Counter,
    /// Bytes of these responses.
    pub response_bytes: Counter,
    /// Responses that clients acknowledged.
    pub acks: Counter,
    /// Responses that clients rejected.
    pub nacks: Counter,
    /// Requests with the nonce of a response that is not the latest.
    pub stale_nonces: Counter,
    /// How often the shared part of a response was encoded. One encoding may serve many clients.
    pub encoded_bodies: Counter,
    /// Clients that came back and did not ask for the type, although they had it.
    pub returned_without: Counter,
    /// Resources held, over all views.
    pub cache_resources: Gauge,
    /// Bytes of their bodies.
    pub cache_bytes: Gauge,
    /// Seconds from the last byte of the oldest upstream message in a response to the client's acknowledgement.
    pub convergence: Histogram,
}

/// The metrics of files that are a source of resources.
#[derive(Clone, Debug, Default)]
pub struct FileMetrics {
    /// Errors that were found in them.
    pub errors: Counter,
    /// Whether all of them were once loaded without an error.
    pub loaded: Gauge,
}

/// The counters of one control plane.
#[derive(Debug)]
pub struct UpstreamMetrics {
    streams: Mutex<usize>,
    /// The same value under the relay's own name and under gRPC's.
    pub(super) connected: [Gauge; 2],
    /// Responses from it.
    pub responses: Counter,
    /// Responses that the relay rejected, whole or in part.
    pub nacks: Counter,
    /// How often it could not be reached, or ended a stream before its first response.
    pub failures: Counter,
    /// How often it became unreachable after it was reachable.
    pub lost: Counter,
    updates: Updates,
}

impl Metrics {
    /// Creates the metrics of one relay. `configured` are full names of types that get their own label, as the known types do.
    #[must_use]
    pub fn new<'a>(configured: impl IntoIterator<Item = &'a str>) -> Arc<Self> {
        let mut registry = Registry::default();
        let families = Families::register(&mut registry);
        Arc::new(Self {
            connections: families.connections.clone(),
            streams_delta: families.streams("delta"),
            streams_sotw: families.streams("sotw"),
            views: families.views.clone(),
            tasks: families.tasks.clone(),
            shared_node_ids: families.shared_node_ids.clone(),
            gates_expired: families.gates_expired.clone(),
            ambiguous_variants: families.ambiguous_variants.clone(),
            health_reports: families.health_reports.clone(),
            unanswered: families.unanswered.clone(),
            refused_classes: families.refused_classes.clone(),
            denied: families.denied.clone(),
            not_accepted: families.not_accepted.clone(),
            stale_serving: families.stale_serving.clone(),
            overload: families.overload.clone(),
            arrivals: families.arrivals.clone(),
            snapshots: families.of_snapshots(),
            configuration: families.configuration(),
            registry,
            families,
            configured: Arc::new(configured.into_iter().map(str::to_owned).collect()),
            types: Mutex::default(),
            servers: Mutex::default(),
        })
    }

    /// Returns the counters of a type.
    #[must_use]
    pub fn of(&self, type_url: &TypeUrl) -> Arc<TypeMetrics> {
        let label = self.label(type_url);
        let mut types = self.types.lock();
        if let Some(found) = types.get(label) {
            return Arc::clone(found);
        }
        let new = Arc::new(self.families.of_type(label));
        types.insert(label.to_owned(), Arc::clone(&new));
        new
    }

    /// Returns the counters of the control plane that the configuration calls `uri`.
    #[must_use]
    pub fn upstream(&self, uri: &str) -> Arc<UpstreamMetrics> {
        let mut servers = self.servers.lock();
        let new = || {
            let (families, configured) = (self.families.clone(), self.configured.clone());
            let updates = Updates {
                families,
                configured,
                uri: uri.to_owned(),
            };
            Arc::new(self.families.of_server(uri, updates))
        };
        Arc::clone(servers.entry(uri.to_owned()).or_insert_with(new))
    }

    /// Returns the metrics of the files that the configuration calls `uri`.
    #[must_use]
    pub fn files(&self, uri: &str) -> FileMetrics {
        self.families.of_files(uri)
    }

    /// Counts a peer that was refused. `limit` is the key of the limit that it exceeded.
    pub fn refused(&self, limit: &'static str) {
        self.families.refused(limit).inc();
    }

    /// B-32: counts names in requests of clients with which something is wrong.
    pub fn name_fault(&self, fault: &'static str, count: u64) {
        self.families.name_faults(fault).inc_by(count);
    }

    /// Sets the bytes held of unfinished requests, and counts the requests for which there was no memory.
    pub fn show_reading(&self, bytes: usize, refused: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.families.reading_bytes.set(bytes);
        self.families.refused("request").inc_by(refused);
    }

    /// Counts a TLS handshake with a client. `result` is one of a few words.
    pub fn handshake(&self, result: &'static str) {
        self.families.handshakes(result).inc();
    }

    /// Returns the number of TLS handshakes with this result.
    #[must_use]
    pub fn handshakes(&self, result: &'static str) -> u64 {
        self.families.handshakes(result).get()
    }

    /// Sets the number and the bytes of the resources held; `held` has one entry for each type of each view.
    pub fn show_cache(&self, held: impl Iterator<Item = (TypeUrl, usize, usize)>) {
        let mut sums: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (type_url, resources, bytes) in held {
            drop(self.of(&type_url));
            let sum = sums.entry(self.label(&type_url).to_owned()).or_default();
            *sum = (sum.0.saturating_add(resources), sum.1.saturating_add(bytes));
        }
        let shown = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        for (label, of_type) in &*self.types.lock() {
            let (resources, bytes) = sums.get(label).copied().unwrap_or_default();
            of_type.cache_resources.set(shown(resources));
            of_type.cache_bytes.set(shown(bytes));
        }
    }

    /// Sets the number of names by authority, state and type.
    pub fn show_names(&self, names: impl Iterator<Item = (String, &'static str, TypeUrl, usize)>) {
        let mut counts: BTreeMap<[String; 3], i64> = BTreeMap::new();
        for (authority, state, type_url, count) in names {
            let named = Some(authority).filter(|authority| !authority.is_empty());
            let authority = named.unwrap_or_else(|| OLD_STYLE.to_owned());
            let key = [authority, state.to_owned(), self.label(&type_url).to_owned()];
            let sum = counts.entry(key).or_default();
            *sum = sum.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.families.names(counts.into_iter());
    }

    fn label<'a>(&'a self, type_url: &TypeUrl) -> &'a str {
        label(&self.configured, type_url)
    }

    /// Returns all metrics in the text format.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry).map(|()| text)
    }
}

/// The counters of what one control plane sends, by type.
#[derive(Debug)]
pub(super) struct Updates {
    pub(super) families: Families,
    configured: Arc<BTreeSet<String>>,
    uri: String,
}

/// Returns the label of a type, out of a bounded set.
fn label<'a>(configured: &'a BTreeSet<String>, type_url: &TypeUrl) -> &'a str {
    match (type_url.short(), configured.get(type_url.full_name())) {
        (Some(short), _) => short,
        (None, Some(configured)) => configured,
        (None, None) => "other",
    }
}

impl UpstreamMetrics {
    /// Counts valid and invalid resources of a type that it has sent.
    pub fn resources(&self, type_url: &TypeUrl, valid: usize, invalid: usize) {
        let updates = &self.updates;
        let counters = updates
            .families
            .updates(&updates.uri, label(&updates.configured, type_url));
        for (counter, count) in counters.iter().zip([valid, invalid]) {
            counter.inc_by(count as u64);
        }
    }

    /// Counts a stream that it answers, by dialect and reason. The caller decrements the returned gauge when the stream ends.
    #[must_use]
    pub fn stream_of(&self, dialect: &'static str, reason: &'static str) -> Gauge {
        let updates = &self.updates;
        let streams = updates.families.upstream_streams(&updates.uri, dialect, reason);
        streams.inc();
        streams
    }

    pub(super) fn new(connected: [Gauge; 2], counters: [Counter; 4], updates: Updates) -> Self {
        let [responses, nacks, failures, lost] = counters;
        Self {
            streams: Mutex::new(0),
            connected,
            responses,
            nacks,
            failures,
            lost,
            updates,
        }
    }

    /// Counts a stream that works.
    pub fn stream_opened(&self) {
        self.count(|streams| streams.saturating_add(1));
    }

    /// Counts the end of a stream that worked.
    pub fn stream_closed(&self) {
        self.count(|streams| streams.saturating_sub(1));
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut streams = self.streams.lock();
        *streams = change(*streams);
        for gauge in &self.connected {
            gauge.set(i64::from(*streams > 0));
        }
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
            .filter(|line| line.starts_with("distributary_acks_total{"))
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

    #[test]
    fn a_server_is_connected_while_any_stream_works() {
        let metrics = Metrics::new([]);
        let server = metrics.upstream("cp:1");
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
        server.stream_opened();
        metrics.upstream("cp:1").stream_opened();
        shown(1);
        server.stream_closed();
        shown(1);
        server.stream_closed();
        shown(0);
    }
}
