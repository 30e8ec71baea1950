// SPDX-License-Identifier: Apache-2.0
//! What clients of one kind reject.
//!
//! Owns nothing but the value. Does not know how they were counted.

use std::sync::Arc;

use super::{Name, Objection, Version};

/// A content that clients of one kind reject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The content; `None` if the client is a relay, which says in words what its own clients reject.
    pub content: Option<(Name, Version)>,
    /// What the clients have in common, for people: their software and its version.
    pub kind: Arc<str>,
    /// How many of them reject it.
    pub clients: usize,
    /// How many there are of the kind that ask for the type.
    pub of: usize,
    /// The words of one of them.
    pub objection: Arc<Objection>,
}
