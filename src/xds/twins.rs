// SPDX-License-Identifier: Apache-2.0
//! What other views have of the same names.
//!
//! Owns the way to their cuts: bytes that two servers say alike are kept once. Does not know which views these are.

use std::fmt;
use std::sync::Arc;

use super::Cut;

/// Finds what is there now.
type Find = dyn Fn() -> Vec<Arc<Cut>> + Send + Sync;

/// The cuts of other views in which the same content is likely to be: those of a canary and the servers behind it.
#[derive(Clone, Default)]
pub struct Twins(Option<Arc<Find>>);

impl Twins {
    /// Looks for them in this way.
    #[must_use]
    pub fn new(find: impl Fn() -> Vec<Arc<Cut>> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(find)))
    }

    /// Returns those that are there now.
    pub fn cuts(&self) -> Vec<Arc<Cut>> {
        self.0.as_ref().map_or_else(Vec::new, |find| find())
    }
}

impl fmt::Debug for Twins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Twins").field(&self.0.is_some()).finish()
    }
}
