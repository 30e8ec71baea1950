// SPDX-License-Identifier: Apache-2.0
//! The effects of streams and of time on one type, and content from before all streams.
//!
//! Owns what survives a stream, and when work is due. Knows nothing of connections and of the content of responses.

use std::time::{Duration, Instant};

use super::Feed;
use super::exchange::Silence;
use crate::client::acks::Ack;
use crate::client::coverage::{Ends, Wildcard};
use crate::client::rhythm::Patience;
use xds::{Changes, Dialect, Known, Name, Reason, Slot, Target, Update};

impl Feed {
    /// A stream begins: everything must be requested again. In delta with the versions that this server gave (E-04). E-25: in SotW
    /// without one, because a server whose versions start anew would be silent about new content with an old version.
    pub(in crate::client) fn connected(&mut self, dialect: Dialect, patience: Patience) {
        // Members that were also requested by name are declared and waited for on their own.
        let (names, coverage, delta) = (&self.names, &self.coverage, dialect == Dialect::Delta);
        self.kept.connected(dialect, |name| {
            let alone = !delta || names.contains(name.as_str());
            let all = (!alone).then(|| coverage.covering(name.as_str())).flatten()?;
            Some(coverage.whole(all.as_str()))
        });
        let declared = |name: &Name| self.kept.declared(name.as_str()).is_some();
        let declares = dialect == Dialect::Delta && self.kept.names().any(declared);
        self.exchange.connected(patience.answer, declares);
        self.coverage.set_quiet(patience.quiet);
        // E-19: a type of which nothing is wanted gets no request.
        let wildcard = self.asks_wildcard().then(|| Name::from(Name::WILDCARD));
        self.outbound.connected(self.names.listed().chain(&wildcard));
        self.late.iter_mut().for_each(|late| late.connected());
    }

    /// The stream ended. G-19: what is known stays known. If the server had answered for the type, returns that it has not any more.
    pub(in crate::client) fn disconnected(&mut self) -> Option<Changes> {
        let half = (self.type_url.clone(), self.asks_wildcard());
        let answered = (self.outbound.is_answered() && self.wanted()).then(|| Changes {
            answered: Some(false),
            ..Changes::of(half, Vec::new())
        });
        if self.coverage.wildcard() == Wildcard::Hidden {
            self.drop_wildcard();
        }
        self.outbound.disconnected();
        self.exchange.disconnected();
        self.coverage.disconnected();
        self.kept.disconnected();
        self.names.disconnected();
        answered
    }

    pub(in crate::client) fn forget_versions(&mut self) {
        self.kept.forget_versions();
    }

    /// Takes the content that an earlier run held for this target. K-16, G-19: it counts as content from before the stream. The
    /// server is not sent its version; what the server does not confirm is dropped. Returns `None` if the server has answered
    /// already.
    pub(in crate::client) fn restore(&mut self, target: &Target, slot: &Slot) -> Option<Changes> {
        if self.outbound.is_answered() || self.coverage.wildcard() == Wildcard::Hidden {
            return None;
        }
        let state = slot.wildcard.as_ref().filter(|_| self.asks_wildcard());
        let members: Vec<_> = match target {
            Target::Wildcard => state?.resources().collect(),
            Target::Name(name) if !self.wants_name(name) => return None,
            Target::Name(name) if name.is_collection() => slot.named.members(name).collect(),
            Target::Name(name) => {
                let update = match slot.known(name)? {
                    Known::Present(resource) => self.kept.restore(resource),
                    // K-16: the server's word to an earlier run is no reason to take anything from a client.
                    Known::Absent(_) => Update::Absent(name.clone(), Reason::TimedOut),
                    Known::Held(_) => return None,
                };
                return self.changes(vec![update], None, None);
            }
        };
        let updates = members.iter().map(|member| self.kept.restore(member)).collect();
        // Members that were also requested by name wait on their own.
        for name in members.iter().map(|member| member.name()) {
            if !self.names.contains(name.as_str()) && self.kept.declared(name.as_str()).is_none() {
                self.kept.unsaid_mut().judge(name, false);
            }
        }
        // The view may serve it as complete; the server has yet to confirm that it still is.
        let complete = state.is_some_and(|state| state.complete());
        self.changes(updates, complete.then_some(true), None)
    }

    /// D-10: the first whole state is over when the server has answered on this stream for all that it was asked for on it. In SotW, one
    /// response has all that a wildcard covers, and all of a type with full states.
    pub(super) fn conclude(&mut self, dialect: Dialect) {
        let at_once = dialect == Dialect::Sotw && (self.asks_wildcard() || self.type_url.traits().full_state);
        let whole = || self.coverage.rests() && self.kept.unsaid().deadline().is_none() && self.names.all_heard();
        if self.exchange.is_first() && self.outbound.is_answered() && (at_once || whole()) {
            self.exchange.conclude();
        }
    }

