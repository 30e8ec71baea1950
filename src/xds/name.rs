// SPDX-License-Identifier: Apache-2.0
//! A resource's name.
//!
//! Owns cheap copies and comparison byte by byte (F-01). Does not know who subscribes to it.

use std::borrow::Borrow;
use std::fmt;

use arcstr::ArcStr;

use super::xdstp::SCHEME;

/// A resource name; copies share one text. A copy is one pointer, because tables of names are most of what a view keeps of a name
/// that nobody else wants.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(ArcStr);

impl Name {
    /// What subscribes to everything of a type.
    pub const WILDCARD: &'static str = "*";

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is empty, as for a resource without a name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// F-01, F-11: returns the authority of a new-style name; `None` for an old-style name. An authority that cannot be read is
    /// the whole text, which nobody serves.
    pub fn authority(&self) -> Option<&str> {
        let rest = self.0.strip_prefix(SCHEME)?;
        let found = rest.strip_prefix("//").and_then(|rest| rest.split_once('/'));
        Some(found.map_or(&self.0, |(authority, _)| authority))
    }

    /// How many copies share this text. The empty name has none: nothing is allocated for it.
    pub fn copies(&self) -> usize {
        ArcStr::strong_count(&self.0).unwrap_or_default()
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(ArcStr::from(text))
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(ArcStr::from(text))
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
