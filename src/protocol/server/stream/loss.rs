// SPDX-License-Identifier: Apache-2.0
//! The end of a stream if no server is left that could answer it (G-18).
//!
//! gRPC takes only a stream that ends before its first response for a failure of its server, and silence for an answer. Owns how
//! long such a client waits, and that its new stream is read before it is answered. Does not know which servers are lost.

use std::time::{Duration, Instant};

use super::Server;
use crate::end::End;
use crate::server::session::Subscription;
use xds::{Name, Sight, TypeSight};

/// The requests of a new stream have all come when none has come for this long...
const PAUSE: Duration = Duration::from_millis(50);
/// ... or after this long.
const LISTENS_AT_MOST: Duration = Duration::from_secs(1);
/// How long a client waits for a server that may still come up, if nothing at all is known of what it asks for: with the time to
/// connect, a relay costs it no more than a second.
const NOTHING_KNOWN: Duration = Duration::from_millis(950);

/// What ends a stream, if that is not its client: now, or because it is a client of gRPC, which may have another server.
#[derive(Debug, Default)]
pub(super) struct Fate {
    end: Option<End>,
    loss: Option<Loss>,
}

/// A stream of a gRPC client while a server that it reads is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    since: Instant,
    /// When to look again.
    until: Instant,
    /// Whether the stream ends then, unless something changes. Otherwise it was sent nothing yet, and is read until then before it
    /// is answered.
    ends: bool,
}

impl Server {
    /// Notes whether all servers of something that a gRPC client asks for are lost. Returns whether it may be sent nothing now.
    pub(super) fn note_loss(&mut self, sight: &Sight, now: Instant) -> bool {
        if !sight.any_failing() || !self.takes_silence_for_an_answer(sight) {
            self.forget_loss();
            return false;
        }
        let since = self.loss().map_or(now, |loss| loss.since);
        if let Some(until) = self.listens_until(sight, now) {
            self.set_loss(since, until, false);
            return true;
        }
        if let Some(end) = self.weigh_loss(sight, since, now) {
            self.end(end);
            return true;
        }
        self.sent() == 0 && self.loss().is_some()
    }

    /// Whether this is a client of gRPC, or `distributary get` without anything that it could show.
    fn takes_silence_for_an_answer(&self, sight: &Sight) -> bool {
        let knows_any = || self.types.iter().any(|one| one.knows_any(sight));
        self.node()
            .is_some_and(|node| node.is_grpc() || node.features.once && !knows_any())
    }

    /// A client that was sent nothing, that nobody has answered in time, and that nobody can answer, may find another server. One that
    /// was sent something stays, and so does one that may hold what is known; clients of gRPC leave all the same if a server is lost.
    pub(super) fn note_hopeless(&mut self, sight: &Sight) {
        let waived = || self.types.iter().filter(|one| one.asked().is_waived());
        if self.nonces.given() > 0 || waived().next().is_none() || self.types.iter().any(|one| one.knows_any(sight)) {
            return;
        }
        let others = self.caller.is_relay();
        let hopeless = waived().find_map(|one| Some((one, one.hopeless(sight, others)?)));
        let end = hopeless.map(|(one, name)| {
            let slot = one.type_sight(sight);
            let error = name.map_or_else(|| slot.refusal(), |name| slot.error(name));
            let end = End::unanswered(one.type_url(), self.settings.timers.unanswered, slot.reason(name));
            end.explained(error.map(|error| &*error.message))
        });
        if let Some(end) = end {
            self.end(end);
        }
    }

    /// Returns the end of the stream, or notes when it ends, or that it need not.
    fn weigh_loss(&mut self, sight: &Sight, since: Instant, now: Instant) -> Option<End> {
        let Some((one, name)) = self.missing_of(sight, TypeSight::lost) else {
            self.forget_loss();
            return None;
        };
        let noted = self.loss().filter(|loss| loss.ends);
        let at = noted.map_or_else(|| self.ends_at(sight, since, now), |loss| loss.until);
        if at <= now {
            return Some(End::lost(one.type_url(), one.type_sight(sight).reason(name)));
        }
        self.set_loss(since, at, true);
        None
    }

    fn set_loss(&mut self, since: Instant, until: Instant, ends: bool) {
        self.fate.get_or_insert_default().loss = Some(Loss { since, until, ends });
    }

    fn forget_loss(&mut self) {
        self.fate.take_if(|fate| fate.end.is_none());
    }

    /// Returns when a loss must be looked at again.
    pub(super) fn loss_timeout(&self) -> Option<Instant> {
        self.loss().map(|loss| loss.until)
    }

    /// What is noted of a loss.
    fn loss(&self) -> Option<Loss> {
        self.fate.as_ref()?.loss
    }

    /// Ends the stream.
    pub(super) fn end(&mut self, end: End) {
        self.fate.get_or_insert_default().end = Some(end);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.fate.as_ref().is_some_and(|fate| fate.end.is_some())
    }

    /// Returns the end of the stream, if its collections have grown too large for it, or if nobody is left to answer it.
    pub fn poll_end(&mut self) -> Option<End> {
        self.fate.as_mut()?.end.take()
    }

    /// Returns until when the requests of a new stream are only read: until they pause, and while another server is tried for
    /// something that is unknown.
    fn listens_until(&self, sight: &Sight, now: Instant) -> Option<Instant> {
        if self.sent() > 0 {
            return None;
        }
        let quiet = self.types.iter().map(|one| one.asked().last() + PAUSE).max()?;
        let latest = self
            .types
            .iter()
            .map(|one| one.asked().since() + LISTENS_AT_MOST)
            .min()?;
        let tried = |slot: TypeSight<'_>, name: Option<&Name>| slot.failing(name) && !slot.lost(name);
        let until = if now >= quiet && self.missing_of(sight, tried).is_some() {
            latest
        } else {
            quiet.min(latest)
        };
        (now < until).then_some(until)
    }

    /// Returns something that was requested, is unknown, and for which `counts` is true.
    fn missing_of<'a>(
        &'a self,
        sight: &'a Sight,
        counts: impl Fn(TypeSight<'a>, Option<&Name>) -> bool,
    ) -> Option<(&'a Subscription, Option<&'a Name>)> {
        let mut types = self.types.iter();
        types.find_map(|one| Some((one, one.missing_of(sight, &counts)?)))
    }

    /// Returns when the stream ends because something is forsaken.
    fn ends_at(&self, sight: &Sight, since: Instant, now: Instant) -> Instant {
        if self.sent() > 0 {
            let forsaken = self
                .types
                .iter()
                .filter(|one| one.missing_of(sight, TypeSight::lost).is_some());
            let asked = forsaken.map(|one| one.asked().since()).min();
            asked.map_or(now, |asked| asked + self.settings.timers.unanswered)
        } else if self.types.iter().any(|one| one.knows_any(sight)) {
            now
        } else {
            since + NOTHING_KNOWN
        }
    }
}
