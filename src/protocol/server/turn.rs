//! One turn of a type on one stream: how much work is left of it, and what was found out in it.
//!
//! Owns the bound on the work of a turn, whatever the work is for. Does not know which names it is done on.

use std::sync::OnceLock;

use crate::server::survey::Survey;

/// The present turn, and what of the wildcard was seen in the last one.
#[derive(Debug, Default)]
pub(super) struct TypeTurn {
    /// How many names were listed or passed over.
    worked: u16,
    /// Whether the client asks for a name of which nothing is known, once that was looked for (C-20).
    dark: OnceLock<bool>,
    /// What there is to send, once that was looked for.
    survey: Option<Survey>,
    /// The wildcard's state when it was last looked at.
    state: u64,
    /// Whether that was certain.
    certain: bool,
}

/// How many names are listed and passed over at most, because others have their turn then. That many take some milliseconds.
pub(super) const WORK_MAX: u16 = 4096;

impl TypeTurn {
    /// A turn begins.
    pub(super) fn begin(&mut self) {
        self.worked = 0;
        self.dark.take();
        self.survey = None;
    }

    /// So many names were listed, or passed over. Each of these is passed over once, so that the next turn gets further.
    pub(super) fn work(&mut self, names: usize) {
        let names = u16::try_from(names).unwrap_or(u16::MAX);
        self.worked = self.worked.saturating_add(names);
    }

    /// Whether others have their turn now.
    pub(super) const fn is_spent(&self) -> bool {
        self.worked >= WORK_MAX
    }

    /// Returns how many names may still be listed: no more than can be passed over.
    pub(super) const fn room(&self) -> usize {
        (WORK_MAX / 2).saturating_sub(self.worked) as usize
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
