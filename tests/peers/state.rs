// SPDX-License-Identifier: Apache-2.0
//! A control plane that has a state, speaks either dialect, and forgets; and the resources of its states.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message;
use proto::distributary::references as fields;
use proto::envoy::config::cluster::v3::{Cluster, cluster::DiscoveryType, cluster::EdsClusterConfig};
use proto::envoy::config::core::v3::ControlPlane;
use proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Resource,
};
use proto::google::protobuf::Any;
use xds::Hasher;

/// A state: by type and name, the body.
pub type Content = BTreeMap<String, BTreeMap<String, Bytes>>;

/// A control plane with one stream.
#[derive(Default)]
pub struct Plane {
    pub content: Content,
    /// What it calls itself.
    pub identifier: &'static str,
    /// It says nothing where a client has everything, as go-control-plane: to names in delta, to an equal version in SotW.
    pub silent: bool,
    /// In delta, how many resources it says in one message at most.
    pub split: Option<usize>,
    /// It does not answer for these types yet.
    pub late: BTreeSet<&'static str>,
    types: BTreeMap<String, Subscription>,
    nonce: u64,
}

/// One type of the stream.
#[derive(Default)]
struct Subscription {
    wildcard: bool,
    names: BTreeSet<String>,
    /// What the client has, by name.
    told: BTreeMap<String, String>,
    /// Names that are to be answered although the client has nothing of them.
    asked: BTreeSet<String>,
    /// In SotW, the version of what the client has.
    version: String,
    answered: bool,
}

pub enum Reply {
    Delta(DeltaDiscoveryResponse),
    Sotw(DiscoveryResponse),
}

impl Reply {
    pub fn type_url(&self) -> &str {
        match self {
            Self::Delta(reply) => &reply.type_url,
            Self::Sotw(reply) => &reply.type_url,
        }
    }
}

impl Plane {
    /// The stream ends.
    pub fn hang_up(&mut self) {
        self.types.clear();
    }

    /// It answers for a name again, as if it was asked.
    pub fn repeat(&mut self, kind: &str, name: &str) {
        let subscription = self.types.entry(kind.to_owned()).or_default();
        subscription.asked.insert(name.to_owned());
        subscription.told.remove(name);
    }

    pub fn hear_delta(&mut self, request: DeltaDiscoveryRequest) {
        let subscription = self.types.entry(request.type_url).or_default();
        if !subscription.answered && subscription.names.is_empty() && !subscription.wildcard {
            subscription.told = request.initial_resource_versions.into_iter().collect();
            subscription.wildcard = request.resource_names_subscribe.is_empty();
        }
        for name in request.resource_names_subscribe {
            subscription.wildcard |= name == "*";
            subscription.asked.insert(name.clone());
            subscription.names.insert(name);
        }
        for name in request.resource_names_unsubscribe {
            subscription.names.remove(&name);
        }
    }

    pub fn hear_sotw(&mut self, request: DiscoveryRequest) {
        let subscription = self.types.entry(request.type_url).or_default();
        // What it says on the same stream is an answer, or asks for a name that it does not have.
        subscription.version = match request.response_nonce.is_empty() {
            true => request.version_info,
            false => String::new(),
        };
        let names: BTreeSet<String> = request.resource_names.into_iter().collect();
        subscription.wildcard = names.is_empty() || names.contains("*");
        subscription.answered &= names.is_subset(&subscription.names);
        subscription.names = names;
    }

