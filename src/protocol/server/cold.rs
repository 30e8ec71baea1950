//! What most types on most streams have nothing of.
//!
//! Owns where it is kept, so that it costs nothing where it is not. Refuses to know what follows from it.

use std::time::Instant;

use super::beats::Beats;
use super::refused::Refusals;
use crate::xds::{Name, Version};

/// What is seldom there of a type on a stream. Most have none, and so no box.
#[derive(Debug, Default)]
pub(super) struct Cold(Option<Box<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    brought: Option<Box<str>>,
    refused: Option<Box<RefusedSet>>,
    clusters: Vec<Name>,
    refusals: Refusals,
    beats: Beats,
    held_back: Option<Instant>,
}

/// A full state that the client refused.
#[derive(Debug)]
struct RefusedSet {
    version: Version,
    /// Whether a part of it was given up since.
    divided: bool,
}

impl Contents {
    const fn new() -> Self {
        Self {
            brought: None,
            refused: None,
            clusters: Vec::new(),
            refusals: Refusals::new(),
            beats: Beats::new(),
            held_back: None,
        }
    }
}

impl Cold {
    fn contents(&self) -> &Contents {
        static NONE: Contents = Contents::new();
        self.0.as_deref().unwrap_or(&NONE)
    }

    fn contents_mut(&mut self) -> &mut Contents {
        self.0.get_or_insert_default()
    }

    /// How many entries are kept.
    pub(super) fn len(&self) -> usize {
        let contents = self.contents();
        contents.refusals.len() + contents.beats.len() + contents.clusters.len()
    }

    /// Whether there may be something to say although nothing else shows it.
    pub(super) fn waits(&self) -> bool {
        self.contents().held_back.is_some() || self.has_refused_set()
    }

    /// Whether something of what the client was sent last is refused.
    pub(super) fn has_refused(&self) -> bool {
        !self.refusals().is_empty() || self.has_refused_set()
    }

    /// Of a full state: the version that the client came with, if it came with any.
    pub(super) fn brought(&self) -> Option<&str> {
        self.contents().brought.as_deref()
    }

    pub(super) fn note_brought(&mut self, version: &str) {
        self.contents_mut().brought = Some(version.into());
    }

    /// Whether the client refused the last full state, and has accepted none since.
    pub(super) fn has_refused_set(&self) -> bool {
        self.contents().refused.is_some()
    }

    /// Whether this is the very full state that the client refused (K-08).
    pub(super) fn refuses_set(&self, version: Version) -> bool {
        let refused = self.contents().refused.as_ref();
        refused.is_some_and(|refused| refused.version == version && !refused.divided)
    }

    pub(super) fn refuse_set(&mut self, version: Version) {
        let divided = false;
        self.contents_mut().refused = Some(Box::new(RefusedSet { version, divided }));
    }

    /// The client has given up what may be a part of the full state that it refused. That may come again as it was, because it
    /// would be asked for anew.
    pub(super) fn divide_refused_set(&mut self) {
        if let Some(refused) = self.0.as_mut().and_then(|contents| contents.refused.as_mut()) {
            refused.divided = true;
        }
    }

    pub(super) fn forget_refused_set(&mut self) {
        if let Some(contents) = &mut self.0 {
            contents.refused = None;
        }
    }

    /// Of a full state: the EDS names of the clusters that it adds or changes.
    pub(super) fn note_clusters(&mut self, clusters: Vec<Name>) {
        if self.0.is_some() || !clusters.is_empty() {
            self.contents_mut().clusters = clusters;
        }
    }

    pub(super) fn take_clusters(&mut self) -> Vec<Name> {
        let contents = self.0.as_mut();
        contents.map_or_else(Vec::new, |contents| std::mem::take(&mut contents.clusters))
    }

    /// What the client refused of partial answers (B-22).
    pub(super) fn refusals(&self) -> &Refusals {
        &self.contents().refusals
    }

    pub(super) fn refusals_mut(&mut self) -> &mut Refusals {
        &mut self.contents_mut().refusals
    }

    pub(super) fn beats(&self) -> &Beats {
        &self.contents().beats
    }

    /// `None` if there are none.
    pub(super) fn beats_mut(&mut self) -> Option<&mut Beats> {
        self.0.as_mut().map(|contents| &mut contents.beats)
    }

    pub(super) fn add_beat(&mut self, name: Name, beat: u32) {
        self.contents_mut().beats.add(name, beat);
    }

    /// Until when a change is held back for the sake of `pace`.
    pub(super) fn held_back(&self) -> Option<Instant> {
        self.contents().held_back
    }

    pub(super) fn hold_back(&mut self, ends: Option<Instant>) {
        if self.0.is_some() || ends.is_some() {
            self.contents_mut().held_back = ends;
        }
    }

    /// What was held back until now is not any more.
    pub(super) fn let_on(&mut self, now: Instant) {
        if let Some(contents) = &mut self.0 {
            contents.held_back.take_if(|at| *at <= now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::server::flight::Flight;
    use crate::protocol::server::subscription::Subscription;

    #[test]
    fn nothing_is_kept_of_nothing() {
        let mut cold = Cold::default();
        cold.hold_back(None);
        cold.note_clusters(Vec::new());
        cold.forget_refused_set();
        assert!(cold.0.is_none() && !cold.waits() && !cold.has_refused() && cold.len() == 0);
        cold.refuse_set(Version::EMPTY);
        assert!(cold.waits() && cold.has_refused() && cold.refuses_set(Version::EMPTY));
        cold.divide_refused_set();
        assert!(cold.has_refused_set() && !cold.refuses_set(Version::EMPTY));
        cold.forget_refused_set();
        assert!(!cold.waits() && !cold.has_refused());
    }

    /// A stream keeps one for each of its types side by side: 64 bytes more of a type are the next larger class of the allocator,
    /// for every client. What is on its way is in such a class as well.
    #[test]
    fn what_every_type_of_every_client_takes() {
        assert!(size_of::<Subscription>() <= 320, "{}", size_of::<Subscription>());
        assert!(size_of::<Flight>() <= 64, "{}", size_of::<Flight>());
    }
}
