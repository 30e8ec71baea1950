// SPDX-License-Identifier: Apache-2.0
//! What the relay does as its memory gets short.
//!
//! Owns the actions, their order and their thresholds, and that they are shown. Does not know how memory is measured.

use super::admission::Used;
use super::shared::Shared;
use crate::xds::worded;

worded! {
/// What the relay does as its memory gets short, in the order in which it begins. What is above is not undone by what follows.
/// Only the last takes a stream from clients that are served: from those that do not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Unfinished requests may only take half as much.
    ShrinkReading = "shrink_reading",
    /// New connections are closed.
    RejectConnections = "reject_connections",
    /// New streams end.
    RejectStreams = "reject_streams",
    /// Streams may not ask for more names.
    HoldSubscriptions = "hold_subscriptions",
    /// The streams of clients that lag end where more than a little outdated content is kept for them (K-21).
    ReleaseLaggards = "release_laggards",
}
}

impl Action {
    /// From how many percent of the budget on it is done.
    #[must_use]
    pub const fn threshold(self) -> usize {
        match self {
            Self::ShrinkReading => 80,
            Self::RejectConnections => 90,
            Self::RejectStreams => 92,
            Self::HoldSubscriptions => 95,
            Self::ReleaseLaggards => 98,
        }
    }

    /// Returns the last action that is done while so much memory is used; all before it are done as well.
    #[must_use]
    pub fn last(memory: Used) -> Option<Self> {
        let percent = memory.used.saturating_mul(100).checked_div(memory.max)?;
        let mut done = Self::ALL.into_iter().rev();
        done.find(|action| percent >= action.threshold())
    }
}

/// Up to how many percent of the budget names may be new: somewhat more than where [`Action::HoldSubscriptions`] begins, which is
/// gentler.
const NAMES_UP_TO: usize = 97;
/// The part of the budget that unfinished requests may take, if it is small.
const READING_PART: usize = 8;

impl Shared {
    /// Does what is necessary while the process uses so much `memory`, and shows it. Returns the last action. To be called about
    /// once a second.
    pub fn act(&self, memory: Used) -> Option<Action> {
        let last = Action::last(memory);
        self.admission.press(last, memory.max);
        if last.is_some() {
            let usual = memory.max / 100 * Action::ShrinkReading.threshold();
            self.admission.relieve(memory.used.saturating_sub(usual));
        }
        let names = memory.max / 100 * NAMES_UP_TO;
        self.scopes.leave_room(names.saturating_sub(memory.used), memory.max);
        self.budget.resize(match (last, memory.max) {
            (Some(_), _) => 0,
            (None, 0) => usize::MAX,
            (None, max) => max / READING_PART,
        });
        if last == Some(Action::ReleaseLaggards) {
            self.scopes.release_laggards();
        }
        self.show(memory, last);
        last
    }

    fn show(&self, memory: Used, last: Option<Action>) {
        let overload = &self.metrics.overload;
        let [connections, streams, subscriptions] = self.admission.used();
        let reading = Used {
            used: self.budget.bytes(),
            max: self.budget.bytes_max(),
        };
        let names = i64::try_from(subscriptions.used).unwrap_or(i64::MAX);
        overload.subscriptions.set(names);
        for (resource, used) in [
            ("memory", memory),
            ("reading", reading),
            ("connections", connections),
            ("streams", streams),
            ("subscriptions", subscriptions),
        ] {
            overload.pressure(resource, used.used, used.max);
        }
        for action in Action::ALL {
            let full = match action {
                Action::RejectConnections => connections.is_full(),
                Action::RejectStreams => streams.is_full(),
                Action::HoldSubscriptions => subscriptions.is_full(),
                Action::ShrinkReading | Action::ReleaseLaggards => false,
            };
            overload.action(action.word(), full || last >= Some(action));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of the actions is the order of their thresholds, and the last begins below the budget.
    #[test]
    fn each_threshold_adds_one_action() {
        let last = |used| Action::last(Used { used, max: 1000 });
        let mut steps = Vec::new();
        for used in 0..=1100 {
            let now = last(used);
            if steps.last().is_none_or(|(_, before)| *before != now) {
                steps.push((used, now));
            }
        }
        let expected = Action::ALL.map(|action| (action.threshold() * 10, Some(action)));
        assert_eq!(steps, [&[(0, None)][..], &expected].concat());
        assert!(Action::ALL.is_sorted() && steps.is_sorted());
    }

    #[test]
    fn odd_budgets() {
        let last = |used, max| Action::last(Used { used, max });
        assert_eq!(last(usize::MAX, 0), None, "there is no budget");
        assert_eq!(last(0, 1), None);
        assert_eq!(last(1, 1), Some(Action::ReleaseLaggards));
        assert_eq!(last(1 << 40, usize::MAX), None);
    }
}
