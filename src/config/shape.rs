//! The file as it is written: keys and scalars, each with its place. It owns the keys; it judges no value.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_path_to_error::{Deserializer, Path, Segment, Track};
use serde_saphyr::{Options, Spanned};

/// A scalar with its place. It is read as text, so that every complaint about it is ours.
pub(super) type Scalar = Spanned<String>;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub(super) node: NodeShape,
    pub(super) listeners: Option<Vec<Listener>>,
    pub(super) admin: Option<Admin>,
    pub(super) upstream: Upstream,
    pub(super) classes: Vec<Class>,
    pub(super) limits: Limits,
    pub(super) timers: Timers,
    pub(super) chunk: Option<Scalar>,
    pub(super) transport_v2: Option<bool>,
    pub(super) anonymous: Option<bool>,
    pub(super) types: Vec<Type>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NodeShape {
    pub(super) id: Option<Scalar>,
    pub(super) cluster: Option<String>,
    pub(super) locality: Locality,
    pub(super) metadata: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Locality {
    pub(super) region: String,
    pub(super) zone: String,
    pub(super) sub_zone: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listener {
    pub(super) address: Scalar,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Admin {
    pub(super) address: Scalar,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Upstream {
    pub(super) xds_servers: Vec<XdsServer>,
    pub(super) authorities: BTreeMap<String, Authority>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Authority {
    pub(super) xds_servers: Vec<XdsServer>,
    pub(super) client_listener_resource_name_template: Option<Scalar>,
    pub(super) fallback_on_reachability_only: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct XdsServer {
    pub(super) server_uri: Scalar,
    #[serde(default)]
    pub(super) channel_creds: Vec<ChannelCreds>,
    #[serde(default)]
    pub(super) server_features: Vec<Scalar>,
    pub(super) transport: Option<Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChannelCreds {
    #[serde(rename = "type")]
    pub(super) kind: Scalar,
    #[serde(default)]
    pub(super) config: CredsConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CredsConfig {
    pub(super) ca_certificate_file: Option<Scalar>,
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
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ClassNode {
    pub(super) id: Option<Scalar>,
    pub(super) cluster: Option<Scalar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) streams_per_connection: Option<Scalar>,
    pub(super) types_per_stream: Option<Scalar>,
    pub(super) names_per_stream: Option<Scalar>,
    pub(super) name_bytes: Option<Scalar>,
    pub(super) node_bytes: Option<Scalar>,
    pub(super) request: Option<Scalar>,
    pub(super) upstream_message: Option<Scalar>,
    pub(super) requests_per_second: Option<Scalar>,
    pub(super) views: Option<Scalar>,
    pub(super) names_per_view: Option<Scalar>,
    pub(super) pinned_bytes_per_view: Option<Scalar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Timers {
    pub(super) linger: Option<Scalar>,
    pub(super) does_not_exist: Option<Scalar>,
    pub(super) unanswered: Option<Scalar>,
    pub(super) wildcard_quiet: Option<Scalar>,
    pub(super) order_gate: Option<Scalar>,
    pub(super) write_stall: Option<Scalar>,
    pub(super) keepalive: Option<Scalar>,
    pub(super) stream_age: Option<Scalar>,
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

/// One thing wrong with a file.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) place: Option<(u64, u64)>,
    pub(super) key: String,
    pub(super) message: String,
}

impl Problem {
    /// `origin:line:column: key: message`.
    pub(super) fn line(&self, origin: &str) -> String {
        let Self { place, key, message } = self;
        let place = place.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
        let key = if key.is_empty() {
            String::new()
        } else {
            format!("{key}: ")
        };
        format!("{origin}{place}: {key}{message}")
    }
}

impl File {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let mut options = Options::default();
        options.with_snippet = false;
        options.strict_booleans = true;
        let mut track = Track::new();
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
            Self::deserialize(Deserializer::new(yaml, &mut track))
        })
        .map_err(|error| Problem {
            place: error.location().map(|location| (location.line(), location.column())),
            key: dotted(&track.path()),
            message: message(&error),
        })
    }
}

/// What the parser says, without the place, which goes first with us.
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

/// `limits.views`, `listeners[0].address`; the parser's own `value` inside a scalar with a place is left out.
fn dotted(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => text.push_str(&format!("[{index}]")),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
            Segment::Unknown => {}
        }
    }
    text.strip_suffix(".value").unwrap_or(&text).to_owned()
}
