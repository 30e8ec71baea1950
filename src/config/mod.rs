// SPDX-License-Identifier: Apache-2.0
//! The configuration: one strict YAML file, overridden by flags, as one validated value.
//!
//! Owns the file's shape, every default and every message about a bad setting. Knows nothing of what the settings do: only
//! the `app` module turns a [`Config`] into running parts.

mod admin;
mod bootstrap;
mod class;
mod document;
mod gone;
mod guard;
mod issuer;
mod limits;
mod listener;
mod log_filter;
mod quantity;
mod reading;
mod reference;
mod rows;
mod server;
mod shape;
mod supply;
mod timers;
mod unix;
mod upstream;
mod uri;
mod validate;
mod written;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use admin::{AdminAction, AdminDenied, AdminHosts, AdminRule, AdminRules};
pub use issuer::{Issuer, JwksUri, KeySource};
pub use limits::{Limits, MemoryLimit};
pub use listener::{Address, Listener, ListenerTls, TlsVersion};
pub use log_filter::LogFilter;
pub(crate) use quantity::duration;
pub use reference::{NoKey, Reference};
pub use rows::Effect;
pub use server::{CertificateFiles, Credentials, Endpoint, Grpc, Reach, Rejections, RestPolls, Server, Tls, Transport};
pub use supply::Supply;
pub use supply::Workload;
pub use timers::Timers;
pub use unix::{SocketFile, is_abstract, system_path};
pub use upstream::{Authority, Canary, ClassServers, TypeSource, Upstream};
pub use validate::host_name;
pub use written::{WrittenConfig, hide_secrets};

use document::Document;

use crate::classes::{Classes, Pattern};
use crate::identity::{Named, claim};
use crate::proto::envoy::config::core::v3::Node;
use crate::xds::{Access, Guards, Traits};

/// All validated settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The node that the relay presents to its control planes.
    pub node: Node,
    /// Where clients connect; at least one.
    pub listeners: Vec<Listener>,
    /// Who issues the tokens that clients send with their calls.
    pub issuers: Vec<Issuer>,
    /// Where operators connect; probes and metrics are there as well.
    pub admin: Address,
    /// TLS there, if configured.
    pub admin_tls: Option<ListenerTls>,
    /// Who may do what there.
    pub admin_rules: AdminRules,
    /// Under which names it is reached.
    pub admin_hosts: AdminHosts,
    /// Where only probes and metrics are, if configured.
    pub probes: Option<Address>,
    /// The control planes.
    pub upstream: Upstream,
    /// K-02: which clients share a view.
    pub classes: Classes,
    /// S-01: what clients may have.
    pub access: Arc<Access>,
    /// The limits for peers and views.
    pub limits: Limits,
    /// The timeouts and intervals.
    pub timers: Timers,
    /// Which removals are held, also by class.
    pub guard: Guards,
    /// Delta responses are split so that none exceeds this many bytes; `usize::MAX` turns splitting off.
    pub chunk: usize,
    /// whether the v2 methods are served.
    pub transport_v2: bool,
    /// Whether a client may begin without a node.
    pub anonymous: bool,
    /// the traits of types that the relay does not know or should treat differently, by full name.
    pub types: BTreeMap<String, Traits>,
    /// J-04: files with the descriptors of types outside the public API, for JSON and YAML.
    pub descriptors: Vec<PathBuf>,
    /// Where the known resources are saved for the next start, if they are.
    pub snapshot: Option<Snapshot>,
    /// Whether unknown fields in files are skipped with a warning instead of making the file bad.
    pub lenient_files: bool,
    /// What is logged.
    pub log_filter: LogFilter,
    /// Problems that do not keep the relay from running.
    pub warnings: Vec<String>,
    /// All of it as it was written, for people.
    pub written: WrittenConfig,
}

impl Config {
    /// Reads `file`, if there is one, and lets `flags` override it.
    pub fn load(file: Option<&Path>, flags: &Flags) -> Result<Self, ConfigError> {
        match file {
            None => Self::parse("", "command line", flags),
            Some(path) => good(Self::examine(path, flags)?),
        }
    }

    /// Whether others than this machine's users may do everything on the admin address without a certificate.
    pub fn admin_is_open(&self) -> bool {
        let guarded =
            self.admin_tls.as_ref().is_some_and(|tls| tls.client_ca.is_some()) || !self.admin_rules.is_empty();
        !self.admin.is_local() && !guarded
    }

    /// S-11: what of identities is named.
    pub fn named(&self) -> Named {
        self.identities().collect()
    }

    /// Returns how the texts of identities begin that rules, classes and rules of the admin address name. A pattern for any text names
    /// none.
    fn identities(&self) -> impl Iterator<Item = String> {
        let rules = self.access.rules().iter().flat_map(|rule| &rule.identities);
        let patterns = rules.chain(self.admin_rules.identities());
        let patterns = patterns.filter(|pattern| !pattern.is_any());
        let patterns = patterns.flat_map(|pattern| self.named_by("", pattern));
        let classes = self.classes.rules().iter().flat_map(|rule| {
            let matches = rule.matches.iter().map(|(field, pattern)| (field, Some(pattern)));
            matches.chain(rule.key.iter().map(|field| (field, None)))
        });
        patterns.chain(classes.flat_map(|(field, pattern)| match (field.kind(), pattern) {
            (None, _) => Vec::new(),
            // A claim is matched without its word.
            (Some(word @ "claim:"), Some(pattern)) => self.named_by(word, pattern),
            (Some(word), _) => vec![word.to_owned()],
        }))
    }

