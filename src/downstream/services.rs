// SPDX-License-Identifier: Apache-2.0
//! The gRPC services and their methods.
//!
//! Owns the table of paths. Knows nothing of what the methods do.

use crate::identity::Identity;
use crate::protocol::Opening;
use crate::wire::Encoding;
use crate::xds::{Dialect, TypeUrl, Types};

/// A method of a discovery service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Method {
    /// The type of the service; none for the aggregated service.
    pub(super) service: Option<TypeUrl>,
    pub(super) dialect: Dialect,
    /// Whether it is the unary method, which is answered once.
    pub(super) fetch: bool,
    /// The generation of the messages. A-01: it is fixed by the method's name, never by a field.
    pub(super) transport: ApiVersion,
    /// How the responses of a call are compressed, as its headers say.
    pub(super) responses: Encoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiVersion {
    V2,
    V3,
}

impl Method {
    /// Returns how a stream of this method begins for a client with this identity.
    pub(super) fn opening(&self, identity: &Identity) -> Opening {
        Opening {
            dialect: self.dialect,
            service: self.service.clone(),
            nonce_prefix: rand::random(),
            identity: identity.clone(),
            polls: false,
        }
    }
}

/// Why a path is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnknownPath(pub(super) String);

/// One discovery service: its full name, its type (none for the aggregated one), and its methods by dialect. The unary method of
/// a per-type service has `Fetch` instead of the `Stream` in the SotW method.
struct Service(
    ApiVersion,
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
    Option<&'static str>,
);

use ApiVersion::{V2, V3};

#[rustfmt::skip]
static SERVICES: [Service; 22] = [
    Service(V3, "envoy.service.discovery.v3.AggregatedDiscoveryService", None, Some("StreamAggregatedResources"), Some("DeltaAggregatedResources")),
    Service(V3, "envoy.service.listener.v3.ListenerDiscoveryService", Some("envoy.config.listener.v3.Listener"), Some("StreamListeners"), Some("DeltaListeners")),
    Service(V3, "envoy.service.route.v3.RouteDiscoveryService", Some("envoy.config.route.v3.RouteConfiguration"), Some("StreamRoutes"), Some("DeltaRoutes")),
    Service(V3, "envoy.service.route.v3.ScopedRoutesDiscoveryService", Some("envoy.config.route.v3.ScopedRouteConfiguration"), Some("StreamScopedRoutes"), Some("DeltaScopedRoutes")),
    Service(V3, "envoy.service.route.v3.VirtualHostDiscoveryService", Some("envoy.config.route.v3.VirtualHost"), None, Some("DeltaVirtualHosts")),
    Service(V3, "envoy.service.cluster.v3.ClusterDiscoveryService", Some("envoy.config.cluster.v3.Cluster"), Some("StreamClusters"), Some("DeltaClusters")),
    Service(V3, "envoy.service.endpoint.v3.EndpointDiscoveryService", Some("envoy.config.endpoint.v3.ClusterLoadAssignment"), Some("StreamEndpoints"), Some("DeltaEndpoints")),
    Service(V3, "envoy.service.endpoint.v3.LocalityEndpointDiscoveryService", Some("envoy.config.endpoint.v3.LbEndpoint"), None, Some("DeltaLocalityEndpoints")),
    Service(V3, "envoy.service.secret.v3.SecretDiscoveryService", Some("envoy.extensions.transport_sockets.tls.v3.Secret"), Some("StreamSecrets"), Some("DeltaSecrets")),
    Service(V3, "envoy.service.runtime.v3.RuntimeDiscoveryService", Some("envoy.service.runtime.v3.Runtime"), Some("StreamRuntime"), Some("DeltaRuntime")),
    Service(V3, "envoy.service.extension.v3.ExtensionConfigDiscoveryService", Some("envoy.config.core.v3.TypedExtensionConfig"), Some("StreamExtensionConfigs"), Some("DeltaExtensionConfigs")),
    Service(V3, "ratelimit.service.ratelimit.v3.RateLimitConfigDiscoveryService", Some("ratelimit.config.ratelimit.v3.RateLimitConfig"), Some("StreamRlsConfigs"), None),
    Service(V2, "envoy.service.discovery.v2.AggregatedDiscoveryService", None, Some("StreamAggregatedResources"), Some("DeltaAggregatedResources")),
    Service(V2, "envoy.api.v2.ListenerDiscoveryService", Some("envoy.api.v2.Listener"), Some("StreamListeners"), Some("DeltaListeners")),
    Service(V2, "envoy.api.v2.RouteDiscoveryService", Some("envoy.api.v2.RouteConfiguration"), Some("StreamRoutes"), Some("DeltaRoutes")),
    Service(V2, "envoy.api.v2.ScopedRoutesDiscoveryService", Some("envoy.api.v2.ScopedRouteConfiguration"), Some("StreamScopedRoutes"), Some("DeltaScopedRoutes")),
    Service(V2, "envoy.api.v2.VirtualHostDiscoveryService", Some("envoy.api.v2.route.VirtualHost"), None, Some("DeltaVirtualHosts")),
    Service(V2, "envoy.api.v2.ClusterDiscoveryService", Some("envoy.api.v2.Cluster"), Some("StreamClusters"), Some("DeltaClusters")),
    Service(V2, "envoy.api.v2.EndpointDiscoveryService", Some("envoy.api.v2.ClusterLoadAssignment"), Some("StreamEndpoints"), Some("DeltaEndpoints")),
    Service(V2, "envoy.service.discovery.v2.SecretDiscoveryService", Some("envoy.api.v2.auth.Secret"), Some("StreamSecrets"), Some("DeltaSecrets")),
    Service(V2, "envoy.service.discovery.v2.RuntimeDiscoveryService", Some("envoy.service.discovery.v2.Runtime"), Some("StreamRuntime"), Some("DeltaRuntime")),
    Service(V3, "grpc.health.v1.Health", None, None, None),
];

