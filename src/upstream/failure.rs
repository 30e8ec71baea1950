// SPDX-License-Identifier: Apache-2.0
//! Why a control plane cannot be reached, or why a stream or poll to it failed.
//!
//! Owns the error texts. Does not decide what follows.

use std::error::Error;
use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tonic::{Code, Status};

use super::frames::Farewell;
use crate::classes::loop_of;
use crate::clock::WallClock;
use crate::protocol::{Declined, Ending, Refusal};
use crate::tls;
use crate::xds::{Dialect, worded};

/// Why there is no stream, or no answer to a poll.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The name cannot be resolved.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The name has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// No address accepts a connection.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address that was tried last.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// No address accepts a connection in time.
    #[error("no address of {host} accepted a connection within {within:?}")]
    Unreachable {
        /// The name.
        host: String,
        /// How long the relay waited.
        within: Duration,
    },
    /// The Unix socket does not accept a connection.
    #[error("cannot connect to {}: {source}", path.display())]
    Unix {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file of trusted authorities cannot be read.
    #[error("cannot read the authorities in {}: {why}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The relay's own certificate or key cannot be read.
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
    /// The TLS handshake failed.
    #[error(
        "the TLS handshake with {host} failed: {}; is it a TLS port, and is its certificate signed by a trusted authority?",
        tls::handshake(source, "server")
    )]
    Handshake {
        /// The server's name.
        host: String,
        /// The error of the handshake.
        source: io::Error,
    },
    /// HTTP/2 failed on the connection.
    #[error("HTTP/2 failed on the connection: {}; is it a gRPC port, and is TLS needed or not?", reason(.0))]
    Http2(hyper::Error),
    /// The server closed the connection and said why.
    #[error("the server closed the connection with HTTP/2 error code {} {:?}", .0.code, .0.words)]
    GoneAway(Farewell),
    /// The server was heard before, and does not answer what it was asked to see whether it is there.
    #[error(
        "the server has said nothing since {} and does not answer {}: it hangs, or is gone without a word",
        WallClock::read().short(*since), asked.word()
    )]
    Hangs {
        /// When it last sent anything.
        since: Instant,
        /// What it does not answer.
        asked: Unheeded,
    },
    /// The server's first bytes are not HTTP/2.
    #[error("the server does not speak HTTP/2; is it a gRPC port, and is TLS needed or not?")]
    Foreign,
    /// The server accepted the connection and sent nothing.
    #[error(
        "the server accepted the connection but sent nothing for {0:?}; is it a gRPC port, and is TLS needed or not?"
    )]
    Silent(Duration),
    /// A poll failed in HTTP/1.1.
    #[error("HTTP: {}", reason(.0))]
    Http(hyper::Error),
    /// A poll was answered with an error status.
    #[error("the server answered {path} with HTTP status {status}: {words}")]
    Refused {
        /// The path that was polled.
        path: String,
        /// The status of the answer.
        status: u16,
        /// The beginning of its body.
        words: String,
    },
    /// A poll was not answered in time.
    #[error("the server did not answer {path} within {within:?}")]
    Slow {
        /// The path that was polled.
        path: String,
        /// How long the relay waited.
        within: Duration,
    },
    /// The answer to a poll cannot be used, or the poll cannot be written.
    #[error("the poll of {path} failed: {why}")]
    Response {
        /// The path that was polled.
        path: String,
        /// What is wrong, and where.
        why: String,
    },
    /// The stream ended with this status.
    #[error("{}", words(.0))]
    Stream(Box<Status>),
    /// There is no valid token, so no request was sent.
    #[error("no request was sent: {}", .0.message())]
    Token(Box<Status>),
    /// The relay ended the stream because a message is too large, compressed or not gRPC.
    #[error("the relay ended the stream: {}", cause(.0))]
    Message(Box<Status>),
    /// The server ended the stream with status OK, or closed the connection without an error.
    #[error("the server ended the stream without an error")]
    Ended,
    /// A response could not be read at all.
    #[error(transparent)]
    Unreadable(#[from] protocol::Unreadable),
    /// The server answered in neither dialect.
    #[error(
        "the server answered in neither dialect: {}: {}; {}: {now}",
        method(.before.dialect), .before.words, method(.before.dialect.other())
    )]
    Neither {
        /// How the first attempt ended.
        before: Declined,
        /// How the second one ended.
        now: Box<Self>,
    },
    /// The server implements neither dialect. Contains its words.
    #[error(
        "the server implements neither DeltaAggregatedResources nor StreamAggregatedResources{}; is it an xDS server?",
        said(.0)
    )]
    Unimplemented(Box<Status>),
}

worded! {
/// How a server was asked whether it is there.
#[derive(Clone, Copy, Debug)]
pub enum Unheeded {
    /// By an HTTP/2 ping.
    Ping = "pings",
    /// By a call.
    Call = "calls",
    /// By a new connection.
    Connection = "on a new connection",
}
}

impl Failure {
    pub(super) fn stream(status: Status) -> Self {
        Self::Stream(Box::new(status))
    }

