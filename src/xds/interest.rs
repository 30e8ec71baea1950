// SPDX-License-Identifier: Apache-2.0
//! Who wants what: the values that a session and a view exchange.
//!
//! Owns the unit of interest. Does not count who else wants the same.

use super::{Name, TypeUrl};

/// One thing that can be subscribed to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Everything of the type.
    Wildcard,
    /// One name.
    Name(Name),
}

impl Target {
    /// The name; `None` stands for the wildcard.
    pub const fn name(&self) -> Option<&Name> {
        match self {
            Self::Wildcard => None,
            Self::Name(name) => Some(name),
        }
    }
}

/// A subscription that begins or ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Want {
    /// The type.
    pub type_url: TypeUrl,
    /// Everything of the type, or one name.
    pub target: Target,
    /// Whether it begins.
    pub wanted: bool,
    /// F-07: how the client wrote the name, if not in the canonical way. A name that it writes in several ways is wanted once in
    /// each.
    pub written: Option<Name>,
}

impl Want {
    /// Returns the end of it, in whatever way it was written.
    #[must_use]
    pub fn over(self) -> Self {
        Self {
            wanted: false,
            written: None,
            ..self
        }
    }
}

/// The names of one type that a session must look up again. Bounded, whatever happens before it looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dirty {
    /// These names.
    Names(Vec<Name>),
    /// There were too many to list: all names that it wants.
    All,
}