impl Service {
    /// Returns the dialect of a method of this service, and whether it is the unary method.
    fn method(&self, name: &str) -> Option<(Dialect, bool)> {
        let Self(_, _, _, sotw, delta) = self;
        if *delta == Some(name) {
            return Some((Dialect::Delta, false));
        }
        let sotw = sotw.as_ref()?;
        if *sotw == name {
            return Some((Dialect::Sotw, false));
        }
        // Aggregated streams have no unary form (A-T1).
        let fetched = name.strip_prefix("Fetch").filter(|_| self.2.is_some())?;
        (sotw.strip_prefix("Stream") == Some(fetched)).then_some((Dialect::Sotw, true))
    }
}

/// Returns the method that a path calls.
pub(super) fn method(path: &str, transport_v2: bool, types: &Types) -> Result<Method, UnknownPath> {
    let (name, method) = split(path).ok_or_else(|| UnknownPath(format!("`{}` is not a gRPC path", shown(path))))?;
    let found = SERVICES.iter().find(|service| service.1 == name);
    let Some(service) = found.filter(|service| service.0 == V3 || transport_v2) else {
        let off = found.map(|_| "the v2 transport is switched off by `transport_v2: false`");
        let why = elsewhere(name).or(off).unwrap_or("it is not a discovery service");
        return Err(UnknownPath(format!(
            "service `{}` is not served here: {why}",
            shown(name)
        )));
    };
    let (dialect, fetch) = service
        .method(method)
        .ok_or_else(|| UnknownPath(format!("service `{name}` has no method `{}`", shown(method))))?;
    Ok(Method {
        service: service.2.map(|full_name| types.resolve(full_name)),
        dialect,
        fetch,
        transport: service.0,
        responses: Encoding::Identity,
    })
}

/// Returns why a service of the API is not served, where more can be said.
fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "envoy.service.load_stats.v3.LoadReportingService" | "envoy.service.load_stats.v2.LoadReportingService" => {
            "load reports end at this relay; they are not passed on"
        }
        "envoy.service.health.v3.HealthDiscoveryService" | "envoy.service.discovery.v2.HealthDiscoveryService" => {
            "health checks are not delegated through this relay"
        }
        "envoy.service.route.v3.ScopedRouteDiscoveryService" => "the service is called ScopedRoutesDiscoveryService",
        _ => return None,
    })
}

/// Splits a path into service and method.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    (!service.is_empty() && !method.is_empty() && !method.contains('/')).then_some((service, method))
}