    /// Returns what it has to say now, in the order in which go-control-plane says it.
    pub fn replies(&mut self, delta: bool) -> Vec<Reply> {
        let mut replies = Vec::new();
        let mut nonce = self.nonce;
        let silent = self.silent;
        for (type_url, subscription) in &mut self.types {
            if self.late.contains(type_url.as_str()) {
                continue;
            }
            let state = self.content.get(type_url).cloned().unwrap_or_default();
            let state_version = state_version(&state);
            let covers = |name: &String| subscription.wildcard || subscription.names.contains(name);
            let wanted: BTreeMap<String, Bytes> = state.into_iter().filter(|(name, _)| covers(name)).collect();
            let versions: BTreeMap<String, String> = wanted
                .iter()
                .map(|(name, body)| (name.clone(), version(body)))
                .collect();
            let removed = subscription.lost(&versions);
            let changed = |name: &String| subscription.told.get(name) != versions.get(name);
            let changed: Vec<&String> = wanted.keys().filter(|name| changed(name)).collect();
            let has_all = removed.is_empty() && changed.is_empty();
            let equal = match delta {
                true => !subscription.wildcard && has_all,
                false => subscription.version == state_version,
            };
            if silent && !subscription.answered && equal {
                subscription.told = versions;
                subscription.answered = true;
                continue;
            }
            if subscription.answered && has_all {
                continue;
            }
            let plane = control_plane(self.identifier);
            let resources = changed.into_iter().map(|name| said(type_url, name, &wanted[name]));
            let mut resources: Vec<Resource> = resources.collect();
            while delta && self.split.is_some_and(|most| resources.len() > most) {
                nonce += 1;
                replies.push(Reply::Delta(DeltaDiscoveryResponse {
                    type_url: type_url.clone(),
                    nonce: nonce.to_string(),
                    resources: resources.drain(..self.split.unwrap_or_default()).collect(),
                    control_plane: plane.clone(),
                    ..DeltaDiscoveryResponse::default()
                }));
            }
            nonce += 1;
            replies.push(if delta {
                Reply::Delta(DeltaDiscoveryResponse {
                    type_url: type_url.clone(),
                    nonce: nonce.to_string(),
                    resources,
                    removed_resources: removed,
                    control_plane: plane,
                    ..DeltaDiscoveryResponse::default()
                })
            } else {
                Reply::Sotw(DiscoveryResponse {
                    type_url: type_url.clone(),
                    version_info: if silent { state_version } else { nonce.to_string() },
                    nonce: nonce.to_string(),
                    resources: wanted.values().map(|body| any(type_url, body)).collect(),
                    control_plane: plane,
                    ..DiscoveryResponse::default()
                })
            });
            subscription.told = versions;
            subscription.asked.clear();
            subscription.answered = true;
        }
        self.nonce = nonce;
        replies
    }
}

fn control_plane(identifier: &str) -> Option<ControlPlane> {
    Some(ControlPlane {
        identifier: identifier.to_owned(),
    })
}

impl Subscription {
    /// Returns what the client holds or has just asked for, and what is not there.
    fn lost(&self, versions: &BTreeMap<String, String>) -> Vec<String> {
        let known = self.told.keys().chain(&self.asked);
        let lost = known.filter(|name| *name != "*" && !versions.contains_key(*name));
        lost.cloned().collect()
    }
}

fn said(type_url: &str, name: &str, body: &Bytes) -> Resource {
    Resource {
        name: name.to_owned(),
        version: version(body),
        resource: Some(any(type_url, body)),
        ..Resource::default()
    }
}

fn any(type_url: &str, body: &Bytes) -> Any {
    Any {
        type_url: type_url.to_owned(),
        value: body.clone(),
    }
}

/// The version of all resources of a type, as of a snapshot of go-control-plane.
fn state_version(state: &BTreeMap<String, Bytes>) -> String {
    let mut hasher = Hasher::new(0);
    state.iter().for_each(|(name, body)| {
        hasher.field(name.as_bytes());
        hasher.field(body);
    });
    hasher.finish().to_string()
}

fn version(body: &Bytes) -> String {
    let mut hasher = Hasher::new(0);
    hasher.field(body);
    hasher.finish().to_string()
}

/// A body: the name, the message, and a mark that makes contents differ.
fn named(name: &str, message: &impl Message) -> Bytes {
    let mut body = vec![0x0a, u8::try_from(name.len()).unwrap()];
    body.extend(name.as_bytes());
    body.extend(message.encode_to_vec());
    Bytes::from(body)
}

fn filter(of: &str, message: &impl Message) -> fields::FilterChain {
    let config = Any {
        type_url: format!("type.googleapis.com/envoy.extensions.filters.network.some.v3.{of}"),
        value: Bytes::from(message.encode_to_vec()),
    };
    fields::FilterChain {
        filters: vec![fields::Filter {
            typed_config: Some(config),
        }],
    }
}

