// SPDX-License-Identifier: Apache-2.0
//! Which parts of its clients' nodes a class passes on to control planes, in addition to its key (K-04).
//!
//! Owns what is taken from a client's node and what it replaces in the relay's own. Knows nothing of classes and streams.

use std::sync::Arc;

use prost::Message;
use prost::bytes::Bytes;

use super::node::RELAYS;
use super::path::Path;
use super::selector::Selector;
use proto::envoy::config::core::v3::{Locality, Node, node::UserAgentVersionType};
use proto::google::protobuf::{Struct, Value, value::Kind};

/// How much of a metadata key a message shows: clients choose the keys.
const FIELD_CHARS_MAX: usize = 200;

/// What is passed on. It replaces the same fields of the relay's own node, even where the client has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Passes {
    /// Nothing but the key.
    #[default]
    Nothing,
    /// These parts.
    Parts(Parts),
    /// The client's whole node, in place of the relay's own.
    Whole,
}

/// Parts of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parts {
    /// The members of the metadata.
    pub metadata: Members,
    /// Whether the locality is passed on.
    pub locality: bool,
    /// Whether the software and its version are passed on.
    pub user_agent: bool,
}

/// Members of the metadata.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Members {
    /// These.
    These(Vec<Member>),
    /// All.
    All,
}

/// A member of the metadata, whatever its kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Where it is.
    pub path: Path,
    /// Whether only the members below it are meant (`LABELS.*`): then a value of another kind is not passed on.
    pub below: bool,
}

/// Envoy's BuildVersion. An Envoy writes the members of its metadata in another order on each stream, so it is compared as a message.
#[derive(Clone, PartialEq, Message)]
struct BuildVersion {
    #[prost(bytes = "bytes", optional, tag = "1")]
    version: Option<Bytes>,
    #[prost(message, optional, tag = "2")]
    metadata: Option<Struct>,
}

/// Envoy's Extension, whose version is a BuildVersion.
#[derive(Clone, PartialEq, Message)]
struct Extension {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    category: String,
    #[prost(bytes = "bytes", optional, tag = "3")]
    type_descriptor: Option<Bytes>,
    #[prost(message, optional, tag = "4")]
    version: Option<BuildVersion>,
    #[prost(bool, tag = "5")]
    disabled: bool,
    #[prost(string, repeated, tag = "6")]
    type_urls: Vec<String>,
}

/// A version of software or of an extension, as it is compared.
#[derive(PartialEq)]
enum Version {
    Text(String),
    Build(BuildVersion),
    Extension(Extension),
    /// It is no such message.
    Bytes(Bytes),
}

impl Version {
    fn of(version: Option<&UserAgentVersionType>) -> Option<Self> {
        Some(match version? {
            UserAgentVersionType::UserAgentVersion(text) => Self::Text(text.clone()),
            UserAgentVersionType::UserAgentBuildVersion(bytes) => {
                BuildVersion::decode(bytes.clone()).map_or_else(|_| Self::Bytes(bytes.clone()), Self::Build)
            }
        })
    }

    fn of_extension(bytes: &Bytes) -> Self {
        Extension::decode(bytes.clone()).map_or_else(|_| Self::Bytes(bytes.clone()), Self::Extension)
    }
}

/// What was taken from a client's node, as it is kept while the client is connected: never more bytes than came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken(Box<[u8]>);

impl Default for Members {
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

impl Passes {
    /// Returns what is passed on of this node, without what the relay itself states (K-04, K-25). `None`: nothing.
    pub fn take(&self, client: &Node) -> Option<Arc<Taken>> {
        let taken = match self {
            Self::Nothing => return None,
            Self::Parts(parts) => parts.take(client),
            Self::Whole => Node {
                metadata: client.metadata.clone().map(unmarked),
                client_features: Vec::new(),
                ..client.clone()
            },
        };
        let kept = taken.encode_to_vec();
        (!kept.is_empty()).then(|| Arc::new(Taken(kept.into())))
    }

