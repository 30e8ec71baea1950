// SPDX-License-Identifier: Apache-2.0
//! Phases that are over, with their results: later checks and later phases are compared with them.

use super::contender::{Round, Spent};
use crate::measure::record::{Distribution, Phase};

/// A phase that is over.
pub(super) struct Past {
    pub(super) phase: Phase,
    pub(super) rounds: Rounds,
    pub(super) upstream_streams: u64,
    pub(super) upstream_bytes: u64,
    pub(super) changes: u32,
    /// How many deliveries there must be.
    pub(super) wanted: u64,
    /// The memory of the calm relay at the end.
    pub(super) calm_bytes: Option<u64>,
}

/// The costs of a phase's rounds: at the server under test, at the floor, and at the calm relay.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    pub(super) main: Vec<Round>,
    pub(super) floor: Vec<Round>,
    pub(super) calm: Vec<Round>,
    /// The cost of the join at the server under test alone.
    pub(super) join: Option<Spent>,
    /// What the relay took while all clients were away.
    pub(super) away: Option<Usage>,
    /// How long the answers of the relay's admin address took, if it was asked.
    pub(super) answers: Option<Distribution>,
    /// How many clients lacked a change at the end, if that was asked.
    pub(super) behind: Option<usize>,
}

/// What the relay's process takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) resident_bytes: f64,
    pub(super) descriptors: f64,
    pub(super) tasks: f64,
}
