//! What few types of few streams need to remember.
//!
//! Owns its storage, so that it takes no memory where it is not needed. Does not know what follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xds::{Errors, Name, Objection, Resource, ResourceError};

/// The rare state of a type on a stream. Most types have none, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Rare(Option<Box<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    /// The errors that the client was sent (B-31).
    errors: Errors,
    /// The last heartbeat that was passed on of each resource (K-17).
    beats: BTreeMap<Name, u32>,
    /// Secrets as the client last accepted them, where it has not accepted what was sent since (B-18).
    accepted: BTreeMap<Name, Arc<Resource>>,
    /// Whether the client has accepted a response that left out a secret which it asks for.
    omits: bool,
    /// Full state: the version in the client's first request, until it has answered a response.
    brought: Option<Box<str>>,
    /// Full state: why the client rejected the last one, if it has accepted none since.
    refused: Option<Arc<Objection>>,
    /// Until when `pace` holds back a change.
    held_back: Option<Instant>,
    /// Since when removals wait while other names are added.
    removals: Option<Instant>,
    /// Names over the limit that must be answered (B-32).
    long: Vec<Name>,
}

/// More names over the limit than this are not answered: they are not bounded by anything else.
const LONG_MAX: usize = 64;

impl Contents {
    fn is_empty(&self) -> bool {
        let maps = self.errors.is_empty() && self.beats.is_empty() && self.accepted.is_empty();
        let lists = maps && self.long.is_empty();
        let set = self.brought.is_none() && self.refused.is_none();
        lists && set && !self.omits && self.held_back.is_none() && self.removals.is_none()
    }
}

impl Rare {
    fn contents_mut(&mut self) -> &mut Contents {
        self.0.get_or_insert_default()
    }

    /// Frees the storage if nothing is left in it.
    fn give_back(&mut self) {
        self.0.take_if(|contents| contents.is_empty());
    }

    /// Returns how many entries are kept.
    pub(super) fn len(&self) -> usize {
        let contents = self.0.as_ref();
        contents.map_or(0, |contents| {
            contents.errors.len() + contents.beats.len() + contents.accepted.len()
        })
    }

    /// Returns the error that the client was sent for a name.
    pub(super) fn error(&self, name: &Name) -> Option<&Arc<ResourceError>> {
        self.0.as_ref()?.errors.get(name)
    }

    pub(super) fn note_error(&mut self, name: Name, error: Arc<ResourceError>) {
        self.contents_mut().errors.insert(name, error);
    }

    /// E-09: the client is sent the resource, or does not ask for it any more.
    pub(super) fn forget_error(&mut self, name: &Name) {
        if let Some(contents) = &mut self.0 {
            contents.errors.remove(name);
        }
        self.give_back();
    }

    /// Returns the last heartbeat of a resource that was passed on.
    pub(super) fn beat(&self, name: &Name) -> Option<u32> {
        self.0.as_ref()?.beats.get(name).copied()
    }

    /// Whether the client was sent any time to live.
    pub(super) fn has_beats(&self) -> bool {
        self.0.as_ref().is_some_and(|contents| !contents.beats.is_empty())
    }

    /// Notes the heartbeat that was passed on; `None`: the resource has no time to live.
    pub(super) fn note_beat(&mut self, name: &Name, beat: Option<u32>) {
        if let Some(beat) = beat {
            self.contents_mut().beats.insert(name.clone(), beat);
        } else if let Some(contents) = &mut self.0 {
            contents.beats.remove(name);
            self.give_back();
        }
    }

    /// Returns a secret as the client last accepted it.
    pub(super) fn accepted(&self, name: &Name) -> Option<&Arc<Resource>> {
        self.0.as_ref()?.accepted.get(name)
    }

    /// Keeps a secret as the client has accepted it, until it accepts another one.
    pub(super) fn keep_accepted(&mut self, name: &Name, resource: &Arc<Resource>) {
        self.contents_mut()
            .accepted
            .entry(name.clone())
            .or_insert_with(|| resource.clone());
    }

    pub(super) fn forget_accepted(&mut self, name: &Name) {
        if let Some(contents) = &mut self.0 {
            contents.accepted.remove(name);
        }
        self.give_back();
    }

    /// Whether the client has accepted a response without all secrets.
    pub(super) fn omits(&self) -> bool {
        self.0.as_ref().is_some_and(|contents| contents.omits)
    }

    pub(super) fn note_omission(&mut self) {
        self.contents_mut().omits = true;
    }

    /// Returns the version in the client's first request.
    pub(super) fn brought(&self) -> Option<&str> {
        self.0.as_ref()?.brought.as_deref()
    }

    pub(super) fn note_brought(&mut self, version: Option<&str>) {
        if let Some(version) = version {
            self.contents_mut().brought = Some(version.into());
        } else if let Some(contents) = &mut self.0 {
            contents.brought = None;
            self.give_back();
        }
    }

    /// Returns why the client rejected the last full state.
    pub(super) fn refused(&self) -> Option<&Arc<Objection>> {
        self.0.as_ref()?.refused.as_ref()
    }

    pub(super) fn note_refused(&mut self, objection: Option<Arc<Objection>>) {
        if objection.is_some() {
            self.contents_mut().refused = objection;
        } else if let Some(contents) = &mut self.0 {
            contents.refused = None;
            self.give_back();
        }
    }

    /// Returns until when `pace` holds back a change.
    pub(super) fn held_back(&self) -> Option<Instant> {
        self.0.as_ref()?.held_back
    }

    pub(super) fn hold_back(&mut self, ends: Option<Instant>) {
        if self.0.is_some() || ends.is_some() {
            self.contents_mut().held_back = ends;
            self.give_back();
        }
    }

    /// Releases a change that was held back until now.
    pub(super) fn let_on(&mut self, now: Instant) {
        if self.held_back().is_some_and(|ends| ends <= now) {
            self.hold_back(None);
        }
    }

    /// Notes whether removals wait while other names are added.
    pub(super) fn note_removals(&mut self, wait: bool, now: Instant) {
        if self.0.is_some() || wait {
            let contents = self.contents_mut();
            contents.removals = wait.then(|| contents.removals.unwrap_or(now));
            self.give_back();
        }
    }

    /// Whether removals have waited for this long.
    pub(super) fn removals_are_ripe(&self, bound: Duration, now: Instant) -> bool {
        let since = self.0.as_ref().and_then(|contents| contents.removals);
        since.is_some_and(|since| now >= since + bound)
    }

    /// The client asks for a name over the limit.
    pub(super) fn note_long(&mut self, name: Name) {
        let long = &mut self.contents_mut().long;
        if long.len() < LONG_MAX {
            long.push(name);
        }
    }

    /// Whether a name over the limit must be answered.
    pub(super) fn has_long(&self) -> bool {
        self.0.as_ref().is_some_and(|contents| !contents.long.is_empty())
    }

    /// Returns the names over the limit that must be answered now.
    pub(super) fn take_long(&mut self) -> Vec<Name> {
        let long = self
            .0
            .as_mut()
            .map_or_else(Vec::new, |contents| std::mem::take(&mut contents.long));
        self.give_back();
        long
    }
}
