// SPDX-License-Identifier: Apache-2.0
//! Why something waits.
//!
//! Owns the grounds, with three answers of each: when its clock ends, whether it holds for itself, and what operators are told. Does not find
//! grounds.

use std::sync::Arc;
use std::time::Instant;

use super::clocks::Clocks;
use super::missing::Missing;
use super::waiting::Item;
use xds::{HoldReason, TypeUrl};

/// Until when a person holds something, and why.
pub(super) type Order = (Instant, Arc<str>);

/// Why something is held as operators see it, and by which judgement.
pub(super) type Reason = (HoldReason, Option<u32>);

/// Why it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// D-03: since then, until nothing that directs traffic has come for a while.
    Quiet(Instant),
    /// It is a part of a large loss.
    Lost(HeldLoss),
    /// A person holds it.
    Ordered(Order),
    /// Something that is served refers to it; `None`: what an earlier run of the relay knew.
    Named(Option<Referring>),
    /// D-12: the other source does not have this. Since when its server is there, as far as was seen.
    Unready(Missing, Instant),
    /// Its cluster has gone.
    AfterCluster(Instant),
    /// The control plane has not spoken of it since the relay has started.
    Unheard,
}

impl From<(Item, bool)> for Referring {
    fn from((by, said): (Item, bool)) -> Self {
        Self { by, said, until: None }
    }
}

/// What holds a part of a large loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldLoss {
    /// The first state that it is a part of is judged soon.
    Undecided,
    /// The judgement with this number.
    Judged(u32),
}

/// What refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Referring {
    pub(super) by: Item,
    /// Whether the control plane still sends that.
    pub(super) said: bool,
    /// It counts until then only: it may refer to it, or its own server knows better.
    pub(super) until: Option<Instant>,
}

impl Ground {
    /// Returns when its clock ends; `said`: when the row was.
    pub(super) fn until(&self, of: &TypeUrl, said: Instant, clocks: &Clocks) -> Option<Instant> {
        match self {
            Self::Quiet(_) | Self::Unheard | Self::Lost(HeldLoss::Undecided) => None,
            Self::Lost(HeldLoss::Judged(number)) => clocks.judgements.until(&(of.clone(), *number)),
            Self::Ordered((until, _)) | Self::AfterCluster(until) => Some(*until),
            Self::Named(by) => by.as_ref()?.until.filter(|_| clocks.away.is_none()),
            // From its return, the other server has as long to answer as any; one that flaps does not make it longer.
            Self::Unready(missing, _) if missing.is_away() => Some(said + clocks.settings.unready),
            Self::Unready(_, there) => {
                Some((*there + clocks.bound).min(said + clocks.settings.unready.max(clocks.bound)))
            }
        }
    }

    /// Returns what operators are told of it.
    pub(super) const fn reason(&self) -> Option<Reason> {
        match self {
            Self::Lost(HeldLoss::Judged(number)) => Some((HoldReason::Mass, Some(*number))),
            Self::Ordered(_) | Self::Named(_) => Some((HoldReason::Referenced, None)),
            Self::Unready(..) => Some((HoldReason::Unready, None)),
            Self::Quiet(_) | Self::Lost(HeldLoss::Undecided) | Self::AfterCluster(_) | Self::Unheard => None,
        }
    }

    /// Whether it holds the row for itself, whatever refers to that; `expired`: the resource is.
    pub(super) fn waits(&self, expired: bool, now: Instant) -> bool {
        match self {
            Self::Quiet(_) | Self::Unheard => true,
            Self::AfterCluster(until) => *until > now,
            Self::Lost(_) => !expired,
            Self::Ordered((until, _)) => *until > now && !expired,
            Self::Named(_) | Self::Unready(..) => false,
        }
    }
}
