// SPDX-License-Identifier: Apache-2.0
//! Which fields of Envoy's messages name something, as a table.
//!
//! Owns the numbers (v2 and v3 have the same ones), and which extensions are read: those of Envoy's own that name a cluster in plain text.
//! Others refer to nothing, and so does a configuration in a `TypedStruct`.

use Leads::{Cluster, Domain, Endpoint, Extension, Message, Route};

/// The fields of a message that lead somewhere, each by the numbers on the way to it.
pub(super) type Fields = [(&'static [u32], Leads)];

/// What a field is.
#[derive(Clone, Copy)]
pub(super) enum Leads {
    /// The name of a cluster.
    Cluster,
    /// The name of a route configuration.
    Route,
    Message(&'static Fields),
    /// A typed configuration: one of these, by the last parts of its name. Other messages may have the same elsewhere.
    Extension(&'static Extensions),
    /// The domain of a virtual host.
    Domain,
    /// An endpoint, or where endpoints come from.
    Endpoint,
}

/// What can stand in one place.
pub(super) type Extensions = [(&'static str, &'static Fields)];

pub(super) const LISTENER: &Fields = &[
    (&[3, 3, 4], Extension(FILTERS)),
    (&[25, 3, 4], Extension(FILTERS)),
    (&[9, 3], Extension(LISTENER_FILTERS)),
    (&[19, 1], Extension(FILTERS)),
    (&[22, 4], Extension(LOGS)),
];
pub(super) const SCOPE: &Fields = &[(&[2], Route), (&[5], Message(ROUTES))];
pub(super) const ROUTES: &Fields = &[
    (&[2], Message(HOST)),
    (&[13, 1], Cluster),
    (&[16, 2], Extension(&OVERRIDES)),
];
pub(super) const HOST: &Fields = &[
    (&[2], Domain),
    (&[3, 2], Message(ROUTE_ACTION)),
    (&[3, 13, 2], Extension(&OVERRIDES)),
    (&[15, 2], Extension(&OVERRIDES)),
    (&[22, 1], Cluster),
];
pub(super) const ASSIGNMENT: &Fields = &[(&[2, 2], Endpoint), (&[2, 7, 1], Endpoint), (&[2, 8], Endpoint)];
pub(super) const CLUSTER: &Fields = &[(&[38, 2], Extension(CLUSTERS))];
const ROUTE_ACTION: &Fields = &[
    (&[1], Cluster),
    (&[3], Message(WEIGHTED)),
    (&[10, 1], Cluster),
    (&[30, 1], Cluster),
];
const WEIGHTED: &Fields = &[(&[1, 1], Cluster), (&[1, 10, 2], Extension(&OVERRIDES))];

const FILTERS: &Extensions = &[
    ("HttpConnectionManager", MANAGER),
    ("TcpProxy", TCP),
    ("RedisProxy", REDIS),
    ("ThriftProxy", THRIFT),
    ("ExtAuthz", &[(&[2], Message(GRPC))]),
    ("NetworkExternalProcessor", PROCESSOR),
    ("RateLimit", &[(&[6, 2], Message(GRPC))]),
];
const MANAGER: &Fields = &[
    (&[3, 2], Route),
    (&[4], Message(ROUTES)),
    (&[5, 4], Extension(HTTP_FILTERS)),
    (&[13, 4], Extension(LOGS)),
    (&[31, 4, 1], Message(SCOPE)),
];
const TCP: &Fields = &[(&[2], Cluster), (&[5, 4], Extension(LOGS)), (&[10], Message(WEIGHTED))];
const REDIS: &Fields = &[
    (&[5, 1], Message(REDIS_ROUTE)),
    (&[5, 4], Message(REDIS_ROUTE)),
    (&[10, 1], Message(GRPC)),
];
const REDIS_ROUTE: &Fields = &[(&[3], Cluster), (&[4, 1], Cluster), (&[6, 1], Cluster)];
const THRIFT: &Fields = &[(&[4, 2, 2], Message(THRIFT_ACTION)), (&[9, 4], Extension(LOGS))];
const THRIFT_ACTION: &Fields = &[(&[1], Cluster), (&[2], Message(WEIGHTED)), (&[7, 1], Cluster)];

const LISTENER_FILTERS: &Extensions = &[("UdpProxyConfig", UDP)];
const UDP: &Fields = &[
    (&[2], Cluster),
    (&[8, 4], Extension(LOGS)),
    (&[9], Message(&MATCHER)),
    (&[10, 4], Extension(LOGS)),
];
/// Matchers of extensions are not read.
static MATCHER: [(&[u32], Leads); 4] = [
    (&[1, 1, 2], Message(&ON_MATCH)),
    (&[2, 2, 1, 2], Message(&ON_MATCH)),
    (&[2, 3, 1, 2], Message(&ON_MATCH)),
    (&[3], Message(&ON_MATCH)),
];
static ON_MATCH: [(&[u32], Leads); 2] = [(&[1], Message(&MATCHER)), (&[2, 2], Extension(UDP_ROUTES))];
const UDP_ROUTES: &Extensions = &[("Route", &[(&[1], Cluster)])];

const HTTP_FILTERS: &Extensions = &[
    ("ExtAuthz", &[(&[1], Message(GRPC)), (&[3], Message(HTTP))]),
    ("ExternalProcessor", PROCESSOR),
    ("RateLimit", &[(&[7, 2], Message(GRPC))]),
    ("Router", &[(&[3, 4], Extension(LOGS))]),
];
const PROCESSOR: &Fields = &[(&[1], Message(GRPC)), (&[20, 1], Message(HTTP))];

/// What overrides HTTP filters for some routes.
static OVERRIDES: [(&str, &Fields); 3] = [
    ("FilterConfig", &[(&[1], Extension(&OVERRIDES))]),
    (
        "ExtAuthzPerRoute",
        &[(&[2, 4], Message(GRPC)), (&[2, 5], Message(HTTP))],
    ),
    ("ExtProcPerRoute", &[(&[2, 5], Message(GRPC))]),
];

const LOGS: &Extensions = &[
    ("HttpGrpcAccessLogConfig", LOG),
    ("TcpGrpcAccessLogConfig", LOG),
    ("OpenTelemetryAccessLogConfig", LOG),
];
const LOG: &Fields = &[(&[1, 2], Message(GRPC)), (&[8], Message(HTTP)), (&[9], Message(GRPC))];

/// A service of gRPC, and one of HTTP.
const GRPC: &Fields = &[(&[1, 1], Cluster)];
const HTTP: &Fields = &[(&[1, 2], Cluster)];

/// Aggregate clusters.
const MEMBERS: &Fields = &[(&[1], Cluster)];
const CLUSTERS: &Extensions = &[
    ("aggregate.v3.ClusterConfig", MEMBERS),
    ("aggregate.v2alpha.ClusterConfig", MEMBERS),
];
