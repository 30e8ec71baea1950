//! What is there, what is judged, and how much is too much.
//!
//! Owns the comparison with the thresholds. Does not count.

use xds::{Kind, Known, MassHold, Name, State};

/// Secrets and runtime layers are never judged: what an old secret lets in may be what an operator wants to keep out.
pub(super) const fn is_judged(kind: Kind) -> bool {
    !matches!(kind, Kind::Sds | Kind::Rtds)
}

/// Whether so many lost names of so many are too many. What was gained counts against them: names may have changed.
pub(super) fn is_mass(kind: Kind, lost: usize, gained: usize, served: usize, mass: &MassHold) -> bool {
    let net = lost.saturating_sub(gained);
    let least = if kind == Kind::Lds { mass.listeners } else { mass.other };
    let all = net > 0 && net >= served;
    all || net >= least.max(1) && is_share(net, served, mass.share)
}

pub(super) const fn is_share(part: usize, all: usize, percent: u8) -> bool {
    part.saturating_mul(100) >= all.saturating_mul(percent as usize)
}

/// Whether a resource of this name is there; an alias is no name.
pub(super) fn is_present(state: &State, name: &Name) -> bool {
    matches!(state.entries().get(name), Some(Known::Present(_)))
}
