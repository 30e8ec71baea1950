// SPDX-License-Identifier: Apache-2.0
//! The types of resources and the forms of the protocol. Owns the names of types and methods. Knows nothing of sizes and counts.

use clap::ValueEnum;
use serde::Deserialize;

/// The two forms of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dialect {
    /// Incremental.
    #[default]
    Delta,
    /// State of the world.
    Sotw,
}

/// A type of resources; the variants are in the order in which changes are safe. The keys are the relay's short names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Clusters.
    Cds,
    /// Endpoints.
    Eds,
    /// Listeners.
    Lds,
    /// Routes.
    Rds,
    /// Virtual hosts.
    Vhds,
    /// Secrets.
    Sds,
    /// Runtime layers.
    Rtds,
    /// Configurations of extensions.
    Ecds,
    /// Istio's workloads and services.
    IstioAddress,
    /// Istio's policies of who may connect.
    IstioAuthorization,
    /// A type that no software knows.
    Own,
    /// Clusters of v2.
    CdsV2,
    /// Endpoints of v2.
    EdsV2,
    /// Listeners of v2.
    LdsV2,
    /// Routes of v2.
    RdsV2,
}

/// What is known of a type.
struct Row {
    /// The key of the type in a scenario.
    key: &'static str,
    word: &'static str,
    /// The prefix of the built-in resources' names. Endpoints have the name of their cluster.
    prefix: &'static str,
    type_url: &'static str,
    /// The gRPC methods of the type's own service, in delta and in SotW. Some types come over the aggregated service only.
    own: Option<[&'static str; 2]>,
    /// The path for polls; none for types whose bodies have no name of their own (H-03).
    polls: Option<&'static str>,
    /// Whether clients may ask for everything.
    wildcard: bool,
}

impl Dialect {
    /// The gRPC method of the aggregated service.
    pub(crate) const fn path(self, v2: bool) -> &'static str {
        match (self, v2) {
            (Self::Delta, false) => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
            (Self::Sotw, false) => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
            (Self::Delta, true) => "/envoy.service.discovery.v2.AggregatedDiscoveryService/DeltaAggregatedResources",
            (Self::Sotw, true) => "/envoy.service.discovery.v2.AggregatedDiscoveryService/StreamAggregatedResources",
        }
    }

    pub(crate) const ALL: [Self; 2] = [Self::Delta, Self::Sotw];
}

/// The rows of all types, in their order.
#[rustfmt::skip]
const ROWS: [Row; Kind::ALL.len()] = [
    Row {
        key: "cds", word: "clusters", prefix: "cluster-",
        type_url: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        own: Some(["/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters", "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters"]),
        polls: Some("/v3/discovery:clusters"), wildcard: true,
    },
    Row {
        key: "eds", word: "endpoints", prefix: "cluster-",
        type_url: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
        own: Some(["/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints", "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints"]),
        polls: Some("/v3/discovery:endpoints"), wildcard: false,
    },
    Row {
        key: "lds", word: "listeners", prefix: "listener-",
        type_url: "type.googleapis.com/envoy.config.listener.v3.Listener",
        own: Some(["/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners", "/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners"]),
        polls: Some("/v3/discovery:listeners"), wildcard: true,
    },
    Row {
        key: "rds", word: "routes", prefix: "route-",
        type_url: "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        own: Some(["/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes", "/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes"]),
        polls: Some("/v3/discovery:routes"), wildcard: false,
    },
    Row {
        key: "vhds", word: "virtual hosts", prefix: "route/host-",
        type_url: "type.googleapis.com/envoy.config.route.v3.VirtualHost",
        own: Some(["/envoy.service.route.v3.VirtualHostDiscoveryService/DeltaVirtualHosts"; 2]),
        polls: None, wildcard: false,
    },
    Row {
        key: "sds", word: "secrets", prefix: "secret-",
        type_url: "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
        own: Some(["/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets", "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets"]),
        polls: None, wildcard: false,
    },
    Row {
        key: "rtds", word: "runtime layers", prefix: "layer-",
        type_url: "type.googleapis.com/envoy.service.runtime.v3.Runtime",
        own: Some(["/envoy.service.runtime.v3.RuntimeDiscoveryService/DeltaRuntime", "/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime"]),
        polls: None, wildcard: false,
    },
    Row {
        key: "ecds", word: "extensions", prefix: "extension-",
        type_url: "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
        own: Some(["/envoy.service.extension.v3.ExtensionConfigDiscoveryService/DeltaExtensionConfigs", "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs"]),
        polls: None, wildcard: false,
    },
    Row {
        key: "istio_address", word: "addresses", prefix: "load/address-",
        type_url: "type.googleapis.com/istio.workload.Address",
        own: None,
        polls: None, wildcard: true,
    },
    Row {
        key: "istio_authorization", word: "authorizations", prefix: "load/policy-",
        type_url: "type.googleapis.com/istio.security.Authorization",
        own: None,
        polls: None, wildcard: true,
    },
    Row {
        key: "own", word: "resources of an own type", prefix: "thing-",
        type_url: "type.googleapis.com/distributary.load.v1.Thing",
        own: None,
        polls: None, wildcard: false,
    },
    Row {
        key: "cds_v2", word: "clusters of v2", prefix: "cluster-",
        type_url: "type.googleapis.com/envoy.api.v2.Cluster",
        own: Some(["/envoy.api.v2.ClusterDiscoveryService/DeltaClusters", "/envoy.api.v2.ClusterDiscoveryService/StreamClusters"]),
        polls: None, wildcard: true,
    },
    Row {
        key: "eds_v2", word: "endpoints of v2", prefix: "cluster-",
        type_url: "type.googleapis.com/envoy.api.v2.ClusterLoadAssignment",
        own: Some(["/envoy.api.v2.EndpointDiscoveryService/DeltaEndpoints", "/envoy.api.v2.EndpointDiscoveryService/StreamEndpoints"]),
        polls: None, wildcard: false,
    },
    Row {
        key: "lds_v2", word: "listeners of v2", prefix: "listener-",
        type_url: "type.googleapis.com/envoy.api.v2.Listener",
        own: Some(["/envoy.api.v2.ListenerDiscoveryService/DeltaListeners", "/envoy.api.v2.ListenerDiscoveryService/StreamListeners"]),
        polls: None, wildcard: true,
    },
    Row {
        key: "rds_v2", word: "routes of v2", prefix: "route-",
        type_url: "type.googleapis.com/envoy.api.v2.RouteConfiguration",
        own: Some(["/envoy.api.v2.RouteDiscoveryService/DeltaRoutes", "/envoy.api.v2.RouteDiscoveryService/StreamRoutes"]),
        polls: None, wildcard: false,
    },
];