    /// Returns how the texts begin that a pattern after a word names: for a claim of several issuers, those of each.
    fn named_by(&self, word: &str, pattern: &Pattern) -> Vec<String> {
        let fixed = format!("{word}{}", pattern.fixed().0);
        let name = pattern
            .parts()
            .flatten()
            .find_map(|part| part.split_once('#')?.1.split_once('='));
        let issuers = name.map(|(name, _)| self.issuers.iter().map(move |issuer| claim(&issuer.name, name)));
        let mut all: Vec<String> = issuers.into_iter().flatten().collect();
        all.retain(|claim| claim.starts_with(&fixed));
        all.push(fixed);
        all
    }

    /// Reads `file` as far as possible: bad values are replaced by their defaults. Also returns all problems, one per line.
    pub fn examine(path: &Path, flags: &Flags) -> Result<(Self, Vec<String>), ConfigError> {
        Self::check(&read(path)?, &path.display().to_string(), flags)
    }

    /// Does the same with `text`, the content of the file `origin`.
    pub fn check(text: &[u8], origin: &str, flags: &Flags) -> Result<(Self, Vec<String>), ConfigError> {
        validate::check(Document::new(origin, text), flags)
    }

    /// Does the same with `text` that somebody has sent in place of the file `like`, and calls `origin`. What other files say is not in
    /// the problems.
    pub fn check_sent(
        text: &[u8],
        origin: &str,
        like: Option<&Path>,
        flags: &Flags,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        validate::check(Document::sent(origin, text, like), flags)
    }

    /// Parses `text`, the content of the file `origin`, and lets `flags` override it.
    pub fn parse(text: &str, origin: &str, flags: &Flags) -> Result<Self, ConfigError> {
        good(validate::check(Document::new(origin, text.as_bytes()), flags)?)
    }
}

/// The most bytes of a configuration file. A hundred thousand rules fit.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// The most bytes of a configuration that is sent to a running relay.
pub const SENT_BYTES_MAX: usize = 4 << 20;

/// Reads a configuration file.
pub fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    bounded(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

fn bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let most = format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20);
        return Err(std::io::Error::other(most));
    }
    Ok(text)
}

/// Returns the configuration if it has no problems.
fn good((config, problems): (Config, Vec<String>)) -> Result<Config, ConfigError> {
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(ConfigError::Invalid(problems))
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
    /// Replaces `secrets`.
    pub secrets: Option<String>,
    /// Replaces `logging.level`.
    pub log_level: Option<String>,
    /// Which of these flags have their values from which environment variables.
    pub variables: BTreeMap<&'static str, &'static str>,
    /// Used for `upstream` if neither the file nor these flags set it.
    pub bootstrap: Option<Bootstrap>,
    /// The socket of the SPIFFE Workload API, if the file does not say which.
    pub endpoint_socket: Option<String>,
}

impl Flags {
    /// Returns flags with only what other programs' environment variables say: the bootstrap of gRPC, where the file comes first as in
    /// gRPC clients, and the socket of the SPIFFE Workload API.
    #[must_use]
    pub fn of_environment() -> Self {
        let given = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let file = given("GRPC_XDS_BOOTSTRAP").map(|path| Bootstrap::File(path.into()));
        let text =
            || given("GRPC_XDS_BOOTSTRAP_CONFIG").map(|text| Bootstrap::Text(text.to_string_lossy().into_owned()));
        Self {
            bootstrap: file.or_else(text),
            endpoint_socket: given("SPIFFE_ENDPOINT_SOCKET").map(|socket| socket.to_string_lossy().into_owned()),
            ..Self::default()
        }
    }
}

/// A bootstrap that was written for gRPC clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// The file that `GRPC_XDS_BOOTSTRAP` names.
    File(PathBuf),
    /// The text in `GRPC_XDS_BOOTSTRAP_CONFIG`.
    Text(String),
}

/// Another relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourSettings {
    /// Its admin address as configured.
    pub uri: String,
    /// A host name stands for all of its addresses.
    pub endpoint: Endpoint,
    /// Whether the connection uses TLS.
    pub credentials: Credentials,
}

/// The settings of snapshots, from which the relay can serve after a restart without its control planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The directory, if they are written to disk; created if missing.
    pub dir: Option<PathBuf>,
    /// The relays that are asked for theirs if none is on disk.
    pub from: Vec<NeighbourSettings>,
    /// How often changes are written.
    pub interval: Duration,
    /// Whether keys and certificates (SDS) are written, and asked for, too.
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
        /// The system's error.
        source: std::io::Error,
    },
    /// The settings are wrong: all problems that were found, one per line.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
}
