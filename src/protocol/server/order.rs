//! The next response on a client stream, and the order between its types (D-01 to D-04).
//!
//! Owns make-before-break and the two gates. Does not know what a response of one type contains.

use std::time::{Duration, Instant};

use super::compose::Step;
use super::flight::Response;
use super::stream::Server;
use super::subscription::Subscription;
use xds::{Answers, Kind, Known, Name, Sight, TypeUrl};

impl Server {
    /// Returns the next response, if anything can be sent now. If there is none, call [`poll_end`](Self::poll_end).
    pub fn poll_response(&mut self, sight: &Sight, answers: &impl Answers, now: Instant) -> Option<Response> {
        if self.note_loss(sight, now) {
            self.done = false;
            return None;
        }
        let response = self.next_response(sight, answers, now);
        self.note_done(sight);
        response
    }

    fn next_response(&mut self, sight: &Sight, answers: &impl Answers, now: Instant) -> Option<Response> {
        if !self.admit(sight, answers) {
            return None;
        }
        let mut removals_wait = false;
        if let Some(response) = self.poll_additions(sight, answers, &mut removals_wait, now) {
            return Some(response);
        }
        if !removals_wait {
            self.removals.clear();
            return None;
        }
        // D-03: removals are sent only after the bound, or when everything that could still need the removed resources is sent
        // and settled (accepted or rejected).
        let calm = self.calm(sight, answers, now);
        let ripe = calm || self.removals.is_ripe(self.bound(), now);
        if !ripe {
            self.removals.wait(self.bound(), now);
            return None;
        }
        let response = self.poll_removals(sight, answers, now);
        if !calm && response.is_some() {
            self.expired_gates += 1;
        }
        // D-01: the next removal waits until this one is sent.
        self.removals.clear();
        response
    }

    /// D-02: additions and changes in the order of the types. If only one type has anything to send, it sends everything at once.
    fn poll_additions(
        &mut self,
        sight: &Sight,
        answers: &impl Answers,
        removals_wait: &mut bool,
        now: Instant,
    ) -> Option<Response> {
        let (mut open, mut waiting) = (true, false);
        for at in 0..self.types.len() {
            let kind = self.types.get(at)?.type_url.kind();
            if kind.gated() && !(open && self.warm(sight, now)) {
                // L-27: the gate compares with the sight, not with the age of single changes.
                if !self.wishes(at, sight, answers, now) {
                    // D-03: `calm` must know of a removal that the pace holds back.
                    self.paced(at, sight, now);
                    *removals_wait |= !self.quiet(at, sight);
                    continue;
                }
                waiting = true;
                if !self.additions.wait(self.bound(), now) {
                    continue;
                }
            }
            let removals = self.others_quiet(at, sight);
            match self.step(at, sight, answers, removals, now) {
                Step::Send(response) if waiting && kind.gated() => {
                    self.expired_gates += 1;
                    return Some(response);
                }
                Step::Send(response) => return Some(response),
                Step::Blocked => open &= !kind.gates(),
                Step::Removals => *removals_wait = true,
                Step::Idle => {}
            }
        }
        if !waiting {
            self.additions.clear();
        }
        None
    }

    /// D-01: removals in the reverse order, clusters and endpoints last.
    fn poll_removals(&mut self, sight: &Sight, answers: &impl Answers, now: Instant) -> Option<Response> {
        for at in (0..self.types.len()).rev() {
            if self.types.get(at)?.type_url.kind().gated() && self.wishes(at, sight, answers, now) {
                continue;
            }
            if let Step::Send(response) = self.step(at, sight, answers, true, now) {
                return Some(response);
            }
        }
        None
    }

    /// Whether the least time between two responses of a type has not passed, and notes until when it holds anything back.
    fn paced(&mut self, at: usize, sight: &Sight, now: Instant) -> bool {
        let pace = self.settings.timers.pace;
        let Some(subscription) = self.types.get_mut(at).filter(|_| !pace.is_zero()) else {
            return false;
        };
        let type_url = subscription.type_url.clone();
        let viewer = subscription.viewer.clone();
        subscription.paced(pace, sight.type_sight(&type_url).seen_by(&viewer), now)
    }

