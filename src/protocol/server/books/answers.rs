//! Responses on their way, and what the client says of them.
//!
//! Owns what an answer changes in the rows. Does not know how a rejected response is divided.

use std::sync::Arc;

use super::Books;
use crate::server::flights::Flight;
use crate::server::ledger::Row;
use crate::server::rejections::Group;
use xds::{Form, Item, Name, Objection, Version};

impl Books {
    /// A response is sent, in which this group is tried, or none.
    #[inline]
    pub(in crate::server) fn send(&mut self, flight: Flight, tried: Option<&Group>) {
        if let Some(group) = tried {
            self.rejections.begin(flight.nonce, group);
        }
        self.flights.send(flight);
    }

    /// The client answers the response with this nonce, if that is on its way. Returns the response, and whether a group was tried in it
    /// for the second time.
    #[inline]
    pub(in crate::server) fn answer(&mut self, nonce: u64, accepts: bool) -> Option<(Flight, bool)> {
        let flight = self.flights.settle(nonce)?;
        if accepts {
            self.rejections.note_settled(flight.fresh().map(Item::name));
            if self.lists_all {
                self.accept_secrets(&flight);
            }
        }
        let again = self.rejections.end(nonce, accepts);
        Some((flight, again.unwrap_or_default()))
    }

    /// B-18: the client has accepted the listed secrets, and that others were left out.
    fn accept_secrets(&mut self, flight: &Flight) {
        let listed = flight.batch.items();
        for item in listed {
            if self.ledger.get(item.name()).is(item.resource.version()) {
                self.marks.forget_accepted(item.name());
            }
        }
        if listed.len() < self.ledger.asked_len() {
            self.marks.note_omission();
        }
    }

    /// C-25: the client has rejected a response, so it may hold any part of it. Returns what was new in it and is not sent anew.
    pub(in crate::server) fn reject(&mut self, flight: &Flight) -> Vec<(Name, Version)> {
        let adds = !flight.batch.items().is_empty();
        let removed = flight.batch.removed().iter().filter(|_| adds);
        for name in removed.filter(|name| !flight.batch.is_missing(name)) {
            if !self.ledger.get(name).perhaps() {
                self.doubt(name);
            }
        }
        let mut members = Vec::new();
        for item in flight.fresh() {
            let (name, version) = (item.name(), item.resource.version());
            if self.ledger.get(name).is(version) {
                self.doubt(name);
                // K-17: an Envoy rejects the heartbeat of what has just expired there. It gets the resource itself.
                if item.form != Form::Heartbeat {
                    members.push((name.clone(), version));
                }
            }
        }
        self.rejections
            .note_rejected(members.iter().map(|(name, _)| name), flight.news);
        members
    }

    /// B-22: these groups of a rejected response are tried, and this is `held_back`. `again`: that was a second try. Returns how many names
    /// are given up, because there were too many tries.
    pub(in crate::server) fn try_parts(
        &mut self,
        groups: Vec<Vec<(Name, Version)>>,
        mut held_back: Vec<(Name, Version)>,
        again: bool,
        objection: &Arc<Objection>,
    ) -> usize {
        let given_up = self.rejections.add(groups, objection);
        let count = given_up.len();
        held_back.extend(given_up);
        for (name, version) in held_back {
            if matches!(self.ledger.get(&name), Row::Perhaps) {
                self.refuse(name, version, again, objection.clone());
            }
        }
        count
    }

    /// What stood in the way of rejected resources may be gone: each is tried once more, once for each content.
    pub(in crate::server) fn try_again(&mut self) {
        let held_back: Vec<Name> = self.rejections.held_back().cloned().collect();
        for name in held_back {
            if let Row::Refused(version, false) = self.ledger.get(&name) {
                self.rejections.forget(&name);
                self.ledger.put(&name, Row::Perhaps);
                self.rejections.try_again(name.clone(), version);
                self.agenda.look([name]);
            }
        }
    }

    /// The client has rejected this version of a name when it came alone.
    pub(super) fn refuse(&mut self, name: Name, version: Version, again: bool, objection: Arc<Objection>) {
        self.ledger.put(&name, Row::Refused(version, again));
        self.rejections.hold_back(name, objection);
    }

    /// Returns the next names that are tried together, if none of them is on its way.
    pub(in crate::server) fn next_group(&mut self) -> Option<Group> {
        self.rejections.pop(|name| self.flights.has(name))
    }
}
