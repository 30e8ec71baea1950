// SPDX-License-Identifier: Apache-2.0
//! The messages between relay and clients.
//!
//! Owns encoding the relay's responses as a transport would write them, and decoding them as a client would. Does not judge
//! them.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message;
use proto::envoy::config::core::v3::ControlPlane;
use proto::envoy::service::discovery::v3 as discovery;
use protocol::{Cutter, Response};
use xds::{Dialect, WRAPPER_URL};

use super::body::{Facts, Type, read};
use super::names::canonical;

/// A request of either dialect.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    Sotw(discovery::DiscoveryRequest),
    Delta(discovery::DeltaDiscoveryRequest),
}

/// A response of either dialect, read.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) kind: Type,
    pub(crate) nonce: String,
    pub(crate) version: String,
    pub(crate) entries: Vec<Entry>,
    /// The names that the response removes, as it writes them.
    pub(crate) removed: Vec<String>,
}

/// One entry of a response.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Delta: its version.
    pub(crate) version: String,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wrapped: bool,
    /// `None` in a heartbeat.
    pub(crate) facts: Option<Facts>,
}

/// A response that comes to the relay in one piece.
pub(crate) fn cut(message: impl AsRef<[u8]>) -> Cutter {
    let mut cutter = Cutter::new(message.as_ref().len(), usize::MAX);
    cutter.push(message.as_ref());
    cutter
}

/// The bytes of a response: a private head, and the shared pieces.
pub(crate) fn encode(response: &Response) -> Bytes {
    let type_url = response.type_url.url().to_owned();
    let (version, nonce) = (response.version.to_string(), response.nonce.to_string());
    let control_plane = Some(ControlPlane {
        identifier: "distributary/relay".to_owned(),
    });
    let head = match response.dialect {
        Dialect::Sotw => discovery::DiscoveryResponse {
            version_info: version,
            type_url,
            nonce,
            control_plane,
            ..Default::default()
        }
        .encode_to_vec(),
        Dialect::Delta => discovery::DeltaDiscoveryResponse {
            system_version_info: version,
            type_url,
            nonce,
            control_plane,
            ..Default::default()
        }
        .encode_to_vec(),
    };
    let (pieces, _) = response.batch.encoded(response.dialect);
    let mut bytes = BytesMut::from(&head[..]);
    pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
    bytes.freeze()
}

/// Reads a response.
pub(crate) fn decode(bytes: Bytes, dialect: Dialect) -> Result<Answer, String> {
    match dialect {
        Dialect::Sotw => {
            let response = discovery::DiscoveryResponse::decode(bytes).map_err(|error| error.to_string())?;
            let kind = kind(&response.type_url)?;
            let entries = response.resources.iter().map(|any| {
                if any.type_url == WRAPPER_URL {
                    let inner = discovery::Resource::decode(any.value.clone()).map_err(|error| error.to_string())?;
                    return entry(kind, inner, true);
                }
                let facts = read(kind, any)?;
                Ok(Entry {
                    name: facts.name.clone(),
                    version: String::new(),
                    ttl: None,
                    wrapped: false,
                    facts: Some(facts),
                })
            });
            Ok(Answer {
                kind,
                nonce: response.nonce,
                version: response.version_info,
                entries: entries.collect::<Result<_, _>>()?,
                removed: Vec::new(),
            })
        }
        Dialect::Delta => {
            let response = discovery::DeltaDiscoveryResponse::decode(bytes).map_err(|error| error.to_string())?;
            let kind = kind(&response.type_url)?;
            let entries = response.resources.into_iter().map(|inner| entry(kind, inner, false));
            let entries: Vec<Entry> = entries.collect::<Result<_, _>>()?;
            Ok(Answer {
                kind,
                nonce: response.nonce,
                version: response.system_version_info,
                entries,
                removed: response.removed_resources,
            })
        }
    }
}

fn kind(url: &str) -> Result<Type, String> {
    Type::of(url).ok_or_else(|| format!("a response of type {url:?}"))
}

fn entry(kind: Type, inner: discovery::Resource, wrapped: bool) -> Result<Entry, String> {
    let facts = inner.resource.as_ref().map(|any| read(kind, any)).transpose()?;
    let name = inner.name;
    // F-09: the entry may use the client's spelling of the name.
    let other = |facts: &&Facts| kind.named() && facts.name != name && facts.name != canonical(kind, &name);
    if let Some(facts) = facts.as_ref().filter(other) {
        return Err(format!("{:?} is in an entry called {name:?}", facts.name));
    }
    Ok(Entry {
        name,
        version: inner.version,
        ttl: inner
            .ttl
            .map(|ttl| Duration::new(ttl.seconds.unsigned_abs(), ttl.nanos.unsigned_abs())),
        wrapped,
        facts,
    })
}

impl Answer {
    /// Whether it has an entry of this name.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    /// Whether more of the same answer follows.
    pub(crate) fn goes_on(&self) -> bool {
        self.nonce.ends_with('+')
    }

    /// All names that it mentions.
    pub(crate) fn mentions(&self) -> impl Iterator<Item = &String> {
        let entries = self.entries.iter();
        entries.map(|entry| &entry.name).chain(&self.removed)
    }

    /// Formats a response for the trace.
    pub(crate) fn brief(&self) -> String {
        let entries: Vec<String> = self
            .entries
            .iter()
            .map(|entry| match &entry.facts {
                Some(facts) => format!(
                    "{}@{}{}{}",
                    entry.name,
                    facts.revision,
                    if facts.bad { "!" } else { "" },
                    if entry.ttl.is_some() { "~" } else { "" },
                ),
                None => format!("{} beats", entry.name),
            })
            .collect();
        let removed = if self.removed.is_empty() {
            String::new()
        } else {
            format!(" -[{}]", self.removed.join(" "))
        };
        format!("{:?} [{}]{removed} {}", self.kind, entries.join(" "), self.nonce)
    }
}

impl Up {
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Sotw(request) => format!(
                "{} {:?} v={:.6} n={}{}",
                short(&request.type_url),
                request.resource_names,
                request.version_info,
                request.response_nonce,
                if request.error_detail.is_some() { " NACK" } else { "" },
            ),
            Self::Delta(request) => format!(
                "{} +{:?} -{:?} initial {:?} n={}{}",
                short(&request.type_url),
                request.resource_names_subscribe,
                request.resource_names_unsubscribe,
                request.initial_resource_versions.keys().collect::<Vec<_>>(),
                request.response_nonce,
                if request.error_detail.is_some() { " NACK" } else { "" },
            ),
        }
    }

    /// The nonce of the response that it answers.
    pub(crate) fn nonce(&self) -> &str {
        match self {
            Self::Sotw(request) => &request.response_nonce,
            Self::Delta(request) => &request.response_nonce,
        }
    }

    pub(crate) fn kind(&self) -> Option<Type> {
        match self {
            Self::Sotw(request) => Type::of(&request.type_url),
            Self::Delta(request) => Type::of(&request.type_url),
        }
    }
}

fn short(url: &str) -> String {
    Type::of(url).map_or_else(|| format!("{url:?}"), |kind| format!("{kind:?}"))
}
