// SPDX-License-Identifier: Apache-2.0
//! The types that the relay knows.
//!
//! Owns the table. Does not know what the operator changes in it.

use super::{Kind, NameRule, TableType, Traits};

/// The usual prefix of a type URL. A-04: a type that comes without any prefix is written with this one.
pub(super) const PREFIX: &str = "type.googleapis.com/";

const fn row(
    url: &'static str,
    short: &'static str,
    kind: Kind,
    name: NameRule,
    wildcard: bool,
    full_state: bool,
) -> TableType {
    (
        url,
        short,
        Traits {
            kind,
            name,
            wildcard,
            full_state,
            nameless: matches!((name, kind), (NameRule::Wrapper, Kind::Other)),
            delta_only: matches!(kind, Kind::Vhds),
            aliases: matches!(kind, Kind::Vhds),
            withheld: false,
        },
    )
}

const fn with_aliases((url, short, traits): TableType) -> TableType {
    (
        url,
        short,
        Traits {
            aliases: true,
            ..traits
        },
    )
}

const NAME: NameRule = NameRule::Field(1);
const WRAPPER: NameRule = NameRule::Wrapper;

/// The known types: canonical URL, short name, traits.
#[rustfmt::skip]
pub(super) static TABLE: [TableType; 26] = [
    row("type.googleapis.com/envoy.config.cluster.v3.Cluster", "cds", Kind::Cds, NAME, true, true),
    row("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "eds", Kind::Eds, NAME, false, false),
    row("type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint", "leds", Kind::Leds, WRAPPER, false, false),
    row("type.googleapis.com/envoy.config.endpoint.v3.LbEndpointCollection", "leds_collection", Kind::Leds, WRAPPER, false, false),
    row("type.googleapis.com/envoy.config.listener.v3.Listener", "lds", Kind::Lds, NAME, true, true),
    row("type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "rds", Kind::Rds, NAME, false, false),
    row("type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration", "srds", Kind::Srds, NAME, true, true),
    row("type.googleapis.com/envoy.config.route.v3.VirtualHost", "vhds", Kind::Vhds, WRAPPER, true, false),
    row("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "sds", Kind::Sds, NAME, false, false),
    row("type.googleapis.com/envoy.service.runtime.v3.Runtime", "rtds", Kind::Rtds, NAME, false, false),
    row("type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "ecds", Kind::Ecds, NAME, false, false),
    row("type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig", "rlsds", Kind::Other, NAME, true, false),
    row("type.googleapis.com/envoy.extensions.filters.network.thrift_proxy.v3.RouteConfiguration", "thrift_rds", Kind::Rds, NAME, false, false),
    with_aliases(row("type.googleapis.com/istio.workload.Address", "istio_address", Kind::Other, WRAPPER, true, false)),
    with_aliases(row("type.googleapis.com/istio.workload.Workload", "istio_workload", Kind::Other, WRAPPER, true, false)),
    row("type.googleapis.com/istio.security.Authorization", "istio_authorization", Kind::Other, WRAPPER, true, false),
    row("type.googleapis.com/istio.networking.nds.v1.NameTable", "nds", Kind::Other, WRAPPER, true, false),
    row("type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig", "pcds", Kind::Other, WRAPPER, true, false),
    row("type.googleapis.com/envoy.api.v2.Cluster", "cds_v2", Kind::Cds, NAME, true, true),
    row("type.googleapis.com/envoy.api.v2.ClusterLoadAssignment", "eds_v2", Kind::Eds, NAME, false, false),
    row("type.googleapis.com/envoy.api.v2.Listener", "lds_v2", Kind::Lds, NAME, true, true),
    row("type.googleapis.com/envoy.api.v2.RouteConfiguration", "rds_v2", Kind::Rds, NAME, false, false),
    row("type.googleapis.com/envoy.api.v2.ScopedRouteConfiguration", "srds_v2", Kind::Srds, NAME, true, true),
    row("type.googleapis.com/envoy.api.v2.route.VirtualHost", "vhds_v2", Kind::Vhds, WRAPPER, true, false),
    row("type.googleapis.com/envoy.api.v2.auth.Secret", "sds_v2", Kind::Sds, NAME, false, false),
    row("type.googleapis.com/envoy.service.discovery.v2.Runtime", "rtds_v2", Kind::Rtds, NAME, false, false),
];

/// The traits of a type that neither the table nor the operator describes.
pub(super) const UNKNOWN: Traits = Traits {
    kind: Kind::Other,
    name: NAME,
    wildcard: false,
    full_state: false,
    nameless: true,
    delta_only: false,
    aliases: false,
    withheld: false,
};

/// The prefix of Istio's debug types. The control plane checks who may see them, and each replica answers for itself.
const ISTIO_DEBUG: &str = "istio.io/debug";
const ISTIO_CONNECTIONS: &str = "istio.io/connections";
/// Istio's agents report their health with requests of this type: its content goes from client to server.
const ISTIO_HEALTH: &str = "istio.v1.HealthInformation";

/// Whether the type is not passed on, whatever the operator says of it.
pub(super) fn is_withheld(full_name: &str) -> bool {
    let debug = full_name.strip_prefix(ISTIO_DEBUG);
    let debug = debug.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    debug || matches!(full_name, ISTIO_CONNECTIONS | ISTIO_HEALTH)
}

/// Whether this is the type of reports of a client's health.
pub(super) fn is_health_report(full_name: &str) -> bool {
    full_name == ISTIO_HEALTH
}
