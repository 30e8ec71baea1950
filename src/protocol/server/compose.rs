//! From what is current to the next response of one type.
//!
//! Owns the steps that both dialects share: chunks, pace, what is on its way. Refuses to know other types.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::flight::{Flight, Response};
use super::nonce::Nonces;
use super::subscription::{Before, Current, Glance, Rest, Subscription};
use crate::xds::{Answers, Batch, Dialect, Errors, Form, Glimpse, Held, Item, Kind, Known, Name, Resource, Version};

/// What a type can do now.
#[derive(Debug)]
pub(super) enum Step {
    /// Send this.
    Send(Response),
    /// There is something to add or change, and it must wait.
    Blocked,
    /// There is only something to remove, and that must wait for other types.
    Removals,
    /// There is nothing to do.
    Idle,
}

/// What composing a response came to.
#[derive(Debug)]
pub(super) enum Composed {
    Batch {
        batch: Arc<Batch>,
        /// What the client held until then.
        before: Before,
        since: Option<Instant>,
        /// Of a full state: the version of the set.
        set: Option<Version>,
    },
    Not(Step),
}

/// What composing may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// Whether removals may go now.
    pub(super) removals: bool,
    /// Whether only what the client itself asked for may go, because other things are on their way.
    pub(super) asked_only: bool,
    pub(super) now: Instant,
}

/// Larger batches are not summed up anew for each chunk, not even to check.
const CHECKED_MAX: usize = 4096;
/// More unsettled responses than this and even what the client asks for waits.
const FLIGHTS_MAX: usize = 64;

impl Subscription {
    /// The next step. `removals` says whether other types have no use for what goes any more.
    pub(super) fn poll(
        &mut self,
        slot: Glimpse<'_>,
        answers: &impl Answers,
        removals: bool,
        nonces: &mut Nonces,
        now: Instant,
    ) -> Step {
        // B-29: nothing is sent of a type of which nothing is subscribed; what was remembered besides is still taken back.
        if self.wants_nothing() && self.owed.is_empty() && self.seen.extra.is_none() {
            return Step::Idle;
        }
        self.recall_unfit(removals);
        if self.rest.is_some() {
            // B-24: SotW has one response on its way; chunks of a delta may be on their way together (L-29).
            let free = self.dialect == Dialect::Delta || self.flights.is_empty();
            return match self.rest.take_if(|_| free) {
                Some(rest) => self.next_chunk(*rest, slot, nonces, now),
                None => Step::Blocked,
            };
        }
        let busy = !self.flights.is_empty();
        if busy && (self.dialect == Dialect::Sotw || self.crowded()) {
            return if self.pending(slot, answers) {
                Step::Blocked
            } else {
                Step::Idle
            };
        }
        let allowed = Allowed {
            removals,
            asked_only: busy,
            now,
        };
        let composed = if self.full_state() {
            self.compose_full(slot, answers, allowed)
        } else {
            self.compose_partial(slot, answers, allowed)
        };
        match composed {
            Composed::Not(step) => step,
            Composed::Batch {
                batch,
                before,
                since,
                set,
            } => {
                self.first = false;
                self.asked = None;
                let since = since.map(|since| since.max(self.asked_last));
                let mut rest = Rest {
                    batch,
                    next: 0,
                    since,
                    before,
                    unsent: Version::EMPTY,
                };
                rest.unsent = self.gain(&rest, 1..rest.batch.chunks());
                let step = self.next_chunk(rest, slot, nonces, now);
                if let (Some(set), Some(flight)) = (set, self.flights.last_mut()) {
                    flight.set = Some(Box::new(set));
                }
                match (step, set) {
                    (Step::Send(response), Some(version)) => Step::Send(Response { version, ..response }),
                    (step, _) => step,
                }
            }
        }
    }

