// SPDX-License-Identifier: Apache-2.0
//! How the writer of a view publishes what changes.
//!
//! Owns the order: the cut is replaced first, and then the sessions are woken that it concerns. Does not know what they read of it.

use super::View;
use super::demand::Ring;
use super::head::Pen;
use crate::interest::Woken;
use crate::routes::WakeOnFailure;
use xds::{Changes, Cut, Hold, Name, ServerState, Slot};

impl View {
    /// The writer publishes changes. K-20: all of them become visible at once, and only then the sessions are woken: some at a
    /// time by the caller, or all at once when the result is dropped.
    pub fn publish(&self, changes: &[Changes]) -> Woken {
        self.publish_by(changes, Cut::with)
    }

    /// Like [`View::publish`], for what an earlier run knew: it is served, and marked as stale.
    pub fn publish_restored(&self, changes: &[Changes]) -> Woken {
        self.publish_by(changes, Cut::restored)
    }

    /// The writer publishes the holds.
    pub fn publish_holds(&self, holds: Vec<Hold>) {
        let pen = self.head.take_pen();
        pen.put(self.cut().with_holds(holds));
        self.neighbours.wake_onlookers();
    }

    /// The writer publishes the state of the server. Wakes the sessions that may have to read another view because of it.
    pub fn publish_server_state(&self, server_state: ServerState) {
        let pen = self.head.take_pen();
        let cut = self.cut();
        if cut.server_state() == server_state {
            return;
        }
        let cut = pen.put(cut.with_server_state(server_state));
        drop(pen);
        self.neighbours.wake_onlookers();
        let fails = server_state == ServerState::Failing;
        let wake_on_failure = self.neighbours.wake_on_failure();
        self.demand
            .nudge(|seated| fails && wake_on_failure == WakeOnFailure::Everybody || seated.compares());
        if fails && wake_on_failure == WakeOnFailure::Lacking {
            let mut woken = Vec::new();
            self.demand.ring_lacking(&cut, self.head.generation(), &mut woken);
            drop(Woken::new(woken));
        }
    }

    /// The servers of authorities have changed: wakes all sessions, and from now on these if the server fails.
    pub(crate) fn reroute(&self, wake_on_failure: WakeOnFailure) {
        self.neighbours.set_wake_on_failure(wake_on_failure);
        self.demand.nudge(|_| true);
    }

    /// Publishes the older contents that clients go on using, if they are others. Wakes the writer: removals may wait for what they name.
    pub(super) fn publish_older(&self) {
        let pen = self.head.take_pen();
        if let Some(older) = self.rejected.take_roots() {
            pen.put(self.cut().with_older(older));
            drop(pen);
            self.mailbox.wake();
            self.neighbours.wake_onlookers();
        }
    }

    fn publish_by(&self, changes: &[Changes], apply: fn(&Cut, &Changes) -> (Cut, Vec<Name>)) -> Woken {
        let mut pen = self.head.take_pen();
        let kept = self.rejected.history_bytes();
        let before = self.cut();
        let mut newest = None;
        let mut rings = Vec::new();
        for change in changes {
            let cut = newest.as_ref().unwrap_or(&*before);
            let (next, mut names) = apply(cut, change);
            let flipped = flags(cut.slot(&change.type_url)) != flags(next.slot(&change.type_url));
            // K-09: equal content is no change, and keeps the very state that sessions hold.
            if names.is_empty() && !flipped {
                continue;
            }
            pen.note(cut, change, kept);
            newest = Some(next);
            let type_url = change.type_url.clone();
            // a resource without a name answers to all names.
            let nameless = type_url.traits().nameless && names.iter().any(Name::is_empty);
            rings.push(if flipped || nameless {
                Ring::Everybody(type_url)
            } else {
                // C-22: with a whole collection, it is known which of its names do not exist.
                let collections = names.iter().filter(|name| name.is_collection()).cloned().collect();
                names.extend(self.demand.leases().within(&type_url, &collections));
                let wildcard = change.wildcard;
                Ring::Some {
                    type_url,
                    names,
                    wildcard,
                }
            });
        }
        match newest {
            Some(cut) => self.finish(pen, cut, &rings),
            None => Woken::new(Vec::new()),
        }
    }

    /// Publishes the new cut, then rings the bells of the sessions that it concerns. They are woken with no lock held.
    pub(super) fn finish(&self, pen: Pen<'_>, cut: Cut, rings: &[Ring]) -> Woken {
        let mut woken = Vec::new();
        if rings.is_empty() {
            return Woken::new(woken);
        }
        let ringing = pen.advance(cut);
        let generation = self.head.generation();
        drop(pen);
        self.neighbours.wake_onlookers();
        for ring in rings {
            self.demand.ring(ring, generation, &mut woken);
        }
        drop(ringing);
        Woken::new(woken)
    }
}

/// What concerns all sessions that want anything of a type: it decides what clients are told of names that do not exist.
fn flags(slot: Option<&Slot>) -> [bool; 4] {
    slot.map_or([false; 4], |slot| {
        let whole = slot.wildcard.as_ref();
        let (stale, complete) = whole.map_or((false, false), |state| (state.stale(), state.complete()));
        [slot.answered, slot.named.stale(), stale, complete]
    })
}
