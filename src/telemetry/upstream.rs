// SPDX-License-Identifier: Apache-2.0
//! The metrics of control planes, and of files that are a source of resources: the relay's own, and those of gRPC's xDS clients.
//!
//! Owns their names and what they mean. Decides nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::holds::HoldMetrics;
use super::labels::{Labels, TypeLabels, register};
use super::traces::Traces;
use crate::xds::{TypeUrl, authority_label};

/// A relay is a client of its control planes, but has no channel target of its own.
const GRPC_TARGET: &str = "#relay";

/// The dialects that streams to control planes may speak, and why.
const DIALECTS: [(&str, &str); 6] = [
    ("delta", "preferred"),
    ("delta", "refused"),
    ("delta", "unanswered"),
    ("sotw", "configured"),
    ("sotw", "refused"),
    ("sotw", "unanswered"),
];

/// The metrics of files that are a source of resources.
#[derive(Clone, Debug)]
pub struct FileMetrics {
    /// Errors that were found in them.
    pub errors: Counter,
    /// The changes that are traced, of all sources.
    pub traces: Arc<Traces>,
    /// The metrics of what is held, of all sources.
    pub holds: Arc<HoldMetrics>,
    bad: Gauge,
    loaded: Gauge,
    last_success: Gauge,
}

/// The counters of one control plane.
#[derive(Debug)]
pub struct UpstreamMetrics {
    uri: String,
    /// How many streams work.
    streams: Mutex<usize>,
    /// The same value under the relay's own name and under gRPC's.
    connected: [Gauge; 2],
    /// Responses from it.
    pub responses: Counter,
    /// Responses that the relay rejected, whole or in part.
    pub nacks: Counter,
    /// E-24: requests that told it what clients reject.
    pub rejections_reported: Counter,
    /// F-16: entries and removals that the relay ignores because they are for some clients only.
    pub variants_ignored: Counter,
    /// How often it could not be reached, or ended a stream before its first response.
    pub failures: Counter,
    /// How often it became unreachable after it was reachable.
    pub lost: Counter,
    /// The changes that are traced, of all control planes.
    pub traces: Arc<Traces>,
    /// The metrics of held removals, of all control planes.
    pub holds: Arc<HoldMetrics>,
    last_success: Gauge,
    upstreams: Arc<Families>,
    labels: Arc<TypeLabels>,
}

/// A stream that a control plane answers, or polls. Dropping it ends the count.
#[derive(Debug)]
pub struct CountedStream {
    metrics: Arc<UpstreamMetrics>,
    of_dialect: Option<Gauge>,
}

/// The metrics of all control planes, by the names that the configuration has for them.
#[derive(Debug)]
pub struct Upstreams {
    families: Arc<Families>,
    labels: Arc<TypeLabels>,
    traces: Arc<Traces>,
    holds: Arc<HoldMetrics>,
    servers: Mutex<BTreeMap<String, Arc<UpstreamMetrics>>>,
    /// By the names of control planes and of files.
    stale: Mutex<BTreeMap<String, Gauge>>,
}

#[derive(Debug)]
struct Families {
    connected: Family<Labels<1>, Gauge>,
    last_success: Family<Labels<1>, Gauge>,
    stale: Family<Labels<1>, Gauge>,
    streams: Family<Labels<3>, Gauge>,
    responses: Family<Labels<1>, Counter>,
    nacks: Family<Labels<1>, Counter>,
    rejections_reported: Family<Labels<1>, Counter>,
    variants_ignored: Family<Labels<1>, Counter>,
    failures: Family<Labels<1>, Counter>,
    file_errors: Family<Labels<1>, Counter>,
    bad_files: Family<Labels<1>, Gauge>,
    grpc_connected: Family<Labels<2>, Gauge>,
    grpc_server_failure: Family<Labels<2>, Counter>,
    grpc_updates_valid: Family<Labels<3>, Counter>,
    grpc_updates_invalid: Family<Labels<3>, Counter>,
    grpc_resources: Family<Labels<4>, Gauge>,
}

impl Upstreams {
    /// Adds the metrics with gRPC's names to `registry`, and the relay's own to the one with its prefix.
    pub(super) fn register(
        registry: &mut Registry,
        prefix: &str,
        labels: Arc<TypeLabels>,
        traces: Arc<Traces>,
        holds: Arc<HoldMetrics>,
    ) -> Self {
        Self {
            families: Arc::new(Families::register(registry, prefix)),
            labels,
            traces,
            holds,
            servers: Mutex::default(),
            stale: Mutex::default(),
        }
    }

    /// Returns the metrics of a control plane.
    pub fn of(&self, uri: &str) -> Arc<UpstreamMetrics> {
        let mut servers = self.servers.lock();
        if let Some(found) = servers.get(uri) {
            return Arc::clone(found);
        }
        self.begin_stale(uri);
        let new = Arc::new(self.families.of_server(uri, self));
        servers.insert(uri.to_owned(), Arc::clone(&new));
        new
    }

    /// Returns the metrics of files.
    pub fn of_files(&self, uri: &str) -> FileMetrics {
        self.begin_stale(uri);
        self.families.of_files(uri, self)
    }

