// SPDX-License-Identifier: Apache-2.0
//! The unpacked descriptors of the public API, which take more memory than a small relay.
//!
//! Owns that they are let go of while nobody needs them. Does not know who does.

use std::time::{Duration, Instant};

use crate::json::Schemas;

/// The watch over them.
pub(super) struct IdleSchemas {
    uses: u64,
    /// When they were last seen to be needed; none after they were let go of.
    needed: Option<Instant>,
}

/// After this time without use they are let go of. To unpack them takes a tenth of a second.
const IDLE: Duration = Duration::from_secs(60);

impl IdleSchemas {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            uses: Schemas::uses(),
            needed: Some(now),
        }
    }

    /// Lets go of them if it is time. To be called every few seconds.
    pub(super) fn look(&mut self, now: Instant) {
        let uses = Schemas::uses();
        if uses != self.uses {
            self.uses = uses;
            self.needed = Some(now);
        } else if self
            .needed
            .is_some_and(|needed| now.saturating_duration_since(needed) >= IDLE)
        {
            self.needed = None;
            Schemas::pack();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// They go after a minute without use, and come back with the next use. Other tests may use them meanwhile.
    #[test]
    fn they_come_back() {
        let now = clock::now();
        let mut idle = IdleSchemas::new(now);
        assert!(Schemas::standard().knows("envoy.config.cluster.v3.Cluster"));
        idle.look(now);
        assert_eq!(idle.needed, Some(now));
        idle.uses = Schemas::uses();
        idle.look(now + IDLE);
        assert!(idle.needed.is_none() || idle.uses != Schemas::uses());
        assert!(Schemas::standard().knows("envoy.config.cluster.v3.Cluster"));
    }
}
