//! How a stream ends.
//!
//! Owns the status codes that the relay uses and the words that go with them. Refuses to know trailers.

use std::fmt;
use std::time::Duration;

use crate::xds::TypeUrl;

/// The end of a stream: a gRPC status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The code.
    pub code: Code,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// The limit that was exceeded, if it was one: its key.
    pub limit: Option<&'static str>,
}

/// gRPC's codes, as far as the relay uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A regular end.
    Ok = 0,
    /// The client sent something that is not allowed.
    InvalidArgument = 3,
    /// The client's deadline has passed.
    DeadlineExceeded = 4,
    /// The client may not have it.
    PermissionDenied = 7,
    /// A limit was reached.
    ResourceExhausted = 8,
    /// The relay cannot serve this client as things are.
    FailedPrecondition = 9,
    /// There is no such method.
    Unimplemented = 12,
    /// The relay is at fault.
    Internal = 13,
    /// Nothing can be served now; another server may be able to.
    Unavailable = 14,
}

impl Code {
    /// The number in `grpc-status`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }
}

impl End {
    /// An end with this code and message.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            limit: None,
        }
    }

    /// The client sent something that is not allowed.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Nothing was answered for the type in this time; `reason` is why, as far as is known.
    #[must_use]
    pub fn unanswered(type_url: &TypeUrl, within: Duration, reason: Option<&str>) -> Self {
        let message = format!(
            "no upstream has answered for {type_url} in {within:?}; nothing can be served yet{}",
            Self::because(reason)
        );
        Self::new(Code::Unavailable, message)
    }

    /// What follows in a message of why nothing is known; empty if that is not known either.
    #[must_use]
    pub fn because(reason: Option<&str>) -> String {
        reason.map_or_else(String::new, |reason| format!("; control plane {reason}"))
    }

    /// The client reached a limit; `key` is the configuration key that would raise it.
    #[must_use]
    pub fn limit(key: &'static str, what: fmt::Arguments<'_>) -> Self {
        let message = format!("{what}: over the relay's limit `limits.{key}`");
        Self {
            limit: Some(key),
            ..Self::new(Code::ResourceExhausted, message)
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)
    }
}
