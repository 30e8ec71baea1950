//! The server that `distributary get` is told to ask. Owns how its address is written. Sends nothing.

use crate::config::Endpoint;

/// The address of a server, as it was written.
#[derive(Clone, Debug)]
pub(super) struct ServerAddress {
    pub(super) text: String,
    pub(super) endpoint: Endpoint,
    /// Whether it is to be reached with TLS, if the address says that.
    pub(super) tls: Option<bool>,
}

impl ServerAddress {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (endpoint, tls) = Endpoint::parse(text)?;
        let text = text.to_owned();
        Ok(Self { text, endpoint, tls })
    }
}
