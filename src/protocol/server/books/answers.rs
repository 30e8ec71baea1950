// SPDX-License-Identifier: Apache-2.0
//! Responses on their way, and what the client says of them.
//!
//! Owns what an answer changes in the rows. Does not know how a rejected response is divided.

use std::sync::Arc;
use std::time::Instant;

use super::Books;
use crate::server::flights::Flight;
use crate::server::ledger::Row;
use xds::{Form, Name, Objection, Resource};

impl Books {
    /// A response is sent, in which something is `tried`, or nothing.
    #[inline]
    pub(in crate::server) fn send(&mut self, flight: Flight, tried: bool) {
        if tried {
            self.rejections.begin(flight.nonce);
        }
        self.flights.send(flight);
    }

    /// The client answers the response with this nonce, if that is on its way. Returns it, and whether the client had rejected anything, and
    /// accepted nothing of that name since.
    #[inline]
    pub(in crate::server) fn answer(&mut self, nonce: u64, accepts: bool) -> Option<(Flight, bool)> {
        let flight = self.flights.settle(nonce)?;
        let disputed = self.rejections.disputes().next().is_some();
        if accepts && disputed {
            for item in flight.fresh() {
                self.rejections.accept(item.name(), item.resource.version());
            }
        }
        if accepts && self.as_one {
            self.as_one = flight.batch.items().len() >= self.ledger.own().asked_len();
        }
        self.rejections.end(nonce, accepts);
        Some((flight, disputed))
    }

    /// C-25: the client has rejected a response, so it may hold any part of it. `brings`: it may hold anything of which it was sent nothing
    /// yet. Returns what was new in it and is not sent anew, and whether nothing else was new.
    pub(in crate::server) fn reject(&mut self, flight: &Flight, brings: bool, now: Instant) -> (Vec<Name>, bool) {
        let adds = !flight.batch.items().is_empty();
        let removed = flight.batch.removed().iter().filter(|_| adds);
        for name in removed.filter(|name| !flight.batch.is_missing(name)) {
            if !self.ledger.get(name).perhaps() {
                self.doubt(name);
            }
        }
        let (mut members, mut fresh) = (Vec::new(), 0);
        for item in flight.fresh() {
            let (name, version) = (item.name(), item.resource.version());
            let before = flight.before(name);
            if before.is(version) {
                continue;
            }
            fresh += 1;
            if self.ledger.get(name).is(version) {
                self.doubt(name);
                // K-17: an Envoy rejects the heartbeat of what has just expired there. It gets the resource itself.
                if item.form != Form::Heartbeat && !self.rejections.reject_older(name, version) {
                    let unknown = brings || item.form == Form::Wrapped;
                    self.rejections.doubt(name, version, before.holds(unknown), now);
                    members.push(name.clone());
                }
            }
        }
        (members, fresh == 1)
    }

    /// B-22: these groups of a rejected response are tried, and this is `held_back`. Returns how many names are given up, because there were
    /// too many tries.
    pub(in crate::server) fn try_parts(
        &mut self,
        groups: Vec<Vec<Name>>,
        mut held_back: Vec<Name>,
        objection: &Arc<Objection>,
    ) -> usize {
        let given_up = self.rejections.add(groups, objection);
        let count = given_up.len();
        held_back.extend(given_up);
        for name in held_back {
            self.rejections.hold_back(&name, objection.clone());
        }
        count
    }

    /// What stood in the way of rejected resources may be gone: each is tried once more, once for each content; with `free`, as often as
    /// this is called.
    pub(in crate::server) fn try_again(&mut self, free: bool) {
        for name in self.rejections.try_again(free) {
            self.doubt(&name);
        }
    }

    /// B-22: all that is held back or still to be tried of a full state is offered together.
    pub(in crate::server) fn offer_all(&mut self) {
        for name in self.rejections.release_all() {
            self.doubt(&name);
        }
    }

    /// What was held back of a name was taken all the same, as far as the client says.
    pub(in crate::server) fn take_for_accepted(&mut self, name: &Name, resource: Arc<Resource>) {
        self.rejections.forget(name);
        self.ledger.put(name, Row::Sent(resource));
    }

    /// Returns the next names that are tried together, if none of them is on its way.
    pub(in crate::server) fn next_group(&mut self) -> Option<Vec<Name>> {
        self.rejections.pop(|name| self.flights.has(name))
    }
}