    /// K-21: whether so much is unsettled that even what the client asks for waits: many responses, or much more than all that
    /// it can hold.
    fn crowded(&self) -> bool {
        let covered = self.seen.state.as_ref().map_or(0, |state| state.present());
        let entries: usize = self.flights.iter().map(Flight::len).sum();
        self.flights.len() >= FLIGHTS_MAX || entries > 2 * (self.names.len() + covered) + FLIGHTS_MAX
    }

    /// How many entries are kept for the client.
    pub(super) fn kept(&self) -> usize {
        let flights = self.flights.iter().map(Flight::len);
        let rest = self.rest.iter().map(|rest| {
            let chunks = rest.next..rest.batch.chunks();
            let chunks = chunks.map(|chunk| rest.batch.items_of(chunk).len() + rest.batch.removed_of(chunk).len());
            chunks.sum::<usize>() + rest.before.names.len()
        });
        let extra = self.seen.extra.iter().map(|extra| extra.names().len());
        let lists = [self.count(), self.owed.len(), self.rare().len()];
        flights.chain(rest).chain(extra).chain(lists).sum()
    }

    fn next_chunk(&mut self, rest: Rest, slot: Glimpse<'_>, nonces: &mut Nonces, now: Instant) -> Step {
        let version = self.version(&rest);
        let (batch, next, since) = (rest.batch.clone(), rest.next, rest.since);
        let more = next + 1 < batch.chunks();
        if more {
            let next = next + 1;
            let unsent = rest.unsent.minus(self.gain(&rest, next..next + 1));
            self.rest = Some(Box::new(Rest { next, unsent, ..rest }));
        }
        let lives = |item: &Item| item.ttl.is_some() || item.resource.lives().iter().any(|(_, ttl)| ttl.is_some());
        let aged = next > 0 && batch.items_of(next).iter().any(lives);
        let (batch, chunk) = if aged {
            (self.aged(&batch, next, slot, now), 0)
        } else {
            (batch, next)
        };
        let nonce = nonces.next();
        self.last_nonce = nonce;
        self.sent = Some(now);
        let flight = Flight {
            nonce,
            batch: batch.clone(),
            chunk,
            set: None,
            since,
            sent: now,
        };
        if self.flights.is_empty() {
            self.flights = vec![flight];
        } else {
            self.flights.reserve_exact(1);
            self.flights.push(flight);
        }
        let type_url = self.type_url.clone();
        Step::Send(Response {
            type_url,
            dialect: self.dialect,
            nonce: nonces.text(nonce, more),
            version,
            batch,
            chunk,
        })
    }

    /// K-17: a chunk that had to wait says what remains now.
    fn aged(&self, batch: &Batch, chunk: usize, slot: Glimpse<'_>, now: Instant) -> Arc<Batch> {
        let items = batch.items_of(chunk).iter().map(|item| {
            let remains = |before| self.ttl(&item.resource, slot, now).unwrap_or(before);
            Item {
                ttl: item.ttl.map(remains),
                resource: self.living(&item.resource, slot, now),
                ..item.clone()
            }
        });
        Arc::new(batch.later(chunk, items.collect()))
    }

    /// A batch in which names are written as the client writes them (F-09).
    pub(super) fn batch(&self, items: Vec<Item>, removed: Vec<Name>, errors: &Errors, chunk: usize) -> Batch {
        let names = items.iter().map(|item| item.resource.name());
        let mut texts = self.spellings.of(names.chain(&removed).chain(errors.keys()));
        // Whoever asks for its collection besides has it by its own name as well.
        for (name, ways) in texts.iter_mut().filter(|(name, _)| self.globs.covers(name)) {
            ways.insert(name.clone());
        }
        Batch::new(items, removed, chunk).with_texts(texts)
    }

