//! What is wrong with a name: what a server says of it (TP3), and what the relay itself found.
//!
//! Owns the words of it. Refuses to decide what follows.

use std::sync::Arc;

/// An error that concerns one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceError {
    /// The number of a gRPC status code, never that of OK.
    pub code: i32,
    /// In the server's words, as far as they are passed on.
    pub message: Arc<str>,
    /// How it came to be known.
    pub trouble: Trouble,
}

/// How it came to be known that something is wrong with a name (G-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server said so.
    Said,
    /// The server did not say anything in its time.
    Silence,
    /// What the server sent last was not sound.
    Rejected,
    /// The server has deleted it, and the relay keeps it all the same.
    Deleted,
}

const INVALID_ARGUMENT: i32 = 3;
const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const UNIMPLEMENTED: i32 = 12;
const UNAVAILABLE: i32 = 14;
/// So much of a server's words is passed on.
const MESSAGE_CHARS: usize = 512;

impl ResourceError {
    /// An error in a server's words.
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

    /// G-14: the server has not said anything in its time.
    #[must_use]
    pub fn silence() -> Self {
        Self::of(
            Trouble::Silence,
            UNAVAILABLE,
            "the control plane has not answered in time",
        )
    }

    /// What came last was not sound.
    #[must_use]
    pub fn rejected() -> Self {
        Self::of(Trouble::Rejected, INVALID_ARGUMENT, "what came last is not sound")
    }

    /// G-13: it is deleted, and kept.
    #[must_use]
    pub fn deleted() -> Self {
        Self::of(Trouble::Deleted, NOT_FOUND, "it was deleted, and is kept")
    }

    /// Whether clients are told of it. K-06: what the relay rejected, or keeps, is its own affair with its server.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        matches!(self.trouble, Trouble::Said | Trouble::Silence)
    }

    /// E-09: whether it is about the resource itself, and not about a passing trouble.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self.code, NOT_FOUND | PERMISSION_DENIED)
    }
}