impl Kind {
    pub(crate) const ALL: [Self; 15] = [
        Self::Cds,
        Self::Eds,
        Self::Lds,
        Self::Rds,
        Self::Vhds,
        Self::Sds,
        Self::Rtds,
        Self::Ecds,
        Self::IstioAddress,
        Self::IstioAuthorization,
        Self::Own,
        Self::CdsV2,
        Self::EdsV2,
        Self::LdsV2,
        Self::RdsV2,
    ];

    /// The types that lead an Envoy to each other.
    pub(crate) const ROUTING: [Self; 5] = [Self::Cds, Self::Eds, Self::Lds, Self::Rds, Self::Vhds];

    const fn row(self) -> &'static Row {
        #[expect(clippy::indexing_slicing, reason = "each type has a row")]
        &ROWS[self as usize]
    }

    pub(crate) const fn type_url(self) -> &'static str {
        self.row().type_url
    }

    pub(crate) fn of(type_url: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.type_url().as_bytes() == type_url)
    }

    /// The gRPC method of the type's own service, if it has one. Virtual hosts have no SotW method.
    pub(crate) fn path(self, dialect: Dialect) -> Option<&'static str> {
        let [delta, sotw] = self.row().own?;
        Some(match dialect {
            Dialect::Delta => delta,
            Dialect::Sotw => sotw,
        })
    }

    pub(crate) const fn poll_path(self) -> Option<&'static str> {
        self.row().polls
    }

    /// The JSON field that holds the name.
    pub(crate) const fn name_field(self) -> &'static str {
        if matches!(self, Self::Eds | Self::EdsV2) {
            "cluster_name"
        } else {
            "name"
        }
    }

    pub(crate) const fn wildcard(self) -> bool {
        self.row().wildcard
    }

    /// B-16: whether a resource that a SotW response lacks is removed.
    pub(crate) const fn full_state(self) -> bool {
        matches!(self, Self::Cds | Self::Lds | Self::CdsV2 | Self::LdsV2)
    }

    /// Whether a name that stands only among the versions that a client holds is asked for (C-13).
    pub(crate) const fn asks_by_versions(self) -> bool {
        matches!(self, Self::IstioAddress)
    }

    pub(crate) const fn is_v2(self) -> bool {
        matches!(self, Self::CdsV2 | Self::EdsV2 | Self::LdsV2 | Self::RdsV2)
    }

    /// The type that resources of this type refer to, if they refer to any.
    pub(crate) const fn leads(self) -> Option<Self> {
        match self {
            Self::Cds => Some(Self::Eds),
            Self::Lds => Some(Self::Rds),
            Self::Rds | Self::Vhds => Some(Self::Cds),
            Self::CdsV2 => Some(Self::EdsV2),
            Self::LdsV2 => Some(Self::RdsV2),
            Self::RdsV2 => Some(Self::CdsV2),
            Self::Eds | Self::EdsV2 | Self::Sds | Self::Rtds | Self::Ecds => None,
            Self::IstioAddress | Self::IstioAuthorization | Self::Own => None,
        }
    }

    /// The key of the type in a scenario.
    pub(crate) const fn key(self) -> &'static str {
        self.row().key
    }

    pub(crate) const fn word(self) -> &'static str {
        self.row().word
    }

    pub(crate) const fn prefix(self) -> &'static str {
        self.row().prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row at another place would give a type the name of another.
    #[test]
    fn rows_stand_in_the_order_of_types() {
        for kind in Kind::ALL {
            assert_eq!(<Kind as ValueEnum>::from_str(kind.key(), false), Ok(kind));
            assert_eq!(Kind::of(kind.type_url().as_bytes()), Some(kind));
        }
    }
}
