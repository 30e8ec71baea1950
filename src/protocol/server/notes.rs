//! What few types of few streams need to remember.
//!
//! Owns its storage, so that it takes no memory where it is not needed. Does not know what follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use xds::{Batch, Errors, Name, Objection, Resource, ResourceError, State, TypeUrl, Version};

/// The notes on a type of a stream. Most types have none, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Notes(Option<Box<Written>>);

#[derive(Debug, Default)]
struct Written {
    /// The errors that the client was sent (B-31).
    errors: Errors,
    /// The last heartbeat that was passed on of each resource (K-17).
    beats: BTreeMap<Name, u32>,
    secrets: Secrets,
    full: Full,
    /// E-24: what the client, a relay, says that its own clients reject, if it has accepted no response since.
    relayed: Option<Arc<Objection>>,
    /// Since when removals wait while other names are added.
    removals: Option<Instant>,
    /// Until when changed endpoints wait for the routes of the same burst.
    endpoints: Option<Instant>,
    /// Names over the limit that must be answered (B-32).
    long: Vec<Name>,
    versions: Versions,
}

/// B-18: secrets in SotW.
#[derive(Debug, Default)]
struct Secrets {
    /// Each as the client last accepted it, where it has not accepted what was sent since.
    accepted: BTreeMap<Name, Arc<Resource>>,
    /// Whether the client has accepted a response that left out a secret which it asks for.
    omits: bool,
}

/// Full states.
#[derive(Debug, Default)]
struct Full {
    /// The version in the client's first request, until it has answered a response.
    brought: Option<Box<str>>,
    /// Why the client rejected the last one, if it has accepted none since.
    refused: Option<Arc<Objection>>,
    /// When that one is tried once more.
    again: Option<Again>,
}

/// The second try of a rejected full state.
#[derive(Clone, Debug)]
pub(super) enum Again {
    /// It is due then, unless something else is sent before.
    At(Instant, Arc<Batch>),
    Due(Arc<Batch>),
    /// The one with this id was tried once more.
    Tried(u64),
}

/// B-34, C-12: the versions that a client brought beside its names.
#[derive(Debug, Default)]
struct Versions {
    /// Those of a request, of what only the wildcard covers, until all of it was read.
    unread: Option<Box<State>>,
    /// How many are in the table that the ledger is relative to, until the client was sent all that differs.
    table: usize,
    /// How many are in rows that the client does not ask for; at the most, because rows go one by one.
    rows: usize,
}

impl Written {
    fn is_empty(&self) -> bool {
        let Self {
            errors,
            beats,
            secrets,
            full,
            relayed,
            removals,
            endpoints,
            long,
            versions,
        } = self;
        let secrets = secrets.accepted.is_empty() && !secrets.omits;
        let reasons = full.refused.is_none() && full.again.is_none() && relayed.is_none();
        let versions = versions.unread.is_none() && versions.table == 0 && versions.rows == 0;
        errors.is_empty()
            && beats.is_empty()
            && removals.is_none()
            && endpoints.is_none()
            && long.is_empty()
            && secrets
            && full.brought.is_none()
            && reasons
            && versions
    }
}

impl Notes {
    fn add(&mut self) -> &mut Written {
        self.0.get_or_insert_default()
    }

    /// Takes something away, if there is anything. Frees the storage if nothing is left in it.
    fn take<R: Default>(&mut self, take: impl FnOnce(&mut Written) -> R) -> R {
        let Some(written) = &mut self.0 else {
            return R::default();
        };
        let taken = take(written);
        if written.is_empty() {
            self.0 = None;
        }
        taken
    }

    /// Returns how many entries are kept.
    pub(super) fn len(&self) -> usize {
        let count = |written: &Written| written.errors.len() + written.beats.len() + written.secrets.accepted.len();
        self.0.as_deref().map_or(0, count)
    }

    /// The client has forgotten a name.
    pub(super) fn forget(&mut self, name: &Name) {
        self.take(|written| {
            written.errors.remove(name);
            written.beats.remove(name);
            written.secrets.accepted.remove(name);
        });
    }

    /// B-31: returns the error of a name that the client was sent.
    pub(super) fn error(&self, name: &Name) -> Option<&Arc<ResourceError>> {
        self.0.as_ref()?.errors.get(name)
    }

    pub(super) fn note_error(&mut self, name: Name, error: Arc<ResourceError>) {
        self.add().errors.insert(name, error);
    }

    pub(super) fn forget_error(&mut self, name: &Name) {
        self.take(|written| drop(written.errors.remove(name)));
    }

    /// K-17: returns the heartbeat of a resource that was passed on.
    pub(super) fn beat(&self, name: &Name) -> Option<u32> {
        self.0.as_ref()?.beats.get(name).copied()
    }

    /// Whether the client was sent anything with a time to live.
    pub(super) fn has_beats(&self) -> bool {
        self.0.as_ref().is_some_and(|written| !written.beats.is_empty())
    }

    /// Notes the heartbeat that was passed on; `None`: the resource has no time to live.
    pub(super) fn note_beat(&mut self, name: &Name, beat: Option<u32>) {
        match beat {
            Some(beat) => _ = self.add().beats.insert(name.clone(), beat),
            None => self.take(|written| _ = written.beats.remove(name)),
        }
    }

    /// B-18: returns a secret as the client last accepted it, if it has not accepted what was sent since.
    pub(super) fn accepted(&self, name: &Name) -> Option<&Arc<Resource>> {
        self.0.as_ref()?.secrets.accepted.get(name)
    }

