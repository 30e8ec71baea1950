// SPDX-License-Identifier: Apache-2.0
//! Who a client says it is.
//!
//! Owns the parts of a node that the relay looks at. Does not decide what a client may have.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::passes::{Taken, put};
use super::{Class, Marks, Path};
use proto::envoy::config::core::v3 as core;
use proto::envoy::config::core::v3::node::UserAgentVersionType;
use proto::google::protobuf::{Struct, Value, value::Kind};

/// The parts of a client's node that the relay reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The node's id.
    pub id: Arc<str>,
    /// The node's cluster.
    pub cluster: Arc<str>,
    /// Where it runs.
    pub locality: Locality,
    /// The scalar members of the metadata as text, by the written form of their [`super::Path`].
    pub metadata: BTreeMap<String, String>,
    /// What it can read.
    pub features: Features,
    /// The relays that the stream has come through, if any (K-25).
    pub marks: Option<Arc<Marks>>,
    /// The software, as it names itself.
    pub user_agent: Arc<UserAgent>,
    /// K-02: which clients it shares views with. It stays with a stream even if the rules change.
    pub class: Arc<Class>,
    /// The part of it that its class passes on to control planes.
    pub passed: Option<Arc<Taken>>,
}

/// The software of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserAgent {
    /// Its name.
    pub name: Box<str>,
    /// Its version, if it says one.
    pub version: Box<str>,
}

impl UserAgent {
    /// Returns a number below 16. Other software may have the same.
    pub fn number(&self) -> u8 {
        let bytes = self.name.bytes().chain([0]).chain(self.version.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash >> 60).to_le_bytes()[0]
    }
}

/// Where a client runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locality {
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Sub-zone.
    pub sub_zone: String,
}

/// What a client can read beyond the minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Features {
    /// Resources in the wrapper message in SotW (B-30).
    pub wrapper: bool,
    /// Time to live, and heartbeats under delta (K-18).
    pub ttl: bool,
    /// It is an Envoy, which names no features: over v3 it reads time to live, and in SotW the wrapper that carries it (B-30).
    pub envoy: bool,
    /// It asks once and shows the answer to a person: `distributary get`.
    pub once: bool,
    /// `LbEndpoint` collections; changes what a server sends, so it is part of the class (K-04).
    pub endpoint_collections: bool,
}

/// The metadata key under which every relay on the way adds its id (K-25).
pub const RELAYS: &str = "distributary.relays";

/// The name of the software that `envoy` stands for.
const ENVOY: &str = "envoy";

/// How the names of all gRPC implementations begin: `gRPC Go`, `gRPC Java`, `gRPC C-core linux`, `gRPC Node Pure JS`.
const GRPC: &str = "gRPC ";

/// The name of the feature that `endpoint_collections` stands for.
pub const ENDPOINT_COLLECTIONS: &str = "xds.endpoint.supports_lb_endpoint_collection";

/// The name of the feature that `once` stands for, which only `distributary get` has.
pub const ASKS_ONCE: &str = "distributary.asks-once";

impl fmt::Display for UserAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &*self.version {
            "" => Ok(()),
            version => write!(f, " {version}"),
        }
    }
}

impl Node {
    /// Returns the class of the client, or the class of all clients if they share what it reads.
    pub fn class_of(&self, shared: bool) -> Class {
        match shared {
            true => self.class.shared(),
            false => (*self.class).clone(),
        }
    }

    /// Returns it as a message, as far as it is known.
    pub fn wire(&self) -> core::Node {
        let mut metadata = Struct::default();
        for (written, value) in &self.metadata {
            if let Ok(path) = Path::read(written) {
                let kind = Some(Kind::StringValue(value.clone()));
                put(&mut metadata, path.parts(), Value { kind });
            }
        }
        core::Node {
            id: (*self.id).to_owned(),
            cluster: (*self.cluster).to_owned(),
            metadata: (!metadata.fields.is_empty()).then_some(metadata),
            locality: (self.locality != Locality::default()).then(|| core::Locality {
                region: self.locality.region.clone(),
                zone: self.locality.zone.clone(),
                sub_zone: self.locality.sub_zone.clone(),
            }),
            user_agent_name: (*self.user_agent.name).to_owned(),
            user_agent_version_type: (!self.user_agent.version.is_empty())
                .then(|| UserAgentVersionType::UserAgentVersion((*self.user_agent.version).to_owned())),
            ..core::Node::default()
        }
    }

    /// G-18: whether it is gRPC, which turns to its next server if a stream ends before the first response. A relay may pass on
    /// the user agent of its clients.
    pub fn is_grpc(&self) -> bool {
        self.user_agent.name.starts_with(GRPC) && !self.is_relay()
    }

    /// Whether it is a relay of this kind.
    pub const fn is_relay(&self) -> bool {
        self.marks.is_some()
    }

    /// K-25: the marks of the relays that the stream has come through, as far as they are kept.
    pub fn relays(&self) -> &[String] {
        self.marks.as_ref().map_or(&[], |marks| marks.relays())
    }
}

impl Features {
    /// Reads the names of features, as they are on the wire or in the documents, and the name of the software (B-30).
    pub fn read<'a>(names: impl Iterator<Item = &'a str>, user_agent: &str) -> Self {
        let mut features = Self {
            envoy: user_agent == ENVOY,
            ..Self::default()
        };
        for name in names {
            match name {
                "xds.config.resource-in-sotw"
                | "xds.config.supports-resource-in-sotw"
                | "envoy.config.resource-in-sotw" => features.wrapper = true,
                "xds.config.supports-resource-ttl" => features.ttl = true,
                ASKS_ONCE => features.once = true,
                ENDPOINT_COLLECTIONS => features.endpoint_collections = true,
                _ => {}
            }
        }
        features
    }
}
