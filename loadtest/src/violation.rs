//! What a server may do wrong towards a client. Every one of them fails the run.

use crate::wire::Malformed;

/// A breach of the protocol, or of the control plane's word, that one client saw.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("the response cannot be read: {0}")]
    Malformed(#[from] Malformed),
    #[error("the answer to a poll cannot be read: {0}")]
    Unreadable(String),
    #[error("a response or resource has the type `{0}`, which the client did not ask for")]
    WrongType(String),
    #[error("the nonce `{0}` is empty or came before")]
    Nonce(String),
    #[error("a response or resource has no version")]
    NoVersion,
    #[error("the version `{0}` came twice with different content")]
    SameVersion(String),
    #[error("`{0}` came under a version that another client or another content has")]
    Version(String),
    #[error("`{0}` came without a body")]
    NoBody(String),
    #[error("`{0}` was not asked for")]
    Unrequested(String),
    #[error("`{0}` stands twice in one response")]
    Twice(String),
    #[error("`{0}` has bytes that the control plane never sent")]
    Foreign(String),
    #[error("`{0}` came with older content than the client holds")]
    Older(String),
    #[error("`{0}` was taken away although the control plane has it")]
    Lost(String),
    #[error("`{0}` came before, or stayed after, what it leads to")]
    Order(String),
    #[error("at the end `{0}` is not what the control plane has")]
    Behind(String),
    #[error("the server answered with HTTP status {0}")]
    Status(u16),
    #[error("the stream ended with gRPC status {0}")]
    Ended(String),
    #[error("the connection failed: {0}")]
    Connection(String),
}

impl From<crate::http2::Broken> for Violation {
    fn from(error: crate::http2::Broken) -> Self {
        Self::Connection(error.to_string())
    }
}

impl From<std::io::Error> for Violation {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(error.to_string())
    }
}

/// Bytes of a peer as text for people.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