    /// Returns the node `relay` with what was taken from a client.
    pub fn give(&self, taken: Option<&Taken>, relay: Node) -> Node {
        let client = taken.map(Taken::read).unwrap_or_default();
        match self {
            Self::Nothing => relay,
            Self::Parts(parts) => parts.give(client, relay),
            Self::Whole => Node {
                client_features: relay.client_features,
                ..client
            },
        }
    }
}

impl Taken {
    /// Returns the first place in which two clients differ in what was taken from them.
    #[must_use]
    pub fn difference(one: Option<&Self>, other: Option<&Self>) -> Option<String> {
        if one == other {
            return None;
        }
        let (one, other) = (
            one.map(Self::read).unwrap_or_default(),
            other.map(Self::read).unwrap_or_default(),
        );
        let (ours, theirs) = (one.metadata.unwrap_or_default(), other.metadata.unwrap_or_default());
        if let Some(path) = between(&[], &ours, &theirs) {
            let field = Selector::Metadata(Path::new(path)).to_string();
            return Some(field.chars().take(FIELD_CHARS_MAX).collect());
        }
        let fields = [
            ("id", one.id != other.id),
            ("cluster", one.cluster != other.cluster),
            ("locality", one.locality != other.locality),
            ("user_agent_name", one.user_agent_name != other.user_agent_name),
            (
                "user_agent_version",
                Version::of(one.user_agent_version_type.as_ref())
                    != Version::of(other.user_agent_version_type.as_ref()),
            ),
            (
                "extensions",
                !one.extensions
                    .iter()
                    .map(Version::of_extension)
                    .eq(other.extensions.iter().map(Version::of_extension)),
            ),
            (
                "listening_addresses",
                one.listening_addresses != other.listening_addresses,
            ),
        ];
        let differs = fields.into_iter().find(|(_, differs)| *differs);
        differs.map(|(field, _)| field.to_owned())
    }

    /// How many bytes are kept.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Decodes it; this relay encoded it itself, so that cannot fail.
    fn read(&self) -> Node {
        Node::decode(&*self.0).unwrap_or_default()
    }
}

impl Parts {
    fn take(&self, client: &Node) -> Node {
        let members = client.metadata.clone().map(unmarked);
        let metadata = match &self.metadata {
            Members::All => members,
            Members::These(these) => members.map(|members| {
                let mut some = Struct::default();
                for Member { path, below } in these {
                    let found = member(&members, path.parts());
                    let found = found.filter(|found| !below || matches!(found.kind, Some(Kind::StructValue(_))));
                    if let Some(found) = found {
                        put(&mut some, path.parts(), found.clone());
                    }
                }
                some
            }),
        };
        Node {
            metadata: metadata.filter(|members| !members.fields.is_empty()),
            locality: client
                .locality
                .clone()
                .filter(|place| self.locality && *place != Locality::default()),
            user_agent_name: if self.user_agent {
                client.user_agent_name.clone()
            } else {
                String::new()
            },
            user_agent_version_type: client.user_agent_version_type.clone().filter(|_| self.user_agent),
            ..Node::default()
        }
    }

    fn give(&self, client: Node, mut relay: Node) -> Node {
        match &self.metadata {
            Members::All => relay.metadata = client.metadata,
            Members::These(these) => {
                let members = relay.metadata.get_or_insert_default();
                let theirs = client.metadata.unwrap_or_default();
                for Member { path, .. } in these {
                    remove(members, path.parts());
                    if let Some(found) = member(&theirs, path.parts()) {
                        put(members, path.parts(), found.clone());
                    }
                }
                if members.fields.is_empty() {
                    relay.metadata = None;
                }
            }
        }
        if self.locality {
            relay.locality = client.locality;
        }
        if self.user_agent {
            relay.user_agent_name = client.user_agent_name;
            relay.user_agent_version_type = client.user_agent_version_type;
        }
        relay
    }
}

/// K-25: removes the list of relays, which the relay itself states.
fn unmarked(mut members: Struct) -> Struct {
    members.fields.remove(RELAYS);
    members
}

fn member<'a>(members: &'a Struct, path: &[String]) -> Option<&'a Value> {
    let (key, below) = path.split_first()?;
    let found = members.fields.get(key)?;
    match &found.kind {
        _ if below.is_empty() => Some(found),
        Some(Kind::StructValue(inner)) => member(inner, below),
        _ => None,
    }
}

