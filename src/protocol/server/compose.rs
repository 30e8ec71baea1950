//! Builds the next response of one type.
//!
//! Owns the steps that both dialects share: pace, and responses on their way. Knows nothing of other types.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::flight::{Flight, Response};
use super::nonce::Nonces;
use super::plan::Plan;
use super::say::Say;
use super::subscription::Subscription;
use xds::{Answers, Batch, Dialect, Errors, Features, Form, Item, Kind, Name, Resource, State, TypeSight, Version};

/// What a type can do now.
#[derive(Debug)]
pub(super) enum Step {
    /// Send this.
    Send(Response),
    /// There is something to add or change, but it must wait.
    Blocked,
    /// There is only something to remove, and it must wait for other types.
    Removals,
    /// There is nothing to do.
    Idle,
}

/// The result of composing a response.
#[derive(Debug)]
pub(super) enum Composed {
    Batch {
        batch: Arc<Batch>,
        since: Option<Instant>,
        /// Full state: the version of the set.
        set: Option<Version>,
    },
    Not(Step),
}

/// What composing may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// Whether removals may be sent now.
    pub(super) removals: bool,
    /// Whether a response is on its way: then only the rest of a begun answer and names that the client asked for may be sent.
    pub(super) busy: bool,
    pub(super) now: Instant,
}

impl Subscription {
    /// Returns the next step. `removals`: other types do not need the removed resources any more.
    pub(super) fn poll(
        &mut self,
        slot: TypeSight<'_>,
        answers: &impl Answers,
        removals: bool,
        nonces: &mut Nonces,
        now: Instant,
    ) -> Step {
        // B-29: nothing is sent if the client is subscribed to nothing; only resources that it still holds are removed.
        if self.wants_nothing() && self.owed.is_empty() && self.covered.seen().extra.is_none() {
            return Step::Idle;
        }
        // B-24: SotW has one response on its way. In delta, the responses of one answer may be on their way together (L-29).
        let busy = !self.flights.is_empty();
        let goes_on = self.is_under_way() && self.dialect == Dialect::Delta;
        if busy && !goes_on && (self.dialect == Dialect::Sotw || self.crowded()) {
            return if self.pending(slot, answers, now) {
                Step::Blocked
            } else {
                Step::Idle
            };
        }
        let allowed = Allowed { removals, busy, now };
        let composed = if self.full_state() {
            self.compose_full(slot, answers, allowed)
        } else {
            self.compose_partial(slot, answers, allowed)
        };
        match composed {
            Composed::Not(step) => step,
            Composed::Batch { batch, since, set } => {
                self.first = false;
                let asked = self.asked.last();
                self.asked.answered(now);
                Step::Send(self.send(batch, (since, asked), set, nonces, now))
            }
        }
    }

    /// Returns whether an answer of several responses has begun.
    pub(super) fn is_under_way(&self) -> bool {
        self.covered.rest().is_some() || self.dirty.is_under_way()
    }

    /// K-21: whether so many responses are unacknowledged that even requested names wait.
    fn crowded(&self) -> bool {
        let covered = self.covered.seen().state.as_ref().map_or(0, |state| state.present());
        self.flights.is_crowded(self.names.len() + covered)
    }

    /// Returns how many entries are kept for the client.
    pub(super) fn kept(&self) -> usize {
        let extra = self
            .covered
            .seen()
            .extra
            .as_ref()
            .map_or(0, |extra| extra.names().len());
        self.flights.entries() + extra + self.count() + self.owed.len() + self.cold.len()
    }

    fn send(
        &mut self,
        batch: Arc<Batch>,
        (since, asked): (Option<Instant>, Instant),
        set: Option<Version>,
        nonces: &mut Nonces,
        now: Instant,
    ) -> Response {
        let nonce = nonces.next();
        let news = since.filter(|since| self.asked.is_news(*since));
        self.flights.send(Flight {
            nonce,
            batch: batch.clone(),
            set: set.map(Box::new),
            since: news,
            sent: now,
            undone: None,
        });
        Response {
            type_url: self.type_url.clone(),
            dialect: self.dialect,
            nonce: nonces.text(nonce, self.is_under_way()),
            version: set.unwrap_or_else(|| self.version()),
            batch,
            since: since.map(|since| since.max(asked)),
        }
    }

    /// Creates a batch in which names are spelled as the client spells them (F-09).
    pub(super) fn batch(&self, items: Vec<Item>, removed: Vec<Name>, errors: &Errors) -> Batch {
        let names = items.iter().map(|item| item.resource.name());
        let mut texts = self.spellings.of(names.chain(&removed).chain(errors.keys()));
        // A client that also asks for the collection gets its members by their own names too.
        for (name, ways) in texts.iter_mut().filter(|(name, _)| self.collections.covers(name)) {
            ways.insert(name.clone());
        }
        Batch::new(items, removed).with_texts(texts).alone()
    }

    /// Returns the version of the set that the client holds (K-09).
    fn version(&self) -> Version {
        let Some(state) = &self.covered.seen().state else {
            return self.names.sum();
        };
        if self.names.is_empty() && self.covered.rest().is_none() {
            return state.sum();
        }
        // The client holds the names that it asked for as they were sent by name, whatever the wildcard has.
        let asked = self.names.iter().map(|(name, _)| name);
        let left_out = self.covered.left_out().filter(|name| !self.names.contains(name));
        let not = asked.chain(left_out).filter_map(|name| state.resource(name));
        let not = not.fold(Version::EMPTY, |sum, resource| sum.plus(resource.version()));
        state.sum().plus(self.names.sum()).minus(not)
    }

