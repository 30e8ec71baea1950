//! What is due: the one comparison of what the client was sent with what it should hold. Composing uses it, and so does every question
//! whether anything could be sent.
//!
//! Owns what must be sent of one name. Does not know when it is sent, and with what else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Subscription;
use super::lens::{Extent, Look};
use crate::server::agenda::{PASSED_MAX, SWEPT_MAX, Walk};
use crate::server::ledger::Row;
use xds::{Answers, Dialect, Difference, Known, Name, Reason, Resource, ResourceError, Sight, State, TypeSight};

/// What must be sent of a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Say<'a> {
    /// The resource.
    Put(&'a Arc<Resource>),
    /// The resource, under its own name (C-20, A-09).
    Other(&'a Arc<Resource>),
    /// A heartbeat: the client holds the resource (K-17).
    Beat(&'a Arc<Resource>),
    /// That it is gone, and the client may hold it.
    Remove,
    /// That it does not exist: the client holds nothing, and waits for an answer.
    Missing,
    /// Only an error (B-31).
    Error,
}

impl Say<'_> {
    /// Whether it adds, changes or answers anything.
    const fn adds(self) -> bool {
        matches!(self, Self::Put(_) | Self::Other(_) | Self::Missing | Self::Error)
    }
}

impl Subscription {
    /// Returns the first name of a walk of which anything but a removal is due. Those before it are passed over from now on; those
    /// that are gone are listed as such. `None` if there is none, or if the walk stops short.
    pub(super) fn next_due<'a>(
        &mut self,
        walk: &mut Walk,
        difference: Option<&Difference>,
        slot: TypeSight<'a>,
    ) -> Option<(Name, Say<'a>)> {
        while !walk.is_short()
            && let Some(name) = walk.next(&self.agenda, difference)
        {
            let passed = match self.say(&name, slot) {
                Some(Say::Remove) if !self.is_busy(&name) => self.agenda.leave(&name),
                Some(say) => return Some((name, say)),
                None => self.pass(&name, slot),
            };
            if passed {
                walk.count();
            }
        }
        self.agenda.set_short(self.agenda.is_short() || walk.is_short());
        None
    }

    /// Passes over names of which nothing is due, if very many are listed. Returns whether a response can be composed: so many names
    /// are due that they fill one, or no others are left.
    pub(super) fn sift(&mut self, difference: Option<&Difference>, slot: TypeSight<'_>) -> bool {
        if self.agenda.len() <= PASSED_MAX {
            return true;
        }
        let mut walk = self.agenda.walk();
        let mut due = 0;
        while due < PASSED_MAX && self.next_due(&mut walk, difference, slot).is_some() {
            due += 1;
        }
        !walk.is_short()
    }

    /// Whether a name must wait: it is on its way, and is in one response at a time (B-24); or was rejected, and is tried in its own
    /// (B-22).
    pub(super) fn is_busy(&self, name: &Name) -> bool {
        self.flights.has(name) || self.rejections.awaits(name)
    }

    /// Whether a removal is due. What has returned since it was found to be gone is looked at again.
    pub(super) fn removes(&mut self, slot: TypeSight<'_>) -> bool {
        for _ in 0..PASSED_MAX {
            let Some(name) = self.agenda.gone().next().cloned() else {
                return false;
            };
            if matches!(self.say(&name, slot), Some(Say::Remove)) {
                return true;
            }
            self.agenda.look(name);
        }
        true
    }

    /// Returns what must be sent of a name.
    pub(super) fn say<'a>(&self, name: &Name, slot: TypeSight<'a>) -> Option<Say<'a>> {
        let row = self.ledger.get(name);
        let said = if self.want.has_collection(name) {
            self.say_collection(name, &row, slot)
        } else {
            self.say_single(name, &row, slot)
        };
        said.or_else(|| self.due_error(name, slot).map(|_| Say::Error))
    }

    fn say_single<'a>(&self, name: &Name, row: &Row, slot: TypeSight<'a>) -> Option<Say<'a>> {
        let lens = self.lens(slot);
        match lens.look(name, row) {
            Look::Unknown => None,
            Look::Put(found) if self.reader.cannot_read(found) => None,
            Look::Put(found) if found.name() != self.want.meaning(name) => {
                // C-20: the resource goes as the client should hold it under its own name.
                let held = self.ledger.get(found.name());
                match lens.look(found.name(), &held) {
                    Look::Put(own) if row.waits() || row.perhaps() => Some(Say::Other(own)),
                    Look::Put(own) if !held.is(own.version()) && !held.refuses(own.version()) => Some(Say::Other(own)),
                    Look::Put(_) | Look::Gone | Look::Unknown => None,
                }
            }
            Look::Put(found) if row.refuses(found.version()) => None,
            Look::Put(found) if !row.is(found.version()) => Some(Say::Put(found)),
            // E-09: only the resource itself tells the client that an error is over.
            Look::Put(found) if self.rare.get().errors.contains_key(name) && self.error(name, slot).is_none() => {
                Some(Say::Put(found))
            }
            Look::Put(found) => self.beats(found, slot).then_some(Say::Beat(found)),
            Look::Gone => match row {
                Row::Nothing => None,
                Row::Asked if self.reader.dialect() == Dialect::Sotw || self.reader.waits_for_routes() => None,
                Row::Asked => Some(Say::Missing),
                Row::Perhaps | Row::Brought(_) | Row::Refused(..) | Row::Again(_) | Row::Sent(_) => {
                    (!self.reader.forgets()).then_some(Say::Remove)
                }
            },
        }
    }

    /// C-22: an empty collection is answered by its name, any other by its members.
    fn say_collection<'a>(&self, name: &Name, row: &Row, slot: TypeSight<'a>) -> Option<Say<'a>> {
        if !matches!(row, Row::Asked | Row::Perhaps) {
            return None;
        }
        let extent = self.lens(slot).extent(name);
        if self.reader.full_state() {
            // B-14: a full state answers it, even if the client held all of it, or it is empty.
            return (extent != Extent::Unknown).then_some(Say::Missing);
        }
        if self.reader.dialect() == Dialect::Sotw || extent != Extent::Empty {
            return None;
        }
        // K-16: a server that did not answer in time is no reason to take away members that the client may hold.
        let silent = matches!(self.lens(slot).known(name), Some(Known::Absent(Reason::TimedOut)));
        let all = self.want.meaning(name);
        let holds = silent && self.ledger.within(all).any(|entry| entry.perhaps());
        (!holds).then_some(Say::Missing)
    }

    /// Nothing is due of a name until something changes. Returns whether it was listed.
    fn pass(&mut self, name: &Name, slot: TypeSight<'_>) -> bool {
        let row = self.ledger.get(name);
        if self.want.has_collection(name) {
            let answered = match self.lens(slot).extent(name) {
                Extent::Unknown => false,
                Extent::Empty => self.reader.dialect() == Dialect::Sotw,
                Extent::Some => true,
            };
            if answered {
                self.ledger.put(name, Row::Nothing);
            }
            return self.agenda.pass(name);
        }
        match (self.lens(slot).look(name, &row), &row) {
            // A pointer takes less memory than a version.
            (Look::Put(found), Row::Brought(_)) if row.is(found.version()) => {
                self.ledger.put(name, Row::Sent(found.clone()));
            }
            (Look::Put(found), Row::Asked) if self.reader.cannot_read(found) => self.ledger.put(name, Row::Nothing),
            (Look::Gone, Row::Asked) => self.ledger.put(name, Row::Nothing),
            // B-18: that it is gone cannot be said.
            (Look::Gone, row) if row.perhaps() && self.reader.forgets() => self.forget(name, slot),
            (Look::Unknown, row) if row.perhaps() && self.reader.has_aliases() => return self.agenda.wait(name),
            (Look::Put(_) | Look::Gone | Look::Unknown, _) => {}
        }
        self.agenda.pass(name)
    }

    /// The client may keep what is gone: it cannot be told. If it comes back, it is sent again. Secrets are listed as long as the
    /// client asks for them: Envoy keeps and wants them, for example until a listener is drained. K-17: not if it was sent a time to
    /// live with the secret. B-31: not if the client can be told of its absence.
    fn forget(&mut self, name: &Name, slot: TypeSight<'_>) {
        let told = self.reader.reads_errors() && self.error(name, slot).is_some();
        let stays =
            self.reader.lists_all() && self.ledger.asks(name) && !self.rare.get().beats.contains_key(name) && !told;
        if !stays {
            self.ledger.put(name, Row::Nothing);
            self.rejections.forget(name);
            self.rare.forget(|rare| rare.beats.remove(name));
        }
    }

    /// Whether the client must be sent a heartbeat: it holds exactly this content. E-11: if the resource has no time to live any
    /// more, only the resource itself can say so.
    fn beats(&self, resource: &Resource, slot: TypeSight<'_>) -> bool {
        if !self.reader.reads_ttl() {
            return false;
        }
        self.rare.get().beats.get(resource.name()).copied() != slot.beat(resource)
    }

    /// Returns the error that the client must get for a name. K-16: in SotW, only an error can say that a name does not exist.
    pub(super) fn error(&self, name: &Name, slot: TypeSight<'_>) -> Option<Arc<ResourceError>> {
        let meant = self.want.meaning(name);
        // B-31: an error has a name, so there is none for the empty name.
        let silent = || {
            let absent = matches!(self.lens(slot).known(name), Some(Known::Absent(_)));
            self.reader.dialect() == Dialect::Sotw && !meant.is_blank() && absent
        };
        let said = slot.error(meant).cloned();
        said.or_else(|| silent().then(|| Arc::new(ResourceError::not_found())))
    }

    /// B-31: returns the error of a name if the client was not sent it yet.
    pub(super) fn due_error(&self, name: &Name, slot: TypeSight<'_>) -> Option<Arc<ResourceError>> {
        if !self.reader.reads_errors() || !self.ledger.asks(name) {
            return None;
        }
        self.error(name, slot)
            .filter(|error| self.rare.get().errors.get(name) != Some(error))
    }

    /// Lists the members of collections that may be new, everything that an incomplete wildcard kept in doubt, and what another state
    /// may lack.
    pub(in crate::server) fn prepare(&mut self, slot: TypeSight<'_>) {
        self.agenda.set_short(false);
        while let Some(collection) = self.agenda.pop_stirred() {
            let name = self.want.meaning(&collection).clone();
            let held: Vec<Name> = self.ledger.within(&name).map(|entry| entry.name().clone()).collect();
            let members = slot.members(&name).map(|member| member.name().clone());
            held.into_iter()
                .chain(members)
                .for_each(|member| self.agenda.look(member));
            self.agenda.look(collection);
        }
        let state = slot.wildcard().filter(|_| self.want.wildcard());
        let (other, certain) = state.map_or((false, false), |state| {
            self.agenda.note_state(state.id(), state.certain())
        });
        // What was sent since the last rest is in no map, so no difference shows that it is gone.
        if certain || other && self.ledger.has_unasked() {
            self.look_at_rows();
        }
        if let Some(from) = self.agenda.sweeps_from() {
            let mut rows = self.ledger.rows(from).map(|entry| entry.name().clone());
            let some = rows.by_ref().take(SWEPT_MAX).collect();
            let next = rows.next();
            drop(rows);
            self.agenda.swept(some, next);
        }
    }

    /// Returns the difference between what the wildcard has sent and its state; `None` if there is none.
    pub(super) fn difference(&self, slot: TypeSight<'_>, answers: &impl Answers) -> Option<Arc<Difference>> {
        let state = slot.wildcard().filter(|_| self.want.wildcard())?;
        let base = self.ledger.base();
        if base.is_some_and(|base| base.id() == state.id()) {
            return None;
        }
        let rest = self.agenda.rest(state).cloned();
        Some(rest.unwrap_or_else(|| answers.difference(base, self.agenda.cursor(), state)))
    }

    /// Whether there is anything to add, change or answer, if no response were on its way.
    pub(super) fn is_pending(&mut self, slot: TypeSight<'_>, answers: &impl Answers) -> bool {
        self.greets(slot) || self.any_due(slot, answers, |say| say.adds())
    }

    /// Whether anything is due, removals and heartbeats included.
    pub(super) fn is_due(&mut self, slot: TypeSight<'_>, answers: &impl Answers) -> bool {
        self.greets(slot) || self.any_due(slot, answers, |_| true)
    }

    /// Whether an answer is due even if it is empty: a wildcard must be known well enough for that.
    pub(super) fn greets(&self, slot: TypeSight<'_>) -> bool {
        let known = || !self.want.wildcard() || slot.wildcard().is_some_and(|state| state.complete());
        self.agenda.hello() && known()
    }

    pub(super) fn any_due(
        &mut self,
        slot: TypeSight<'_>,
        answers: &impl Answers,
        counts: impl Fn(Say<'_>) -> bool,
    ) -> bool {
        let difference = self.difference(slot, answers);
        let difference = difference.as_deref();
        if let Some(state) = slot.wildcard().filter(|state| self.is_plain(state)) {
            let gone = difference.is_some_and(Difference::removes) && state.certain() && !self.reader.forgets();
            return difference.is_some_and(Difference::adds) || gone && counts(Say::Remove);
        }
        let mut walk = self.agenda.walk();
        while let Some((_, say)) = self.next_due(&mut walk, difference, slot) {
            if counts(say) {
                return true;
            }
        }
        self.agenda.is_short() || counts(Say::Remove) && self.removes(slot)
    }

    /// Whether there is nothing to send until something changes or the client asks.
    pub(in crate::server) fn is_sated(&self, sight: &Sight) -> bool {
        let waits = self.agenda.hello() || self.rare.get().held_back.is_some() || !self.rejections.is_empty();
        if waits || !self.agenda.is_empty() || self.rare.get().refused.is_some() {
            return false;
        }
        let state = self
            .want
            .wildcard()
            .then(|| self.type_sight(sight).wildcard())
            .flatten();
        state.is_none_or(|state| self.ledger.base().is_some_and(|base| base.id() == state.id()))
    }

    /// Whether the least time between two responses has not passed. What the client itself asked for does not wait.
    pub(in crate::server) fn is_paced(
        &mut self,
        pace: Duration,
        slot: TypeSight<'_>,
        answers: &impl Answers,
        now: Instant,
    ) -> bool {
        let ends = self.flights.sent().map(|sent| sent + pace).filter(|ends| now < *ends);
        let ends = ends.filter(|_| !self.hurries(slot, answers));
        // Removals and heartbeats are held back as well as changes.
        let held_back = ends.filter(|_| !self.flights.is_empty() || self.is_due(slot, answers));
        match held_back {
            Some(_) => self.rare.note(|rare| rare.held_back = held_back),
            None => drop(self.rare.forget(|rare| rare.held_back = None)),
        }
        ends.is_some()
    }

    /// Whether the client waits for an answer that can be given, or for the rest of one.
    fn hurries(&mut self, slot: TypeSight<'_>, answers: &impl Answers) -> bool {
        if self.agenda.hello() || self.agenda.cursor().is_some() || self.rejections.tries() {
            return true;
        }
        let difference = self.difference(slot, answers).filter(|_| !self.ledger.is_shared());
        let mut walk = self.agenda.walk();
        while let Some((name, _)) = self.next_due(&mut walk, difference.as_deref(), slot) {
            if self.ledger.asks(&name) && self.ledger.get(&name).waits() {
                return true;
            }
        }
        false
    }

    /// Whether one encoded answer serves this client and all others at the same point.
    pub(super) fn is_plain(&self, state: &State) -> bool {
        let alike = self.ledger.is_shared() && self.rejections.is_empty() && !self.want.has_collections();
        let certain = state.certain() || self.reader.viewer().rights().is_none();
        let mortal = !self.rare.get().beats.is_empty() || !self.reader.is_like_others(state);
        self.want.wildcard() && alike && certain && !mortal
    }
}
