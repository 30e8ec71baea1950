// SPDX-License-Identifier: Apache-2.0
//! The events of a world, and the agenda on which they stand until their time has come.
//!
//! Owns their order. Does not know what an event does.

use std::collections::BTreeMap;
use std::time::Duration;

use super::client::Act;
use super::rng::Rng;
use super::truth::{Step, Truth};
use super::upstream::Hop;

/// Something that happens at a time.
#[derive(Debug)]
pub(crate) enum Event {
    /// An operator begins a change.
    Plan(usize),
    /// One step of it.
    Step(usize, Step),
    /// The relay hears from a control plane, or has something to ask it.
    Upstream(usize),
    /// Something happens on the way to a control plane.
    Hop(Hop),
    /// A control plane says what is new, or with `true` confirms what it said.
    Utter(usize, bool),
    /// The head of a stream's pipe arrives.
    ToRelay(u64),
    ToClient(u64),
    /// The relay's task for a stream runs, because its bell rang or because it is time.
    Turn(u64),
    Timer(u64),
    /// One side learns that the stream has ended.
    EndAtRelay(u64),
    EndAtClient(u64),
    /// The client has read a response: the transport can take one more.
    Credit(u64),
    Heal(u64),
    Act(usize, Act),
    Fault,
    /// The relay looks for views that no session uses.
    Sweep,
    /// The control plane of a zone can be reached again.
    Reach(usize),
    /// A server begins to behave otherwise.
    Sway(usize),
    /// A server takes over what another one has.
    Adopt,
    /// The operator changes the rules.
    Decree,
    /// A control plane forgets something, and knows it again.
    Forget(usize),
    Recall(usize, Box<Truth>),
    /// The operator changes what is held.
    Guard,
    /// The operator changes the servers.
    Reload,
}

impl Event {
    /// How long after a pause of the relay it happens; `None` if the relay has no part in it. The relay first looks at its timers,
    /// then reads what has arrived meanwhile (K-27).
    pub(crate) fn lag(&self, rng: &mut Rng) -> Option<Duration> {
        Some(match self {
            Self::Upstream(_)
            | Self::Turn(_)
            | Self::Timer(_)
            | Self::Sweep
            | Self::Guard
            | Self::Reload
            | Self::Decree => Duration::ZERO,
            Self::Hop(Hop::Request(_)) => return None,
            Self::Forget(_)
            | Self::Recall(..)
            | Self::Hop(_)
            | Self::ToRelay(_)
            | Self::EndAtRelay(_)
            | Self::Credit(_) => rng.millis(1, 50),
            Self::Plan(_)
            | Self::Step(..)
            | Self::Utter(..)
            | Self::ToClient(_)
            | Self::EndAtClient(_)
            | Self::Heal(_)
            | Self::Act(..)
            | Self::Fault
            | Self::Reach(_)
            | Self::Sway(_)
            | Self::Adopt => return None,
        })
    }
}

/// The events to come.
#[derive(Default)]
pub(crate) struct Agenda {
    events: BTreeMap<(Duration, u64), Event>,
    order: u64,
}

impl Agenda {
    pub(crate) fn add(&mut self, time: Duration, event: Event) {
        self.order += 1;
        self.events.insert((time, self.order), event);
    }

    /// Takes the next event, and when it happens.
    pub(crate) fn take(&mut self) -> Option<(Duration, Event)> {
        let ((time, _), event) = self.events.pop_first()?;
        Some((time, event))
    }

    /// When the next event happens.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.events.first_key_value().map(|((time, _), _)| *time)
    }
}
