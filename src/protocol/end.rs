// SPDX-License-Identifier: Apache-2.0
//! How a stream ends.
//!
//! Owns the status codes that the relay uses and their messages. Knows nothing of trailers.

use std::fmt;
use std::time::Duration;

use xds::TypeUrl;

/// The end of a stream: a gRPC status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The code.
    pub code: Code,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// The configuration key of the limit that was exceeded, if that is the reason.
    pub limit: Option<&'static str>,
}

/// The gRPC codes that the relay uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A regular end.
    Ok = 0,
    /// The client sent something that is not allowed.
    InvalidArgument = 3,
    /// The client's deadline has passed.
    DeadlineExceeded = 4,
    /// The client has no permission.
    PermissionDenied = 7,
    /// A limit was reached.
    ResourceExhausted = 8,
    /// The relay cannot serve this client in its present state.
    FailedPrecondition = 9,
    /// There is no such method.
    Unimplemented = 12,
    /// The relay is at fault.
    Internal = 13,
    /// Nothing can be served now; another server may be able to.
    Unavailable = 14,
}

impl Code {
    /// Returns the number in `grpc-status`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }
}

impl End {
    /// Creates an end with this code and message.
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

    /// Nothing was answered for the type within this time; `reason` says why, if that is known.
    #[must_use]
    pub fn unanswered(type_url: &TypeUrl, within: Duration, reason: Option<&str>) -> Self {
        let message = format!(
            "no upstream has answered for {type_url} in {within:?}; nothing can be served yet{}",
            Self::because(reason)
        );
        Self::new(Code::Unavailable, message)
    }

    /// Adds the error of a name to the message, if there is one.
    #[must_use]
    pub fn explained(mut self, error: Option<&str>) -> Self {
        if let Some(error) = error {
            self.message.push_str("; ");
            self.message.push_str(error);
        }
        self
    }

    /// All servers for something of the type are lost; `reason` says why, if that is known.
    #[must_use]
    pub fn lost(type_url: &TypeUrl, reason: Option<&str>) -> Self {
        let message = format!(
            "no upstream is left to ask for {type_url}, and nothing is known of a name that was asked for{}",
            Self::because(reason)
        );
        Self::new(Code::Unavailable, message)
    }

    /// Returns the part of a message that says why nothing is known; empty without a reason.
    #[must_use]
    pub fn because(reason: Option<&str>) -> String {
        reason.map_or_else(String::new, |reason| format!("; control plane {reason}"))
    }

    /// The client reached a limit; `limits.` stands before its name if it is a key of the configuration.
    #[must_use]
    pub fn limit(limit: &'static str, what: fmt::Arguments<'_>) -> Self {
        let message = format!("{what}: over the relay's limit `{limit}`");
        Self {
            limit: limit.rsplit('.').next(),
            ..Self::new(Code::ResourceExhausted, message)
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)
    }
}
