// SPDX-License-Identifier: Apache-2.0
//! SotW responses that list all resources: the client deletes what is missing in one (B-16). Secrets are listed beside the news (B-18).
//!
//! Owns the rule that nothing is left out because the relay does not know it. Does not know what is due.

use std::sync::Arc;

use super::draft::Draft;
use super::lens::{Look, Say};
use super::{Attempt, Subscription};
use crate::server::ledger::Row;
use crate::server::turn::Survey;
use xds::{Answers, Known, Name, Resource, State, TypeSight};

impl Subscription {
    /// Returns what must wait while the client's wildcard is not known well enough for a full state.
    pub(super) fn hold_wildcard(&mut self, attempt: &Attempt<'_, impl Answers>) -> Option<Survey> {
        let slot = attempt.slot;
        // B-20, G-20: an empty or incomplete state is sent only once it is certain that nothing is missing. K-16: content from an
        // earlier run of the relay deletes nothing at a client whose first request has another version.
        let known = |state: &&Arc<State>| state.complete() && !(state.stale() && self.brought_other(state));
        if !self.want.wildcard() || slot.wildcard().filter(known).is_some() {
            return None;
        }
        // D-01: a route may lead to a resource that waits.
        let partly = slot.wildcard().is_some_and(|state| state.present() > 0);
        let adds = partly || self.survey_in(slot, attempt.answers).adds;
        Some(Survey { adds, removes: false })
    }

    /// Returns what must wait if something is due that a full state must wait for, or that would tell the client nothing.
    pub(super) fn hold_names(&mut self, attempt: &Attempt<'_, impl Answers>) -> Option<Survey> {
        let survey = self.survey_in(attempt.slot, attempt.answers);
        if !survey.is_due() {
            return None;
        }
        if self.hides_any(attempt) {
            return Some(survey.without_removals());
        }
        self.lens(attempt.slot).tells_nothing().then(Survey::default)
    }

    /// Whether the client's first request had the version of another state, and nothing was sent since.
    fn brought_other(&self, state: &State) -> bool {
        let brought = self.want.version().filter(|_| self.want.hello());
        brought.is_some_and(|brought| *brought != *state.sum().to_string())
    }

    /// K-16, G-20: whether a name is unknown of which the client may hold anything, and can neither be listed nor left out. A full state
    /// waits for that only for a time.
    fn hides_any(&self, attempt: &Attempt<'_, impl Answers>) -> bool {
        let slot = attempt.slot;
        let lens = self.lens(slot);
        let hides = |name: &Name| {
            let row = self.books.ledger().get(name);
            let kept = || row.whole().is_some() || self.uses(name).is_some();
            let known = !row.perhaps() || kept() || self.asked.is_waived() && slot.past(name);
            !known && matches!(lens.look(name, &row), Look::Unknown)
        };
        let mut differs = attempt.difference.iter().flat_map(|difference| difference.names());
        self.books.ledger().own().from("").any(|entry| hides(entry.name())) || differs.any(hides)
    }

    /// What the client goes on using of a name of which it has rejected something.
    fn uses(&self, name: &Name) -> Option<&Arc<Resource>> {
        self.books.rejections().dispute(name)?.holds().content()
    }

    /// B-22: offers all that is held back or tried together, if any of it has changed.
    pub(super) fn offer_changed(&mut self, slot: TypeSight<'_>) {
        let lens = self.lens(slot);
        let is_other = |name: &Name, version| {
            let found = lens.known(name).and_then(Known::resource);
            found.is_some_and(|found| found.version() != version)
        };
        let mut open = self
            .books
            .rejections()
            .disputes()
            .filter(|(_, dispute)| dispute.is_open());
        if open.any(|(name, dispute)| is_other(name, dispute.version())) {
            drop(open);
            self.books.offer_all();
        }
    }

    /// Adds all that the client holds to a response with news: of what it rejects, what it had before, or was sent in its place. B-18: of
    /// secrets what it accepted; those that it has never accepted are left out only if it takes such a response, and tried in one of
    /// their own. What a full state cannot list, the client does not hold any more.
    pub(super) fn list_held(&mut self, draft: &mut Draft, trial: bool, attempt: &Attempt<'_, impl Answers>) {
        let full = self.reader.full_state();
        let repeats = full || !trial && self.books.holds_back_as_one();
        let listed = |name: &Name| draft.brings(name) || !full && !self.is_wanted(name);
        let held = self.books.ledger().held().filter(|(name, _)| !listed(name));
        let held: Vec<(Name, Row)> = held.map(|(name, row)| (name.clone(), row)).collect();
        for (name, row) in held {
            let kept = row.whole().or_else(|| self.uses(&name)).cloned();
            let dispute = self.books.rejections().dispute(&name);
            let (rejects, knows) = dispute.map_or((false, true), |one| (full && one.is_open(), one.may_be_listed()));
            match (kept, self.lens(attempt.slot).look(&name, &row)) {
                (Some(kept), _) if self.reader.cannot_read(&kept) => {}
                (Some(kept), _) => draft.repeat(&name, self.reader.item(&name, &kept, attempt.slot, attempt.now)),
                (None, Look::Put(_)) if rejects && knows => self.books.answered(&name),
                (None, Look::Put(found)) if rejects => {
                    draft.repeat(&name, self.reader.item(&name, found, attempt.slot, attempt.now));
                }
                (None, Look::Put(found)) if repeats && !self.reader.cannot_read(found) => {
                    self.write(&name, Say::Put(found), draft, attempt);
                }
                (None, _) if full => self.books.gone(&name),
                (None, _) => {}
            }
        }
    }
}
