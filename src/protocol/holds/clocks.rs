//! The clocks by which grounds end.
//!
//! Owns their lengths, and the judgements, each of which has a clock for all that it holds. Does not know what waits.

use std::time::{Duration, Instant};

use super::judgements::Judgements;
use xds::ReferenceHold;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    pub(super) judgements: Judgements,
    /// How long references hold removals.
    pub(super) references: ReferenceHold,
    /// The longest time that a removal waits for a quiet time, and a change for what another server does not have.
    pub(super) bound: Duration,
    /// How long a change waits while that server is away; zero: changes do not wait.
    pub(super) unready: Duration,
    /// Since when the control plane is away, if it is: for that long, a removal that waits for a route that only it can say does not go.
    pub(super) away: Option<Instant>,
}

impl Clocks {
    /// Returns when references do not hold any more what was said then.
    pub(super) fn of_reference(&self, said: Instant) -> Option<Instant> {
        match self.references {
            ReferenceHold::For(time) => Some(said + time),
            ReferenceHold::UntilFree | ReferenceHold::Off => None,
        }
    }
}