    /// Another content of a secret is sent than this one, which the client has accepted.
    pub(super) fn note_accepted(&mut self, name: &Name, resource: &Arc<Resource>) {
        let accepted = &mut self.add().secrets.accepted;
        accepted.entry(name.clone()).or_insert_with(|| resource.clone());
    }

    pub(super) fn forget_accepted(&mut self, name: &Name) {
        self.take(|written| drop(written.secrets.accepted.remove(name)));
    }

    /// Whether the client has accepted a response that left out a secret which it asks for.
    pub(super) fn omits(&self) -> bool {
        self.0.as_ref().is_some_and(|written| written.secrets.omits)
    }

    pub(super) fn note_omission(&mut self) {
        self.add().secrets.omits = true;
    }

    /// Returns the version in the client's first request of a full state, until it has answered a response.
    pub(super) fn brought(&self) -> Option<&str> {
        self.0.as_ref()?.full.brought.as_deref()
    }

    pub(super) fn note_brought(&mut self, version: &str) {
        self.add().full.brought = Some(version.into());
    }

    pub(super) fn forget_brought(&mut self) {
        self.take(|written| written.full.brought = None);
    }

    /// Returns why the client rejected the last full state, if it has accepted none since.
    pub(super) fn refused(&self) -> Option<&Arc<Objection>> {
        self.0.as_ref()?.full.refused.as_ref()
    }

    pub(super) fn note_refused(&mut self, objection: Arc<Objection>) {
        self.add().full.refused = Some(objection);
    }

    pub(super) fn forget_refused(&mut self) {
        self.take(|written| (written.full.refused, written.full.again) = (None, None));
    }

    /// Returns when the last full state is tried once more, if that was rejected.
    pub(super) fn again(&self) -> Option<&Again> {
        self.0.as_ref()?.full.again.as_ref()
    }

    pub(super) fn note_again(&mut self, again: Again) {
        self.add().full.again = Some(again);
    }

    /// E-24: returns what the client, a relay, says that its own clients reject, if it has accepted no response since.
    pub(super) fn relayed(&self) -> Option<&Arc<Objection>> {
        self.0.as_ref()?.relayed.as_ref()
    }

    pub(super) fn note_relayed(&mut self, objection: Arc<Objection>) {
        self.add().relayed = Some(objection);
    }

    pub(super) fn forget_relayed(&mut self) {
        self.take(|written| written.relayed = None);
    }

    /// Returns until when changed endpoints wait.
    pub(super) fn endpoints_wait_until(&self) -> Option<Instant> {
        self.0.as_ref()?.endpoints
    }

    /// Notes until when changed endpoints wait, if they do.
    pub(super) fn note_endpoints(&mut self, until: Option<Instant>) {
        match until {
            Some(_) => self.add().endpoints = until,
            None => self.take(|written| written.endpoints = None),
        }
    }

    /// Returns since when removals wait while other names are added.
    pub(super) fn removals_wait_since(&self) -> Option<Instant> {
        self.0.as_ref()?.removals
    }

    /// Notes whether removals wait while other names are added.
    pub(super) fn note_removals(&mut self, wait: bool, now: Instant) {
        if wait {
            self.add().removals.get_or_insert(now);
        } else {
            self.take(|written| written.removals = None);
        }
    }

    /// B-32: names over the limit that must be answered.
    pub(super) fn long(&self) -> &[Name] {
        self.0.as_ref().map_or(&[], |written| &written.long)
    }

    pub(super) fn note_long(&mut self, name: Name) {
        self.add().long.push(name);
    }

    pub(super) fn take_long(&mut self) -> Vec<Name> {
        self.take(|written| std::mem::take(&mut written.long))
    }

    /// C-12: the client holds this version of what only its wildcard covers.
    pub(super) fn note_version(&mut self, name: Name, version: Version, type_url: &TypeUrl) {
        let unread = &mut self.add().versions.unread;
        let unread = unread.get_or_insert_with(|| Box::new(State::new(type_url.clone())));
        unread.hold(name, version.into());
    }

    pub(super) fn take_versions(&mut self) -> Option<Box<State>> {
        self.take(|written| written.versions.unread.take())
    }

    /// A row is kept for a version.
    pub(super) fn note_version_row(&mut self) {
        self.add().versions.rows += 1;
    }

    /// A table of so many versions is kept.
    pub(super) fn note_version_table(&mut self, len: usize) {
        self.add().versions.table = len;
    }

    /// The client was sent all of the state, so it differs from no table.
    pub(super) fn forget_version_table(&mut self) {
        self.take(|written| written.versions.table = 0);
    }

    /// What was relative to the table is in so many rows from now on.
    pub(super) fn note_table_as_rows(&mut self, rows: usize) {
        self.take(|written| {
            let table = std::mem::replace(&mut written.versions.table, 0);
            written.versions.rows += table.min(rows);
        });
    }

    /// B-34: returns how many versions are kept, those in rows left out.
    pub(super) fn versions(&self) -> usize {
        let versions = self.0.as_ref().map(|written| &written.versions);
        let unread = |versions: &Versions| versions.unread.as_ref().map_or(0, |table| table.entries().len());
        versions.map_or(0, |versions| unread(versions) + versions.table)
    }

    /// Returns in how many rows versions may be kept.
    pub(super) fn version_rows(&self) -> usize {
        self.0.as_ref().map_or(0, |written| written.versions.rows)
    }
}