/// Puts a member where the path leads, and replaces whatever is in the way.
pub(super) fn put(members: &mut Struct, path: &[String], value: Value) {
    let Some((key, below)) = path.split_first() else { return };
    if below.is_empty() {
        members.fields.insert(key.clone(), value);
        return;
    }
    let member = members.fields.entry(key.clone()).or_default();
    if !matches!(member.kind, Some(Kind::StructValue(_))) {
        member.kind = Some(Kind::StructValue(Struct::default()));
    }
    if let Some(Kind::StructValue(inner)) = &mut member.kind {
        put(inner, below, value);
    }
}

pub(super) fn remove(members: &mut Struct, path: &[String]) {
    let Some((key, below)) = path.split_first() else { return };
    if below.is_empty() {
        members.fields.remove(key);
    } else if let Some(Value {
        kind: Some(Kind::StructValue(inner)),
    }) = members.fields.get_mut(key)
    {
        remove(inner, below);
    }
}

/// Returns the keys that lead to the first member in which two structures differ.
fn between<'a>(above: &[&'a str], one: &'a Struct, other: &'a Struct) -> Option<Vec<&'a str>> {
    let keys = one.fields.keys().chain(other.fields.keys());
    for key in keys {
        let (ours, theirs) = (one.fields.get(key), other.fields.get(key));
        if ours == theirs {
            continue;
        }
        let path = [above, &[key.as_str()]].concat();
        let kinds = (
            ours.and_then(|value| value.kind.as_ref()),
            theirs.and_then(|value| value.kind.as_ref()),
        );
        let inner = match kinds {
            (Some(Kind::StructValue(ours)), Some(Kind::StructValue(theirs))) => between(&path, ours, theirs),
            _ => None,
        };
        return Some(inner.unwrap_or(path));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members of the metadata of a version may come in any order.
    #[test]
    fn a_version_is_a_message() {
        let member = |key: &str| {
            let mut fields = Struct::default();
            let value = Value {
                kind: Some(Kind::StringValue(format!("of {key}"))),
            };
            fields.fields.insert(key.to_owned(), value);
            fields.encode_to_vec()
        };
        let build = |members: [&str; 2]| {
            let metadata = members.map(member).concat();
            let mut build = vec![0x12, u8::try_from(metadata.len()).unwrap()];
            build.extend(metadata);
            build
        };
        let extension = |build: &[u8]| {
            let mut extension = vec![0x22, u8::try_from(build.len()).unwrap()];
            extension.extend(build);
            Bytes::from(extension)
        };
        let taken = |build: Vec<u8>| {
            let node = Node {
                extensions: vec![extension(&build)],
                user_agent_version_type: Some(UserAgentVersionType::UserAgentBuildVersion(build.into())),
                ..Node::default()
            };
            Passes::Whole.take(&node)
        };
        let difference = |one: [&str; 2], other: [&str; 2]| {
            let (one, other) = (taken(build(one)), taken(build(other)));
            assert!(one != other || one.is_none());
            Taken::difference(one.as_deref(), other.as_deref())
        };
        assert_eq!(difference(["type", "revision"], ["revision", "type"]), None);
        let other = difference(["type", "revision"], ["type", "status"]);
        assert_eq!(other.as_deref(), Some("user_agent_version"));
    }
}
