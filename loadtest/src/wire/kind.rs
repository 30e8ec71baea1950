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

/// A type of resources; the variants are in the order in which changes are safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
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
}

impl Dialect {
    /// The gRPC method of the aggregated service.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
            Self::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
        }
    }

    pub(crate) const ALL: [Self; 2] = [Self::Delta, Self::Sotw];
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Cds, Self::Eds, Self::Lds, Self::Rds, Self::Vhds];

    pub(crate) const fn type_url(self) -> &'static str {
        match self {
            Self::Cds => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Eds => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Lds => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::Rds => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            Self::Vhds => "type.googleapis.com/envoy.config.route.v3.VirtualHost",
        }
    }

    pub(crate) fn of(type_url: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.type_url().as_bytes() == type_url)
    }

    /// The gRPC method of the type's own service.
    pub(crate) const fn path(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::Cds, Dialect::Delta) => "/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters",
            (Self::Cds, Dialect::Sotw) => "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters",
            (Self::Eds, Dialect::Delta) => "/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints",
            (Self::Eds, Dialect::Sotw) => "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints",
            (Self::Lds, Dialect::Delta) => "/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners",
            (Self::Lds, Dialect::Sotw) => "/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners",
            (Self::Rds, Dialect::Delta) => "/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes",
            (Self::Rds, Dialect::Sotw) => "/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes",
            // Virtual hosts have no SotW method.
            (Self::Vhds, _) => "/envoy.service.route.v3.VirtualHostDiscoveryService/DeltaVirtualHosts",
        }
    }

    /// The path for polls; none for types whose bodies have no name of their own (H-03).
    pub(crate) const fn poll_path(self) -> Option<&'static str> {
        match self {
            Self::Cds => Some("/v3/discovery:clusters"),
            Self::Eds => Some("/v3/discovery:endpoints"),
            Self::Lds => Some("/v3/discovery:listeners"),
            Self::Rds => Some("/v3/discovery:routes"),
            Self::Vhds => None,
        }
    }

    /// The JSON field that holds the name.
    pub(crate) const fn name_field(self) -> &'static str {
        match self {
            Self::Eds => "cluster_name",
            Self::Cds | Self::Lds | Self::Rds | Self::Vhds => "name",
        }
    }

    /// Whether clients may ask for everything.
    pub(crate) const fn wildcard(self) -> bool {
        matches!(self, Self::Cds | Self::Lds)
    }

    /// B-16: whether a resource that a SotW response lacks is removed.
    pub(crate) const fn full_state(self) -> bool {
        matches!(self, Self::Cds | Self::Lds)
    }

    /// The key of the type in a scenario.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Cds => "cds",
            Self::Eds => "eds",
            Self::Lds => "lds",
            Self::Rds => "rds",
            Self::Vhds => "vhds",
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Cds => "clusters",
            Self::Eds => "endpoints",
            Self::Lds => "listeners",
            Self::Rds => "routes",
            Self::Vhds => "virtual hosts",
        }
    }

    /// The prefix of the built-in resources' names. Endpoints have the name of their cluster.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Cds | Self::Eds => "cluster-",
            Self::Lds => "listener-",
            Self::Rds => "route-",
            Self::Vhds => "route/host-",
        }
    }
}
