//! What few types of few streams need to remember.
//!
//! Owns its storage, so that it takes no memory where it is not needed. Does not know what follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use xds::{Errors, Name, Objection, Resource, State, Version};

/// The rare state of a type on a stream. Most types have none, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Rare(Option<Box<Rarities>>);

/// What it is.
#[derive(Clone, Debug)]
pub(super) struct Rarities {
    /// The errors that the client was sent (B-31).
    pub(super) errors: Errors,
    /// The last heartbeat that was passed on of each resource (K-17).
    pub(super) beats: BTreeMap<Name, u32>,
    /// Secrets as the client last accepted them, where it has not accepted what was sent since (B-18).
    pub(super) accepted: BTreeMap<Name, Arc<Resource>>,
    /// Whether the client has accepted a response that left out a secret which it asks for.
    pub(super) omits: bool,
    /// Full state: the version in the client's first request, until it has answered a response.
    pub(super) brought: Option<Box<str>>,
    /// Full state: why the client rejected the last one, if it has accepted none since.
    pub(super) refused: Option<Arc<Objection>>,
    /// Since when removals wait while other names are added.
    pub(super) removals: Option<Instant>,
    /// Names over the limit that must be answered (B-32).
    pub(super) long: Vec<Name>,
    /// The versions that a request brings, of what only the wildcard covers, until all of it was read (C-12).
    pub(super) brings: BTreeMap<Name, Version>,
    /// Those of earlier slices of the request.
    pub(super) gathered: Option<Box<State>>,
    /// How many versions the client brought that are kept for it alone.
    pub(super) held: Held,
}

/// B-34: how many versions that a client brought beside its names, by where they are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// In the table that the ledger is relative to, until the client was sent all that differs.
    pub(super) table: usize,
    /// In rows that the client does not ask for; at the most, because rows go one by one.
    pub(super) rows: usize,
}

static NOTHING: Rarities = Rarities {
    errors: Errors::new(),
    beats: BTreeMap::new(),
    accepted: BTreeMap::new(),
    omits: false,
    brought: None,
    refused: None,
    removals: None,
    long: Vec::new(),
    brings: BTreeMap::new(),
    gathered: None,
    held: Held { table: 0, rows: 0 },
};

impl Held {
    /// What was relative to the table is in so many rows from now on.
    pub(super) const fn met(&mut self, rows: usize) {
        let table = std::mem::replace(&mut self.table, 0);
        self.rows += if table < rows { table } else { rows };
    }
}

impl Rarities {
    fn is_empty(&self) -> bool {
        let lists = self.errors.is_empty() && self.beats.is_empty() && self.accepted.is_empty() && self.long.is_empty();
        let versions = self.brings.is_empty() && self.gathered.is_none() && self.held == Held::default();
        lists && self.removals.is_none() && versions && self.brought.is_none() && self.refused.is_none() && !self.omits
    }

    /// Returns how many versions were read of a request that was not read to its end.
    pub(super) fn gathers(&self) -> usize {
        self.brings.len() + self.gathered.as_ref().map_or(0, |gathered| gathered.entries().len())
    }

    /// Returns how many entries are kept.
    pub(super) fn len(&self) -> usize {
        self.errors.len() + self.beats.len() + self.accepted.len()
    }
}

impl Rare {
    pub(super) fn get(&self) -> &Rarities {
        self.0.as_deref().unwrap_or(&NOTHING)
    }

    /// Adds something.
    pub(super) fn note<R>(&mut self, add: impl FnOnce(&mut Rarities) -> R) -> R {
        add(self.0.get_or_insert_with(|| Box::new(NOTHING.clone())))
    }

    /// Takes something away, if there is anything. Frees the storage if nothing is left in it.
    pub(super) fn forget<R>(&mut self, take: impl FnOnce(&mut Rarities) -> R) -> Option<R> {
        let taken = take(self.0.as_mut()?);
        self.0.take_if(|rare| rare.is_empty());
        Some(taken)
    }
}
