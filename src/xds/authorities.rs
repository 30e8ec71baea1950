//! The authorities that have servers of their own.
//!
//! Owns which names are asked with those of old style. Refuses to know who serves an authority.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Name;

/// The authorities that the configuration names; copies share one set.
#[derive(Clone, Debug, Default)]
pub struct Authorities(Arc<BTreeSet<Arc<str>>>);

impl Authorities {
    /// The authority at whose servers a name is asked. `None`: it is asked with the names of old style. F-13: so is a name of new
    /// style of which the configuration does not name the authority.
    #[must_use]
    pub fn of<'a>(&self, name: &'a Name) -> Option<&'a str> {
        name.authority().filter(|authority| self.0.contains(*authority))
    }
}

impl<A: Into<Arc<str>>> FromIterator<A> for Authorities {
    fn from_iter<I: IntoIterator<Item = A>>(authorities: I) -> Self {
        Self(Arc::new(authorities.into_iter().map(Into::into).collect()))
    }
}
