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
use crate::protocol::{Declined, Ending, Refusal};
use crate::xds::Dialect;

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
    /// There is no token to ask with, so the server was not asked.
    #[error("{}", words(.0))]
    Token(Box<Status>),
    /// What came on the stream is no message that can be taken, so we ended it.
    #[error("{}", words(.0))]
    Message(Box<Status>),
    /// The server ended the stream without a word.
    #[error("the server ended the stream without an error")]
    Ended,
    /// A response could not be read at all.
    #[error(transparent)]
    Unreadable(#[from] crate::protocol::Unreadable),
    /// The server answers in neither dialect.
    #[error(
        "the server answers neither {}: {}; nor {}: {now}",
        method(.before.dialect), .before.words, method(.before.dialect.other())
    )]
    Neither {
        /// How the first attempt ended.
        before: Declined,
        /// How the second one ended.
        now: Box<Self>,
    },
    /// The server knows neither dialect.
    #[error("the server knows neither DeltaAggregatedResources nor StreamAggregatedResources: is it an xDS server?")]
    Unimplemented,
}

impl Failure {
    pub(super) fn stream(status: Status) -> Self {
        Self::Stream(Box::new(status))
    }

    /// How the server ended the stream, if the stream reached it.
    pub(super) fn ending(&self) -> Option<Ending> {
        match self {
            Self::Ended => Some(Ending::Status(0)),
            // What the server says of the stream has no cause; what the transport says has one.
            Self::Stream(status) if status.source().is_none() => Some(Ending::Status(status.code() as i32)),
            Self::Stream(_) | Self::GoneAway(_) | Self::Http2(_) => Some(Ending::Broken),
            Self::Resolve { .. }
            | Self::NoAddress(_)
            | Self::Connect { .. }
            | Self::Unreachable { .. }
            | Self::Unix { .. }
            | Self::Authorities { .. }
            | Self::Identity { .. }
            | Self::Tls { .. }
            | Self::Handshake { .. }
            | Self::Foreign
            | Self::Silent(_)
            | Self::Http(_)
            | Self::Refused { .. }
            | Self::Slow { .. }
            | Self::Response { .. }
            | Self::Token(_)
            | Self::Message(_)
            | Self::Unreadable(_)
            | Self::Neither { .. }
            | Self::Unimplemented => None,
        }
    }

    /// Whether the server has no room for the stream.
    pub(super) fn is_exhausted(&self) -> bool {
        if let Self::Neither { before, now } = self {
            return before.ending == Ending::RESOURCE_EXHAUSTED || now.is_exhausted();
        }
        self.ending() == Some(Ending::RESOURCE_EXHAUSTED)
    }

    /// Whether it is about this stream alone: the server does not want it, or there is nothing to show of who asks.
    pub(super) fn is_refusal(&self) -> bool {
        if let Self::Neither { before, now } = self {
            return before.ending.refuses() || now.is_refusal();
        }
        let ours = matches!(self, Self::Identity { .. } | Self::Token(_) | Self::Unimplemented);
        ours || self.ending().is_some_and(Ending::refuses)
    }

    /// Whether the server does not accept who asks.
    pub(super) fn is_denied(&self) -> bool {
        self.ending().is_some_and(|ending| ending.refusal() == Refusal::Denied)
    }

    /// The failure of a server that had refused the other dialect before, if it had.
    pub(super) fn after(self, before: Option<Declined>) -> Self {
        let Some(before) = before else { return self };
        if before.ending == Ending::UNIMPLEMENTED && self.ending() == Some(Ending::UNIMPLEMENTED) {
            return Self::Unimplemented;
        }
        let now = Box::new(self);
        Self::Neither { before, now }
    }

    /// Whether the server closed the connection because we asked too often whether it is alive.
    pub(super) const fn is_too_many_pings(&self) -> bool {
        matches!(self, Self::GoneAway(farewell) if farewell.is_too_many_pings())
    }
}

/// The method of the dialect.
const fn method(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sotw => "StreamAggregatedResources",
        Dialect::Delta => "DeltaAggregatedResources",
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
    let mut text = format!("the stream ended: {}", name(status.code()));
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

/// A code by the name that gRPC has for it.
const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
