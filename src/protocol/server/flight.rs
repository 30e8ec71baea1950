//! A response: on its way, settled, or refused.
//!
//! Owns what must be remembered of a response until the client has settled it. Refuses to build one.

use std::sync::Arc;
use std::time::Instant;

use super::nonce::Nonce;
use crate::xds::{Baselines, Batch, Dialect, TypeUrl, Version};

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
    /// Of a full state: the version of the set.
    pub(super) set: Option<Box<Version>>,
    pub(super) since: Option<Instant>,
    pub(super) sent: Instant,
}

impl Flight {
    /// How many entries it carries.
    pub(super) fn len(&self) -> usize {
        self.batch.items().len() + self.batch.removed().len()
    }

    /// Keeps of what is on its way no more than settling it takes.
    pub(super) fn lighten(&mut self, baselines: &Baselines) {
        self.batch = baselines.batch(&self.batch);
    }
}
