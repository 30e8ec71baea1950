//! What clients have in common that reject the same: their class, their software and its version.
//!
//! Owns that two are the same, and what people read. Does not know what is rejected.

use std::fmt;
use std::sync::Arc;

use super::{Class, Node, UserAgent};

/// A kind of client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientKind {
    class: Arc<Class>,
    user_agent: Arc<UserAgent>,
}

/// How much of a name and of a version people read.
const CHARS_MAX: usize = 128;

impl ClientKind {
    /// Returns the kind of clients of this class with this software.
    #[must_use]
    pub const fn new(class: Arc<Class>, user_agent: Arc<UserAgent>) -> Self {
        Self { class, user_agent }
    }

    /// Returns the kind of a client.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        Self::new(node.class.clone(), node.user_agent.clone())
    }

    /// Whether a client is of this kind.
    #[must_use]
    pub fn has(&self, node: &Node) -> bool {
        (Arc::ptr_eq(&self.user_agent, &node.user_agent) || self.user_agent == node.user_agent)
            && (Arc::ptr_eq(&self.class, &node.class) || self.class == node.class)
    }

    /// The class.
    #[must_use]
    pub const fn class(&self) -> &Arc<Class> {
        &self.class
    }

    /// The software.
    #[must_use]
    pub const fn user_agent(&self) -> &Arc<UserAgent> {
        &self.user_agent
    }
}

impl fmt::Display for ClientKind {
    /// As people read it: cut, and without control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |text: &str| -> String {
            let plain = text.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one });
            plain.take(CHARS_MAX).collect()
        };
        let UserAgent { name, version } = &*self.user_agent;
        match (&**name, &**version) {
            ("", _) => f.write_str("unknown software"),
            (name, "") => f.write_str(&short(name)),
            (name, version) => write!(f, "{} {}", short(name), short(version)),
        }
    }
}
