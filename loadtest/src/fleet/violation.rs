// SPDX-License-Identifier: Apache-2.0
//! What a server can do wrong towards a client. Any of these fails the run.

use crate::measure::loss::{Failure, Loss, Status};
use crate::wire::Malformed;
use crate::wire::http2::Broken;

/// What one client saw: a breach of the protocol, or content that the control plane did not send.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("the response cannot be read: {0}")]
    Malformed(#[from] Malformed),
    #[error("the answer to a poll cannot be read: {0}")]
    Unreadable(String),
    #[error("a response or resource has the type `{0}`, which the client did not ask for")]
    WrongType(String),
    #[error("the nonce `{0}` is empty or was used before")]
    Nonce(String),
    #[error("a response or resource has no version")]
    NoVersion,
    #[error("two responses with different content have the version `{0}`")]
    SameVersion(String),
    #[error("the version of `{0}` contradicts another: each content must have one version, the same for all clients")]
    Version(String),
    #[error("`{0}` came without a body")]
    NoBody(String),
    #[error("`{0}` was not asked for")]
    Unrequested(String),
    #[error("`{0}` is in one response twice")]
    Twice(String),
    #[error("`{0}` has bytes that the control plane never sent")]
    Foreign(String),
    #[error("`{0}` came with older content than the client holds")]
    Older(String),
    #[error("`{0}` was removed although the control plane has it")]
    Lost(String),
    #[error("`{0}` came before the resources that it refers to, or these were removed before it")]
    Order(String),
    #[error("at the end of the run the client's `{0}` differs from the control plane's")]
    Behind(String),
    #[error("the server answered with HTTP status {0}")]
    Status(u16),
    #[error("the stream ended with {0}{why}", why = after_colon(.1))]
    Ended(Status, String),
    #[error("the connection failed: {1}")]
    Connection(Failure, String),
    #[error("the connection failed: {0}")]
    Http2(#[from] Broken),
}

impl Violation {
    /// Returns what it took from the client, if it is the end of a stream or of a connection.
    pub(crate) const fn loss(&self) -> Option<Loss> {
        if let Self::Ended(status, _) = self {
            Some(Loss::Stream(*status))
        } else if let Self::Connection(failure, _) = self {
            Some(Loss::Connection(*failure))
        } else if matches!(self, Self::Http2(_)) {
            Some(Loss::Connection(Failure::NotHttp2))
        } else {
            None
        }
    }

    /// Returns what to say of a server that answers the first request of a client in this way; none if it answers like an xDS
    /// server.
    pub(crate) fn refusal(&self) -> Option<String> {
        let why = match self {
            Self::Connection(_, words) if words.contains("InvalidContentType") => {
                "the server answers without TLS: write http:// before its address"
            }
            Self::Connection(..) => "is anything listening there, and with TLS as the address says?",
            Self::Http2(Broken::Tls) => "write https:// before its address",
            Self::Http2(Broken::Greeting(_)) => "xDS is gRPC over HTTP/2: give the server's port for gRPC",
            Self::Http2(_) | Self::Malformed(_) | Self::Unreadable(_) | Self::Status(_) => "is it an xDS server?",
            Self::Ended(Status::UNIMPLEMENTED, _) => {
                "is it an xDS server, and does it know this form of the protocol? See `dialect`"
            }
            Self::Ended(..) => "does it accept this client? See `node_id`, `headers` and `token_file`",
            Self::WrongType(_)
            | Self::Nonce(_)
            | Self::NoVersion
            | Self::SameVersion(_)
            | Self::Version(_)
            | Self::NoBody(_)
            | Self::Unrequested(_)
            | Self::Twice(_)
            | Self::Foreign(_)
            | Self::Older(_)
            | Self::Lost(_)
            | Self::Order(_)
            | Self::Behind(_) => return None,
        };
        Some(format!("{self}; {why}"))
    }
}

impl From<std::io::Error> for Violation {
    fn from(error: std::io::Error) -> Self {
        Self::Connection(Failure::of(&error), error.to_string())
    }
}

/// Returns a text that follows something, if there is one.
fn after_colon(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!(": {text}")
}
