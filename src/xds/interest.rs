//! Who wants what: the words between a session and a view.
//!
//! Owns the unit of interest. Refuses to count who else wants the same.

use super::{Name, TypeUrl};

/// One thing that can be subscribed to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Everything of the type.
    Wildcard,
    /// One name.
    Name(Name),
}

/// A subscription that begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The type.
    pub type_url: TypeUrl,
    /// What of it.
    pub target: Target,
    /// Whether it begins.
    pub wanted: bool,
    /// F-07: how the name is written, where not in the canonical way; who writes one name in several ways wants it once in each.
    pub written: Option<Name>,
}

/// Names of one type of which a session must look again what is known: bounded, whatever happens while it does not look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dirty {
    /// These names.
    Names(Vec<Name>),
    /// There were too many to list: all that it wants.
    All,
}
