// SPDX-License-Identifier: Apache-2.0
//! All that is due: a walk over the names of which anything may be. Composing uses it, and so does the survey of a turn.
//!
//! Owns which names are looked at, and how many in one turn. Does not know what is due of a name, and when it is sent.

use std::sync::Arc;

use super::Subscription;
use super::lens::Say;
use crate::server::books::{AgendaWalk, NameOutcome, Swept};
use crate::server::turn::{StreamTurn, Survey, WORK_MAX};
use crate::server::waits::Wait;
use xds::{Answers, Difference, Name, State, TypeSight};

/// To look for a name in so many responses is as much work as to look at it.
const SEARCHED: usize = 8;

impl Subscription {
    /// Returns the first name of a walk of which anything but a removal is due. Those before it are passed over from now on; those
    /// that are gone are listed as such. `None` if there is none, or if the turn is over.
    pub(super) fn next_due<'a>(
        &mut self,
        walk: &mut AgendaWalk,
        difference: Option<&Difference>,
        slot: TypeSight<'a>,
    ) -> Option<(Name, Say<'a>)> {
        while !self.turn.is_spent()
            && let Some(name) = walk.next(self.books.agenda(), difference)
        {
            // B-22: it is sent with its group alone, and there may be very many of these after each try.
            if self.books.rejections().awaits(&name) {
                continue;
            }
            if let Some(say) = self.look_at(&name, slot) {
                return Some((name, say));
            }
        }
        if self.turn.is_spent() {
            self.books.agenda_mut().stop(walk);
        }
        None
    }

    /// Looks at a name. Returns what must be sent of it; if that is nothing, it is passed over from now on.
    fn look_at<'a>(&mut self, name: &Name, slot: TypeSight<'a>) -> Option<Say<'a>> {
        let (settled, searched) = match self.lens(slot).judge(name) {
            Ok(Say::Remove) if !self.is_busy(name) => (NameOutcome::Gone, self.books.flights().count()),
            Ok(say) => return Some(say),
            Err(settled) => (settled, 0),
        };
        if self.books.settle(name, settled) {
            self.turn.work(1 + searched / SEARCHED);
        }
        None
    }

    /// Passes over names of which nothing is due, if very many are listed. Returns whether a response can be composed: so many names
    /// are due that they fill one, or no others are left; and all members of collections are listed.
    pub(super) fn sift(&mut self, difference: Option<&Difference>, slot: TypeSight<'_>) -> bool {
        if self.books.agenda().gathers() {
            return false;
        }
        if self.books.agenda().len() <= usize::from(WORK_MAX) {
            return true;
        }
        let mut walk = self.books.agenda().walk();
        let mut due = 0;
        while due < WORK_MAX && self.next_due(&mut walk, difference, slot).is_some() {
            due += 1;
        }
        !self.turn.is_spent()
    }

    /// Whether a name must wait: it is on its way, and is in one response at a time (B-24); or was rejected, and is tried in its own
    /// (B-22).
    pub(super) fn is_busy(&self, name: &Name) -> bool {
        self.books.flights().has(name) || self.books.rejections().awaits(name)
    }

    /// Whether a removal is due. What has returned since it was found to be gone is looked at again.
    pub(super) fn removes(&mut self, slot: TypeSight<'_>) -> bool {
        loop {
            let Some(name) = self.books.agenda().gone().next().cloned() else {
                return false;
            };
            if self.turn.is_spent() || matches!(self.lens(slot).say(&name), Some(Say::Remove)) {
                return true;
            }
            self.books.agenda_mut().look([name]);
            self.turn.work(1);
        }
    }

    /// Begins a turn, and looks at the next rows, if all must be looked at, as when an incomplete wildcard has become certain; and at the
    /// next members of collections that may be new. With `holds_errors`, errors wait for another response.
    pub(in crate::server) fn prepare(&mut self, slot: TypeSight<'_>, holds_errors: bool) {
        self.turn.begin(holds_errors);
        if let Some(state) = slot.wildcard().filter(|_| self.want.wildcard()) {
            // What was sent since the last rest, from a state after that, is in no map: so no difference shows that it is gone.
            let met = self
                .books
                .ledger()
                .base()
                .is_some_and(|base| self.turn.has_seen(base.id()));
            let shown = met && !self.reader.has_aliases()
                || self.books.ledger().own().len() == self.books.ledger().own().asked_len();
            let (other, certain) = self.turn.note_state(state.id(), state.certain());
            if certain || other && !shown {
                self.books.look_at_rows(false);
            }
        }
        while self.turn.room() > 0
            && let Some(swept) = self
                .books
                .sweep(self.turn.room(), |all, text, max| members(all, text, max, slot))
        {
            let Swept { of, names, asks, ends } = swept;
            self.turn.work(names.len().max(1));
            names
                .iter()
                .for_each(|name| self.come_to(name, of.as_ref(), asks, slot));
            if ends {
                let texts = of.iter().flat_map(|all| self.want.texts(all));
                let asked = texts.filter(|text| self.books.ledger().asks(text));
                let asked: Vec<Name> = asked.cloned().collect();
                self.books.agenda_mut().look(asked);
            }
        }
    }

    /// G-18: the stream is sent something else, so errors need not wait any more. Returns whether any may have waited.
    pub(in crate::server) fn release_errors(&mut self) -> bool {
        self.turn.free_errors() && self.books.agenda_mut().wake()
    }

    /// A sweep has come to this name. It lists the name only if something is due of it. The wildcard covers only names of old style.
    fn come_to(&mut self, name: &Name, of: Option<&Name>, asks: bool, slot: TypeSight<'_>) {
        if name.is_collection() {
            let all = self.want.meaning(name).clone();
            self.books.agenda_mut().sweep(Some(all), false);
        } else if asks && (of.is_some() || !name.is_new_style()) && self.books.ledger().get(name).perhaps() {
            self.books.ask(name);
        } else if self.look_at(name, slot).is_some() {
            self.books.agenda_mut().look([name.clone()]);
        }
    }

    /// Returns the difference between what the wildcard has sent and its state; `None` if there is none.
    #[inline]
    pub(super) fn difference(&self, slot: TypeSight<'_>, answers: &impl Answers) -> Option<Arc<Difference>> {
        let state = slot.wildcard().filter(|_| self.want.wildcard())?;
        let base = self.books.ledger().base();
        if base.is_some_and(|base| base.id() == state.id()) {
            return None;
        }
        let rest = self.books.agenda().rest(state).cloned();
        Some(rest.unwrap_or_else(|| answers.difference(base, self.books.agenda().cursor(), state)))
    }

    /// Whether all that the client needs is sent and settled; what it need not have any more may be left.
    pub(in crate::server) fn is_calm(&mut self, turn: &StreamTurn<'_, impl Answers>) -> bool {
        self.books.flights().is_empty() && !self.survey(turn).adds
    }

    /// Whether the client certainly has everything that is current, removals included, and no response is on its way.
    pub(in crate::server) fn has_all(&mut self, turn: &StreamTurn<'_, impl Answers>) -> bool {
        self.books.flights().is_empty() && !self.survey(turn).is_due() && self.books.ledger().own().waiting() == 0
    }

    /// Returns what there is to send. It is looked for once in a turn.
    pub(in crate::server) fn survey(&mut self, turn: &StreamTurn<'_, impl Answers>) -> Survey {
        let known = self.turn.survey();
        known.unwrap_or_else(|| self.with_sight(turn.sight, |one, slot| one.survey_in(slot, turn.answers)))
    }

    /// Does the same with what this client sees of the type.
    pub(super) fn survey_in(&mut self, slot: TypeSight<'_>, answers: &impl Answers) -> Survey {
        if let Some(known) = self.turn.survey() {
            return known;
        }
        let survey = if self.greets(slot) {
            Survey::ADDS
        } else {
            self.look_through(slot, answers)
        };
        self.turn.set_survey(survey);
        survey
    }

    /// Returns whether an addition is due, and if none is, whether anything else is. If not all names could be looked at, one of them
    /// may be an addition.
    fn look_through(&mut self, slot: TypeSight<'_>, answers: &impl Answers) -> Survey {
        let difference = self.difference(slot, answers);
        let difference = difference.as_deref();
        if let Some(state) = slot.wildcard().filter(|state| self.is_plain(state)) {
            return difference.map_or_else(Survey::default, |difference| self.due_as_others(difference, state));
        }
        if self.books.rejections().tries() {
            return Survey::ADDS;
        }
        let mut beats = false;
        let mut walk = self.books.agenda().walk();
        while let Some((_, say)) = self.next_due(&mut walk, difference, slot) {
            if say.adds() {
                return Survey {
                    adds: true,
                    removes: beats,
                };
            }
            beats = true;
        }
        Survey {
            adds: self.is_short(),
            removes: beats || self.removes(slot),
        }
    }

    /// Returns whether anything is to be added, and whether anything is to be removed, at a client that is like others.
    pub(super) fn due_as_others(&self, difference: &Difference, state: &State) -> Survey {
        Survey {
            adds: difference.adds(),
            removes: difference.removes() && state.certain() && !self.reader.forgets(),
        }
    }

    /// Whether an answer is due even if it is empty: a wildcard must be known well enough for that. An empty full state takes everything away,
    /// so none is sent to a client that is subscribed to nothing.
    pub(super) fn greets(&self, slot: TypeSight<'_>) -> bool {
        let known = || match self.want.wildcard() {
            true => slot.wildcard().is_some_and(|state| state.complete()),
            false => !self.reader.full_state() || !self.wants_nothing(),
        };
        self.want.hello() && known()
    }

    /// Whether there was nothing to send in this turn, and there is nothing until something changes or the client asks.
    pub(in crate::server) fn is_sated(&self) -> bool {
        let waits = self.want.hello() || !self.books.rejections().is_empty();
        if waits || !self.books.agenda().is_empty() || self.waits.get(Wait::Again).is_some() {
            return false;
        }
        let base = self.books.ledger().base();
        !self.want.wildcard() || base.is_some_and(|base| self.turn.has_seen(base.id()))
    }

    /// Whether one encoded answer serves this client and all others at the same point.
    pub(super) fn is_plain(&self, state: &State) -> bool {
        let alike =
            self.books.ledger().own().is_empty() && self.books.rejections().is_empty() && !self.want.has_collections();
        let certain = state.certain() || self.reader.viewer().rights().is_none();
        let mortal = self.books.marks().has_beats() || !self.reader.is_like_others(state);
        self.want.wildcard() && alike && certain && !mortal
    }
}

/// Returns so many members of a collection, from the first one whose name is not less than a text.
fn members(all: &Name, text: &str, max: usize, slot: TypeSight<'_>) -> Vec<Name> {
    let members = slot.members(all).map(|member| member.name());
    members
        .skip_while(|member| member.as_str() < text)
        .take(max)
        .cloned()
        .collect()
}
