//! Phases that are over, with their results: later checks and later phases are compared with them.

use super::contender::{Round, Spent};
use crate::record::Phase;

/// A phase that is over.
pub(super) struct Past {
    pub(super) phase: Phase,
    pub(super) rounds: Rounds,
    pub(super) upstream_streams: u64,
    pub(super) upstream_bytes: u64,
    pub(super) changes: u32,
    /// How many deliveries there must be.
    pub(super) wanted: u64,
    /// Of the relay without those who misbehave, at the end.
    pub(super) calm_bytes: Option<u64>,
}

/// What the rounds of a phase cost: the server in question, the floor, and the calm one.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    pub(super) main: Vec<Round>,
    pub(super) floor: Vec<Round>,
    pub(super) calm: Vec<Round>,
    /// What the server in question cost while its clients came, and only they.
    pub(super) join: Option<Spent>,
}
