// SPDX-License-Identifier: Apache-2.0
//! Messages of clients and control planes.

use bytes::Bytes;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;

use crate::stage::CDS;

pub(crate) fn node() -> Node {
    Node {
        id: "client".to_owned(),
        ..Default::default()
    }
}

/// A cluster with this content.
pub(crate) fn cluster(name: &str, content: &str) -> Resource {
    resource(CDS, name, content)
}

/// A resource that has its name in field 1, and this content in another.
pub(crate) fn resource(type_url: &str, name: &str, content: &str) -> Resource {
    let value = [
        &[0x0a, u8::try_from(name.len()).unwrap()],
        name.as_bytes(),
        &[0x7a, 1],
        content.as_bytes(),
    ]
    .concat();
    Resource {
        name: name.to_owned(),
        version: content.to_owned(),
        resource: Some(Any {
            type_url: type_url.to_owned(),
            value: Bytes::from(value),
        }),
        ..Resource::default()
    }
}

pub(crate) fn clusters(nonce: &str, all: &[(&str, &str)], removed: &[&str]) -> DeltaDiscoveryResponse {
    resources(CDS, nonce, all, removed)
}

/// The word of a control plane about resources of a type, each with its content.
pub(crate) fn resources(type_url: &str, nonce: &str, all: &[(&str, &str)], removed: &[&str]) -> DeltaDiscoveryResponse {
    let all = all.iter().map(|(name, content)| resource(type_url, name, content));
    DeltaDiscoveryResponse {
        type_url: type_url.to_owned(),
        nonce: nonce.to_owned(),
        resources: all.collect(),
        removed_resources: removed.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    }
}
