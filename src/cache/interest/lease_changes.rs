// SPDX-License-Identifier: Apache-2.0
//! What changes for the writer in one turn.
//!
//! Owns how much that is at the most. Does not know why a lease begins or ends.

use std::sync::Arc;

use xds::{Target, TypeUrl, Want};

/// What the writer must do.
#[derive(Debug, Default)]
pub(crate) struct LeaseChanges {
    /// What upstream is told.
    pub(crate) wants: Vec<Want>,
    /// What is not leased any more.
    pub(crate) ended: Vec<(TypeUrl, Target)>,
    /// Whether more has begun or must linger than fits into one turn.
    pub(super) more: bool,
    /// New types that wait, each with a set that waits for anything of it.
    pub(super) new: Vec<(Arc<TypeUrl>, u32)>,
}

impl LeaseChanges {
    /// Whether so much has ended that further ends wait for the next turn.
    pub(super) const fn is_full(&self) -> bool {
        self.ended.len() >= ENDS_IN_A_TURN
    }

    /// Whether there is more, for the next turn.
    pub(crate) const fn is_short(&self) -> bool {
        self.more || self.is_full()
    }
}

/// How many leases end in one turn of the writer, give or take a few: the view forgets what it knew of each, for some microseconds.
pub(crate) const ENDS_IN_A_TURN: usize = 512;
