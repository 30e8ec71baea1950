// SPDX-License-Identifier: Apache-2.0
//! The next response on a client stream, and the order between its types (D-01 to D-04).
//!
//! Owns make-before-break and the two gates. Does not know what a response of one type contains.

use std::time::{Duration, Instant};

use super::naming::RemovalWait;
use super::{LeftToSend, Server};
use crate::end::End;
use crate::server::response::Response;
use crate::server::session::{Attempt, Subscription};
use crate::server::turn::{StreamTurn, Survey};
use xds::{Answers, Kind, Known, Name, Sight, TypeUrl};

/// An Envoy answers clusters once all of them are warm, or after `initial_fetch_timeout`, which is 15 s.
const WARMING: Duration = Duration::from_secs(16);

impl Server {
    /// Returns the next response, if anything can be sent now. If there is none, call [`poll_end`](Self::poll_end), and
    /// [`is_short`](Self::is_short).
    pub fn poll_response(&mut self, sight: &Sight, answers: &impl Answers, now: Instant) -> Option<Response> {
        if self.note_loss(sight, now) {
            self.rest = LeftToSend::Waits;
            return None;
        }
        let response = self.next_response(&StreamTurn { sight, answers, now });
        if response.is_none() {
            self.note_hopeless(sight);
        }
        self.rest = if self.types.iter().any(Subscription::is_short) {
            LeftToSend::More
        } else if self.is_sated() {
            LeftToSend::Nothing
        } else {
            LeftToSend::Waits
        };
        response
    }

    fn next_response(&mut self, turn: &StreamTurn<'_, impl Answers>) -> Option<Response> {
        if !self.prepare(turn) {
            return None;
        }
        let mut removals_wait = false;
        if let Some(response) = self.poll_additions(turn, &mut removals_wait) {
            return Some(response);
        }
        if !removals_wait {
            self.removals.clear();
            return None;
        }
        let ripe = self.removals.is_ripe(self.bound(), turn.now);
        let pause = match self.hold(turn) {
            Some(RemovalWait::Asked(since)) => {
                self.removals.wait_from(since);
                return None;
            }
            Some(RemovalWait::Unsettled) if !ripe => {
                self.removals.wait(self.bound(), turn.now);
                return None;
            }
            Some(RemovalWait::Pause(until)) if !ripe => Some(until),
            Some(_) | None => None,
        };
        let response = self.poll_removals(turn, pause.is_some());
        if let Some(until) = pause.filter(|_| response.is_none()) {
            self.removals.pause(until, turn.now);
            return None;
        }
        self.expired_gates += u32::from(ripe && response.is_some());
        // D-01: the next removal waits until this one is sent.
        self.removals.clear();
        response
    }

    /// Adds new members of collections, and finds out what the client sees. Returns whether there is room for all names.
    fn prepare(&mut self, turn: &StreamTurn<'_, impl Answers>) -> bool {
        // G-18: gRPC takes only a stream that ends before its first response for a failure of its server.
        let holds_errors = self.sent() == 0 && !self.caller.is_relay();
        for one in &mut self.types {
            one.look_up(turn.sight, turn.answers);
            one.with_sight(turn.sight, |one, slot| one.prepare(slot, holds_errors));
        }
        let max = self.settings.limits.names_per_stream;
        if max == 0 || !self.types.iter().any(Subscription::has_collections) {
            return true;
        }
        let most: usize = self.types.iter().map(|one| one.count() + one.agenda().len()).sum();
        if most <= max || self.types.iter().any(|one| one.agenda().gathers()) {
            return true;
        }
        let names: usize = self.types.iter().map(|one| one.count() + one.arrivals()).sum();
        let grows = self.types.iter().find(|one| names > max && one.arrivals() > 0);
        let Some(type_url) = grows.map(Subscription::type_url) else {
            return true;
        };
        let what = format_args!("a collection of {type_url} brings more than {max} names to one stream");
        self.end(End::limit("limits.names_per_stream", what));
        false
    }

    /// D-02: additions and changes in the order of the types. If only one type has anything to send, it sends everything at once.
    fn poll_additions(&mut self, turn: &StreamTurn<'_, impl Answers>, removals_wait: &mut bool) -> Option<Response> {
        let (mut open, mut waiting) = (true, false);
        for at in 0..self.types.len() {
            let kind = self.types.get(at)?.type_url().kind();
            // A cluster that was just sent may wait for endpoints that this client is about to request.
            if kind.gated() && !(open && self.cluster_without_endpoints_until(self.bound(), turn).is_none()) {
                // L-27: the gate compares with the sight, not with the age of single changes.
                let one = self.types.get_mut(at)?;
                if !one.survey(turn).adds {
                    *removals_wait |= !one.has_all(turn);
                    continue;
                }
                waiting = true;
                if !self.additions.wait(self.bound(), turn.now) {
                    continue;
                }
                if !open && self.leads_behind(at, turn) {
                    self.additions.wait_from(turn.now);
                    continue;
                }
            }
            let removals = self.frees(at, turn);
            let step = self.step(at, turn, removals);
            open &= !(kind.names_endpoints() && self.tries_clusters(at));
            match step {
                Ok(response) => {
                    self.expired_gates += u32::from(waiting && kind.gated());
                    return Some(response);
                }
                Err(left) => {
                    open &= !(left.adds && kind.gates());
                    *removals_wait |= left.removes && !left.adds;
                }
            }
        }
        if !waiting {
            self.additions.clear();
        }
        None
    }

