// SPDX-License-Identifier: Apache-2.0
//! A control plane that has a state, and the resources of its states.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use proto::distributary::references as fields;
use proto::envoy::config::cluster::v3::{Cluster, cluster::DiscoveryType, cluster::EdsClusterConfig};
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use proto::google::protobuf::Any;

pub use crate::session::Reply;
use crate::session::{Habits, Resource, Session};

/// A state: by type and name, the body.
pub type Content = BTreeMap<String, BTreeMap<String, Bytes>>;

/// A control plane with one stream.
#[derive(Default)]
pub struct Plane {
    pub content: Content,
    pub habits: Habits,
    session: Session,
    /// With what it had nothing to say, since it heard anything.
    rest: Option<(Content, Habits)>,
}

impl Plane {
    /// The stream ends.
    pub fn hang_up(&mut self) {
        (self.session, self.rest) = (Session::default(), None);
    }

    /// It answers for a name again, as if it was asked.
    pub fn repeat(&mut self, kind: &str, name: &str) {
        self.rest = None;
        self.session.repeat(kind, name);
    }

    pub fn hear_delta(&mut self, request: DeltaDiscoveryRequest) {
        self.rest = None;
        self.session.hear_delta(&self.habits, request);
    }

    pub fn hear_sotw(&mut self, request: DiscoveryRequest) {
        self.rest = None;
        self.session.hear_sotw(&self.habits, request);
    }

    /// Returns what it has to say now.
    pub fn replies(&mut self) -> Vec<Reply> {
        let rests = |(content, habits): &(Content, Habits)| (content, habits) == (&self.content, &self.habits);
        if self.rest.as_ref().is_some_and(rests) {
            return Vec::new();
        }
        let asked = self
            .content
            .iter()
            .filter(|(kind, _)| self.session.types.contains_key(*kind));
        let resources = |of_kind: &BTreeMap<String, Bytes>| {
            let all = of_kind.iter().map(|(name, body)| (name.clone(), Resource::from(body)));
            all.collect()
        };
        let state = asked
            .map(|(kind, of_kind)| (kind.clone(), resources(of_kind)))
            .collect();
        let replies = self.session.replies(&self.habits, &state);
        self.rest = replies.is_empty().then(|| (self.content.clone(), self.habits.clone()));
        replies
    }
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
    served_by(name, "")
}

/// A cluster that takes its endpoints from an assignment with another name, if there is one.
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
