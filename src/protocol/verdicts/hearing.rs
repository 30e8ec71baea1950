//! What the clients of a view say of contents that some of them reject: who has accepted each, and who has rejected it.
//!
//! Owns how they are counted, by kind of client. Does not know how they are asked, and condemns nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use classes::{ClientKind, Node};
use xds::{Name, Objection, Standing, TypeUrl, Version};

/// As many kinds of clients of a view are told apart; the others are one.
const KINDS_MAX: usize = 64;
/// As many clients are told apart that reject the same.
const VOICES_MAX: usize = 64;
/// As many names are asked about at a time.
const NAMES_MAX: usize = 1024;

/// The answers to one question.
#[derive(Debug)]
pub struct Hearing {
    type_url: TypeUrl,
    names: BTreeSet<Name>,
    kinds: Vec<ClientKind>,
    /// One for each kind, and one for all others.
    tallies: Vec<Tally>,
    tenants: BTreeSet<u64>,
    /// Other kinds of which a client rejects something.
    found: Vec<ClientKind>,
}

/// What the clients of one kind say.
#[derive(Debug, Default)]
pub(super) struct Tally {
    since: Option<Instant>,
    contents: BTreeMap<(Name, Version), Counts>,
}

/// What they say of one content.
#[derive(Debug, Default)]
pub(super) struct Counts {
    accepted: usize,
    /// How many may still accept or reject it.
    pending: usize,
    rejected: usize,
    clients: BTreeSet<u64>,
    tenants: BTreeSet<u64>,
    objection: Option<Arc<Objection>>,
}

/// One client that answers.
#[derive(Clone, Copy, Debug)]
pub struct Witness<'a> {
    /// Who it says it is.
    pub node: &'a Node,
    /// What makes it another client than others: its node and its identity, as a hash.
    pub client: u64,
    /// Which tenant it belongs to, as a hash.
    pub tenant: u64,
    /// Since when it has been there.
    pub since: Instant,
    /// Whether it has accepted anything of the type.
    pub accepts: bool,
}

impl Hearing {
    /// Begins with the names that are asked about in any case, and with the kinds that have a place of their own.
    #[must_use]
    pub fn new(type_url: TypeUrl, names: BTreeSet<Name>, kinds: Vec<ClientKind>) -> Self {
        let tallies = (0..=kinds.len()).map(|_| Tally::default()).collect();
        Self {
            type_url,
            names,
            kinds,
            tallies,
            tenants: BTreeSet::new(),
            found: Vec::new(),
        }
    }

    /// The type.
    #[must_use]
    pub const fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// The kinds that have a place of their own.
    pub(super) fn kinds(&self) -> &[ClientKind] {
        &self.kinds
    }

    /// A client rejects content of this name: all clients are asked about it.
    pub fn ask(&mut self, node: &Node, name: &Name) {
        if !self.kinds.iter().any(|kind| kind.has(node)) && self.kinds.len() < KINDS_MAX {
            self.kinds.push(ClientKind::of(node));
            self.tallies.push(Tally::default());
        }
        self.ask_about(name);
    }

    /// All clients are asked about this name.
    pub fn ask_about(&mut self, name: &Name) {
        if self.names.len() < NAMES_MAX {
            self.names.insert(name.clone());
        }
    }

    /// The names that clients are asked about.
    #[must_use]
    pub const fn names(&self) -> &BTreeSet<Name> {
        &self.names
    }

