//! What a server says is wrong with a name (TP3).
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
}

const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const UNAVAILABLE: i32 = 14;
/// So much of a server's words is passed on.
const MESSAGE_CHARS: usize = 512;

impl ResourceError {
    /// An error in a server's words.
    #[must_use]
    pub fn new(code: i32, message: &str) -> Self {
        Self {
            code,
            message: message.chars().take(MESSAGE_CHARS).collect::<String>().into(),
        }
    }

    /// The resource does not exist.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(NOT_FOUND, "the resource does not exist")
    }

    /// G-14: the server has not said anything in its time.
    #[must_use]
    pub fn silence() -> Self {
        Self::new(UNAVAILABLE, "the control plane has not answered in time")
    }

    /// E-09: whether it is about the resource itself, and not about a passing trouble.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self.code, NOT_FOUND | PERMISSION_DENIED)
    }
}
