// SPDX-License-Identifier: Apache-2.0
//! The additional features of a world.
//!
//! Owns what the digits of a seed mean. Does not know what a feature does.

/// The additional features of a world, from its seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Besides {
    /// Control planes that forget (D-10).
    pub(crate) amnesia: bool,
    /// Where there are lists: times to live at every server.
    pub(crate) ttls: bool,
    /// The relay stands still at times (K-27).
    pub(crate) frozen: bool,
    /// Where there are lists: several classes of clients.
    pub(crate) classes: bool,
    /// Where there are lists: configurations that change what has a source, which servers are in a list, and who is a canary.
    pub(crate) reloads: bool,
    /// Where there are lists: endpoints in lists of their own (LEDS).
    pub(crate) endpoints: bool,
    /// Clients whose requests contain names that are none (B-32).
    pub(crate) slips: bool,
    /// Control planes that answer nothing for a type while they lack a name that is asked for (E-27).
    pub(crate) strict: bool,
    /// Control planes that say the removal of a cluster before the routes that leave it (D-03).
    pub(crate) hasty: bool,
    /// Where there are lists: all clients but one are hostile.
    pub(crate) unruly: bool,
}

/// The digits of a seed above this number are the additional features of its world.
pub(crate) const BESIDES: u64 = 10_000_000;

impl Besides {
    pub(crate) const fn of(seed: u64) -> Self {
        let all = seed / BESIDES % 100;
        let unruly = seed >= super::UNRULY;
        let lists = seed >= super::LISTS && seed < super::RULED || unruly;
        Self {
            amnesia: all & 1 > 0,
            ttls: all & 2 > 0,
            frozen: all & 8 > 0,
            classes: all & 16 > 0,
            reloads: all & 4 > 0 && lists,
            endpoints: all & 64 > 0 && lists,
            slips: all & 16 > 0 && !lists,
            strict: all & 32 > 0 && !lists,
            hasty: all & 64 > 0 && !lists,
            unruly,
        }
    }
}