    /// The version of the set that the client holds once it has the next chunk (K-09): of the chunks after it, it holds what it
    /// held before.
    fn version(&self, rest: &Rest) -> Version {
        let covered = self.seen.state.as_ref().map_or(Version::EMPTY, |state| state.sum());
        let twice = match &self.seen.state {
            Some(state) if !self.names.is_empty() => self
                .names
                .iter()
                // What it asked for by name it holds as it was sent by name, whatever the wildcard has.
                .filter_map(|(name, held)| held.content().and(state.resource(name)))
                .fold(Version::EMPTY, |sum, covered| sum.plus(covered.version())),
            Some(_) | None => Version::EMPTY,
        };
        debug_assert!(
            rest.batch.items().len() > CHECKED_MAX
                || rest.unsent == self.gain(rest, rest.next + 1..rest.batch.chunks()),
            "what is to come was changed and not recalled"
        );
        covered.plus(self.names.sum()).minus(twice).minus(rest.unsent)
    }

    /// What these chunks change of the version of the set that the client holds. Whatever changes it, of what is to come, recalls
    /// the batch; so it is summed up once, however many chunks there are.
    fn gain(&self, rest: &Rest, chunks: Range<usize>) -> Version {
        let items = chunks.flat_map(|chunk| rest.batch.items_of(chunk));
        items.fold(Version::EMPTY, |sum, item| {
            let before = self.content_before(&rest.before, &item.resource);
            sum.plus(item.resource.version()).minus(before)
        })
    }

    /// The version of what the client held of a resource before a batch, by whichever of its names.
    fn content_before(&self, before: &Before, resource: &Resource) -> Version {
        let now = |name: &Name| self.names.get(name)?.content();
        let held = |name: &Name| before.names.get(name).map_or_else(|| now(name), Held::content);
        let mut names = std::iter::once(resource.name()).chain(resource.aliases());
        let version = names.find_map(|name| Some(held(name)?.version()));
        let covered = || Some(before.seen.held(resource.name()).content()?.version());
        version.or_else(covered).unwrap_or(Version::EMPTY)
    }

    /// Whether anything could be added or changed at the client, were nothing on its way.
    pub(super) fn pending(&self, slot: Glimpse<'_>, answers: &impl Answers) -> bool {
        if self.rest.is_some() || self.again {
            return true;
        }
        if self.wildcard
            && let Some(state) = slot.wildcard()
            && (state.complete() || !self.full_state())
        {
            let same = self.seen.state.as_ref().is_some_and(|seen| seen.id() == state.id());
            // What a full state was sent by name it holds, when the wildcard brings it as well.
            let held = |resource: &Arc<Resource>| self.full_state() && self.holds_by_name(resource);
            if !same && !answers.difference(&self.seen, state).changed().iter().all(held) {
                return true;
            }
        }
        let owes = |name: &Name| match self.current(name, slot) {
            Current::Known(Known::Present(_)) => true,
            Current::Known(Known::Absent(reason)) if self.unsayable(name, *reason) => false,
            Current::Known(Known::Absent(_)) | Current::Uncovered => self.dialect == Dialect::Delta,
            Current::Unknown | Current::Unwanted => false,
        };
        let empty = self.empty_collections(slot).next().is_some();
        // D-01: what was refused and is sent again waits like any addition.
        empty
            || self.releases(slot)
            || self.owed.iter().any(owes)
            || self.glanced().any(|name| self.differs(name, slot))
    }

    /// Whether the least time between two responses has not passed. What the client itself asked for does not wait.
    pub(super) fn paced(&mut self, pace: Duration, slot: Glimpse<'_>, now: Instant) -> bool {
        self.hold_back(None);
        if pace.is_zero() {
            return false;
        }
        // What is still unknown cannot be answered, and hurries nothing.
        let answerable = |name: &Name| match self.current(name, slot) {
            Current::Unknown => false,
            Current::Known(Known::Absent(reason)) => !self.unsayable(name, *reason),
            Current::Known(_) | Current::Unwanted | Current::Uncovered => true,
        };
        let owes = self.owed.iter().any(answerable) || self.empty_collections(slot).next().is_some();
        let hurry = self.first || self.again || self.rest.is_some() || owes;
        let ends = self.sent.map(|sent| sent + pace).filter(|ends| !hurry && now < *ends);
        // Removals and heartbeats are held back as well as changes.
        self.hold_back(ends.filter(|_| !self.quiet(slot)));
        ends.is_some()
    }

