// SPDX-License-Identifier: Apache-2.0
//! The types and bodies of the worlds.
//!
//! Owns their encoding, separate from the relay's own. Does not know who sends them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use proto::google::protobuf::Any;
use xds::TypeUrl;

/// The types of the world, in the order in which changes go out (D-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Type {
    Cds,
    Eds,
    /// Endpoints one by one, in collections to which an assignment refers (LEDS). Their bodies have no names.
    Leds,
    Lds,
    Rds,
    Sds,
    /// A type that the relay's configuration does not mention.
    Odd,
}

impl Type {
    /// Those that are in every world.
    pub(crate) const ALL: [Self; 6] = [Self::Cds, Self::Eds, Self::Lds, Self::Rds, Self::Sds, Self::Odd];
    /// All that there are.
    pub(crate) const EVERY: [Self; 7] = [
        Self::Cds,
        Self::Eds,
        Self::Leds,
        Self::Lds,
        Self::Rds,
        Self::Sds,
        Self::Odd,
    ];

    pub(crate) const fn url(self) -> &'static str {
        match self {
            Self::Cds => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Eds => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Leds => "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint",
            Self::Lds => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::Rds => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            Self::Sds => "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
            Self::Odd => "type.googleapis.com/example.Odd",
        }
    }

    /// The name of its message.
    pub(crate) fn message(self) -> &'static str {
        self.url().trim_start_matches("type.googleapis.com/")
    }

    pub(crate) fn of(url: &str) -> Option<Self> {
        Self::EVERY.into_iter().find(|kind| kind.url() == url)
    }

    pub(crate) fn type_url(self) -> &'static TypeUrl {
        static ALL: LazyLock<BTreeMap<Type, TypeUrl>> = LazyLock::new(|| {
            Type::EVERY
                .into_iter()
                .map(|kind| (kind, TypeUrl::new(kind.url())))
                .collect()
        });
        &ALL[&self]
    }

    /// Whether a SotW answer lists all there is, and an empty first request means everything (B-10, B-16).
    pub(crate) const fn full_state(self) -> bool {
        matches!(self, Self::Cds | Self::Lds)
    }

    /// Whether a body has a name; else only the wrapper has it.
    pub(crate) const fn named(self) -> bool {
        !matches!(self, Self::Leds)
    }
}

/// One content of one resource, as a control plane has it. Its `revision` tells it from every other content.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) name: String,
    pub(crate) revision: u64,
    /// Whether a wildcard covers it.
    pub(crate) covered: bool,
    pub(crate) ttl: Option<Duration>,
    /// Whether a picky client rejects it.
    pub(crate) bad: bool,
    /// Of an endpoint assignment: whether it has no endpoint.
    pub(crate) empty: bool,
    /// Listener: route names. Route: cluster names.
    pub(crate) refers: Vec<String>,
    /// Of a cluster that takes its endpoints from EDS: their name.
    pub(crate) endpoints: Option<String>,
}

/// What every body says to the readers of the simulation.
#[derive(Clone, PartialEq, Message)]
struct Plain {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bool, tag = "1001")]
    bad: bool,
    #[prost(uint64, tag = "1002")]
    revision: u64,
    #[prost(string, repeated, tag = "1003")]
    refers: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Cluster {
    #[prost(int32, tag = "2")]
    discovery: i32,
    #[prost(message, optional, tag = "3")]
    eds: Option<Eds>,
}

#[derive(Clone, PartialEq, Message)]
struct Eds {
    #[prost(string, tag = "2")]
    service_name: String,
}

const EDS: i32 = 3;

/// Encodes a message with one field, which has these bytes.
fn nested(tag: u32, bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    prost::encoding::bytes::encode(tag, &bytes.to_vec(), &mut message);
    message
}

/// The same for several fields, the innermost one last.
fn deep(tags: &[u32], bytes: &[u8]) -> Vec<u8> {
    let inner = bytes.to_vec();
    tags.iter().rev().fold(inner, |bytes, tag| nested(*tag, &bytes))
}

impl Content {
    pub(crate) fn body(&self, kind: Type) -> Bytes {
        let plain = Plain {
            name: if kind.named() { self.name.clone() } else { String::new() },
            bad: self.bad,
            revision: self.revision,
            refers: self.refers.clone(),
        };
        let real = match kind {
            Type::Cds => self.cluster(),
            // A chain, a filter, its configuration: a connection manager that takes this route configuration.
            Type::Lds => self.refers.iter().flat_map(|route| listener(route)).collect(),
            // A virtual host, a route, its action.
            Type::Rds => self
                .refers
                .iter()
                .flat_map(|name| deep(&[2, 3, 2, 1], name.as_bytes()))
                .collect(),
            // A locality with one endpoint.
            Type::Eds if !self.empty => deep(&[2, 2], &[]),
            Type::Eds | Type::Leds | Type::Sds | Type::Odd => Vec::new(),
        };
        [plain.encode_to_vec(), real].concat().into()
    }

    fn cluster(&self) -> Vec<u8> {
        let eds = self.endpoints.as_ref().map(|name| Eds {
            // An empty service name means the cluster's own (K-13).
            service_name: if *name == self.name {
                String::new()
            } else {
                name.clone()
            },
        });
        let discovery = if eds.is_some() { EDS } else { 0 };
        Cluster { discovery, eds }.encode_to_vec()
    }
}

fn listener(route: &str) -> Vec<u8> {
    let manager = Any {
        type_url: MANAGER.to_owned(),
        value: deep(&[3, 2], route.as_bytes()).into(),
    };
    deep(&[3, 3, 4], &manager.encode_to_vec())
}

const MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// What a reader finds in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) revision: u64,
    pub(crate) bad: bool,
    pub(crate) refers: Arc<[String]>,
    pub(crate) endpoints: Option<String>,
}

/// Reads an `Any` of this type.
pub(crate) fn read(kind: Type, any: &Any) -> Result<Facts, String> {
    if any.type_url != kind.url() {
        return Err(format!("an entry of type {} in a response of {kind:?}", any.type_url));
    }
    facts(kind, &any.value)
}

/// Reads a body of this type.
pub(crate) fn facts(kind: Type, body: &Bytes) -> Result<Facts, String> {
    let wrong = |error: prost::DecodeError| error.to_string();
    let plain = Plain::decode(body.clone()).map_err(wrong)?;
    let mut endpoints = None;
    if kind == Type::Cds {
        let cluster = Cluster::decode(body.clone()).map_err(wrong)?;
        let named = cluster.eds.map(|eds| eds.service_name).filter(|name| !name.is_empty());
        endpoints = (cluster.discovery == EDS).then(|| named.unwrap_or_else(|| plain.name.clone()));
    }
    Ok(Facts {
        name: plain.name,
        revision: plain.revision,
        bad: plain.bad,
        refers: plain.refers.into(),
        endpoints,
    })
}
