//! What the clients of one view read of other servers.
//!
//! Owns the way from a name to the cut of another view. Does not know which view that is, nor who asks.

use std::sync::Arc;

use super::{Cut, Name, TypeUrl};

/// Finds the cut of another server from which clients read what has this type and name; `None`: they read it from the server of the
/// view itself.
type Find = dyn Fn(&TypeUrl, &Name) -> Option<Arc<Cut>> + Send + Sync;
/// Whether a client wants this very name now.
type Wants = dyn Fn(&TypeUrl, &Name) -> bool + Send + Sync;

/// What the clients of a view read of other servers (D-12).
pub struct Beside {
    find: Box<Find>,
    wants: Box<Wants>,
}

impl Beside {
    /// Looks things up in this way.
    #[must_use]
    pub fn new(
        find: impl Fn(&TypeUrl, &Name) -> Option<Arc<Cut>> + Send + Sync + 'static,
        wants: impl Fn(&TypeUrl, &Name) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            find: Box::new(find),
            wants: Box::new(wants),
        }
    }

    /// Returns the cut of another server from which clients read this; `None`: that of their own view.
    #[must_use]
    pub fn cut(&self, type_url: &TypeUrl, name: &Name) -> Option<Arc<Cut>> {
        (self.find)(type_url, name)
    }

    /// Whether a client wants this very name now.
    #[must_use]
    pub fn wants(&self, type_url: &TypeUrl, name: &Name) -> bool {
        (self.wants)(type_url, name)
    }
}
