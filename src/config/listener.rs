// SPDX-License-Identifier: Apache-2.0
//! Where clients connect, as validated settings. Opens no sockets and reads no files.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;

use super::{CertificateFiles, SocketFile, Supply, unix};

/// A port or socket for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its address.
    pub address: Address,
    /// TLS for its connections, if configured; never on a Unix domain socket.
    pub tls: Option<ListenerTls>,
    /// The file of its Unix socket.
    pub file: SocketFile,
    /// The balancers, whose connections begin with a PROXY header. Nobody else may send one.
    pub proxies: Vec<IpNet>,
    /// Whether a call needs a certificate, a token or the user of a process.
    pub requires_identity: bool,
}

/// A listener's certificate, and which clients it accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// The certificate that it presents to clients.
    pub identity: Supply<CertificateFiles>,
    /// Certificates that it presents instead, to clients that ask for a name that is in one of them.
    pub others: Vec<CertificateFiles>,
    /// The oldest version that it speaks.
    pub oldest: TlsVersion,
    /// The authorities; one of them must have signed the client's certificate. Without any, clients need no certificate.
    pub client_ca: Option<Supply<PathBuf>>,
    /// PEM file of revocation lists: certificates of clients that are no longer accepted.
    pub client_crl: Option<PathBuf>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// Where a listener is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port.
    Socket(SocketAddr),
    /// A Unix domain socket; [`system_path`](super::system_path) returns its path for system calls.
    Unix(PathBuf),
}

impl Address {
    /// Reads `ip:port`, `[v6]:port`, `unix:/path` or `unix:@name`.
    ///
    /// # Errors
    /// Returns what to write if the text is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some(path) => unix::path(path)
                .map(Self::Unix)
                .map_err(|lack| format!("`{text}` {lack}; write unix:/run/distributary.sock or unix:@distributary")),
            None => text.parse().map(Self::Socket).map_err(|_| {
                format!("`{text}` is not an address; write ip:port, [v6]:port or unix:/path, with an IP, not a name")
            }),
        }
    }

    /// Whether only users of this machine reach it.
    pub const fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Socket(address) => address.ip().to_canonical().is_loopback(),
        }
    }

    /// Whether nobody else can listen on the other address while somebody listens on this one: all addresses of the machine
    /// (`0.0.0.0`, `[::]`) have the port of each. With port 0, each listener gets a free port of its own.
    pub fn takes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unix(one), Self::Unix(other)) => one == other,
            (Self::Socket(one), Self::Socket(other)) => {
                let covers =
                    |all: &SocketAddr, one: &SocketAddr| all.ip().is_unspecified() && (all.is_ipv6() || one.is_ipv4());
                one.port() != 0
                    && one.port() == other.port()
                    && (one == other || covers(one, other) || covers(other, one))
            }
            (Self::Unix(_), Self::Socket(_)) | (Self::Socket(_), Self::Unix(_)) => false,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Listener {
    /// Creates a listener without TLS.
    #[must_use]
    pub fn plain(address: Address) -> Self {
        Self {
            address,
            tls: None,
            file: SocketFile::default(),
            proxies: Vec::new(),
            requires_identity: false,
        }
    }

    /// Whether all of its clients show that they are more than an address.
    pub fn demands_identity(&self) -> bool {
        self.requires_identity || self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
    }
}
