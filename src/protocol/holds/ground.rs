//! Why something waits.
//!
//! Owns the grounds, with three answers of each: when its clock ends, what operators are told, and what its end is called. Does not find
//! grounds.

use std::sync::Arc;
use std::time::Instant;

use super::clocks::Clocks;
use super::missing::Missing;
use super::waiting::Item;
use xds::{HoldEnd, HoldReason, TypeUrl};

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
    Lost(Loss),
    /// A person holds it.
    Ordered(Order),
    /// Something that is served refers to it.
    Named(Referring),
    /// D-12: the other source does not have this. Since when its server is there, as far as was seen.
    Unready(Missing, Instant),
    /// Its cluster has gone.
    AfterCluster(Instant),
    /// The control plane has not spoken of it since the relay has started.
    Unheard,
}

/// What holds a part of a large loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The first state that it is a part of is judged soon.
    Undecided,
    /// The judgement with this number.
    Judged(u32),
}

/// What refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Referring {
    /// Something that an earlier run of the relay knew.
    Earlier,
    /// This does. `true`: the control plane still sends it.
    By(Item, bool),
    /// Until then this may: it names a route configuration that is not known yet.
    Perhaps(Item, Instant),
}

impl Ground {
    /// Returns when its clock ends; `said`: when the row was.
    pub(super) fn until(&self, of: &TypeUrl, said: Instant, clocks: &Clocks) -> Option<Instant> {
        match self {
            Self::Quiet(_) | Self::Unheard | Self::Lost(Loss::Undecided) => None,
            Self::Lost(Loss::Judged(number)) => clocks.judgements.until(&(of.clone(), *number)),
            Self::Ordered((until, _)) | Self::AfterCluster(until) => Some(*until),
            Self::Named(Referring::Perhaps(_, until)) => Some(*until).filter(|_| clocks.away.is_none()),
            Self::Named(_) => clocks.of_reference(said),
            // From its return, the other server has as long to answer as any; one that flaps does not make it longer.
            Self::Unready(missing, _) if missing.is_away() => Some(said + clocks.unready),
            Self::Unready(_, there) => Some((*there + clocks.bound).min(said + clocks.unready.max(clocks.bound))),
        }
    }

    /// Returns what operators are told of it.
    pub(super) const fn reason(&self) -> Option<Reason> {
        match self {
            Self::Lost(Loss::Judged(number)) => Some((HoldReason::Mass, Some(*number))),
            Self::Ordered(_) | Self::Named(_) => Some((HoldReason::Referenced, None)),
            Self::Unready(..) => Some((HoldReason::Unready, None)),
            Self::Quiet(_) | Self::Lost(Loss::Undecided) | Self::AfterCluster(_) | Self::Unheard => None,
        }
    }

    /// Returns what it is called that its clock has ended.
    pub(super) const fn end(&self) -> HoldEnd {
        match self {
            Self::Lost(_) | Self::Ordered(_) | Self::Named(_) | Self::Unready(..) => HoldEnd::Clock,
            Self::Quiet(_) | Self::AfterCluster(_) | Self::Unheard => HoldEnd::Free,
        }
    }
}
