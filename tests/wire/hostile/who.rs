// SPDX-License-Identifier: Apache-2.0
//! Who attacks, one after the other.
//!
//! Owns the list of all attackers, and how each of them begins. Does not know what is asked of the others meanwhile.

use std::time::Duration;

use tokio::task::AbortHandle;

use super::World;
use super::attack::{Attack, switching};
use super::attacks::ATTACKS;
use super::callers::{CALLERS, Callers, mixing};
use super::planes::PLANES;

/// Who attacks.
pub(super) enum Who {
    Clients(&'static Attack),
    Callers(Callers),
    /// A control plane, for whose authority a client asks.
    Plane(usize),
    /// Clients that switch from one attack to the next.
    Switching,
    /// The same for callers.
    Mixing,
}

/// What is visited during each attack.
pub(super) const PROBES: &[&str] = &["/ready"];

/// Returns all attackers, each with a name.
pub(super) fn everybody() -> impl Iterator<Item = (&'static str, Who)> {
    let attacks = ATTACKS.iter().map(|attack| (attack.name, Who::Clients(attack)));
    let callers = CALLERS.iter().map(|(name, callers)| (*name, Who::Callers(*callers)));
    let planes = PLANES.iter().enumerate();
    let planes = planes.map(|(nth, plane)| (plane.authority, Who::Plane(nth)));
    let turns = [
        ("callers in turn", Who::Mixing),
        ("all attacks in turn", Who::Switching),
    ];
    attacks.chain(callers).chain(turns).chain(planes)
}

impl Who {
    /// Returns the paths that somebody visits meanwhile.
    pub(super) const fn visited(&self) -> &'static [&'static str] {
        match self {
            Self::Callers(Callers::Rejections(_)) => &["/ready", "/nacks"],
            Self::Clients(_) | Self::Callers(_) | Self::Plane(_) | Self::Switching | Self::Mixing => PROBES,
        }
    }
}

impl World {
    /// Begins an attack.
    pub(super) async fn attackers(&self, who: &Who, of_each: Duration) -> Vec<AbortHandle> {
        let attack = match *who {
            Who::Clients(attack) => attack,
            Who::Callers(callers) => {
                let address = self.listeners.plain;
                let run = |nth| self.crowd.spawn(callers.run(address, nth)).abort_handle();
                return (0..callers.count()).map(run).collect();
            }
            Who::Plane(nth) => return vec![self.asks(PLANES[nth].authority).await],
            Who::Switching => {
                let attacks = switching(ATTACKS, self.listeners.clone(), of_each);
                return vec![self.crowd.spawn(attacks).abort_handle()];
            }
            Who::Mixing => {
                let callers = mixing(self.listeners.plain, of_each);
                return vec![self.crowd.spawn(callers).abort_handle()];
            }
        };
        let run = |_| self.crowd.spawn(attack.run(self.listeners.clone())).abort_handle();
        (0..attack.connections).map(run).collect()
    }
}