    fn step(&mut self, at: usize, sight: &Sight, answers: &impl Answers, removals: bool, now: Instant) -> Step {
        let paced = self.paced(at, sight, now);
        let Some(subscription) = self.types.get_mut(at) else {
            return Step::Idle;
        };
        let type_url = subscription.type_url.clone();
        let viewer = subscription.viewer.clone();
        let slot = sight.type_sight(&type_url).seen_by(&viewer);
        if paced {
            return if subscription.pending(slot, answers, now) {
                Step::Blocked
            } else {
                Step::Idle
            };
        }
        let step = subscription.poll(slot, answers, removals, &mut self.nonces, now);
        if let Step::Send(response) = &step {
            self.sent += 1;
            if response.type_url.kind() == Kind::Cds {
                let names = subscription.take_clusters(response);
                if !names.is_empty() {
                    self.force_endpoints(&response.type_url, &names);
                }
            }
        }
        step
    }

    /// K-13, K-14: a new or changed cluster waits for its endpoints again, even if they are the same.
    fn force_endpoints(&mut self, clusters: &TypeUrl, names: &[Name]) {
        for subscription in self
            .types
            .iter_mut()
            .filter(|subscription| endpoints_for(clusters, subscription))
        {
            names.iter().for_each(|name| subscription.force(name));
        }
    }

    /// Whether no cluster that was just sent waits for endpoints that this client is about to request.
    fn warm(&self, sight: &Sight, now: Instant) -> bool {
        let bound = self.bound();
        let clusters = self
            .types
            .iter()
            .filter(|subscription| subscription.type_url.kind() == Kind::Cds);
        clusters
            .flat_map(|clusters| clusters.flights.iter().map(|flight| (&clusters.type_url, flight)))
            .all(|(type_url, flight)| {
                let items = flight.batch.items().iter();
                let mut names = items.filter_map(|item| item.resource.endpoints());
                now >= flight.sent + bound || names.all(|name| self.has_endpoints(type_url, name, sight))
            })
    }

    fn has_endpoints(&self, clusters: &TypeUrl, name: &Name, sight: &Sight) -> bool {
        self.types
            .iter()
            .filter(|subscription| endpoints_for(clusters, subscription))
            .any(|subscription| {
                let slot = subscription.type_sight(sight);
                let absent = matches!(slot.known(name), Some(Known::Absent(_)));
                absent || subscription.held(name).perhaps() && !subscription.owed.contains(name)
            })
    }

    /// Whether everything that sends traffic to clusters is sent and settled, and the pace holds back no removal of it.
    fn calm(&self, sight: &Sight, answers: &impl Answers, now: Instant) -> bool {
        let mut gated = self
            .types
            .iter()
            .filter(|subscription| subscription.type_url.kind().gated());
        gated.all(|subscription| {
            let slot = subscription.type_sight(sight);
            let held_back = subscription.cold.held_back().is_some_and(|ends| now < ends);
            subscription.settled() && !held_back && !subscription.pending(slot, answers, now)
        })
    }

    /// Whether a type has anything to add or change.
    fn wishes(&self, at: usize, sight: &Sight, answers: &impl Answers, now: Instant) -> bool {
        let Some(subscription) = self.types.get(at) else {
            return false;
        };
        let slot = subscription.type_sight(sight);
        let certain = slot.is_complete();
        subscription.pending(slot, answers, now) || subscription.first && certain
    }

    fn others_quiet(&self, at: usize, sight: &Sight) -> bool {
        (0..self.types.len()).all(|other| other == at || self.quiet(other, sight))
    }

    fn quiet(&self, at: usize, sight: &Sight) -> bool {
        let Some(subscription) = self.types.get(at) else {
            return true;
        };
        subscription.quiet(subscription.type_sight(sight))
    }

    /// Returns why something that the client asked for is unknown, if that is known.
    #[must_use]
    pub fn reason<'a>(&'a self, sight: &'a Sight) -> Option<&'a str> {
        let mut hopeless = self
            .types
            .iter()
            .filter_map(|subscription| subscription.hopeless(sight));
        hopeless.find_map(|name| sight.reason(name))
    }

    /// Returns when `handle_timeout` and `poll_response` must be called again at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = &self.settings.timers;
        let of_types = self.types.iter().flat_map(|subscription| {
            let answer = subscription.asked.ends(timers.unanswered);
            answer.into_iter().chain(subscription.cold.held_back())
        });
        let gates = [&self.additions, &self.removals].map(|gate| gate.poll_timeout(timers.order_gate));
        let loss = self.loss().map(|loss| loss.until);
        of_types.chain(gates.into_iter().flatten()).chain(loss).min()
    }

    fn bound(&self) -> Duration {
        self.settings.timers.order_gate
    }
}

/// Whether a subscription is for the endpoints of these clusters: EDS of the same API version.
fn endpoints_for(clusters: &TypeUrl, subscription: &Subscription) -> bool {
    subscription.type_url.kind() == Kind::Eds && subscription.type_url.is_v2() == clusters.is_v2()
}
