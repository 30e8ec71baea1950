// SPDX-License-Identifier: Apache-2.0
//! Messages of clients and control planes.

use bytes::Bytes;
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Resource,
};
use proto::google::protobuf::Any;
use proto::google::rpc::Status;

pub const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
pub const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

#[must_use]
pub fn node() -> Node {
    node_of("client", "")
}

/// A node with this id and this cluster.
#[must_use]
pub fn node_of(id: &str, cluster: &str) -> Node {
    Node {
        id: id.to_owned(),
        cluster: cluster.to_owned(),
        ..Node::default()
    }
}

/// The first request of a client, for these names.
#[must_use]
pub fn wants(type_url: &str, names: &[&str]) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(node()),
        type_url: type_url.to_owned(),
        resource_names_subscribe: owned(names),
        ..DeltaDiscoveryRequest::default()
    }
}

/// The same in SotW.
#[must_use]
pub fn wants_sotw(type_url: &str, names: &[&str]) -> DiscoveryRequest {
    DiscoveryRequest {
        node: Some(node()),
        type_url: type_url.to_owned(),
        resource_names: owned(names),
        ..DiscoveryRequest::default()
    }
}

/// The same request of this client.
#[must_use]
pub fn of_node(id: &str, cluster: &str, request: DeltaDiscoveryRequest) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(node_of(id, cluster)),
        ..request
    }
}

/// The answer to a response: with words of rejection, or by accepting it.
#[must_use]
pub fn answer(type_url: &str, nonce: &str, words: Option<&str>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        type_url: type_url.to_owned(),
        response_nonce: nonce.to_owned(),
        error_detail: words.map(rejection),
        ..DeltaDiscoveryRequest::default()
    }
}

/// A rejection with these words.
#[must_use]
pub fn rejection(words: &str) -> Status {
    Status {
        code: 13,
        message: words.to_owned(),
        ..Status::default()
    }
}

/// A body whose string field 1 is the name, followed by its content.
#[must_use]
pub fn body(type_url: &str, name: &str, content: &str) -> Any {
    let mut value = vec![0x0a, u8::try_from(name.len()).unwrap()];
    value.extend(name.as_bytes());
    value.extend([0x7a, u8::try_from(content.len() + 1).unwrap(), b'=']);
    value.extend(content.as_bytes());
    Any {
        type_url: type_url.to_owned(),
        value: Bytes::from(value),
    }
}

/// A resource called `name` with the content and version `content`.
#[must_use]
pub fn resource(type_url: &str, name: &str, content: &str) -> Resource {
    Resource {
        name: name.to_owned(),
        version: content.to_owned(),
        resource: Some(body(type_url, name, content)),
        ..Resource::default()
    }
}

#[must_use]
pub fn cluster(name: &str, content: &str) -> Resource {
    resource(CDS, name, content)
}

#[must_use]
pub fn clusters(nonce: &str, all: &[(&str, &str)], removed: &[&str]) -> DeltaDiscoveryResponse {
    resources(CDS, nonce, all, removed)
}

/// The word of a control plane about resources of a type, each with its content.
#[must_use]
pub fn resources(type_url: &str, nonce: &str, all: &[(&str, &str)], removed: &[&str]) -> DeltaDiscoveryResponse {
    let all = all.iter().map(|(name, content)| resource(type_url, name, content));
    DeltaDiscoveryResponse {
        type_url: type_url.to_owned(),
        nonce: nonce.to_owned(),
        resources: all.collect(),
        removed_resources: owned(removed),
        ..DeltaDiscoveryResponse::default()
    }
}

/// The same with `a=1` in `puts`.
#[must_use]
pub fn delta(type_url: &str, nonce: &str, puts: &[&str], removed: &[&str]) -> DeltaDiscoveryResponse {
    let puts: Vec<_> = puts.iter().map(|put| put.split_once('=').unwrap()).collect();
    resources(type_url, nonce, &puts, removed)
}

/// The same in SotW.
#[must_use]
pub fn sotw(type_url: &str, version: &str, nonce: &str, puts: &[&str]) -> DiscoveryResponse {
    let put = |put: &&str| {
        let (name, content) = put.split_once('=').unwrap();
        body(type_url, name, content)
    };
    DiscoveryResponse {
        type_url: type_url.to_owned(),
        version_info: version.to_owned(),
        nonce: nonce.to_owned(),
        resources: puts.iter().map(put).collect(),
        ..DiscoveryResponse::default()
    }
}

pub(crate) fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
