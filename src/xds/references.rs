// SPDX-License-Identifier: Apache-2.0
//! What a resource refers to.
//!
//! Owns the value that is kept with the resource. Does not read a body.

use super::{Name, Spot};

/// The names that a resource refers to, and what only one resource can have at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Route configurations.
    pub routes: Box<[Name]>,
    /// Clusters.
    pub clusters: Box<[Name]>,
    /// Addresses of a listener, or domains of a virtual host.
    pub spots: Box<[Spot]>,
}

impl References {
    /// Whether it refers to nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.clusters.is_empty() && self.spots.is_empty()
    }
}
