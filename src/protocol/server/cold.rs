//! State that most types on most streams do not have.
//!
//! Owns its storage, so that it takes no memory where it is not needed. Does not know its meaning.

use std::sync::Arc;
use std::time::Instant;

use super::beats::Beats;
use super::refused::Refusals;
use xds::{Name, Objection, Version};

/// The rare state of a type on a stream. Most types have none, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Cold(Option<Box<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    brought: Option<Box<str>>,
    refused: Option<Box<RefusedSet>>,
    clusters: Vec<Name>,
    refusals: Refusals,
    renamed: Vec<Name>,
    beats: Beats,
    held_back: Option<Instant>,
}

/// A full state that the client rejected.
#[derive(Debug)]
struct RefusedSet {
    version: Version,
    /// Whether the client has given up a part of it since.
    divided: bool,
    objection: Arc<Objection>,
}

impl Contents {
    const fn new() -> Self {
        Self {
            brought: None,
            refused: None,
            clusters: Vec::new(),
            refusals: Refusals::new(),
            renamed: Vec::new(),
            beats: Beats::new(),
            held_back: None,
        }
    }

    fn is_empty(&self) -> bool {
        let Self {
            brought,
            refused,
            clusters,
            refusals,
            renamed,
            beats,
            held_back,
        } = self;
        let refused_none = refused.is_none() && refusals.is_empty();
        let lists_empty = clusters.is_empty() && renamed.is_empty() && beats.is_empty();
        refused_none && lists_empty && brought.is_none() && held_back.is_none()
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

    /// Returns how many entries are kept.
    pub(super) fn len(&self) -> usize {
        let contents = self.contents();
        contents.refusals.len() + contents.beats.len() + contents.clusters.len() + contents.renamed.len()
    }

    /// Returns whether there may be something to send although nothing else shows it.
    pub(super) fn waits(&self) -> bool {
        self.contents().held_back.is_some() || self.has_refused_set()
    }

    /// Returns whether the client has rejected anything of what it was last sent.
    pub(super) fn has_refused(&self) -> bool {
        !self.refusals().is_empty() || self.has_refused_set()
    }

    /// Full state: returns why the client rejected the last one, if it has accepted none since.
    pub(super) fn objection(&self) -> Option<&Arc<Objection>> {
        self.contents().refused.as_ref().map(|refused| &refused.objection)
    }

    /// Full state: returns the version in the client's first request, if it had one and has answered no response since.
    pub(super) fn brought(&self) -> Option<&str> {
        self.contents().brought.as_deref()
    }

    pub(super) fn note_brought(&mut self, version: &str) {
        self.contents_mut().brought = Some(version.into());
    }

    /// Returns whether the client rejected the last full state, and has accepted none since.
    pub(super) fn has_refused_set(&self) -> bool {
        self.contents().refused.is_some()
    }

    /// Returns whether this is exactly the full state that the client rejected (K-08).
    pub(super) fn refuses_set(&self, version: Version) -> bool {
        let refused = self.contents().refused.as_ref();
        refused.is_some_and(|refused| refused.version == version && !refused.divided)
    }

    pub(super) fn refuse_set(&mut self, version: Version, objection: Arc<Objection>) {
        self.contents_mut().refused = Some(Box::new(RefusedSet {
            version,
            divided: false,
            objection,
        }));
    }

    /// The client has given up a name that may be part of the rejected full state. The same state may be sent again, because the
    /// client would have to ask for the name anew.
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

    /// Full state: the EDS names of the clusters that it adds or changes.
    pub(super) fn note_clusters(&mut self, clusters: Vec<Name>) {
        if self.0.is_some() || !clusters.is_empty() {
            self.contents_mut().clusters = clusters;
        }
    }

    pub(super) fn take_clusters(&mut self) -> Vec<Name> {
        let contents = self.0.as_mut();
        contents.map_or_else(Vec::new, |contents| std::mem::take(&mut contents.clusters))
    }

    /// Returns what the client rejected of partial answers (B-22).
    pub(super) fn refusals(&self) -> &Refusals {
        &self.contents().refusals
    }

    pub(super) fn refusals_mut(&mut self) -> &mut Refusals {
        &mut self.contents_mut().refusals
    }

    /// C-20: a response takes aliases that the client asks for from these resources.
    pub(super) fn note_renamed(&mut self, owns: Vec<Name>) {
        if !owns.is_empty() {
            self.contents_mut().renamed.extend(owns);
        }
    }

    /// Returns whether a response on its way may take an alias that the client asks for from this resource.
    pub(super) fn is_renamed(&self, own: &Name) -> bool {
        self.contents().renamed.contains(own)
    }

    /// The client has answered all responses. Forgets what mattered until then, and frees the storage if nothing is left in it.
    pub(super) fn rest(&mut self) {
        if let Some(contents) = &mut self.0 {
            contents.brought = None;
            contents.renamed = Vec::new();
        }
        self.0.take_if(|contents| contents.is_empty());
    }

    pub(super) fn beats(&self) -> &Beats {
        &self.contents().beats
    }

    /// Returns `None` if nothing is allocated.
    pub(super) fn beats_mut(&mut self) -> Option<&mut Beats> {
        self.0.as_mut().map(|contents| &mut contents.beats)
    }

    pub(super) fn add_beat(&mut self, name: Name, beat: u32) {
        self.contents_mut().beats.add(name, beat);
    }

    /// Returns until when `pace` holds back a change.
    pub(super) fn held_back(&self) -> Option<Instant> {
        self.contents().held_back
    }

    pub(super) fn hold_back(&mut self, ends: Option<Instant>) {
        if self.0.is_some() || ends.is_some() {
            self.contents_mut().held_back = ends;
        }
    }

    /// Releases a change that was held back until now.
    pub(super) fn let_on(&mut self, now: Instant) {
        if let Some(contents) = &mut self.0 {
            contents.held_back.take_if(|at| *at <= now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::flight::Flight;
    use crate::server::subscription::Subscription;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn nothing_is_kept_of_nothing() {
        let mut cold = Cold::default();
        cold.hold_back(None);
        cold.note_clusters(Vec::new());
        cold.forget_refused_set();
        assert!(cold.0.is_none() && !cold.waits() && !cold.has_refused() && cold.len() == 0);
        cold.refuse_set(Version::EMPTY, Arc::new(Objection::new("no", Instant::now())));
        assert!(cold.waits() && cold.has_refused() && cold.refuses_set(Version::EMPTY));
        cold.divide_refused_set();
        assert!(cold.has_refused_set() && !cold.refuses_set(Version::EMPTY));
        cold.forget_refused_set();
        assert!(!cold.waits() && !cold.has_refused());
    }

    #[test]
    fn storage_is_freed_when_nothing_is_left_in_it() {
        let mut cold = Cold::default();
        cold.note_brought("7");
        cold.note_clusters(vec![Name::from("a")]);
        cold.note_renamed(vec![Name::from("b")]);
        cold.rest();
        assert!(cold.0.is_some() && cold.brought().is_none() && !cold.is_renamed(&Name::from("b")));
        assert_eq!(cold.take_clusters(), [Name::from("a")]);
        cold.rest();
        assert!(cold.0.is_none());
        cold.add_beat(Name::from("a"), 1);
        cold.rest();
        assert!(cold.0.is_some());
    }

    /// A stream has one subscription for each of its types. If one grows by 64 bytes, it falls into the next size class of the
    /// allocator, for every client. The same holds for a flight.
    #[test]
    fn what_every_type_of_every_client_takes() {
        assert!(size_of::<Subscription>() <= 256, "{}", size_of::<Subscription>());
        assert!(size_of::<Flight>() <= 64, "{}", size_of::<Flight>());
    }
}
