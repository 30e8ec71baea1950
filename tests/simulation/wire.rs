//! The messages between relay and clients.
//!
//! Owns encoding the relay's responses as a transport would write them, and decoding them as a client would. Does not judge
//! them.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message;
use proto::envoy::config::core::v3::ControlPlane;
use proto::envoy::service::discovery::v3 as discovery;
use protocol::Response;
use xds::{Dialect, WRAPPER_URL};

use super::body::{Facts, Type, read};
use super::names::canonical;
use super::variants;

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
    /// Delta: the variants that the response removes, some of them because other content replaces them.
    pub(crate) withdrawn: Vec<(String, &'static str)>,
}

/// One entry of a response.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The constraint of the variant, if it is one (TP2).
    pub(crate) whom: Option<&'static str>,
    pub(crate) aliases: Vec<String>,
    /// Delta: its version.
    pub(crate) version: String,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wrapped: bool,
    /// Whether it has the constraint beside its name.
    pub(crate) full: bool,
    /// `None` in a heartbeat.
    pub(crate) facts: Option<Facts>,
}

/// The bytes of a response: a private head, and the shared pieces.
pub(crate) fn encode(response: &Response) -> Bytes {
    let type_url = response.type_url.url().to_owned();
    let (version, nonce) = (response.version.to_string(), response.nonce.to_string());
    let head = match response.dialect {
        Dialect::Sotw => discovery::DiscoveryResponse {
            version_info: version,
            type_url,
            nonce,
            control_plane: Some(ControlPlane {
                identifier: "distributary/relay".to_owned(),
            }),
            ..Default::default()
        }
        .encode_to_vec(),
        Dialect::Delta => discovery::DeltaDiscoveryResponse {
            system_version_info: version,
            type_url,
            nonce,
            control_plane: Some(ControlPlane {
                identifier: "distributary/relay".to_owned(),
            }),
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
                    whom: facts.whom,
                    aliases: Vec::new(),
                    version: String::new(),
                    ttl: None,
                    wrapped: false,
                    full: false,
                    facts: Some(facts),
                })
            });
            Ok(Answer {
                kind,
                nonce: response.nonce,
                version: response.version_info,
                entries: entries.collect::<Result<_, _>>()?,
                removed: Vec::new(),
                withdrawn: Vec::new(),
            })
        }
        Dialect::Delta => {
            let response = discovery::DeltaDiscoveryResponse::decode(bytes).map_err(|error| error.to_string())?;
            let kind = kind(&response.type_url)?;
            let entries = response.resources.into_iter().map(|inner| entry(kind, inner, false));
            let entries: Vec<Entry> = entries.collect::<Result<_, _>>()?;
            let withdrawn = response.removed_resource_names.iter().map(variants::of_full_name);
            let withdrawn: Vec<(String, &str)> = withdrawn.collect::<Result<_, _>>()?;
            let alone = |(name, _): &&(String, &str)| !entries.iter().any(|entry| entry.name == *name);
            let mut alone: Vec<String> = withdrawn.iter().filter(alone).map(|(name, _)| name.clone()).collect();
            // A name may go together with its variants, of which the client may hold any.
            alone.sort();
            alone.dedup();
            alone.retain(|name| !response.removed_resources.contains(name));
            let removed = response.removed_resources.into_iter().chain(alone).collect();
            Ok(Answer {
                kind,
                nonce: response.nonce,
                version: response.system_version_info,
                entries,
                removed,
                withdrawn,
            })
        }
    }
}

fn kind(url: &str) -> Result<Type, String> {
    Type::of(url).ok_or_else(|| format!("a response of type {url:?}"))
}

fn entry(kind: Type, inner: discovery::Resource, wrapped: bool) -> Result<Entry, String> {
    let facts = inner.resource.as_ref().map(|any| read(kind, any)).transpose()?;
    // an entry has a `name` or a `resource_name`, not both.
    let full = inner.resource_name.as_ref().map(variants::of_full_name).transpose()?;
    if full.is_some() && !inner.name.is_empty() {
        return Err(format!("{} and {full:?}", inner.name));
    }
    let by_full = full.is_some();
    let (name, whom) = full.map_or_else(|| (inner.name, None), |(name, whom)| (name, Some(whom)));
    // B-30: in the wrapper that an Envoy reads, a variant has its name alone.
    let said = || facts.as_ref().and_then(|facts| facts.whom).filter(|_| wrapped);
    let whom = whom.or_else(said);
    if let Some(facts) = facts.as_ref().filter(|facts| facts.whom != whom) {
        return Err(format!("{name} for {whom:?} is for {:?}", facts.whom));
    }
    // F-09: the entry may use the client's spelling of the name.
    let other = |facts: &&Facts| kind.named() && facts.name != name && facts.name != canonical(&name);
    if let Some(facts) = facts.as_ref().filter(other) {
        return Err(format!("{:?} is in an entry called {name:?}", facts.name));
    }
    Ok(Entry {
        name,
        whom,
        aliases: inner.aliases,
        version: inner.version,
        ttl: inner
            .ttl
            .map(|ttl| Duration::new(ttl.seconds.unsigned_abs(), ttl.nanos.unsigned_abs())),
        wrapped,
        full: by_full,
        facts,
    })
}

impl Answer {
    /// The names of its heartbeats.
    pub(crate) fn beats(&self) -> Vec<String> {
        let beats = self.entries.iter().filter(|entry| entry.facts.is_none());
        beats.map(|entry| entry.name.clone()).collect()
    }

    /// The variants that it brings or removes, by name and constraint.
    pub(crate) fn variants(&self) -> Vec<(String, &'static str)> {
        let brought = self
            .entries
            .iter()
            .filter_map(|entry| Some((entry.name.clone(), entry.whom?)));
        brought.chain(self.withdrawn.iter().cloned()).collect()
    }

    pub(crate) fn revision(&self, name: &str) -> Option<u64> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        entry.facts.as_ref().map(|facts| facts.revision)
    }

    /// Formats a response for the trace.
    pub(crate) fn brief(&self) -> String {
        let entries: Vec<String> = self
            .entries
            .iter()
            .map(|entry| match &entry.facts {
                Some(facts) => format!(
                    "{}{}@{}{}{}",
                    variants::key(&entry.name, entry.whom),
                    entry
                        .aliases
                        .iter()
                        .map(|alias| format!("={alias}"))
                        .collect::<String>(),
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
        let withdrawn = self
            .withdrawn
            .iter()
            .map(|(name, whom)| variants::key(name, Some(whom)));
        let withdrawn: Vec<String> = withdrawn.map(|key| format!(" -{key}")).collect();
        let (entries, withdrawn) = (entries.join(" "), withdrawn.concat());
        format!("{:?} [{entries}]{removed}{withdrawn} {}", self.kind, self.nonce)
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
