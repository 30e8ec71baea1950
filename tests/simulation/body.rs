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

use super::variants;

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

    /// Whether it sends traffic to clusters (D-04).
    pub(crate) const fn gated(self) -> bool {
        matches!(self, Self::Lds | Self::Rds)
    }
}

/// One content of one resource, as a control plane has it. Its `revision` tells it from every other content.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) name: String,
    pub(crate) revision: u64,
    /// The constraint of the variant, if any (TP2).
    pub(crate) whom: Option<&'static str>,
    /// Other names that it answers to.
    pub(crate) aliases: Vec<String>,
    /// Whether a wildcard covers it.
    pub(crate) covered: bool,
    pub(crate) ttl: Option<Duration>,
    /// Whether a picky client rejects it.
    pub(crate) bad: bool,
    /// Listener: route names. Route: cluster names.
    pub(crate) refers: Vec<String>,
    /// Of a cluster that takes its endpoints from EDS: their name.
    pub(crate) endpoints: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Plain {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "2")]
    refers: Vec<String>,
    #[prost(string, tag = "13")]
    whom: String,
    #[prost(bool, tag = "14")]
    bad: bool,
    #[prost(uint64, tag = "15")]
    revision: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Cluster {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "2")]
    discovery: i32,
    #[prost(message, optional, tag = "3")]
    eds: Option<Eds>,
    #[prost(string, tag = "13")]
    whom: String,
    #[prost(bool, tag = "14")]
    bad: bool,
    #[prost(uint64, tag = "15")]
    revision: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Eds {
    #[prost(string, tag = "2")]
    service_name: String,
}

const EDS: i32 = 3;

impl Content {
    /// What distinguishes it from all others of its type.
    pub(crate) fn key(&self) -> String {
        variants::key(&self.name, self.whom)
    }

    /// The same, without a time to live.
    pub(crate) fn immortal(&self) -> Self {
        Self {
            name: self.name.clone(),
            aliases: self.aliases.clone(),
            refers: self.refers.clone(),
            endpoints: self.endpoints.clone(),
            ttl: None,
            ..*self
        }
    }

    pub(crate) fn body(&self, kind: Type) -> Bytes {
        if kind == Type::Cds {
            let eds = self.endpoints.as_ref().map(|name| Eds {
                // An empty service name means the cluster's own (K-13).
                service_name: if *name == self.name {
                    String::new()
                } else {
                    name.clone()
                },
            });
            let cluster = Cluster {
                name: self.name.clone(),
                discovery: if eds.is_some() { EDS } else { 0 },
                eds,
                whom: self.whom.unwrap_or_default().to_owned(),
                bad: self.bad,
                revision: self.revision,
            };
            return cluster.encode_to_vec().into();
        }
        let plain = Plain {
            name: if kind.named() { self.name.clone() } else { String::new() },
            refers: self.refers.clone(),
            whom: self.whom.unwrap_or_default().to_owned(),
            bad: self.bad,
            revision: self.revision,
        };
        plain.encode_to_vec().into()
    }
}

/// What a reader finds in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) revision: u64,
    pub(crate) whom: Option<&'static str>,
    pub(crate) bad: bool,
    pub(crate) refers: Arc<[String]>,
    pub(crate) endpoints: Option<String>,
}

/// Reads an `Any` of this type.
pub(crate) fn read(kind: Type, any: &Any) -> Result<Facts, String> {
    if any.type_url != kind.url() {
        return Err(format!("an entry of type {} in a response of {kind:?}", any.type_url));
    }
    let wrong = |error: prost::DecodeError| error.to_string();
    if kind == Type::Cds {
        let cluster = Cluster::decode(any.value.clone()).map_err(wrong)?;
        let named = cluster.eds.map(|eds| eds.service_name).filter(|name| !name.is_empty());
        let endpoints = (cluster.discovery == EDS).then(|| named.unwrap_or_else(|| cluster.name.clone()));
        return Ok(Facts {
            name: cluster.name,
            revision: cluster.revision,
            whom: variants::known(&cluster.whom),
            bad: cluster.bad,
            refers: Arc::from([]),
            endpoints,
        });
    }
    let plain = Plain::decode(any.value.clone()).map_err(wrong)?;
    Ok(Facts {
        name: plain.name,
        revision: plain.revision,
        whom: variants::known(&plain.whom),
        bad: plain.bad,
        refers: plain.refers.into(),
        endpoints: None,
    })
}
