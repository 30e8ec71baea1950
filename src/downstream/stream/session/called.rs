// SPDX-License-Identifier: Apache-2.0
//! What calls a session from outside its stream: changes in its views, servers that fail or come back, other rules.
//!
//! Owns what the session passes on to its machine then. Does not know requests and responses.

use std::task::{Context, Poll};

use tonic::Status;

use super::Session;
use crate::downstream::bearer::known;
use crate::downstream::stream::ends::{no_place, status};
use crate::downstream::stream::seats::Seats;
use crate::xds::Sight;

impl Session {
    /// Takes the changes in the views since the last call; the next change wakes the task.
    pub(in crate::downstream::stream) fn handle_bell(&mut self, cx: &mut Context<'_>) {
        self.poll_syncz(cx);
        if let Poll::Ready(status) = self.accounts.poll_end(cx) {
            self.end(status);
        }
        let Some(seats) = &mut self.seats else { return };
        let server = &mut self.server;
        let rung = seats.poll_bells(cx, |type_url, dirty| server.handle_dirty(type_url, dirty));
        self.stirred |= rung.any;
        rung.inquiries.iter().flatten().for_each(|inquiry| self.answer(inquiry));
        // K-25: the server may be one to which the session is about to move.
        if rung.dismissed || rung.refused {
            let status = self.looped().or_else(|| rung.dismissed.then(too_slow));
            self.end = self.end.take().or(status);
        }
    }

    /// K-20: returns what the views show, if the bells have said all of it: of a part of one change, removals would be sent before what they
    /// belong to.
    pub(super) fn told(&mut self, cx: &mut Context<'_>) -> Option<Sight> {
        for _ in 0..2 {
            let sight = self.sight();
            if self.seats.as_ref().is_none_or(Seats::are_told) {
                return Some(sight);
            }
            self.handle_bell(cx);
        }
        None
    }

    /// Moves the session to other views if the states of servers require it.
    pub(in crate::downstream::stream) fn settle(&mut self) {
        let scopes = &self.shared.scopes;
        // Nearly always there is one server, and nothing was changed.
        if self.seats.as_ref().is_none_or(|seats| seats.is_bound(scopes)) {
            return;
        }
        if self.seats.as_ref().is_some_and(|seats| seats.is_called(scopes)) {
            self.take_rules();
        }
        if let Some(seats) = &mut self.seats {
            let classes = seats.classes();
            if seats.settle(&self.shared.scopes, &self.server, self.now) {
                self.stirred = true;
                // K-37: never to another class.
                if seats.classes() != classes {
                    self.server.forget_older();
                }
                seats.take_back();
                self.server.handle_moved(self.now);
            }
        }
    }

    /// S-07: takes up the rules as they are now. What the client may not have any more is taken away, or its stream ends.
    pub(super) fn take_rules(&mut self) {
        let access = self.shared.settings.load().protocol.access.clone();
        if self.server.is_under(&access) {
            return;
        }
        self.stirred = true;
        let identity = self.accounts.identity();
        if let Err(end) = known(&self.shared, identity) {
            self.end.get_or_insert(end);
            return;
        }
        let taken = self.server.handle_access(access, &*self.shared.library, self.now);
        let taken = taken.map_err(|end| status(&self.shared, end));
        // K-25: other rules may let the client be a relay, or not any more.
        if let Err(status) = taken.and_then(|()| self.enter()) {
            self.end.get_or_insert(status);
        }
    }

    /// Returns why the client is refused, if it brings a mark that is.
    fn looped(&self) -> Option<Status> {
        let admitted = self.shared.scopes.admit_marks(self.server.node()?);
        admitted.err().map(|looped| no_place(&self.shared, looped))
    }
}

fn too_slow() -> Status {
    Status::unavailable("the client is too slow: the relay would have to keep too much outdated content for it")
}