    /// The EDS names of the clusters that a response adds or changes (K-13).
    pub(super) fn take_clusters(&mut self, response: &Response) -> Vec<Name> {
        if self.full_state() {
            let rare = self.rare.as_mut();
            return rare.map_or_else(Vec::new, |rare| std::mem::take(&mut rare.clusters));
        }
        let items = response.batch.items_of(response.chunk).iter();
        // What only confirms what the client holds changes nothing.
        let items = items.filter(|item| !matches!(item.form, Form::Heartbeat | Form::Repeated));
        items.filter_map(|item| item.resource.endpoints().cloned()).collect()
    }

    /// Whether the client surely has all that is current, removals included, and nothing is on its way.
    pub(super) fn quiet(&self, slot: Glimpse<'_>) -> bool {
        self.settled() && self.up_to_date(slot)
    }

    /// Whether the client was sent all that is current, removals included.
    pub(super) fn up_to_date(&self, slot: Glimpse<'_>) -> bool {
        let same = match (&self.seen.state, slot.wildcard()) {
            (Some(seen), Some(state)) => seen.id() == state.id(),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => !self.wildcard,
        };
        let nothing = self.owed.is_empty() && !self.globs.owes() && !self.again && !self.glances();
        same && self.seen.extra.is_none() && nothing
    }

    /// Whether all that was sent is accepted or rejected.
    pub(super) fn settled(&self) -> bool {
        self.rest.is_none() && self.flights.is_empty()
    }

    /// The names that must be looked at.
    pub(super) fn glanced(&self) -> impl Iterator<Item = &Name> {
        let (some, all) = match &self.dirty {
            Glance::Names(names) => (Some(names.iter()), None),
            Glance::All => (None, Some(self.names.iter().map(|(name, _)| name))),
        };
        some.into_iter().flatten().chain(all.into_iter().flatten())
    }

    /// Whether a name has content that the client does not hold and has not refused.
    fn differs(&self, name: &Name, slot: Glimpse<'_>) -> bool {
        match self.current(name, slot) {
            Current::Known(Known::Present(resource)) => {
                !self.held(name).is(resource.version()) && !self.refuses(resource)
            }
            Current::Known(Known::Absent(_)) | Current::Unwanted | Current::Uncovered | Current::Unknown => false,
        }
    }

    /// How a resource is written for this client.
    pub(super) fn item(&self, resource: &Arc<Resource>, slot: Glimpse<'_>, now: Instant) -> Item {
        let ttl = self.ttl(resource, slot, now);
        // F-09, C-23: only around its body can a name be written as the client writes it, or with constraints.
        let named = resource.is_varied() || resource.is_miscalled() || self.spellings.contains(resource.name());
        let around = ttl.is_some() || self.wraps(resource) || named;
        let wrap = self.dialect == Dialect::Sotw && self.features.wrapper && around;
        Item {
            resource: self.living(resource, slot, now),
            ttl: ttl.filter(|_| !resource.is_bundle()),
            form: if wrap { Form::Wrapped } else { Form::Whole },
        }
    }

    /// K-17: the remaining time, never the original. K-18: none to clients that cannot read it. M-04: none for EDS in SotW.
    pub(super) fn ttl(&self, resource: &Resource, slot: Glimpse<'_>, now: Instant) -> Option<Duration> {
        if !self.reads_ttl() {
            return None;
        }
        slot.expiry(resource)
            .map(|expiry| expiry.at.saturating_duration_since(now))
    }

    pub(super) fn reads_ttl(&self) -> bool {
        let sotw = self.dialect == Dialect::Sotw;
        self.features.ttl && !(sotw && (!self.features.wrapper || self.traits().kind == Kind::Eds))
    }
}
