// SPDX-License-Identifier: Apache-2.0
//! How the relay's shell treats types for which a control plane ends streams.
//!
//! Owns which type is asked for on which stream. Knows nothing of messages.

use std::time::Instant;

use protocol::{Client, Ending};
use xds::{Changes, TypeUrl};

use super::course::Course;
use super::tally::Rule;
use super::upstream::{Leg, Wire};
use super::zone::Zone;

/// This many suspected types have a stream each; the others share the last one.
const APART_MAX: usize = 8;

impl Leg {
    /// Notes which types may have caused the end of the stream.
    pub(crate) fn accuse(&mut self, ending: Ending, answered: bool, now: Instant) {
        self.trouble |= ending.accuses(true);
        let suspected = self.suspects.handle_end(Some(ending), answered, now);
        self.suspected.extend(suspected);
    }
}

impl Wire {
    /// Where a type is asked for.
    pub(crate) fn leg_of(&mut self, which: usize, type_url: &TypeUrl) -> &mut Leg {
        let own = |leg: &Leg| leg.alone && leg.which == which && leg.types.contains(type_url);
        let at = self.legs.iter().position(own).unwrap_or(which);
        &mut self.legs[at]
    }

    fn separate(&mut self, which: usize, type_url: TypeUrl, changes: &mut Vec<Changes>) {
        let apart = |leg: &Leg| leg.alone && leg.which == which;
        let own = self.legs.iter().filter(|leg| apart(leg)).count();
        if own < APART_MAX {
            let shared = &self.legs[which].client;
            let client = Client::new(self.settings.clone(), shared.dialect(), shared.node());
            self.legs.push(Leg::new(which, true, client));
        }
        let parted = self.legs[which].client.part(&type_url);
        let Some(leg) = self.legs.iter_mut().rev().find(|leg| apart(leg)) else {
            return;
        };
        if let Some((parted, lost)) = parted {
            changes.extend(lost);
            changes.extend(leg.client.join(parted));
        }
        leg.types.insert(type_url);
    }

    fn reunite(&mut self, which: usize, type_url: &TypeUrl, changes: &mut Vec<Changes>) {
        let leg = self.leg_of(which, type_url);
        leg.types.remove(type_url);
        if let Some((parted, lost)) = leg.client.part(type_url) {
            changes.extend(lost);
            changes.extend(self.legs[which].client.join(parted));
        }
    }
}

impl Zone {
    /// Moves the types that are suspected from now on, and those that no longer are; wakes sessions that wait for the latter.
    /// Returns the newly suspected types.
    pub(crate) fn judge_types(&mut self, changes: &mut Vec<Changes>, course: &mut Course) -> Vec<TypeUrl> {
        let zone = self.id;
        let now = course.clock.instant();
        let (mut moved, mut suspected) = (Vec::new(), Vec::new());
        let Some(wire) = &mut self.wire else {
            return suspected;
        };
        for which in 0..2 {
            for type_url in std::mem::take(&mut wire.legs[which].suspected) {
                moved.push(format!("{type_url} has a stream of its own"));
                wire.separate(which, type_url.clone(), changes);
                suspected.push(type_url);
            }
            for at in 2..wire.legs.len() {
                let leg = &mut wire.legs[at];
                if leg.which != which || !std::mem::take(&mut leg.trouble) {
                    continue;
                }
                changes.extend(leg.client.handle_refused("it is not known self"));
                let types = leg.types.clone();
                for type_url in &types {
                    wire.legs[which].suspects.handle_trouble(type_url, now);
                }
            }
            for type_url in wire.legs[which].suspects.handle_timeout(now) {
                moved.push(format!("{type_url} is asked for with the others again"));
                wire.reunite(which, &type_url, changes);
            }
        }
        for what in moved {
            course.tally.hit(Rule::E15);
            course.log(|| format!("upstream {zone}: {what}"));
        }
        suspected
    }
}
