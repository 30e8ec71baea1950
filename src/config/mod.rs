//! The configuration: one strict YAML file, overridden by flags, as one validated value.
//!
//! It owns the file's shape, every default and every message about a bad setting. It knows nothing of what the
//! settings do: nobody but the wiring turns a [`Config`] into running parts.

mod bootstrap;
mod class;
mod defaults;
mod document;
mod listener;
mod quantity;
mod server;
mod shape;
mod upstream;
mod uri;
mod validate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use defaults::{Limits, Timers};
pub use listener::{Address, Listener, ListenerTls};
pub use server::{Credentials, Endpoint, Grpc, Identity, Rest, Server, Source, Tls, Transport};
pub use upstream::{Authority, Upstream};
pub use validate::host_name;

use document::Document;

use crate::proto::envoy::config::core::v3::Node;
use crate::xds::{Classes, Traits};

/// Everything that an operator can choose, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Who the relay says it is to its control planes.
    pub node: Node,
    /// Where clients connect; at least one.
    pub listeners: Vec<Listener>,
    /// Where probes, metrics and people connect.
    pub admin: Address,
    /// The control planes.
    pub upstream: Upstream,
    /// K-02: which clients share a view.
    pub classes: Classes,
    /// What a peer may cost.
    pub limits: Limits,
    /// How long things wait.
    pub timers: Timers,
    /// Delta responses are split so that none grows over this many bytes; off is the largest number.
    pub chunk: usize,
    /// whether the v2 methods are served.
    pub transport_v2: bool,
    /// Whether a client may begin without a node.
    pub anonymous: bool,
    /// types that the relay does not know, or is to treat otherwise than usual, by full name.
    pub types: BTreeMap<String, Traits>,
    /// J-04: files with the descriptors of types that are not of the public API, for JSON and YAML.
    pub descriptors: Vec<PathBuf>,
    /// Where what is known is written down for the next start, if it is.
    pub snapshot: Option<Snapshot>,
    /// Whether fields that nobody knows are left out of files with a warning, instead of making them bad.
    pub lenient_files: bool,
    /// What the operator should know, and what does not keep the relay from running.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads `file`, if any, and lets `flags` override it.
    pub fn load(file: Option<&Path>, flags: &Flags) -> Result<Self, ConfigError> {
        let Some(path) = file else {
            return Self::parse("", "command line", flags);
        };
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, &path.display().to_string(), flags)
    }

    /// Parses `text`, which stands in the file called `origin`, and lets `flags` override it.
    pub fn parse(text: &str, origin: &str, flags: &Flags) -> Result<Self, ConfigError> {
        validate::check(Document::new(origin, text), flags)
    }
}

/// Settings from the command line or the environment; each replaces its counterpart in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Replaces `listeners`.
    pub listen: Vec<String>,
    /// Replaces `upstream.xds_servers`.
    pub upstream: Vec<String>,
    /// Replaces `admin.address`.
    pub admin: Option<String>,
    /// Stands in for `upstream` when that is neither in the file nor in these flags.
    pub bootstrap: Option<Bootstrap>,
}

impl Flags {
    /// Nothing but the bootstrap that gRPC clients on this machine find, as they look for it: the file first.
    #[must_use]
    pub fn of_environment() -> Self {
        let given = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let file = given("GRPC_XDS_BOOTSTRAP").map(|path| Bootstrap::File(path.into()));
        let text =
            || given("GRPC_XDS_BOOTSTRAP_CONFIG").map(|text| Bootstrap::Text(text.to_string_lossy().into_owned()));
        Self {
            bootstrap: file.or_else(text),
            ..Self::default()
        }
    }
}

/// A bootstrap that was written for gRPC clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// The file that `GRPC_XDS_BOOTSTRAP` names.
    File(PathBuf),
    /// What `GRPC_XDS_BOOTSTRAP_CONFIG` says.
    Text(String),
}

/// What is known is written to disk, so that the relay can serve after a restart without its control planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The directory; made if it is not there.
    pub dir: PathBuf,
    /// How often what changed is written.
    pub interval: Duration,
    /// Whether keys and certificates (SDS) are written too.
    pub include_secrets: bool,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The settings are wrong; every problem that was found, one on a line.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
}
