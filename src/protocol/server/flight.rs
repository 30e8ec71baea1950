//! A response: on its way, settled, or refused.
//!
//! Owns what must be remembered of a response until the client has settled it, and after it refused it. Refuses to build one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use crate::xds::{Batch, Dialect, Name, TypeUrl, Version};

/// A response as the transport must write it.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its dialect.
    pub dialect: Dialect,
    /// Its nonce.
    pub nonce: String,
    /// SotW: the version of the set that it leaves the client with. Delta: for people who debug.
    pub version: Version,
    /// What it carries.
    pub batch: Arc<Batch>,
    /// Which part of it.
    pub chunk: usize,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The request's type.
    pub type_url: TypeUrl,
    /// How it was understood.
    pub kind: ReceiptKind,
}

/// How a request was understood (B-05).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptKind {
    /// The first of its type on the stream.
    First,
    /// A change of the subscription, or nothing new.
    Update,
    /// The client accepted a response.
    Ack {
        /// When the oldest change in it was received from upstream, where it held a change.
        since: Option<Instant>,
    },
    /// The client rejected a response.
    Nack {
        /// Why, in the client's words.
        message: String,
    },
    /// Its nonce names no response that is on its way.
    Stale,
}

/// A response that was sent and not yet settled.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) nonce: u64,
    pub(super) batch: Arc<Batch>,
    pub(super) chunk: usize,
    /// Of a full state: the version of the set.
    pub(super) set: Option<Version>,
    pub(super) since: Option<Instant>,
    pub(super) sent: Instant,
}

/// A response that the client refused. Its members are not sent again until one of them changes or goes (B-22, M-02).
#[derive(Debug)]
pub(super) struct Parked {
    batch: Arc<Batch>,
    chunk: usize,
    /// Members that were sent again since, or are not wanted any more.
    gone: BTreeSet<Name>,
}

impl Parked {
    pub(super) const fn new(flight_batch: Arc<Batch>, chunk: usize, gone: BTreeSet<Name>) -> Self {
        Self {
            batch: flight_batch,
            chunk,
            gone,
        }
    }

    /// The version that was refused under this canonical name; the inner `None` is a removal.
    pub(super) fn refused(&self, name: &Name) -> Option<Option<Version>> {
        if self.gone.contains(name) {
            return None;
        }
        let items = self.batch.items_of(self.chunk);
        if let Ok(at) = items.binary_search_by(|item| item.resource.name().cmp(name)) {
            return items.get(at).map(|item| Some(item.resource.version()));
        }
        self.batch.removed_of(self.chunk).binary_search(name).ok().map(|_| None)
    }

    pub(super) fn let_go(&mut self, name: &Name) {
        if self.refused(name).is_some() {
            self.gone.insert(name.clone());
        }
    }

    /// Whether no member is left.
    pub(super) fn spent(&self) -> bool {
        self.gone.len() == self.batch.items_of(self.chunk).len() + self.batch.removed_of(self.chunk).len()
    }

    /// All members that are left, each with the other names that it answers to.
    pub(super) fn members(&self) -> impl Iterator<Item = (&Name, &[Name])> {
        let items = self.batch.items_of(self.chunk).iter();
        let items = items.map(|item| (item.resource.name(), item.resource.aliases()));
        let removed = self
            .batch
            .removed_of(self.chunk)
            .iter()
            .map(|name| (name, [].as_slice()));
        items.chain(removed).filter(|(name, _)| !self.gone.contains(*name))
    }
}
