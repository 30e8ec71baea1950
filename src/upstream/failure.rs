//! Why a control plane is not reached, or not any more.
//!
//! Owns the words for it. Refuses to decide what follows.

use std::error::Error;
use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tonic::{Code, Status};

use super::frames::Farewell;

/// Why there is no stream.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The name cannot be resolved.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// The name has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// No address answers.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address that was tried last.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// No address answers in time.
    #[error("no address of {host} accepted a connection within {within:?}")]
    Unreachable {
        /// The name.
        host: String,
        /// How long was waited.
        within: Duration,
    },
    /// The socket does not answer.
    #[error("cannot connect to {}: {source}", path.display())]
    Unix {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The authorities to trust cannot be read.
    #[error("cannot read the authorities in {}: {why}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// What we would show of ourselves cannot be read.
    #[error("cannot read the certificate or its key in {}: {why}", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS for {host}: {why}")]
    Tls {
        /// The server's name.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// The server and we do not trust each other.
    #[error(
        "the TLS handshake with {host} failed: {source}; is it a TLS port, and is its certificate signed by an authority we trust?"
    )]
    Handshake {
        /// The server's name.
        host: String,
        /// What TLS says.
        source: io::Error,
    },
    /// The server does not speak HTTP/2.
    #[error("no HTTP/2 on the connection: {}; is it a gRPC port, and is TLS needed or not?", chain(.0))]
    Http2(hyper::Error),
    /// The server closed the connection and said why.
    #[error("the server closed the connection with HTTP/2 error code {} {:?}", .0.code, .0.words)]
    GoneAway(Farewell),
    /// The server speaks something else.
    #[error("what the server says is not HTTP/2; is it a gRPC port, and is TLS needed or not?")]
    Foreign,
    /// The server accepted the connection and said nothing.
    #[error(
        "the server accepted the connection and said nothing for {0:?}; is it a gRPC port, and is TLS needed or not?"
    )]
    Silent(Duration),
    /// A poll has no answer.
    #[error("HTTP: {}", chain(.0))]
    Http(hyper::Error),
    /// A poll has no good answer.
    #[error("{path} answers {status}: {words}")]
    Refused {
        /// What was polled.
        path: String,
        /// The status of the answer.
        status: u16,
        /// What it says besides.
        words: String,
    },
    /// A poll takes too long.
    #[error("{path} has no answer within {within:?}")]
    Slow {
        /// What was polled.
        path: String,
        /// How long was waited.
        within: Duration,
    },
    /// The answer of a poll is no discovery response.
    #[error("{path} answers what is no DiscoveryResponse: {why}")]
    Response {
        /// What was polled.
        path: String,
        /// What is wrong with it, and where.
        why: String,
    },
    /// The stream ended.
    #[error("{}", words(.0))]
    Stream(Box<Status>),
    /// The server ended the stream without a word.
    #[error("the server ended the stream without an error")]
    Ended,
    /// A response could not be read at all.
    #[error(transparent)]
    Unreadable(#[from] crate::protocol::Unreadable),
    /// The server knows neither dialect.
    #[error("the server knows neither DeltaAggregatedResources nor StreamAggregatedResources: is it an xDS server?")]
    Unimplemented,
}

impl Failure {
    pub(super) fn stream(status: Status) -> Self {
        Self::Stream(Box::new(status))
    }

    /// Whether the server does not know the method.
    pub(super) fn is_unimplemented(&self) -> bool {
        matches!(self, Self::Stream(status) if status.code() == Code::Unimplemented)
    }

    /// Whether the server closed the connection because we asked too often whether it is alive.
    pub(super) const fn is_too_many_pings(&self) -> bool {
        matches!(self, Self::GoneAway(farewell) if farewell.is_too_many_pings())
    }
}

/// An error with all its causes, each said once.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            let _ = write!(text, ": {more}");
        }
        cause = error.source();
    }
    text
}

/// The status in one sentence, with the limit of ours that it hit.
fn words(status: &Status) -> String {
    let mut text = format!("the stream ended: {}", status.code());
    if !status.message().is_empty() {
        let _ = write!(text, ": {}", status.message());
    }
    if let Some(cause) = status.source() {
        let _ = write!(text, ": {}", chain(cause));
    }
    if status.code() == Code::OutOfRange && status.message().contains("message length too large") {
        text.push_str("; the limit is `limits.upstream_message`");
    }
    text
}
