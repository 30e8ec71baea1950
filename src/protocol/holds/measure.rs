// SPDX-License-Identifier: Apache-2.0
//! What is there, what is judged, and how much is too much.
//!
//! Owns the comparison with the thresholds. Does not count.

use xds::{Kind, Known, Name, State};

/// D-10: so much of a type must be lost, in percent and in number; and so much must have become empty, in percent.
const SHARE: usize = 15;
const LISTENERS: usize = 1;
const OTHERS: usize = 3;
const EMPTIED: usize = 50;

/// Whether so many lost names of so many are too many. What was gained counts against them: names may have changed.
pub(super) const fn is_mass(kind: Kind, lost: usize, gained: usize, served: usize) -> bool {
    let net = lost.saturating_sub(gained);
    let least = if kind.listens() { LISTENERS } else { OTHERS };
    let all = net > 0 && net >= served;
    all || net >= least && is_share(net, served, SHARE)
}

/// The same for endpoint assignments that have become empty.
pub(super) const fn is_emptied(emptied: usize, served: usize) -> bool {
    emptied >= OTHERS && is_share(emptied, served, EMPTIED)
}

const fn is_share(part: usize, all: usize, percent: usize) -> bool {
    part.saturating_mul(100) >= all.saturating_mul(percent)
}

/// Whether a resource of this name is there; an alias is no name.
pub(super) fn is_present(state: &State, name: &Name) -> bool {
    matches!(state.entries().get(name), Some(Known::Present(_)))
}
