// SPDX-License-Identifier: Apache-2.0
//! A control plane as validated settings: an entry of gRPC's bootstrap. Resolves and connects nothing.

use std::fmt;
use std::path::PathBuf;

use super::Supply;
use super::uri::Located;
use crate::proto::envoy::config::core::v3::Node;
use crate::proto::google::protobuf::Struct;
use crate::xds::ServerFeatures;

/// A control plane; equal entries in several lists are one server (F-12).
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The URI as configured.
    pub uri: String,
    /// What the URI refers to.
    pub reach: Reach,
    /// The server's features.
    pub features: ServerFeatures,
    /// The parts of the relay's node that only this server sees; equal servers with different nodes are two (F-12).
    pub node: Option<Box<Node>>,
}

/// How resources are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// An xDS server with gRPC streams.
    Grpc(Grpc),
    /// A file, or a directory of files.
    Files(PathBuf),
    /// An xDS server that is polled over REST.
    Rest(RestPolls),
}

/// An xDS server with gRPC streams, and how to connect to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grpc {
    /// Its address.
    pub endpoint: Endpoint,
    /// Whether the connection uses TLS.
    pub credentials: Credentials,
    /// The file of the token that is sent with every call (A97); only with TLS.
    pub token: Option<PathBuf>,
    /// The dialect to begin with.
    pub transport: Transport,
    /// Whether the server is told what clients reject.
    pub rejections: Rejections,
}

/// An xDS server that is polled over REST, and how to connect to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestPolls {
    /// Its address.
    pub endpoint: Endpoint,
    /// Whether the connection uses TLS.
    pub credentials: Credentials,
    /// The file of the token that is sent with every call (A97); only with TLS.
    pub token: Option<PathBuf>,
    /// The path before `/v3/discovery:clusters`, without a trailing slash; usually empty.
    pub prefix: String,
}

/// The address of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A host name, all of whose addresses are tried, or an IP address.
    Tcp {
        /// Without the brackets of an IPv6 literal.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// A Unix domain socket.
    Unix(PathBuf),
}

/// Whether the connection to a control plane uses TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// No TLS.
    Insecure,
    /// TLS.
    Tls(Tls),
}

/// The trusted authorities, and the relay's certificate, which are read anew for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The authorities to trust instead of the system's.
    pub authorities: Option<Supply<PathBuf>>,
    /// The name that the server's certificate must be for, if that is not its address.
    pub server_name: Option<String>,
    /// The SPIFFE id that the server's certificate must be for, instead of a name; only with authorities of its own.
    pub spiffe_id: Option<String>,
    /// The certificate that the relay presents if the server asks for one.
    pub identity: Option<Supply<CertificateFiles>>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM file of the certificate and its chain.
    pub certificate_file: PathBuf,
    /// PEM file of its key.
    pub private_key_file: PathBuf,
}

/// The dialect in which the relay begins to talk to a control plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Incremental; state of the world if the server does not support it.
    #[default]
    Delta,
    /// State of the world.
    Sotw,
}

/// What becomes of the rejections of clients (E-24).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rejections {
    /// The control plane is told of them.
    #[default]
    Report,
    /// They stay with the relay.
    Keep,
}

impl Server {
    /// Returns the node that the server sees of the relay: what is written for this server, over the relay's own.
    pub fn node(&self, relay: &Node) -> Node {
        let mut node = relay.clone();
        let Some(own) = &self.node else { return node };
        if !own.id.is_empty() {
            node.id.clone_from(&own.id);
        }
        if !own.cluster.is_empty() {
            node.cluster.clone_from(&own.cluster);
        }
        if own.locality.is_some() {
            node.locality.clone_from(&own.locality);
        }
        if let Some(Struct { fields }) = own.metadata.clone() {
            node.metadata.get_or_insert_default().fields.extend(fields);
        }
        node
    }
}

impl Endpoint {
    /// Parses the address of a gRPC server; also returns whether its scheme requires or excludes TLS.
    pub fn parse(uri: &str) -> Result<(Self, Option<bool>), String> {
        match Located::parse(uri)? {
            Located::Grpc { endpoint, tls } => Ok((endpoint, tls)),
            Located::Rest { .. } | Located::Files(_) => Err(format!(
                "`{uri}` is not a gRPC server; write host:port, http(s)://host:port or unix:/path"
            )),
        }
    }

    /// Returns the server's authority in requests: from `name`, or from its address.
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
    /// Returns the server's name for TLS, if that is not its address.
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
