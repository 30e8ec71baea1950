//! A response: on its way, settled, or refused.
//!
//! Owns what must be remembered of a response until the client has settled it, and after it refused it. Refuses to build one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::nonce::Nonce;
use crate::xds::{Baselines, Batch, Dialect, Name, Resource, TypeUrl, Version};

/// A response as the transport must write it.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its dialect.
    pub dialect: Dialect,
    /// Its nonce.
    pub nonce: Nonce,
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
    pub(super) set: Option<Box<Version>>,
    pub(super) since: Option<Instant>,
    pub(super) sent: Instant,
}

impl Flight {
    /// How many entries it carries.
    pub(super) fn len(&self) -> usize {
        self.batch.items_of(self.chunk).len() + self.batch.removed_of(self.chunk).len()
    }

    /// Keeps of what is on its way no more than settling it takes.
    pub(super) fn lighten(&mut self, baselines: &Baselines) {
        self.batch = baselines.batch(&self.batch);
    }
}

/// A response that the client refused. Its members are not sent again until one of them changes or goes (B-22, M-02).
///
/// K-21: it keeps names and versions, not the response: as every name is in one refused response at the most, refusals cost no
/// more than what is wanted.
#[derive(Debug)]
pub(super) struct Parked {
    /// By canonical name. Members that were sent again since, or are not wanted any more, are dropped.
    members: BTreeMap<Name, Member>,
}

#[derive(Debug)]
struct Member {
    /// What was refused; none is a removal.
    version: Option<Version>,
    aliases: Box<[Name]>,
}

impl Parked {
    pub(super) const fn new() -> Self {
        Self {
            members: BTreeMap::new(),
        }
    }

    /// What was refused under this canonical name: a resource, or its removal.
    pub(super) fn add(&mut self, name: &Name, resource: Option<&Resource>) {
        let member = Member {
            version: resource.map(Resource::version),
            aliases: resource.map_or_else(Box::default, |resource| resource.aliases().into()),
        };
        self.members.insert(name.clone(), member);
    }

    /// The version that was refused under this canonical name; the inner `None` is a removal.
    pub(super) fn refused(&self, name: &Name) -> Option<Option<Version>> {
        self.members.get(name).map(|member| member.version)
    }

    /// The other names of what was refused under this canonical name.
    pub(super) fn aliases(&self, name: &Name) -> Option<&[Name]> {
        self.members.get(name).map(|member| &*member.aliases)
    }

    pub(super) fn let_go(&mut self, name: &Name) {
        self.members.remove(name);
    }

    /// Whether no member is left.
    pub(super) fn spent(&self) -> bool {
        self.members.is_empty()
    }

    /// How many members are left.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// All members that are left, each with the other names that it answers to.
    pub(super) fn members(&self) -> impl Iterator<Item = (&Name, &[Name])> {
        self.members.iter().map(|(name, member)| (name, &*member.aliases))
    }
}