    /// Returns how the stream ended, if the failure is about a stream that may have reached the server.
    pub(super) fn ending(&self) -> Option<Ending> {
        // A status from the server has no source; a status made from a transport error has one.
        if let Self::Stream(status) = self
            && status.source().is_none()
        {
            return Some(Ending::Status(status.code() as i32));
        }
        let broken = matches!(
            self,
            Self::Stream(_) | Self::GoneAway(_) | Self::Hangs { .. } | Self::Http2(_)
        );
        let ended = matches!(self, Self::Ended).then_some(Ending::Status(0));
        ended.or(broken.then_some(Ending::Broken))
    }

    /// K-25: returns the mark of the relay for which the server refuses the stream or poll as a loop, if it does.
    pub(super) fn looped(&self) -> Option<&str> {
        if let Self::Refused { words, .. } = self {
            return loop_of(words);
        }
        let Self::Stream(status) = self else { return None };
        loop_of(status.message()).filter(|_| status.code() == Code::FailedPrecondition)
    }

    /// Whether the server had no room for the stream (RESOURCE_EXHAUSTED).
    pub(super) fn is_exhausted(&self) -> bool {
        if let Self::Neither { before, now } = self {
            return before.ending == Ending::RESOURCE_EXHAUSTED || now.is_exhausted();
        }
        self.ending() == Some(Ending::RESOURCE_EXHAUSTED)
    }

    /// Whether the failure concerns this stream alone: the server refused it, or there is no valid certificate or token for it.
    pub(super) fn is_refusal(&self) -> bool {
        if let Self::Neither { before, now } = self {
            return before.ending.refuses() || now.is_refusal();
        }
        let ours = matches!(self, Self::Identity { .. } | Self::Token(_) | Self::Unimplemented(_));
        ours || self.ending().is_some_and(Ending::refuses)
    }

    /// Whether the server denied access to this client (the relay, or the class it asks for).
    pub(super) fn is_denied(&self) -> bool {
        self.ending().is_some_and(|ending| ending.refusal() == Refusal::Denied)
    }

    /// Adds how the server refused the other dialect before, if it did.
    pub(super) fn after(self, before: Option<Declined>) -> Self {
        let Some(before) = before else { return self };
        let unimplemented = before.ending == Ending::UNIMPLEMENTED && self.ending() == Some(Ending::UNIMPLEMENTED);
        if let (true, Self::Stream(status)) = (unimplemented, &self) {
            return Self::Unimplemented(status.clone());
        }
        let now = Box::new(self);
        Self::Neither { before, now }
    }

    /// Whether the server closed the connection because of too many HTTP/2 pings.
    pub(super) const fn is_too_many_pings(&self) -> bool {
        matches!(self, Self::GoneAway(farewell) if farewell.is_too_many_pings())
    }
}

/// Returns the gRPC method of the dialect.
const fn method(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sotw => "StreamAggregatedResources",
        Dialect::Delta => "DeltaAggregatedResources",
    }
}

/// Returns why a connection failed. Each layer of the transport wraps the error of the layer below in words of its own; only the
/// lowest one knows the reason.
#[must_use]
pub fn reason(error: &(dyn Error + 'static)) -> String {
    let mut lowest = error;
    let mut layer = Some(error);
    while let Some(error) = layer {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return match (error.reason(), error.get_io()) {
                (Some(code), _) => format!("HTTP/2 error code {} ({code:?})", u32::from(code)),
                (None, Some(error)) => broken(error),
                (None, None) => "the connection was closed".to_owned(),
            };
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return broken(error);
        }
        lowest = error;
        layer = error.source();
    }
    match lowest.downcast_ref::<hyper::Error>() {
        Some(error) if error.is_parse() => "the answer is not HTTP/1.1".to_owned(),
        Some(error) if error.is_incomplete_message() => {
            "the server closed the connection in the middle of an answer".to_owned()
        }
        Some(error) if error.is_canceled() || error.is_closed() => "the connection was closed".to_owned(),
        Some(_) | None => lowest.to_string(),
    }
}

/// Returns how a connection broke.
fn broken(error: &io::Error) -> String {
    match tls::said(error) {
        Some(error) => tls::words(error, "server"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        None => error.to_string(),
    }
}

/// Returns how the server, or what is between, ended the stream.
fn words(status: &Status) -> String {
    format!("the stream ended: {}", cause(status))
}

/// Returns the status in one sentence, with the configured limit that it exceeded.
fn cause(status: &Status) -> String {
    let mut text = name(status.code()).to_owned();
    // A status that was made from an error of the transport has the transport's words.
    let words = status.source().map(reason);
    let words = words.as_deref().unwrap_or(status.message());
    if !words.is_empty() {
        let _ = write!(text, ": {words}");
    }
    if status.code() == Code::OutOfRange && status.message().contains("message length too large") {
        text.push_str("; the limit is `limits.upstream_message`");
    }
    text
}

/// Returns the server's own words after a colon, if it has any.
fn said(status: &Status) -> String {
    match status.message() {
        "" => String::new(),
        words => format!(": {words}"),
    }
}

/// Returns gRPC's name of the code.
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