/// A listener that takes its route from RDS.
pub fn listener(name: &str, route: &str, port: u32) -> Bytes {
    let manager = fields::HttpConnectionManager {
        rds: Some(fields::Rds {
            route_config_name: route.to_owned(),
        }),
        ..fields::HttpConnectionManager::default()
    };
    listening(name, filter("HttpConnectionManager", &manager), port)
}

/// A listener that passes connections on to a cluster.
pub fn proxy(name: &str, cluster: &str, port: u32) -> Bytes {
    let proxy = fields::TcpProxy {
        cluster: cluster.to_owned(),
        ..fields::TcpProxy::default()
    };
    listening(name, filter("TcpProxy", &proxy), port)
}

fn listening(name: &str, chain: fields::FilterChain, port: u32) -> Bytes {
    let listener = fields::Listener {
        filter_chains: vec![chain],
        ..fields::Listener::default()
    };
    let addresses = fields::ListenerAddresses {
        address: Some(fields::Address {
            socket_address: Some(fields::SocketAddress {
                address: "0.0.0.0".to_owned(),
                port_value: port,
                ..fields::SocketAddress::default()
            }),
            ..fields::Address::default()
        }),
        ..fields::ListenerAddresses::default()
    };
    let mut body = named(name, &listener).to_vec();
    body.extend(addresses.encode_to_vec());
    Bytes::from(body)
}

/// A route configuration that leads to these clusters.
pub fn route(name: &str, clusters: &[&str]) -> Bytes {
    let routes = clusters.iter().map(|cluster| fields::Route {
        route: Some(fields::RouteAction {
            cluster: (*cluster).to_owned(),
            ..fields::RouteAction::default()
        }),
        ..fields::Route::default()
    });
    let host = fields::VirtualHost {
        routes: routes.collect(),
        ..fields::VirtualHost::default()
    };
    let route = fields::RouteConfiguration {
        virtual_hosts: vec![host],
        ..fields::RouteConfiguration::default()
    };
    named(name, &route)
}

/// A scoped route with a route configuration of its own, which leads to this cluster.
pub fn scope(name: &str, cluster: &str) -> Bytes {
    let routes = fields::RouteConfiguration::decode(route("", &[cluster])).unwrap();
    let scope = fields::ScopedRouteConfiguration {
        route_configuration: Some(routes),
        ..fields::ScopedRouteConfiguration::default()
    };
    named(name, &scope)
}

/// A cluster that takes its endpoints from EDS.
pub fn cluster(name: &str) -> Bytes {
    let cluster = Cluster {
        name: name.to_owned(),
        r#type: DiscoveryType::Eds.into(),
        ..Cluster::default()
    };
    Bytes::from(cluster.encode_to_vec())
}

/// A cluster that takes its endpoints from an assignment with another name.
pub fn served_by(name: &str, endpoints: &str) -> Bytes {
    let cluster = Cluster {
        name: name.to_owned(),
        r#type: DiscoveryType::Eds.into(),
        eds_cluster_config: Some(EdsClusterConfig {
            service_name: endpoints.to_owned(),
        }),
    };
    Bytes::from(cluster.encode_to_vec())
}

/// A cluster made of others.
pub fn aggregate(name: &str, members: &[&str]) -> Bytes {
    let members = fields::AggregateClusterConfig {
        clusters: members.iter().map(ToString::to_string).collect(),
    };
    let custom = fields::CustomClusterType {
        typed_config: Some(Any {
            type_url: "type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig".to_owned(),
            value: Bytes::from(members.encode_to_vec()),
        }),
    };
    named(
        name,
        &fields::Cluster {
            cluster_type: Some(custom),
        },
    )
}

/// An endpoint assignment with so many endpoints.
pub fn endpoints(name: &str, count: usize) -> Bytes {
    let locality = fields::LocalityLbEndpoints {
        lb_endpoints: vec![fields::LbEndpoint::default(); count],
        ..fields::LocalityLbEndpoints::default()
    };
    let assignment = fields::ClusterLoadAssignment {
        endpoints: vec![locality],
    };
    named(name, &assignment)
}

/// Some resource that refers to nothing.
pub fn plain(name: &str) -> Bytes {
    named(name, &fields::LbEndpoint::default())
}
