// SPDX-License-Identifier: Apache-2.0
//! The clocks by which grounds end.
//!
//! Owns their lengths, and the judgements, each of which has a clock for all that it holds. Does not know what waits.

use std::time::{Duration, Instant};

use super::judgements::Judgements;
use xds::GuardSettings;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    pub(super) judgements: Judgements,
    /// The longest time that a removal waits for a quiet time, and a change for what another server does not have.
    pub(super) bound: Duration,
    pub(super) settings: GuardSettings,
    /// Since when the control plane is away, if it is: for that long, a removal that waits for a route that only it can say does not go.
    pub(super) away: Option<Instant>,
}
