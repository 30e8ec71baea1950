// SPDX-License-Identifier: Apache-2.0
//! What a client brings along, and whether it may.
//!
//! Owns the refusal. Does not know what becomes of it.

use super::Scopes;
use crate::NoPlace;
use crate::vacancy::Room;
use classes::Node;

impl Scopes {
    /// B-34: takes room for versions that a client brings.
    ///
    /// # Errors
    ///
    /// There is none, under this limit of memory.
    pub fn bring(&self, versions: usize) -> Result<Room, usize> {
        self.vacancy.bring(versions)
    }

    /// K-25: whether a client may come through the relays whose marks it brings.
    ///
    /// # Errors
    ///
    /// A control plane has refused one of the marks as a loop when this sender brought it.
    pub fn admit_marks(&self, node: &Node) -> Result<(), NoPlace> {
        let refused = node.marks.as_ref().and_then(|marks| self.loops.refuses(marks));
        refused.map_or(Ok(()), |mark| Err(NoPlace::Loop(mark)))
    }
}
