// SPDX-License-Identifier: Apache-2.0
//! Why a client lost its stream: the kinds that are told apart and counted. Knows nothing of sockets and clients.

use std::fmt;
use std::io::{self, ErrorKind};

/// What took a stream from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loss {
    /// The server ended the stream.
    Stream(Status),
    /// The connection failed, or could not be made.
    Connection(Failure),
}

/// How a server ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// With a code that gRPC defines.
    Code(u8),
    /// With something else in the place of a code.
    Unknown,
    /// Without a status: the stream was reset.
    Reset,
    /// Without a status.
    Missing,
}

/// How a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failure {
    Refused,
    Closed,
    Reset,
    TimedOut,
    /// The server does not answer a ping.
    Silent,
    Unreachable,
    Tls,
    NotHttp2,
    Other,
}

/// The names of gRPC's codes.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// What the errors of sockets mean.
const KINDS: [(ErrorKind, Failure); 10] = [
    (ErrorKind::ConnectionRefused, Failure::Refused),
    (ErrorKind::ConnectionReset, Failure::Reset),
    (ErrorKind::ConnectionAborted, Failure::Reset),
    (ErrorKind::BrokenPipe, Failure::Closed),
    (ErrorKind::UnexpectedEof, Failure::Closed),
    (ErrorKind::NotConnected, Failure::Closed),
    (ErrorKind::TimedOut, Failure::TimedOut),
    (ErrorKind::HostUnreachable, Failure::Unreachable),
    (ErrorKind::NetworkUnreachable, Failure::Unreachable),
    (ErrorKind::NetworkDown, Failure::Unreachable),
];

impl Loss {
    /// Returns the name under which it is counted.
    pub(crate) fn counter(self) -> String {
        match self {
            Self::Stream(status) => format!("streams ended: {}", status.name()),
            Self::Connection(failure) => format!("connections failed: {}", failure.name()),
        }
    }
}

impl Status {
    pub(crate) const OK: Self = Self::Code(0);
    pub(crate) const UNIMPLEMENTED: Self = Self::Code(12);

    /// Reads the value of `grpc-status`.
    pub(crate) fn read(text: &str) -> Self {
        let code = text.parse().ok().filter(|code| usize::from(*code) < CODES.len());
        code.map_or(Self::Unknown, Self::Code)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Code(code) => CODES.get(usize::from(code)).copied().unwrap_or("another gRPC status"),
            Self::Unknown => "another gRPC status",
            Self::Reset => "reset without a gRPC status",
            Self::Missing => "no gRPC status",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(out, "gRPC status {code} ({})", self.name()),
            Self::Unknown | Self::Reset | Self::Missing => out.write_str(self.name()),
        }
    }
}

impl Failure {
    /// Returns the kind of an error of a socket, or of TLS over one.
    pub(crate) fn of(error: &io::Error) -> Self {
        if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
            return Self::Tls;
        }
        let found = KINDS.iter().find(|(kind, _)| *kind == error.kind());
        found.map_or(Self::Other, |(_, failure)| *failure)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Closed => "closed by the server",
            Self::Reset => "reset by the server",
            Self::TimedOut => "timed out",
            Self::Silent => "silent",
            Self::Unreachable => "unreachable",
            Self::Tls => "TLS",
            Self::NotHttp2 => "broken HTTP/2",
            Self::Other => "another reason",
        }
    }
}
