//! The authorities that have servers of their own.
//!
//! Owns which names are requested from an authority's own servers. Does not know who serves an authority.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Name;

/// The authorities that the configuration names; copies share one set.
#[derive(Clone, Debug, Default)]
pub struct Authorities(Arc<BTreeSet<Arc<str>>>);

impl Authorities {
    /// Returns the authority whose servers are asked for a name. `None`: the name is requested together with old-style names.
    /// F-13: this is also the case for a new-style name if the configuration does not name its authority.
    #[must_use]
    pub fn of<'a>(&self, name: &'a Name) -> Option<&'a str> {
        name.authority().filter(|authority| self.0.contains(*authority))
    }
}

/// A78: returns what operators are shown for an authority. Names without one have the label that gRPC gives them.
#[must_use]
pub const fn authority_label(authority: &str) -> &str {
    if authority.is_empty() { "#old" } else { authority }
}

impl<A: Into<Arc<str>>> FromIterator<A> for Authorities {
    fn from_iter<I: IntoIterator<Item = A>>(authorities: I) -> Self {
        Self(Arc::new(authorities.into_iter().map(Into::into).collect()))
    }
}
