// SPDX-License-Identifier: Apache-2.0
//! A fault in a text or a message, and its place.

use std::fmt;

/// A place in a text: line and column, both from 1, the column in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// Its place, if it is in a text.
    pub place: Option<Place>,
    /// The path of the field: `resources[1].filters[0].typed_config.stat_prefix`; empty for the whole text or message.
    pub path: String,
    /// What is wrong and what was expected.
    pub message: String,
}

impl Fault {
    pub(super) fn at(place: Place, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place: Some(place),
            path: path.into(),
            message: message.into(),
        }
    }

    pub(super) fn of(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            place: None,
            path: path.into(),
            message: message.into(),
        }
    }

    /// Returns `origin:line:column: path: message`, as compilers and editors write it.
    pub fn within(&self, origin: &str) -> String {
        match self.place {
            Some(_) => format!("{origin}:{self}"),
            None => format!("{origin}: {self}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}
