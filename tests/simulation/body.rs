// SPDX-License-Identifier: Apache-2.0
//! The types and bodies of the worlds.
//!
//! Owns their encoding, separate from the relay's own. Does not know who sends them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use peers::session::Resource;
use peers::state::{cluster, endpoints, listener, plain, route, served_by};
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
    #[prost(string, optional, tag = "1004")]
    endpoints: Option<String>,
}

impl Content {
    /// The same as a control plane has it.
    pub(crate) fn resource(&self, kind: Type) -> Resource {
        Resource {
            body: self.body(kind),
            version: self.revision.to_string(),
            ttl: self.ttl,
            covered: self.covered,
        }
    }

    fn body(&self, kind: Type) -> Bytes {
        let refers: Vec<&str> = self.refers.iter().map(String::as_str).collect();
        let real = match (kind, self.endpoints.as_deref(), &*refers) {
            // An empty service name means the cluster's own (K-13).
            (Type::Cds, Some(name), _) if name == self.name => cluster(name),
            (Type::Cds, Some(name), _) => served_by(&self.name, name),
            (Type::Lds, _, [route]) => listener(&self.name, route, port(&self.name)),
            (Type::Rds, ..) => route(&self.name, &refers),
            (Type::Eds, ..) => endpoints(&self.name, usize::from(!self.empty)),
            (Type::Leds, ..) => Bytes::new(),
            (Type::Cds | Type::Lds | Type::Sds | Type::Odd, ..) => plain(&self.name),
        };
        let facts = Plain {
            name: String::new(),
            bad: self.bad,
            revision: self.revision,
            refers: self.refers.clone(),
            endpoints: self.endpoints.clone(),
        };
        [&*real, &facts.encode_to_vec()].concat().into()
    }
}

/// No two listeners have one address.
fn port(name: &str) -> u32 {
    name.bytes()
        .fold(0, |port, byte| (port * 31 + u32::from(byte)) % 65_521)
}

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
    facts(&any.value)
}

/// Reads a body.
pub(crate) fn facts(body: &Bytes) -> Result<Facts, String> {
    let plain = Plain::decode(body.clone()).map_err(|error| error.to_string())?;
    Ok(Facts {
        name: plain.name,
        revision: plain.revision,
        bad: plain.bad,
        refers: plain.refers.into(),
        endpoints: plain.endpoints,
    })
}