    /// Whether there would be something to add, change or answer if no response were on its way. Gives the same result as
    /// composing.
    pub(super) fn pending(&self, slot: TypeSight<'_>, answers: &impl Answers, now: Instant) -> bool {
        if self.full_state() {
            return !self.is_compared(slot) && self.look_at_all(slot, answers).adds();
        }
        // D-01: a resource that was rejected and is sent again waits like any addition.
        self.releases(slot) || {
            let mut question = Plan::question(now);
            self.plan(slot, answers, &mut question);
            question.adds
        }
    }

    /// Whether the least time between two responses has not passed. What the client itself asked for does not wait.
    pub(super) fn paced(&mut self, pace: Duration, slot: TypeSight<'_>, now: Instant) -> bool {
        // An unknown name cannot be answered, so it hurries nothing.
        let answerable = |name: &Name| !matches!(self.answer(name, slot), Say::Wait);
        let collection =
            self.empty_collections(slot).next().is_some() || self.full_state() && self.owes_known_collection(slot);
        let owes = self.owed.due().any(answerable) || collection;
        let hurry = self.first || self.covered.is_owed() || self.is_under_way() || owes;
        let ends = self
            .flights
            .sent()
            .map(|sent| sent + pace)
            .filter(|ends| !hurry && now < *ends);
        // Removals and heartbeats are held back as well as changes.
        self.cold.hold_back(ends.filter(|_| !self.quiet(slot)));
        ends.is_some()
    }

    /// Returns the EDS names of the clusters that a response adds or changes (K-13).
    pub(super) fn take_clusters(&mut self, response: &Response) -> Vec<Name> {
        if self.full_state() {
            return self.cold.take_clusters();
        }
        let items = response.batch.items().iter();
        // Heartbeats and repetitions change nothing at the client.
        let items = items.filter(|item| !matches!(item.form, Form::Heartbeat | Form::Repeated));
        items.filter_map(|item| item.resource.endpoints().cloned()).collect()
    }

    /// Returns whether the client certainly has everything that is current, removals included, and no response is on its way.
    pub(super) fn quiet(&self, slot: TypeSight<'_>) -> bool {
        self.settled() && self.up_to_date(slot)
    }

    /// Returns whether the client was sent everything that is current, removals included.
    pub(super) fn up_to_date(&self, slot: TypeSight<'_>) -> bool {
        self.is_compared(slot) && self.owed.is_empty()
    }

    /// Returns whether the client was sent everything that can be said before something changes.
    pub(super) fn is_compared(&self, slot: TypeSight<'_>) -> bool {
        let same = match (&self.covered.seen().state, slot.wildcard()) {
            (Some(seen), Some(state)) => seen.id() == state.id(),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => !self.wildcard,
        };
        let nothing = self.owed.rests() && !self.collections.owes() && !self.covered.is_owed() && !self.glances();
        same && self.covered.seen().extra.is_none() && nothing
    }

    /// Returns whether the client has accepted or rejected every response.
    pub(super) const fn settled(&self) -> bool {
        self.flights.is_empty()
    }

    /// Returns the names that must be compared again.
    pub(super) fn glanced(&self) -> impl Iterator<Item = &Name> {
        self.dirty.iter(&self.names)
    }

    /// Returns a resource in the form in which this client gets it.
    pub(super) fn item(&self, resource: &Arc<Resource>, slot: TypeSight<'_>, now: Instant) -> Item {
        let ttl = self.ttl(resource, slot, now);
        // F-09: the client's own spelling of a name needs the wrapper around the body.
        let named = resource.is_miscalled() || self.spellings.contains(resource.name());
        let around = ttl.is_some() || self.wraps(resource) || named;
        let form = match self.dialect {
            Dialect::Sotw if self.features.wrapper && around => Form::Wrapped,
            // B-30: an Envoy is sent the wrapper only for the time to live.
            Dialect::Sotw if ttl.is_some() => Form::Wrapped,
            Dialect::Sotw | Dialect::Delta => Form::Whole,
        };
        Item {
            resource: resource.clone(),
            ttl,
            form,
        }
    }

    /// K-17: returns the remaining time to live, never the original. K-18: none to clients that cannot read it. M-04: none for
    /// EDS in SotW.
    pub(super) fn ttl(&self, resource: &Resource, slot: TypeSight<'_>, now: Instant) -> Option<Duration> {
        if !self.reads_ttl() {
            return None;
        }
        slot.expiry(resource)
            .map(|expiry| expiry.at.saturating_duration_since(now))
    }

    pub(super) fn reads_ttl(&self) -> bool {
        let Features {
            ttl, wrapper, envoy, ..
        } = self.features;
        match self.dialect {
            Dialect::Delta => ttl || envoy,
            Dialect::Sotw => (ttl && wrapper || envoy) && self.traits().kind != Kind::Eds,
        }
    }

    /// Returns whether this client must be told of a time to live: that of a resource in this state, or that one has ended. Other
    /// answers are the same for clients that read it and clients that do not.
    pub(super) fn tells_ttl(&self, state: &State) -> bool {
        self.reads_ttl() && !(state.expiries().is_empty() && self.cold.beats().is_empty())
    }
}
