// SPDX-License-Identifier: Apache-2.0
//! One turn of a type on one stream: how much work is left of it, and what was found out in it.
//!
//! Owns the bound on the work of a turn, whatever the work is for: names are read of a request, looked at, or let go. Four things are done
//! at once, because half of them is of no use: a full state is one response (B-16), a wildcard ends as a whole (C-07), all rows are
//! compared with an alias that has changed or ended (C-20), and a collection that waits for its answer looks for its first due member
//! (C-22). Does not know which names the work is done on.

use std::sync::OnceLock;
use std::time::Instant;

use xds::Sight;

/// What one turn of a stream goes by.
#[derive(Debug)]
pub(super) struct StreamTurn<'a, A> {
    pub(super) sight: &'a Sight,
    pub(super) answers: &'a A,
    pub(super) now: Instant,
}

/// The present turn, and what of the wildcard was seen in the last one.
#[derive(Debug, Default)]
pub(super) struct TypeTurn {
    work: Work,
    /// Whether the client asks for a name of which nothing is known, once that was looked for (C-20).
    dark: OnceLock<bool>,
    /// What there is to send, once that was looked for.
    survey: Option<Survey>,
    /// The wildcard's state when it was last looked at.
    state: u64,
    /// Whether that was certain.
    certain: bool,
    /// G-18: whether a response may not be of errors alone, because it would be the first of its stream.
    holds_errors: bool,
}

/// What a type has to send in one turn. It stays true until a response is sent. A type that sends no response returns what of
/// it must wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survey {
    /// Whether there is anything to add, change or answer, if no response were on its way.
    pub(super) adds: bool,
    /// Whether a removal or a heartbeat is due. It is not looked for beside additions.
    pub(super) removes: bool,
}

impl Survey {
    /// There is something to add or change.
    pub(super) const ADDS: Self = Self {
        adds: true,
        removes: false,
    };

    /// Returns the same without removals.
    pub(super) const fn without_removals(self) -> Self {
        Self { removes: false, ..self }
    }

    /// Whether anything is due.
    pub(super) const fn is_due(self) -> bool {
        self.adds || self.removes
    }
}

/// What was done before others have their turn: so many names were looked at, or let go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work(u16);

/// The most work of a turn. It takes some milliseconds.
pub(super) const WORK_MAX: u16 = 4096;
/// A name that is read of a request is so much work: it gets a row, and the views are asked for it.
const READ: u16 = 16;
/// How many names of a request are read in a turn.
pub const SLICE: usize = (WORK_MAX / READ) as usize;

impl Work {
    /// So many names were looked at, or let go.
    pub(super) fn add(&mut self, names: usize) {
        let names = u16::try_from(names).unwrap_or(u16::MAX);
        self.0 = self.0.saturating_add(names);
    }

    /// A name of a request was read.
    pub(super) const fn read(&mut self) {
        self.0 = self.0.saturating_add(READ);
    }

    /// Returns how many names may still be looked at, or let go.
    pub(super) const fn left(self) -> usize {
        WORK_MAX.saturating_sub(self.0) as usize
    }
}

impl TypeTurn {
    /// A turn begins. With `holds_errors`, errors that are due wait for another response.
    pub(super) fn begin(&mut self, holds_errors: bool) {
        self.holds_errors = holds_errors;
        self.work = Work::default();
        self.dark.take();
        self.survey = None;
    }

    /// There is another response, so errors wait no longer. Returns whether they have waited.
    pub(super) const fn free_errors(&mut self) -> bool {
        std::mem::replace(&mut self.holds_errors, false)
    }

    /// Whether errors that are due wait for another response.
    pub(super) const fn holds_errors(&self) -> bool {
        self.holds_errors
    }

    /// So many names were looked at in a sweep, or passed over. Each of these is passed over once, so that the next turn gets further.
    pub(super) fn work(&mut self, names: usize) {
        self.work.add(names);
    }

    /// Whether others have their turn now.
    pub(super) const fn is_spent(&self) -> bool {
        self.work.left() == 0
    }

    /// Returns how many names a sweep may still look at: half of a turn is for what is known to be due.
    pub(super) const fn room(&self) -> usize {
        self.work.left().saturating_sub(WORK_MAX as usize / 2)
    }

    /// Notes the wildcard's state. Returns whether it is another than before, and whether it has become certain.
    pub(super) const fn note_state(&mut self, id: u64, certain: bool) -> (bool, bool) {
        let (is_other, becomes_certain) = (self.state != id, certain && !self.certain);
        (self.state, self.certain) = (id, certain);
        (is_other, becomes_certain)
    }

    /// Whether it was this state of the wildcard that was last looked at.
    pub(super) const fn has_seen(&self, id: u64) -> bool {
        self.state == id
    }

    /// Returns what there is to send, if that was looked for.
    pub(super) const fn survey(&self) -> Option<Survey> {
        self.survey
    }

    pub(super) const fn set_survey(&mut self, survey: Survey) {
        self.survey = Some(survey);
    }

    /// Returns whether the client asks for a name of which nothing is known. `find` looks for one, once in a turn.
    pub(super) fn is_dark(&self, find: impl FnOnce() -> bool) -> bool {
        *self.dark.get_or_init(find)
    }
}
