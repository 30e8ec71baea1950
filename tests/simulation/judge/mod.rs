// SPDX-License-Identifier: Apache-2.0
//! The judge of a world: a few observers, each of which reads one log of events by itself.
//!
//! Owns the log. What a client holds, an observer asks the client; what exists, the views.

mod answers;
mod bounds;
mod budget;
mod holds;
mod judgements;
mod lives;
mod losses;
mod order;
mod origins;
mod rest;
mod views;

use std::time::Instant;

use peers::asked::Asked;

use super::body::Type;
use super::client::{Client, Persona};
use super::scene::Scene;
use super::tally::{Broken, Tally};
use super::wire::{Answer, Up};
use super::zone::Zone;

/// One event of the log.
pub(crate) enum Moment<'a> {
    /// A client sends a request.
    Asked(&'a Client, u64, Type, &'a Up),
    /// The relay reads a request.
    Heard(u64, Type, &'a Up),
    /// The relay sends a response.
    Sent(&'a Client, u64, &'a Answer, &'a Scene),
    /// A response has reached a client, which has not applied it yet.
    Came(&'a Came<'a>),
    /// What a client reads, or may have, is another thing from now on.
    Moved(&'a Client),
    /// The relay has ended a stream, or knows that it has ended.
    Over(u64),
    /// Nothing happens any more.
    Rest,
}

/// A response that has reached a client.
pub(crate) struct Came<'a> {
    pub(crate) client: &'a Client,
    pub(crate) stream: u64,
    pub(crate) answer: &'a Answer,
    pub(crate) scene: &'a Scene,
    pub(crate) zones: &'a [Zone],
}

/// The observers that remember something.
#[derive(Default)]
pub(crate) struct Judge {
    bounds: bounds::Bounds,
    budget: budget::Budget,
    holds: holds::Holds,
    judgements: judgements::Judgements,
}

impl Judge {
    /// Whether the relay waits for an answer on a stream.
    pub(crate) fn awaits(&self, stream: u64) -> bool {
        self.bounds.is_open(stream)
    }

    /// Looks at the views after each event.
    pub(crate) fn look(&mut self, zones: &[Zone], now: Instant, tally: &mut Tally) -> Result<(), Broken> {
        let views = zones.iter().enumerate().filter(|(_, zone)| zone.writer.attached);
        views.into_iter().try_for_each(|(at, zone)| {
            self.holds.see(at, zone, now, tally)?;
            self.judgements.see(at, zone, now, tally)
        })
    }

    pub(crate) fn see(&mut self, moment: &Moment<'_>, tally: &mut Tally) -> Result<(), Broken> {
        self.bounds.see(moment, tally)?;
        self.budget.see(moment, tally)?;
        match moment {
            Moment::Sent(client, _, answer, scene) => lives::check(client, answer, scene, tally),
            Moment::Came(came) => {
                origins::check(came, tally)?;
                losses::check(came, tally)?;
                order::check(came, tally)
            }
            Moment::Asked(..) | Moment::Heard(..) | Moment::Moved(_) | Moment::Over(_) | Moment::Rest => Ok(()),
        }
    }
}

impl Came<'_> {
    fn kind(&self) -> Type {
        self.answer.kind
    }

    /// What the client asked for, as far as the relay knew.
    fn want(&self, kind: Type) -> Option<&Asked> {
        self.scene.wants.get(&kind).map(|want| &**want)
    }

    fn is_hostile(&self) -> bool {
        self.client.persona == Persona::Hostile
    }

    /// The names that the client holds and that a full answer leaves out.
    fn omitted(&self) -> impl Iterator<Item = &String> {
        let full = self.client.is_full(self.kind());
        let held = self.client.held(self.kind()).keys();
        held.filter(move |name| full && !self.answer.lists(name))
    }
}
