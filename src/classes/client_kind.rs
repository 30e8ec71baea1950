// SPDX-License-Identifier: Apache-2.0
//! What people read of a client's software.

use std::fmt;
use std::sync::Arc;

use super::{Node, UserAgent};

/// A kind of client: its software and its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientKind(Arc<UserAgent>);

/// How much of a name and of a version people read.
const CHARS_MAX: usize = 128;

impl ClientKind {
    /// Returns the kind of a client.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        Self(node.user_agent.clone())
    }
}

impl fmt::Display for ClientKind {
    /// As people read it: cut, and without control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |text: &str| -> String {
            let plain = text.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one });
            plain.take(CHARS_MAX).collect()
        };
        let UserAgent { name, version } = &*self.0;
        match (&**name, &**version) {
            ("", _) => f.write_str("unknown software"),
            (name, "") => f.write_str(&short(name)),
            (name, version) => write!(f, "{} {}", short(name), short(version)),
        }
    }
}
