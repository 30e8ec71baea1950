// SPDX-License-Identifier: Apache-2.0
//! Whether the clients have streams at the end of each phase, whether anybody had one, and for how long some had none. Owns which
//! scenarios must keep them.

use std::time::Duration;

use super::file::Scenario;
use super::phase::Act;
use super::play::Play;
use crate::fleet::presence::{RECYCLED_WITHIN, Standing};
use crate::measure::record::{Claim, Quantity, Relation, Unit, float};

/// What was known of the streams when a phase began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Whether anybody had one.
    any: bool,
    /// How often clients had got one.
    streamed: u64,
}

impl Scenario {
    /// Whether its clients must keep their streams: unless it stops a server, or says that streams end.
    pub(super) fn keeps_streams(&self) -> bool {
        let stops = |act: &Act| {
            matches!(
                act,
                Act::Restart(_) | Act::Kill(_) | Act::Stop(_) | Act::Start(_) | Act::Chaos(_)
            )
        };
        !self.churn && !self.phases.iter().any(|phase| stops(&phase.act))
    }
}

impl Play<'_> {
    /// To be called before each phase.
    pub(super) fn streams(&self) -> Before {
        let progress = &self.cast.main.fleet.progress;
        Before {
            any: progress.streaming().is_some_and(|streaming| streaming > 0),
            streamed: progress.streamed(),
        }
    }

    /// Checks the streams at the end of a phase.
    pub(super) async fn check_streams(&self, before: Before) -> anyhow::Result<()> {
        let main = &self.cast.main;
        let standing = main.fleet.standing().await?;
        if standing.demanded == 0 {
            return Ok(());
        }
        let gap = main.fleet.progress.take_gap().max(standing.gap);
        self.recorder.without_stream(gap);
        let had_any = before.any || main.fleet.progress.streamed() > before.streamed;
        if self.keeps_streams {
            self.claim_streams(&standing);
            self.claim_gap(gap);
        } else if !had_any && main.is_served(self.arguments) {
            let why = format!("nobody had one; at the end, {standing}");
            self.recorder.fail("a client has a stream during the phase", Some(why));
        }
        Ok(())
    }

    /// However the streams are at the end: a server that was gone for most of the phase left its clients alone.
    fn claim_gap(&self, gap: Duration) {
        self.recorder.claim(&Claim {
            text: "longest time that a client was without a stream",
            measured: Quantity::new(gap.as_secs_f64() * 1e3, Unit::Millis),
            relation: Relation::AtMost,
            bound: RECYCLED_WITHIN.as_secs_f64() * 1e3,
            timed: false,
            effort: None,
            why: None,
        });
    }

    fn claim_streams(&self, standing: &Standing) {
        self.recorder.claim(&Claim {
            text: "clients without a stream at the end",
            measured: Quantity::new(float(standing.without.into()), Unit::Count),
            relation: Relation::Exactly,
            bound: 0.0,
            timed: false,
            effort: None,
            why: Some(standing.to_string()),
        });
    }
}
