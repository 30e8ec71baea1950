// SPDX-License-Identifier: Apache-2.0
//! Errors of single names: what a server reports (TP3), and what the relay itself finds.
//!
//! Owns their codes and texts. Does not decide what follows from them.

use std::sync::Arc;

/// An error that concerns one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceError {
    /// The number of a gRPC status code, never that of OK.
    pub code: i32,
    /// The server's own text, as far as it is passed on.
    pub message: Arc<str>,
    /// How the relay found out.
    pub trouble: Trouble,
}

/// How the relay found out about an error of a name (G-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server reported it.
    Said,
    /// The server did not answer in time.
    Silence,
    /// The content that the server sent last was not valid.
    Rejected,
    /// The server has deleted the resource, and the relay keeps it all the same.
    Deleted,
}

const INVALID_ARGUMENT: i32 = 3;
const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const UNIMPLEMENTED: i32 = 12;
const UNAVAILABLE: i32 = 14;
/// How much of a server's text is passed on.
const MESSAGE_CHARS: usize = 512;

impl ResourceError {
    /// An error with a server's own text.
    #[must_use]
    pub fn new(code: i32, message: &str) -> Self {
        Self::of(Trouble::Said, code, message)
    }

    fn of(trouble: Trouble, code: i32, message: &str) -> Self {
        Self {
            code,
            message: message.chars().take(MESSAGE_CHARS).collect::<String>().into(),
            trouble,
        }
    }

    /// The server ends the stream when it is asked for the type.
    #[must_use]
    pub fn refused(words: &str) -> Self {
        let message = format!("the control plane ends the stream when it is asked for this type: {words}");
        Self::new(UNAVAILABLE, &message)
    }

    /// The server does not speak delta, and only delta has the type; `why` is how that is known.
    #[must_use]
    pub fn no_delta(why: &str) -> Self {
        let message = format!("only delta has this type, and the control plane does not speak delta: {why}");
        Self::new(UNIMPLEMENTED, &message)
    }

    /// The server is polled, and the type cannot be (H-03).
    #[must_use]
    pub fn no_path() -> Self {
        Self::new(
            UNIMPLEMENTED,
            "the control plane is polled, and this type cannot be asked for over REST",
        )
    }

    /// The resource does not exist.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(NOT_FOUND, "the resource does not exist")
    }

    /// S-04: the relay's rules do not allow the client to have the resource.
    #[must_use]
    pub fn denied() -> Self {
        Self::new(
            PERMISSION_DENIED,
            "the relay's rules do not allow this client to have the resource",
        )
    }

    /// G-14: the server has not answered in time.
    #[must_use]
    pub fn silence() -> Self {
        Self::of(
            Trouble::Silence,
            UNAVAILABLE,
            "the control plane has not answered in time",
        )
    }

    /// The content that came last was not valid.
    #[must_use]
    pub fn rejected() -> Self {
        Self::of(
            Trouble::Rejected,
            INVALID_ARGUMENT,
            "the control plane's last content is not valid",
        )
    }

    /// G-13: the server deleted the resource, and the relay keeps it.
    #[must_use]
    pub fn deleted() -> Self {
        Self::of(
            Trouble::Deleted,
            NOT_FOUND,
            "the control plane deleted it; the relay still keeps it",
        )
    }

    /// Whether clients are told. K-06: what the relay rejected, or keeps, concerns only the relay and its server.
    pub const fn is_told(&self) -> bool {
        matches!(self.trouble, Trouble::Said | Trouble::Silence)
    }

    /// E-09: whether it is about the resource itself, and not about a temporary problem.
    pub const fn is_final(&self) -> bool {
        matches!(self.code, NOT_FOUND | PERMISSION_DENIED)
    }
}