    /// K-37: whether a client that has just begun is still tried with clusters that it has rejected: Envoy goes on with its listeners,
    /// and rejects those that lead to none.
    fn tries_clusters(&self, at: usize) -> bool {
        let is_new = |one: &Subscription| !(one.kind().gated() && one.flights().sent().is_some());
        self.types.get(at).is_some_and(Subscription::is_trying) && self.types.iter().all(is_new)
    }

    /// D-01: removals in the reverse order, clusters and endpoints last. These may have to pause.
    fn poll_removals(&mut self, turn: &StreamTurn<'_, impl Answers>, pause: bool) -> Option<Response> {
        for at in (0..self.types.len()).rev() {
            let one = self.types.get_mut(at)?;
            let kind = one.kind();
            if pause && kind.gates() || kind.gated() && one.survey(turn).adds {
                continue;
            }
            if let Ok(response) = self.step(at, turn, true) {
                return Some(response);
            }
        }
        None
    }

    /// Returns the next response of a type, or what of it must wait.
    fn step(&mut self, at: usize, turn: &StreamTurn<'_, impl Answers>, removals: bool) -> Result<Response, Survey> {
        // The routes of a burst wait for the endpoints of its clusters, and endpoints that change with the routes go when they go.
        let endpoints = self.types.get(at).filter(|one| one.kind().warms());
        let changes =
            endpoints.and_then(|_| self.cluster_without_endpoints_until(self.settings.timers.removal_quiet, turn));
        let one = self.types.get_mut(at).ok_or_else(Survey::default)?;
        let (nonces, settings) = (&mut self.nonces, &*self.settings);
        let (response, clusters) = one.with_sight(turn.sight, |one, slot| {
            one.poll(&mut Attempt {
                slot,
                answers: turn.answers,
                nonces,
                settings,
                removals,
                changes,
                now: turn.now,
                greets: false,
                difference: None,
            })
        })?;
        if !clusters.is_empty() {
            let type_url = one.type_url().clone();
            self.force_endpoints(&type_url, &clusters);
        }
        if self.sent() == 1 {
            self.types.iter_mut().for_each(|one| _ = one.release_errors());
        }
        Ok(response)
    }

    /// K-13: a new or changed cluster waits for its endpoints again, even if they are the same.
    fn force_endpoints(&mut self, clusters: &TypeUrl, names: &[Name]) {
        for one in self.types.iter_mut().filter(|one| endpoints_for(clusters, one)) {
            names.iter().for_each(|name| one.force(name));
        }
    }

    /// Whether what this type would send leads to a cluster that the client can be sent only when it has answered others, and it may do so
    /// yet.
    fn leads_behind<A>(&self, at: usize, turn: &StreamTurn<'_, A>) -> bool {
        let mut clusters = self.of_kind(Kind::names_endpoints);
        let Some(clusters) = clusters.find(|one| one.flights().iter().any(|flight| turn.now < flight.sent + WARMING))
        else {
            return false;
        };
        let known = |name: &Name| matches!(clusters.type_sight(turn.sight).known(name), Some(Known::Present(_)));
        let unsent = |name: &Name| known(name) && !clusters.has(name);
        self.types.get(at).is_some_and(|one| one.sees(turn.sight).leads(unsent))
    }

    /// Returns until when a cluster waits for its endpoints that was sent no longer ago than this, if there is one.
    fn cluster_without_endpoints_until<A>(&self, wait: Duration, turn: &StreamTurn<'_, A>) -> Option<Instant> {
        let clusters = self.of_kind(Kind::names_endpoints);
        let mut flights =
            clusters.flat_map(|clusters| clusters.flights().iter().map(|flight| (clusters.type_url(), flight)));
        flights.find_map(|(type_url, flight)| {
            let until = flight.sent + wait;
            let mut names = flight.batch.items().iter().filter_map(|item| item.resource.endpoints());
            let cold = turn.now < until && names.any(|name| !self.has_endpoints(type_url, name, turn.sight));
            cold.then_some(until)
        })
    }

    fn has_endpoints(&self, clusters: &TypeUrl, name: &Name, sight: &Sight) -> bool {
        self.types.iter().filter(|one| endpoints_for(clusters, one)).any(|one| {
            let known = one.type_sight(sight).known(name);
            matches!(known, Some(Known::Absent(_))) || one.has(name)
        })
    }

    /// Whether there is nothing to send until there is input other than an acknowledgement.
    fn is_sated(&self) -> bool {
        let waits = self.additions.waits() || self.removals.waits() || self.is_ending();
        !waits && self.types.iter().all(Subscription::is_sated)
    }

    /// Returns why something that the client asked for is unknown, if that is known.
    #[must_use]
    pub fn reason<'a>(&'a self, sight: &'a Sight) -> Option<&'a str> {
        let mut types = self.types.iter();
        types.find_map(|one| {
            one.type_sight(sight)
                .reason(one.hopeless(sight, self.caller.is_relay())?)
        })
    }
}

/// Whether a subscription is for the endpoints of these clusters: EDS of the same API version.
fn endpoints_for(clusters: &TypeUrl, one: &Subscription) -> bool {
    one.kind().warms() && one.type_url().is_v2() == clusters.is_v2()
}