    /// A client says where contents stand with it.
    pub fn hear<'a>(
        &mut self,
        witness: Witness<'_>,
        stands: impl Iterator<Item = (&'a Name, Version, Standing, Option<&'a Objection>)>,
    ) {
        if self.tenants.len() < VOICES_MAX {
            self.tenants.insert(witness.tenant);
        }
        let at = self.kinds.iter().position(|kind| kind.has(witness.node));
        let Some(tally) = self.tallies.get_mut(at.unwrap_or(self.kinds.len())) else {
            return;
        };
        if witness.accepts {
            tally.since = [tally.since, Some(witness.since)].into_iter().flatten().min();
        }
        let mut rejects = false;
        for (name, version, standing, objection) in stands {
            rejects |= standing == Standing::Rejected;
            let counts = tally.contents.entry((name.clone(), version)).or_default();
            match standing {
                Standing::Accepted => counts.accepted += 1,
                Standing::Sent | Standing::Outdated | Standing::NotSent => counts.pending += 1,
                Standing::Rejected => counts.reject(witness, objection),
                Standing::Unknown | Standing::TimedOut | Standing::Missing | Standing::Leaving => {}
            }
        }
        let is_new = at.is_none() && !self.found.iter().any(|kind| kind.has(witness.node));
        if rejects && is_new && self.kinds.len() + self.found.len() < KINDS_MAX {
            self.found.push(ClientKind::of(witness.node));
        }
    }

    /// Returns the same question once more if clients of other kinds reject something as well: what these say is counted apart then.
    #[must_use]
    pub fn again(&mut self) -> Option<Self> {
        let found = std::mem::take(&mut self.found);
        let kinds = || [self.kinds.as_slice(), &found].concat();
        (!found.is_empty()).then(|| Self::new(self.type_url.clone(), self.names.clone(), kinds()))
    }

    /// Returns the kinds with what their clients say; `None`: all others, which are one kind where there is no place for more.
    pub(super) fn of_kinds(&self) -> impl Iterator<Item = (Option<&ClientKind>, &Tally)> {
        let others = (self.kinds.len() >= KINDS_MAX).then_some(None);
        let kinds = self.kinds.iter().map(Some).chain(others);
        kinds.zip(&self.tallies)
    }

    /// Returns what the clients of a kind say of a content.
    pub(super) fn counts(&self, kind: Option<&ClientKind>, name: &Name, version: Version) -> Option<&Counts> {
        let (_, tally) = self.of_kinds().find(|(of, _)| *of == kind)?;
        tally.contents.get(&(name.clone(), version))
    }

    /// Returns how many reject a content: tenants, where several share the view, so that one of them cannot speak for the others.
    pub(super) fn voices(&self, counts: &Counts) -> usize {
        match self.tenants.len() {
            0 | 1 => counts.clients.len(),
            _ => counts.tenants.len(),
        }
    }
}

impl Tally {
    /// Since when the first client has been there that has accepted anything of the type.
    pub(super) const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Returns what they say of each content.
    pub(super) fn contents(&self) -> impl Iterator<Item = (&(Name, Version), &Counts)> {
        self.contents.iter()
    }
}

impl Counts {
    /// Whether anybody has accepted it.
    pub(super) const fn is_accepted(&self) -> bool {
        self.accepted > 0
    }

    /// Whether all who ask for it reject it.
    pub(super) const fn is_unanimous(&self) -> bool {
        self.rejected > 0 && self.pending == 0 && self.accepted == 0
    }

    /// Whether anybody may still accept or reject it.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// How many clients reject it.
    pub(super) const fn rejected(&self) -> usize {
        self.rejected
    }

    /// The words of one of them.
    pub(super) const fn objection(&self) -> Option<&Arc<Objection>> {
        self.objection.as_ref()
    }

    fn reject(&mut self, witness: Witness<'_>, objection: Option<&Objection>) {
        self.rejected += 1;
        if self.clients.len() < VOICES_MAX {
            self.clients.insert(witness.client);
        }
        if self.tenants.len() < VOICES_MAX {
            self.tenants.insert(witness.tenant);
        }
        if self.objection.is_none() {
            self.objection = objection.map(|objection| Arc::new(objection.clone()));
        }
    }

    /// How many ask for it.
    pub(super) const fn all(&self) -> usize {
        self.accepted + self.pending + self.rejected
    }
}
