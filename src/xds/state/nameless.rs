// SPDX-License-Identifier: Apache-2.0
//! A resource that has no name.
//!
//! Owns which one that is. Does not know who asks for it.

use super::{Known, State};

impl State {
    /// the type's only resource, if it has no name: it answers to all names.
    pub(super) fn nameless(&self) -> Option<&Known> {
        if !self.type_url.traits().nameless {
            return None;
        }
        let known = self.entries.get("");
        known.filter(|known| matches!(known, Known::Present(_)))
    }

    /// Whether there is one resource, which has no name.
    pub fn is_nameless(&self) -> bool {
        self.present() == 1 && self.nameless().is_some()
    }
}
