//! The next response on a client stream, and the order between its types (D-01 to D-04).
//!
//! Owns make-before-break and the two gates. Does not know what a response of one type contains.

use std::time::{Duration, Instant};

use super::Server;
use crate::end::End;
use crate::server::response::Response;
use crate::server::session::Allowed;
use crate::server::session::{Step, Subscription};
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
        if !self.prepare(sight, answers) {
            return None;
        }
        let mut removals_wait = false;
        if let Some(response) = self.poll_additions(sight, answers, &mut removals_wait, now) {
            return Some(response);
        }
        if !removals_wait {
            self.gates.removals.clear();
            return None;
        }
        // D-03: removals are sent only after the bound, or when everything that could still need the removed resources is sent
        // and settled (accepted or rejected).
        let calm = self.calm(sight, answers, now);
        let ripe = calm || self.gates.removals.is_ripe(self.bound(), now);
        if !ripe {
            self.gates.removals.wait(self.bound(), now);
            return None;
        }
        let response = self.poll_removals(sight, answers, now);
        if !calm && response.is_some() {
            self.expired_gates += 1;
        }
        // D-01: the next removal waits until this one is sent.
        self.gates.removals.clear();
        response
    }

    /// Adds new members of collections, and finds out what the client sees. Returns whether there is room for all names.
    fn prepare(&mut self, sight: &Sight, answers: &impl Answers) -> bool {
        let max = self.settings.limits.names_per_stream;
        for at in 0..self.types.len() {
            let Some(one) = self.types.get_mut(at) else { continue };
            one.look_up(sight, answers);
            let (type_url, viewer) = (one.type_url().clone(), one.viewer().clone());
            one.prepare(sight.type_sight(&type_url).seen_by(&viewer));
            if max > 0 && one.arrivals() > 0 && self.names_to_be() > max {
                let what = format_args!("a collection of {type_url} brings more than {max} names to one stream");
                self.end(End::limit("names_per_stream", what));
                return false;
            }
        }
        true
    }

    /// Returns how many names there will be once new members of collections are sent.
    fn names_to_be(&self) -> usize {
        self.types.iter().map(|one| one.count() + one.arrivals()).sum()
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
            let kind = self.types.get(at)?.type_url().kind();
            if kind.gated() && !(open && self.warm(sight, now)) {
                // L-27: the gate compares with the sight, not with the age of single changes.
                if !self.asks(at, sight, answers, Question::Adds) {
                    // D-03: `calm` must know of a removal that the pace holds back.
                    self.paced(at, sight, answers, now);
                    *removals_wait |= !self.asks(at, sight, answers, Question::Quiet);
                    continue;
                }
                waiting = true;
                if !self.gates.additions.wait(self.bound(), now) {
                    continue;
                }
            }
            let removals =
                (0..self.types.len()).all(|other| other == at || self.asks(other, sight, answers, Question::Quiet));
            match self.step(at, sight, answers, removals, now) {
                Step::Send(response, _) if waiting && kind.gated() => {
                    self.expired_gates += 1;
                    return Some(*response);
                }
                Step::Send(response, _) => return Some(*response),
                Step::Blocked => open &= !kind.gates(),
                Step::Removals => *removals_wait = true,
                Step::Idle => {}
            }
        }
        if !waiting {
            self.gates.additions.clear();
        }
        None
    }

    /// D-01: removals in the reverse order, clusters and endpoints last.
    fn poll_removals(&mut self, sight: &Sight, answers: &impl Answers, now: Instant) -> Option<Response> {
        for at in (0..self.types.len()).rev() {
            let gated = self.types.get(at)?.type_url().kind().gated();
            if gated && self.asks(at, sight, answers, Question::Adds) {
                continue;
            }
            if let Step::Send(response, _) = self.step(at, sight, answers, true, now) {
                return Some(*response);
            }
        }
        None
    }

    /// Whether the least time between two responses of a type has not passed, and notes until when it holds anything back.
    fn paced(&mut self, at: usize, sight: &Sight, answers: &impl Answers, now: Instant) -> bool {
        let pace = self.settings.timers.pace;
        let Some(one) = self.types.get_mut(at).filter(|_| !pace.is_zero()) else {
            return false;
        };
        let (type_url, viewer) = (one.type_url().clone(), one.viewer().clone());
        one.is_paced(pace, sight.type_sight(&type_url).seen_by(&viewer), answers, now)
    }

    fn step(&mut self, at: usize, sight: &Sight, answers: &impl Answers, removals: bool, now: Instant) -> Step {
        if self.paced(at, sight, answers, now) {
            return if self.asks(at, sight, answers, Question::Adds) {
                Step::Blocked
            } else {
                Step::Idle
            };
        }
        let allowed = Allowed {
            removals,
            bound: self.bound(),
            window: self.settings.limits.window_bytes,
            now,
        };
        let Some(one) = self.types.get_mut(at) else {
            return Step::Idle;
        };
        let (type_url, viewer) = (one.type_url().clone(), one.viewer().clone());
        let slot = sight.type_sight(&type_url).seen_by(&viewer);
        let step = one.poll(slot, answers, allowed, &mut self.nonces);
        if let Step::Send(_, clusters) = &step {
            self.force_endpoints(&type_url, clusters);
        }
        step
    }

    /// K-13: a new or changed cluster waits for its endpoints again, even if they are the same.
    fn force_endpoints(&mut self, clusters: &TypeUrl, names: &[Name]) {
        if names.is_empty() {
            return;
        }
        for one in self.types.iter_mut().filter(|one| endpoints_for(clusters, one)) {
            names.iter().for_each(|name| one.force(name));
        }
    }

    /// Whether no cluster that was just sent waits for endpoints that this client is about to request.
    fn warm(&self, sight: &Sight, now: Instant) -> bool {
        let bound = self.bound();
        let clusters = self.types.iter().filter(|one| one.type_url().kind() == Kind::Cds);
        let mut flights = clusters.flat_map(|clusters| clusters.flights().map(|flight| (clusters.type_url(), flight)));
        flights.all(|(type_url, flight)| {
            let items = flight.batch.items().iter();
            let mut names = items.filter_map(|item| item.resource.endpoints());
            now >= flight.sent + bound || names.all(|name| self.has_endpoints(type_url, name, sight))
        })
    }

    fn has_endpoints(&self, clusters: &TypeUrl, name: &Name, sight: &Sight) -> bool {
        self.types.iter().filter(|one| endpoints_for(clusters, one)).any(|one| {
            let known = one.type_sight(sight).known(name);
            matches!(known, Some(Known::Absent(_))) || one.has(name)
        })
    }

    /// Whether everything that sends traffic to clusters is sent and settled, and the pace holds back no removal of it.
    fn calm(&mut self, sight: &Sight, answers: &impl Answers, now: Instant) -> bool {
        (0..self.types.len()).all(|at| {
            let Some(one) = self.types.get(at).filter(|one| one.type_url().kind().gated()) else {
                return true;
            };
            one.settled() && !one.is_held_back(now) && !self.asks(at, sight, answers, Question::Adds)
        })
    }

    /// Asks one type a question.
    fn asks(&mut self, at: usize, sight: &Sight, answers: &impl Answers, question: Question) -> bool {
        let Some(one) = self.types.get_mut(at) else {
            return matches!(question, Question::Quiet);
        };
        let (type_url, viewer) = (one.type_url().clone(), one.viewer().clone());
        let slot = sight.type_sight(&type_url).seen_by(&viewer);
        match question {
            Question::Adds => one.is_pending(slot, answers),
            Question::Quiet => one.is_quiet(slot, answers),
        }
    }

    fn note_done(&mut self, sight: &Sight) {
        let waits = self.gates.wait() || self.is_ending();
        self.done = !waits && self.types.iter().all(|one| one.is_sated(one.type_sight(sight)));
    }

    /// Returns why something that the client asked for is unknown, if that is known.
    #[must_use]
    pub fn reason<'a>(&'a self, sight: &'a Sight) -> Option<&'a str> {
        let mut hopeless = self.types.iter().filter_map(|one| one.hopeless(sight));
        hopeless.find_map(|name| sight.reason(name))
    }

    /// Returns when `handle_timeout` and `poll_response` must be called again at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = &self.settings.timers;
        let of_types = self.types.iter().flat_map(|one| one.timeouts(timers.unanswered));
        let gates = self.gates.poll_timeout(timers.order_gate);
        let loss = self.loss().map(|loss| loss.until);
        of_types.chain(gates).chain(loss).min()
    }

    fn bound(&self) -> Duration {
        self.settings.timers.order_gate
    }
}

/// What one type is asked for the sake of others.
#[derive(Clone, Copy, Debug)]
enum Question {
    /// Whether it has anything to add or change.
    Adds,
    /// Whether the client certainly has everything of it, and no response is on its way.
    Quiet,
}

/// Whether a subscription is for the endpoints of these clusters: EDS of the same API version.
fn endpoints_for(clusters: &TypeUrl, one: &Subscription) -> bool {
    one.type_url().kind() == Kind::Eds && one.type_url().is_v2() == clusters.is_v2()
}