    /// Takes the answer to the last response. K-06: the relay acknowledges on its own and waits for no client.
    pub(in crate::client) fn acknowledge(&mut self, ack: Ack, dialect: Dialect, now: Instant) {
        // The response cannot be acknowledged.
        if dialect == Dialect::Delta && ack.nonce.is_empty() {
            self.coverage.answered(now);
        }
        self.outbound.acks_mut().received(ack, dialect, now);
    }

    /// The type in this place answers for the first time: the server has gone on from those that it was asked for earlier.
    pub(in crate::client) fn overtaken(&mut self, by: u32) {
        if self.outbound.opened().is_some_and(|first| first.place < by) {
            self.coverage.overtaken();
        }
    }

    pub(in crate::client) fn bytes(&mut self, at: Instant) {
        self.coverage.bytes(at);
        self.kept.unsaid_mut().bytes(at);
    }

    pub(in crate::client) fn deadline(&self) -> Option<Instant> {
        let late = self.late.as_ref().filter(|_| self.outbound.is_at_rest());
        let all = [
            self.kept.deadline(),
            self.names.deadline(),
            self.exchange.deadline(),
            self.coverage.deadline(),
            self.silence_ends(),
            self.outbound.acks().deadline(),
            late.and_then(|late| late.deadline()),
        ];
        all.into_iter().flatten().min()
    }

    /// Returns what has changed, and the pause that the server has shown within its answer.
    pub(in crate::client) fn timeout(&mut self, now: Instant) -> (Option<Changes>, Option<Duration>) {
        self.outbound.acks_mut().pass(now);
        self.exchange.pass(self.outbound.opened().map(|first| first.at), now);
        let mut updates = Vec::new();
        while let Some(name) = self.kept.expired(now) {
            self.gone(&name, Reason::Expired, &mut updates);
        }
        while let Some(name) = self.names.overdue(now) {
            self.overdue(name, &mut updates);
        }
        if self.silence_ends().is_some_and(|at| at <= now) {
            self.end_silence(&mut updates);
        }
        let ends = self.coverage.timeout(now);
        let (complete, pause) = self.settle(ends, now, &mut updates);
        // Only the end of a delta answer is a matter of time.
        self.conclude(Dialect::Delta);
        let changes = self.changes(updates, complete, None);
        self.exchange.settle();
        (changes, pause)
    }

    /// Answers have ended, or are taken for ended. Returns whether the wildcard is newly complete, and the longest pause within the server's
    /// answer for it, if the end of that was seen.
    pub(super) fn settle(
        &mut self,
        (complete, pause): Ends,
        now: Instant,
        updates: &mut Vec<Update>,
    ) -> (Option<bool>, Option<Duration>) {
        let mut all = None;
        for name in complete {
            match name.as_str() {
                Name::WILDCARD => all = Some(true),
                _ => {
                    self.kept.unsaid_mut().ended(now);
                    updates.push(Update::Whole(name));
                }
            }
        }
        (all, pause)
    }

    /// Returns when the server's silence means that the first answer is over: not while the end of any answer is waited for.
    fn silence_ends(&self) -> Option<Instant> {
        self.kept.unsaid().deadline().filter(|_| self.coverage.rests())
    }

    /// E-04: the first answer is over: what it does not say of what is complete, or does not wait by itself, may be gone.
    pub(super) fn end_silence(&mut self, updates: &mut Vec<Update>) {
        let (coverage, names) = (&self.coverage, &self.names);
        let gone = self
            .kept
            .unsaid_mut()
            .end(|name| match coverage.covering(name.as_str()) {
                Some(all) => coverage.whole(all.as_str()),
                None => names.waiting(name.as_str()).is_none(),
            });
        gone.iter().for_each(|name| self.gone(name, Reason::Said, updates));
    }

    /// E-25, E-27: the time of a pressing question may have come. Returns the names that silence the server, if it has stayed silent.
    pub(in crate::client) fn take_silencers(
        &mut self,
        heard: Option<Instant>,
        spread: Duration,
        now: Instant,
    ) -> Vec<Name> {
        match self.exchange.take_silence(heard, spread, now) {
            None => Vec::new(),
            Some(Silence::First) => {
                self.outbound.ask_again();
                Vec::new()
            }
            Some(Silence::Total) => {
                let unheard = self.names.unheard();
                let told = unheard.filter(|name| self.outbound.has_told(name.as_str()));
                told.filter(|name| self.is_movable(name)).cloned().collect()
            }
        }
    }
}