    /// Removes the series of a control plane or of files that are not in use any more.
    pub fn forget(&self, uri: &str) {
        self.servers.lock().remove(uri);
        self.stale.lock().remove(uri);
        self.families.forget(uri, &self.labels);
    }

    /// Sets how many types are served without the server's word, by server. Those that are not in `stale` have none.
    pub fn show_stale(&self, stale: &BTreeMap<String, usize>) {
        for (uri, gauge) in &*self.stale.lock() {
            let types = stale.get(uri).copied().unwrap_or_default();
            gauge.set(i64::try_from(types).unwrap_or(i64::MAX));
        }
    }

    /// A78: sets the number of names by authority, state and type, and removes all other labels.
    pub fn show_names(&self, names: impl Iterator<Item = (String, &'static str, TypeUrl, usize)>) {
        let mut counts: BTreeMap<[String; 3], i64> = BTreeMap::new();
        for (authority, state, type_url, count) in names {
            let key = [
                authority_label(&authority).to_owned(),
                state.to_owned(),
                self.labels.grpc(&type_url).to_owned(),
            ];
            let sum = counts.entry(key).or_default();
            *sum = sum.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.families.grpc_resources.clear();
        for ([authority, state, label], count) in counts {
            let labels = [
                ("grpc_target", GRPC_TARGET.to_owned()),
                ("grpc_xds_authority", authority),
                ("grpc_xds_cache_state", state),
                ("grpc_xds_resource_type", label),
            ];
            self.families.grpc_resources.get_or_create(&labels).set(count);
        }
    }

    fn begin_stale(&self, uri: &str) {
        let gauge = self.families.stale.get_or_create(&server(uri)).clone();
        self.stale.lock().insert(uri.to_owned(), gauge);
    }
}

impl Families {
    #[rustfmt::skip]
    fn register(registry: &mut Registry, prefix: &str) -> Self {
        let connected = "Whether the relay has a working stream to the server";
        let grpc_connected = register(registry, "grpc_xds_client_connected", connected, Family::default());
        let grpc_server_failure = register(registry, "grpc_xds_client_server_failure", "Times that a server went from healthy to unreachable", Family::default());
        let grpc_updates_valid = register(registry, "grpc_xds_client_resource_updates_valid", "Valid resources received", Family::default());
        let grpc_updates_invalid = register(registry, "grpc_xds_client_resource_updates_invalid", "Invalid resources received", Family::default());
        let grpc_resources = register(registry, "grpc_xds_client_resources", "Resource names by cache state", Family::default());
        let own = registry.sub_registry_with_prefix(prefix);
        Self {
            connected: register(own, "upstream_connected", connected, Family::default()),
            last_success: register(own, "upstream_last_success_timestamp_seconds", "When the server last answered, in seconds since 1970; 0 before the first answer", Family::default()),
            stale: register(own, "stale_serving", "Types that clients are served without the server's word: it is away, or has not answered yet for what is from a snapshot", Family::default()),
            streams: register(own, "upstream_streams", "Streams that the server answers, by dialect and the reason for it", Family::default()),
            responses: register(own, "upstream_responses", "Responses from the server", Family::default()),
            nacks: register(own, "upstream_nacks", "Responses that the relay rejected", Family::default()),
            rejections_reported: register(own, "rejections_reported", "Requests that told the server what clients reject", Family::default()),
            variants_ignored: register(own, "upstream_variants_ignored", "Entries and removals that the relay ignored because they have dynamic parameter constraints", Family::default()),
            failures: register(own, "upstream_failures", "Failures to reach the server, and streams that it ended before its first response", Family::default()),
            file_errors: register(own, "file_errors", "Errors found in files of resources", Family::default()),
            bad_files: register(own, "bad_files", "Files of resources with errors, as they were read last", Family::default()),
            grpc_connected,
            grpc_server_failure,
            grpc_updates_valid,
            grpc_updates_invalid,
            grpc_resources,
        }
    }

    fn of_files(&self, uri: &str, upstreams: &Upstreams) -> FileMetrics {
        let labels = server(uri);
        FileMetrics {
            errors: self.file_errors.get_or_create(&labels).clone(),
            traces: upstreams.traces.clone(),
            holds: upstreams.holds.clone(),
            bad: self.bad_files.get_or_create(&labels).clone(),
            loaded: self.connected.get_or_create(&labels).clone(),
            last_success: self.last_success.get_or_create(&labels).clone(),
        }
    }

    fn of_server(&self, uri: &str, upstreams: &Upstreams) -> UpstreamMetrics {
        let labels = server(uri);
        let grpc_labels = grpc_server(uri);
        for (dialect, reason) in DIALECTS {
            drop(self.streams(uri, dialect, reason));
        }
        for label in upstreams.labels.all_grpc() {
            drop(self.updates(uri, &label));
        }
        UpstreamMetrics {
            uri: uri.to_owned(),
            streams: Mutex::new(0),
            connected: [
                self.connected.get_or_create(&labels).clone(),
                self.grpc_connected.get_or_create(&grpc_labels).clone(),
            ],
            responses: self.responses.get_or_create(&labels).clone(),
            nacks: self.nacks.get_or_create(&labels).clone(),
            rejections_reported: self.rejections_reported.get_or_create(&labels).clone(),
            variants_ignored: self.variants_ignored.get_or_create(&labels).clone(),
            failures: self.failures.get_or_create(&labels).clone(),
            lost: self.grpc_server_failure.get_or_create(&grpc_labels).clone(),
            last_success: self.last_success.get_or_create(&labels).clone(),
            traces: upstreams.traces.clone(),
            holds: upstreams.holds.clone(),
            upstreams: upstreams.families.clone(),
            labels: upstreams.labels.clone(),
        }
    }

    fn forget(&self, uri: &str, types: &TypeLabels) {
        let labels = server(uri);
        for gauges in [&self.connected, &self.last_success, &self.stale, &self.bad_files] {
            gauges.remove(&labels);
        }
        for counters in [
            &self.responses,
            &self.nacks,
            &self.rejections_reported,
            &self.variants_ignored,
            &self.failures,
            &self.file_errors,
        ] {
            counters.remove(&labels);
        }
        for (dialect, reason) in DIALECTS {
            self.streams.remove(&stream(uri, dialect, reason));
        }
        self.grpc_connected.remove(&grpc_server(uri));
        self.grpc_server_failure.remove(&grpc_server(uri));
        for label in types.all_grpc() {
            for counters in [&self.grpc_updates_valid, &self.grpc_updates_invalid] {
                counters.remove(&grpc_updates(uri, &label));
            }
        }
    }

    fn streams(&self, uri: &str, dialect: &str, reason: &str) -> Gauge {
        self.streams.get_or_create(&stream(uri, dialect, reason)).clone()
    }

    /// Returns the counters of valid and of invalid resources of a type from a server.
    fn updates(&self, uri: &str, label: &str) -> [Counter; 2] {
        let labels = grpc_updates(uri, label);
        [&self.grpc_updates_valid, &self.grpc_updates_invalid].map(|family| family.get_or_create(&labels).clone())
    }
}

impl UpstreamMetrics {
    /// Counts valid, invalid and ignored resources of a type that it has sent.
    pub fn resources(&self, type_url: &TypeUrl, valid: usize, invalid: usize, ignored: usize) {
        self.variants_ignored.inc_by(ignored as u64);
        let counters = self.upstreams.updates(&self.uri, self.labels.grpc(type_url));
        for (counter, count) in counters.iter().zip([valid, invalid]) {
            counter.inc_by(count as u64);
        }
    }

    /// Counts a stream that it answers, by dialect and reason.
    #[must_use]
    pub fn stream_of(self: &Arc<Self>, dialect: &'static str, reason: &'static str) -> CountedStream {
        debug_assert!(DIALECTS.contains(&(dialect, reason)), "no {dialect} for {reason}");
        let streams = self.upstreams.streams(&self.uri, dialect, reason);
        streams.inc();
        self.counted(Some(streams))
    }

    /// Counts polls that it answers.
    #[must_use]
    pub fn polls(self: &Arc<Self>) -> CountedStream {
        self.counted(None)
    }

    fn counted(self: &Arc<Self>, of_dialect: Option<Gauge>) -> CountedStream {
        self.count(|streams| streams.saturating_add(1));
        CountedStream {
            metrics: self.clone(),
            of_dialect,
        }
    }

    /// Notes that it answers now.
    pub fn heard(&self) {
        self.last_success.set(seconds_since_1970());
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        let mut streams = self.streams.lock();
        *streams = change(*streams);
        for gauge in &self.connected {
            gauge.set(i64::from(*streams > 0));
        }
    }
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        self.metrics.count(|streams| streams.saturating_sub(1));
        if let Some(streams) = &self.of_dialect {
            streams.dec();
        }
    }
}

impl FileMetrics {
    /// Notes that the files were read, whether all of them were once good, and how many have errors now.
    pub fn read(&self, whole: bool, bad: usize) {
        self.bad.set(i64::try_from(bad).unwrap_or(i64::MAX));
        self.loaded.set(i64::from(whole));
        if whole {
            self.last_success.set(seconds_since_1970());
        }
    }
}

fn server(uri: &str) -> Labels<1> {
    [("server", uri.to_owned())]
}

fn grpc_server(uri: &str) -> Labels<2> {
    [
        ("grpc_target", GRPC_TARGET.to_owned()),
        ("grpc_xds_server", uri.to_owned()),
    ]
}

fn grpc_updates(uri: &str, label: &str) -> Labels<3> {
    let [target, server] = grpc_server(uri);
    [target, server, ("grpc_xds_resource_type", label.to_owned())]
}

fn stream(uri: &str, dialect: &str, reason: &str) -> Labels<3> {
    let [server] = server(uri);
    [server, ("dialect", dialect.to_owned()), ("reason", reason.to_owned())]
}

#[expect(clippy::disallowed_methods, reason = "a time that is shown")]
pub(super) fn seconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
