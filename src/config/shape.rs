//! The file as written: keys and scalars, each with its place. Owns the keys; validates no values.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_path_to_error::{Deserializer as Tracked, Path, Segment, Track};
use serde_saphyr::{Options, Spanned};

use super::bootstrap::{NodeShape, Upstream};
use super::scalar::Scalar;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(super) node: NodeShape,
    pub(super) listeners: Option<Vec<Listener>>,
    pub(super) admin: Option<Admin>,
    pub(super) upstream: Upstream,
    pub(super) classes: Vec<Spanned<Class>>,
    pub(super) limits: LimitsShape,
    pub(super) timers: TimersShape,
    pub(super) chunk: Option<Scalar>,
    pub(super) transport_v2: Option<bool>,
    pub(super) anonymous: Option<bool>,
    pub(super) types: Vec<Type>,
    pub(super) descriptors: Vec<Scalar>,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) unknown_fields: Option<Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listener {
    pub(super) address: Scalar,
    pub(super) tls: Option<ListenerTls>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListenerTls {
    pub(super) certificate: Scalar,
    pub(super) private_key: Scalar,
    pub(super) client_ca: Option<Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Admin {
    pub(super) address: Scalar,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    #[serde(rename = "match", default)]
    pub(super) matching: BTreeMap<String, Scalar>,
    #[serde(default)]
    pub(super) key: Vec<Scalar>,
    #[serde(default)]
    pub(super) node: ClassNode,
    pub(super) credentials: Option<ClassCredentials>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassCredentials {
    pub(super) certificate_file: Option<Scalar>,
    pub(super) private_key_file: Option<Scalar>,
    pub(super) jwt_token_file: Option<Scalar>,
}

/// The `node` of a class: what control planes see of its clients.
#[derive(Debug)]
pub(super) enum ClassNode {
    /// Parts of the node.
    Parts(Box<ClassNodeParts>),
    /// A word.
    Word(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ClassNodeParts {
    pub(super) id: Option<Scalar>,
    pub(super) cluster: Option<Scalar>,
    pub(super) metadata: Option<Members>,
    pub(super) locality: Option<Scalar>,
    pub(super) user_agent: Option<Scalar>,
}

/// Members of metadata.
#[derive(Debug)]
pub(super) enum Members {
    /// A list of members.
    List(Vec<Scalar>),
    /// A word.
    Word(String),
}

impl Default for ClassNode {
    fn default() -> Self {
        Self::Parts(Box::default())
    }
}

impl<'de> Deserialize<'de> for ClassNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ClassNode;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`client`, or a mapping")
            }

            fn visit_str<E>(self, word: &str) -> Result<ClassNode, E> {
                Ok(ClassNode::Word(word.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ClassNode, A::Error> {
                let parts = ClassNodeParts::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ClassNode::Parts(Box::new(parts)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`all`, or a list")
            }

            fn visit_str<E>(self, word: &str) -> Result<Members, E> {
                Ok(Members::Word(word.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Members, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Members::List)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsShape {
    pub(super) streams_per_connection: Option<Scalar>,
    pub(super) types_per_stream: Option<Scalar>,
    pub(super) names_per_stream: Option<Scalar>,
    pub(super) name_bytes: Option<Scalar>,
    pub(super) node_bytes: Option<Scalar>,
    pub(super) request: Option<Scalar>,
    pub(super) upstream_message: Option<Scalar>,
    pub(super) requests_per_second: Option<Scalar>,
    pub(super) handshakes: Option<Scalar>,
    pub(super) views: Option<Scalar>,
    pub(super) names_per_view: Option<Scalar>,
    pub(super) pinned_bytes_per_view: Option<Scalar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TimersShape {
    pub(super) linger: Option<Scalar>,
    pub(super) does_not_exist: Option<Scalar>,
    pub(super) unanswered: Option<Scalar>,
    pub(super) wildcard_quiet: Option<Scalar>,
    pub(super) order_gate: Option<Scalar>,
    pub(super) removal_quiet: Option<Scalar>,
    pub(super) write_stall: Option<Scalar>,
    pub(super) keepalive: Option<Scalar>,
    pub(super) stream_age: Option<Scalar>,
    pub(super) stream_age_jitter: Option<Scalar>,
    pub(super) rest_poll: Option<Scalar>,
    pub(super) rest_interval: Option<Scalar>,
    pub(super) reconnect_max: Option<Scalar>,
    pub(super) drain_announce: Option<Scalar>,
    pub(super) drain: Option<Scalar>,
    pub(super) pace: Option<Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Type {
    pub(super) type_url: Scalar,
    pub(super) name_field: Option<Scalar>,
    pub(super) wildcard: Option<bool>,
    pub(super) full_state: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Snapshot {
    pub(super) dir: Scalar,
    pub(super) interval: Option<Scalar>,
    pub(super) include_secrets: Option<bool>,
}

/// A problem in a file.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) place: Option<(u64, u64)>,
    pub(super) key: String,
    pub(super) message: String,
}

/// Parses YAML, or JSON, which is also YAML.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let mut options = Options::default();
    options.with_snippet = false;
    options.strict_booleans = true;
    let mut track = Track::new();
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        T::deserialize(Tracked::new(yaml, &mut track))
    })
    .map_err(|error| Problem {
        place: error.location().map(|location| (location.line(), location.column())),
        key: dotted(&track.path()),
        message: message(&error),
    })
}

/// Returns the parser's message without its place, which [`Document::line`](super::document::Document::line) writes first.
fn message(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let text = match error.location() {
        Some(at) => {
            let place = format!(" at line {}, column {}", at.line(), at.column());
            text.strip_suffix(&place).unwrap_or(&text).to_owned()
        }
        None => text,
    };
    match text.split_once(", set DuplicateKeyPolicy") {
        Some((duplicate, _)) => duplicate.to_owned(),
        None => text,
    }
}

/// Returns `limits.views` or `listeners[0].address`. Skips the segment `value`, which comes from the parser's `Spanned`.
fn dotted(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => text.push_str(&format!("[{index}]")),
            Segment::Map { key } | Segment::Enum { variant: key } if key == "value" => {}
            Segment::Map { key } | Segment::Enum { variant: key } => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
            Segment::Unknown => {}
        }
    }
    text
}
