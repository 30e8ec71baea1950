//! Where clients connect, as validated settings. Opens no sockets and reads no files.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::Identity;

/// A port or socket for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its address.
    pub address: Address,
    /// TLS for its connections, if configured; never on a Unix domain socket.
    pub tls: Option<ListenerTls>,
}

/// A listener's certificate, and which clients it accepts. The files are read at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// The certificate that it presents to clients.
    pub identity: Identity,
    /// PEM file of the authorities; one of them must have signed the client's certificate. Without it, clients need no
    /// certificate.
    pub client_ca: Option<PathBuf>,
}

/// Where a listener is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port.
    Socket(SocketAddr),
    /// A Unix domain socket.
    Unix(PathBuf),
}

impl Address {
    /// Reads `ip:port`, `[v6]:port` or `unix:/path`.
    ///
    /// # Errors
    /// Returns what to write if the text is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("`unix:` lacks a path; write unix:/run/distributary.sock".to_owned()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Socket).map_err(|_| {
                format!("`{text}` is not an address; write ip:port, [v6]:port or unix:/path, with an IP, not a name")
            }),
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
    pub const fn plain(address: Address) -> Self {
        Self { address, tls: None }
    }
}