/// Returns the full names of all services.
pub(super) fn names(transport_v2: bool) -> impl Iterator<Item = &'static str> {
    let served = move |service: &&Service| service.0 == V3 || transport_v2;
    SERVICES.iter().filter(served).map(|service| service.1)
}

/// Returns the paths of all methods of discovery, each with its type (none for aggregated ones), its dialect, and whether it is unary.
pub fn methods() -> impl Iterator<Item = (String, Option<&'static str>, Dialect, bool)> {
    SERVICES.iter().flat_map(|Service(_, name, full_name, sotw, delta)| {
        let path = move |method: &str| format!("/{name}/{method}");
        let fetched = sotw
            .and_then(|method| method.strip_prefix("Stream"))
            .filter(|_| full_name.is_some());
        let fetch = fetched.map(|what| (path(&format!("Fetch{what}")), *full_name, Dialect::Sotw, true));
        let streams = [(sotw, Dialect::Sotw), (delta, Dialect::Delta)].into_iter();
        let streams = streams.filter_map(move |(method, dialect)| Some((path((*method)?), *full_name, dialect, false)));
        streams.chain(fetch)
    })
}

/// Cuts a client's text, so that it can be quoted in an answer.
fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &str) -> Result<Method, UnknownPath> {
        method(path, true, &Types::default())
    }

    /// A-T1, A-T2: every type of a service is a type that the relay knows, of the same generation.
    #[test]
    fn every_service_has_a_known_type_and_its_methods() {
        for Service(transport, name, full_name, sotw, delta) in &SERVICES[..21] {
            for (method, dialect) in [(sotw, Dialect::Sotw), (delta, Dialect::Delta)] {
                let Some(method) = method else { continue };
                let found = find(&format!("/{name}/{method}")).unwrap();
                assert_eq!(
                    (found.dialect, found.fetch, found.transport),
                    (dialect, false, *transport)
                );
                assert_eq!(found.service.as_ref().map(TypeUrl::full_name), *full_name);
                assert!(found.service.is_none_or(|service| service.short().is_some()), "{name}");
            }
        }
    }

    /// A-T1: per-type services with a stream have a unary method; aggregated ones and delta-only ones have none.
    #[test]
    fn unary_methods_are_where_the_table_has_them() {
        let found = find("/envoy.service.extension.v3.ExtensionConfigDiscoveryService/FetchExtensionConfigs").unwrap();
        assert!(found.fetch && found.dialect == Dialect::Sotw);
        assert!(
            find("/ratelimit.service.ratelimit.v3.RateLimitConfigDiscoveryService/FetchRlsConfigs")
                .unwrap()
                .fetch
        );
        for path in [
            "/envoy.service.discovery.v3.AggregatedDiscoveryService/FetchAggregatedResources",
            "/envoy.service.route.v3.VirtualHostDiscoveryService/FetchVirtualHosts",
            "/envoy.service.route.v3.VirtualHostDiscoveryService/StreamVirtualHosts",
            "/ratelimit.service.ratelimit.v3.RateLimitConfigDiscoveryService/DeltaRlsConfigs",
            "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchEndpoints",
        ] {
            assert!(find(path).is_err(), "{path}");
        }
    }

    /// the error for a path that is not served has the reason.
    #[test]
    fn what_is_not_served_says_why() {
        for (path, word) in [
            (
                "/envoy.service.route.v3.ScopedRouteDiscoveryService/StreamScopedRoutes",
                "ScopedRoutesDiscoveryService",
            ),
            (
                "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats",
                "load reports",
            ),
            (
                "/envoy.service.health.v3.HealthDiscoveryService/StreamHealthCheck",
                "health checks",
            ),
            ("/acme.Unknown/Call", "acme.Unknown"),
            ("/", "not a gRPC path"),
            ("//x", "not a gRPC path"),
            ("/a/b/c", "not a gRPC path"),
        ] {
            let UnknownPath(message) = find(path).unwrap_err();
            assert!(message.contains(word), "{path}: {message}");
        }
        let off = method(
            "/envoy.api.v2.ClusterDiscoveryService/StreamClusters",
            false,
            &Types::default(),
        );
        assert!(off.unwrap_err().0.contains("transport_v2"));
        assert_eq!((names(true).count(), names(false).count()), (22, 13));
    }
}
