//! The names, labels and buckets of the metrics, as `/metrics` shows them. Does not own the counters.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use super::arrivals::ArrivalMetrics;
use super::certificates::CertificateMetrics;
use super::configuration::ConfigurationMetrics;
use super::metrics::{FileMetrics, SnapshotMetrics, TypeMetrics, Updates, UpstreamMetrics};
use super::overload::OverloadMetrics;

const PREFIX: &str = "distributary";

/// A relay is a client of its control planes, but has no channel target of its own.
const GRPC_TARGET: &str = "#relay";

const CONVERGENCE_SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

type Labels<const N: usize> = [(&'static str, String); N];

/// Every metric that is registered, without the values of its labels.
#[derive(Clone, Debug)]
pub(super) struct Families {
    pub(super) connections: Gauge,
    pub(super) views: Gauge,
    pub(super) tasks: Gauge,
    pub(super) shared_node_ids: Counter,
    pub(super) gates_expired: Counter,
    pub(super) ambiguous_variants: Counter,
    pub(super) health_reports: Counter,
    pub(super) unanswered: Counter,
    pub(super) refused_classes: Counter,
    pub(super) denied: Counter,
    pub(super) not_accepted: Counter,
    pub(super) reading_bytes: Gauge,
    pub(super) stale_serving: Gauge,
    pub(super) overload: OverloadMetrics,
    pub(super) arrivals: ArrivalMetrics,
    certificate_reloads: Family<Labels<1>, Counter>,
    certificate_expiry: Family<Labels<1>, Gauge>,
    configuration_current: Gauge,
    configuration_waiting: Gauge,
    reloads: Family<Labels<1>, Counter>,
    snapshots: Family<Labels<1>, Counter>,
    streams: Family<Labels<1>, Gauge>,
    refused: Family<Labels<1>, Counter>,
    name_faults: Family<Labels<1>, Counter>,
    handshakes: Family<Labels<1>, Counter>,
    requests: Family<Labels<1>, Counter>,
    responses: Family<Labels<1>, Counter>,
    response_bytes: Family<Labels<1>, Counter>,
    acks: Family<Labels<1>, Counter>,
    nacks: Family<Labels<1>, Counter>,
    stale_nonces: Family<Labels<1>, Counter>,
    returned_without: Family<Labels<1>, Counter>,
    encoded_bodies: Family<Labels<1>, Counter>,
    cache_resources: Family<Labels<1>, Gauge>,
    cache_bytes: Family<Labels<1>, Gauge>,
    convergence: Family<Labels<1>, Histogram, fn() -> Histogram>,
    upstream_connected: Family<Labels<1>, Gauge>,
    upstream_streams: Family<Labels<3>, Gauge>,
    upstream_responses: Family<Labels<1>, Counter>,
    upstream_nacks: Family<Labels<1>, Counter>,
    upstream_failures: Family<Labels<1>, Counter>,
    grpc_connected: Family<Labels<2>, Gauge>,
    file_errors: Family<Labels<1>, Counter>,
    grpc_server_failure: Family<Labels<2>, Counter>,
    grpc_updates_valid: Family<Labels<3>, Counter>,
    grpc_updates_invalid: Family<Labels<3>, Counter>,
    grpc_resources: Family<Labels<4>, Gauge>,
}

impl Families {
    /// The names. A counter gets `_total` when it is shown.
    #[rustfmt::skip]
    pub(super) fn register(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(CONVERGENCE_SECONDS);
        let connected = "Whether the relay has a working stream to the server";
        let grpc_connected = register(registry, "grpc_xds_client_connected", connected, Family::default());
        let grpc_server_failure = register(registry, "grpc_xds_client_server_failure", "Times that a server went from healthy to unreachable", Family::default());
        let grpc_updates_valid = register(registry, "grpc_xds_client_resource_updates_valid", "Valid resources received", Family::default());
        let grpc_updates_invalid = register(registry, "grpc_xds_client_resource_updates_invalid", "Invalid resources received", Family::default());
        let grpc_resources = register(registry, "grpc_xds_client_resources", "Resource names by cache state", Family::default());
        let own = registry.sub_registry_with_prefix(PREFIX);
        let build: Family<Labels<1>, Gauge> = register(own, "build_info", "The program's version", Family::default());
        build.get_or_create(&[("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
        Self {
            connections: register(own, "connections", "Open client connections", Gauge::default()),
            streams: register(own, "streams", "Open client streams", Family::default()),
            views: register(own, "views", "Views", Gauge::default()),
            tasks: register(own, "tasks", "Tasks of the runtime", Gauge::default()),
            shared_node_ids: register(own, "shared_node_ids", "Views that began with the node id of another view of the same server", Counter::default()),
            requests: register(own, "requests", "Requests from clients", Family::default()),
            responses: register(own, "responses", "Responses to clients", Family::default()),
            response_bytes: register(own, "response_bytes", "Bytes of responses to clients", Family::default()),
            acks: register(own, "acks", "Responses that clients acknowledged", Family::default()),
            nacks: register(own, "nacks", "Responses that clients rejected", Family::default()),
            stale_nonces: register(own, "stale_nonces", "Requests with the nonce of an old response", Family::default()),
            returned_without: register(own, "returned_without", "Clients that came back and did not ask for the type that they had", Family::default()),
            encoded_bodies: register(own, "encoded_bodies", "Response bodies encoded", Family::default()),
            cache_resources: register(own, "cache_resources", "Resources held", Family::default()),
            cache_bytes: register(own, "cache_bytes", "Bytes of the resources held", Family::default()),
            convergence: register(own, "convergence_seconds", "Seconds from the arrival of a change to a client's acknowledgement", Family::new_with_constructor(histogram)),
            ambiguous_variants: register(own, "ambiguous_variants", "Resources sent although the client matches several variants of them", Counter::default()),
            health_reports: register(own, "health_reports", "Health reports of clients (istio.v1.HealthInformation), which the relay does not pass on", Counter::default()),
            gates_expired: register(own, "gates_expired", "Listeners and routes sent without the clusters or endpoints they waited for", Counter::default()),
            unanswered: register(own, "unanswered", "Client requests that a control plane left unanswered", Counter::default()),
            denied: register(own, "denied", "Streams, polls and calls that the rules refuse", Counter::default()),
            refused_classes: register(own, "refused_classes", "Clients whose class has a value that cannot be part of a path in `credentials`", Counter::default()),
            not_accepted: register(own, "accept_failures", "Connections that the relay could not accept, for example because file descriptors ran out", Counter::default()),
            reading_bytes: register(own, "reading_bytes", "Bytes held of unfinished requests", Gauge::default()),
            stale_serving: register(own, "stale_serving", "Types of views that are served from a snapshot and that the server has not confirmed yet", Gauge::default()),
            overload: OverloadMetrics {
                subscriptions: register(own, "subscriptions", "Names that client streams subscribe to", Gauge::default()),
                pressures: register(own, "overload_pressure", "Percent of a limited resource in use", Family::default()),
                actions: register(own, "overload_active", "Whether the relay does this against overload", Family::default()),
            },
            arrivals: ArrivalMetrics {
                proxy_headers: register(own, "proxy_headers", "Connections that began with a PROXY header, and those with a fault in it", Family::default()),
                tokens: register(own, "tokens", "Calls with a token, and those that were refused for it", Family::default()),
                key_reloads: register(own, "jwks_reloads", "Times that the keys of an issuer had changed, and whether they could be used", Family::default()),
            },
            certificate_expiry: register(own, "certificate_expiry_timestamp_seconds", "When the first certificate in a file ends, in seconds since 1970", Family::default()),
            certificate_reloads: register(own, "certificate_reloads", "Times that the TLS files of a listener had changed, and whether they could be used", Family::default()),
            configuration_current: register(own, "configuration_current", "Whether the configuration as last read is good and in effect as a whole", Gauge::default()),
            configuration_waiting: register(own, "configuration_waiting", "Changed keys of the configuration that wait for a restart", Gauge::default()),
            reloads: register(own, "reloads", "Readings of the configuration while the relay runs", Family::default()),
            snapshots: register(own, "snapshots", "Snapshots written and loaded, and those that failed", Family::default()),
            refused: register(own, "refused", "Peers that exceeded a limit", Family::default()),
            name_faults: register(own, "name_faults", "Names in requests of clients that are empty, malformed, over limits.name_bytes or denied by the rules", Family::default()),
            handshakes: register(own, "tls_handshakes", "TLS handshakes with clients, and those that failed", Family::default()),
            upstream_connected: register(own, "upstream_connected", connected, Family::default()),
            upstream_streams: register(own, "upstream_streams", "Streams that the server answers, by dialect and the reason for it", Family::default()),
            upstream_responses: register(own, "upstream_responses", "Responses from the server", Family::default()),
            upstream_nacks: register(own, "upstream_nacks", "Responses that the relay rejected", Family::default()),
            upstream_failures: register(own, "upstream_failures", "Failures to reach the server, and streams that it ended before its first response", Family::default()),
            grpc_connected,
            grpc_server_failure,
            grpc_updates_valid,
            grpc_updates_invalid,
            grpc_resources,
            file_errors: register(own, "file_errors", "Errors found in files of resources", Family::default()),
        }
    }

    pub(super) fn of_files(&self, uri: &str) -> FileMetrics {
        let labels = [("server", uri.to_owned())];
        FileMetrics {
            errors: self.file_errors.get_or_create(&labels).clone(),
            loaded: self.upstream_connected.get_or_create(&labels).clone(),
        }
    }

    pub(super) fn upstream_streams(&self, uri: &str, dialect: &str, reason: &str) -> Gauge {
        let labels = [
            ("server", uri.to_owned()),
            ("dialect", dialect.to_owned()),
            ("reason", reason.to_owned()),
        ];
        self.upstream_streams.get_or_create(&labels).clone()
    }

    pub(super) fn streams(&self, dialect: &str) -> Gauge {
        self.streams.get_or_create(&[("dialect", dialect.to_owned())]).clone()
    }

    pub(super) fn refused(&self, limit: &str) -> Counter {
        self.refused.get_or_create(&[("limit", limit.to_owned())]).clone()
    }

    pub(super) fn name_faults(&self, fault: &str) -> Counter {
        self.name_faults.get_or_create(&[("fault", fault.to_owned())]).clone()
    }

    pub(super) fn handshakes(&self, result: &str) -> Counter {
        self.handshakes.get_or_create(&[("result", result.to_owned())]).clone()
    }

    pub(super) fn certificates(&self) -> CertificateMetrics {
        let reloads = |result: &str| {
            let labels = [("result", result.to_owned())];
            self.certificate_reloads.get_or_create(&labels).clone()
        };
        CertificateMetrics {
            read: reloads("used"),
            not_read: reloads("bad"),
            expiry: self.certificate_expiry.clone(),
        }
    }

    pub(super) fn configuration(&self) -> ConfigurationMetrics {
        let reloads = |result: &str| self.reloads.get_or_create(&[("result", result.to_owned())]).clone();
        ConfigurationMetrics {
            current: self.configuration_current.clone(),
            waiting: self.configuration_waiting.clone(),
            changed: reloads("changed"),
            unchanged: reloads("unchanged"),
            bad: reloads("bad"),
        }
    }

    pub(super) fn of_snapshots(&self) -> SnapshotMetrics {
        let snapshots = |result: &str| self.snapshots.get_or_create(&[("result", result.to_owned())]).clone();
        SnapshotMetrics {
            written: snapshots("written"),
            not_written: snapshots("not_written"),
            loaded: snapshots("loaded"),
            not_loaded: snapshots("not_loaded"),
        }
    }

    pub(super) fn of_type(&self, label: &str) -> TypeMetrics {
        let labels = [("type", label.to_owned())];
        TypeMetrics {
            requests: self.requests.get_or_create(&labels).clone(),
            responses: self.responses.get_or_create(&labels).clone(),
            response_bytes: self.response_bytes.get_or_create(&labels).clone(),
            acks: self.acks.get_or_create(&labels).clone(),
            nacks: self.nacks.get_or_create(&labels).clone(),
            stale_nonces: self.stale_nonces.get_or_create(&labels).clone(),
            returned_without: self.returned_without.get_or_create(&labels).clone(),
            encoded_bodies: self.encoded_bodies.get_or_create(&labels).clone(),
            cache_resources: self.cache_resources.get_or_create(&labels).clone(),
            cache_bytes: self.cache_bytes.get_or_create(&labels).clone(),
            convergence: self.convergence.get_or_create(&labels).clone(),
        }
    }

    pub(super) fn of_server(&self, uri: &str, updates: Updates) -> UpstreamMetrics {
        let labels = [("server", uri.to_owned())];
        let grpc_labels = [
            ("grpc_target", GRPC_TARGET.to_owned()),
            ("grpc_xds_server", uri.to_owned()),
        ];
        UpstreamMetrics::new(
            [
                self.upstream_connected.get_or_create(&labels).clone(),
                self.grpc_connected.get_or_create(&grpc_labels).clone(),
            ],
            [
                self.upstream_responses.get_or_create(&labels).clone(),
                self.upstream_nacks.get_or_create(&labels).clone(),
                self.upstream_failures.get_or_create(&labels).clone(),
                self.grpc_server_failure.get_or_create(&grpc_labels).clone(),
            ],
            updates,
        )
    }
}

impl Families {
    /// Returns the counters of valid and of invalid resources of a type from a server.
    pub(super) fn updates(&self, uri: &str, label: &str) -> [Counter; 2] {
        let labels = [
            ("grpc_target", GRPC_TARGET.to_owned()),
            ("grpc_xds_server", uri.to_owned()),
            ("grpc_xds_resource_type", label.to_owned()),
        ];
        [&self.grpc_updates_valid, &self.grpc_updates_invalid].map(|family| family.get_or_create(&labels).clone())
    }

    /// Sets the number of names by authority, state and type, and removes all other labels.
    pub(super) fn names(&self, counts: impl Iterator<Item = ([String; 3], i64)>) {
        self.grpc_resources.clear();
        for ([authority, state, label], count) in counts {
            let labels = [
                ("grpc_target", GRPC_TARGET.to_owned()),
                ("grpc_xds_authority", authority),
                ("grpc_xds_cache_state", state),
                ("grpc_xds_resource_type", label),
            ];
            self.grpc_resources.get_or_create(&labels).set(count);
        }
    }
}

fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
