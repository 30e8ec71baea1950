//! A control plane as the configuration names it: gRPC's bootstrap entry, checked. It resolves and connects nothing.

use std::fmt;
use std::path::PathBuf;

use super::uri::Located;
use crate::xds::ServerFeatures;

/// A control plane; equal entries of several lists are one (F-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The URI as it was written.
    pub uri: String,
    /// What is at the URI.
    pub source: Source,
    /// What it says of itself.
    pub features: ServerFeatures,
}

/// What configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An xDS server that streams.
    Grpc(Grpc),
    /// A file, or a directory of files.
    Files(PathBuf),
    /// An xDS server that is polled.
    Rest(Rest),
}

/// An xDS server that streams, and how to talk to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grpc {
    /// Where it is.
    pub endpoint: Endpoint,
    /// How the connection is protected.
    pub credentials: Credentials,
    /// The file with the token that goes with every call (A97); only with TLS.
    pub token: Option<PathBuf>,
    /// Which dialect it is asked in.
    pub transport: Transport,
}

/// An xDS server that is polled, and how to talk to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Where it is.
    pub endpoint: Endpoint,
    /// How the connection is protected.
    pub credentials: Credentials,
    /// The file with the token that goes with every call (A97); only with TLS.
    pub token: Option<PathBuf>,
    /// What stands before `/v3/discovery:clusters`; without a slash at the end, usually empty.
    pub prefix: String,
}

/// Where a control plane is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A host, name or IP, whose addresses are all tried.
    Tcp {
        /// Without the brackets of an IPv6 literal.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// A Unix domain socket.
    Unix(PathBuf),
}

/// How the connection to a control plane is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Not at all.
    Insecure,
    /// TLS.
    Tls(Tls),
}

/// Whom to trust, and who we are. The files are read anew for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// PEM file of the authorities to trust instead of the system's.
    pub ca_certificate_file: Option<PathBuf>,
    /// The name for which the server's certificate must be, where that is not its address.
    pub server_name: Option<String>,
    /// What we show when the server asks who we are.
    pub identity: Option<Identity>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// PEM file of the certificate, and those that sign it.
    pub certificate_file: PathBuf,
    /// PEM file of its key.
    pub private_key_file: PathBuf,
}

/// Which dialect a control plane is asked in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Incremental, and state of the world when the server cannot.
    #[default]
    Delta,
    /// State of the world.
    Sotw,
}

impl Endpoint {
    /// Where a server that streams is, and whether its scheme decides for or against TLS.
    pub fn parse(uri: &str) -> Result<(Self, Option<bool>), String> {
        match Located::parse(uri)? {
            Located::Grpc { endpoint, tls } => Ok((endpoint, tls)),
            Located::Rest { .. } | Located::Files(_) => Err(format!(
                "`{uri}` is no gRPC server; write host:port, http(s)://host:port or unix:/path"
            )),
        }
    }

    /// What the server is called in requests: by `name`, or by its address.
    #[must_use]
    pub fn authority(&self, name: Option<&str>) -> String {
        match self {
            Self::Tcp { host, port } => match name.unwrap_or(host) {
                host if host.contains(':') => format!("[{host}]:{port}"),
                host => format!("{host}:{port}"),
            },
            Self::Unix(_) => name.unwrap_or("localhost").to_owned(),
        }
    }
}

impl Credentials {
    /// What the server goes by in TLS, where that is not its address.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        match self {
            Self::Tls(tls) => tls.server_name.as_deref(),
            Self::Insecure => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
