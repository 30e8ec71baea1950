//! Where clients connect, as the configuration says it, checked. It opens nothing and reads no file.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::Identity;

/// A port or socket for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where it is.
    pub address: Address,
    /// How its connections are protected, if they are; never on a Unix domain socket.
    pub tls: Option<ListenerTls>,
}

/// Who a listener is, and whom it lets in. The files are read at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// What it shows its clients.
    pub identity: Identity,
    /// PEM file of the authorities one of which must have signed a client's certificate; without it clients show none.
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
    /// It is none of these; the error says what to write.
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
    /// One whose connections are not protected.
    #[must_use]
    pub const fn plain(address: Address) -> Self {
        Self { address, tls: None }
    }
}
