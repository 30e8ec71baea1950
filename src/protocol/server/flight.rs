//! A response: on its way, acknowledged, or rejected.
//!
//! Owns what must be remembered of a response until the client has acknowledged or rejected it. Does not build responses.

use std::sync::Arc;
use std::time::Instant;

use super::nonce::Nonce;
use crate::xds::{Baselines, Batch, Dialect, TypeUrl, Version};

/// A response for the transport to encode.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its dialect.
    pub dialect: Dialect,
    /// Its nonce.
    pub nonce: Nonce,
    /// SotW: the version of the set that the client then holds. Delta: only for people who debug.
    pub version: Version,
    /// Its resources and removals.
    pub batch: Arc<Batch>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The request's type.
    pub type_url: TypeUrl,
    /// The kind of the request.
    pub kind: ReceiptKind,
}

/// The kind of a request (B-05).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptKind {
    /// The first request of its type on the stream.
    First,
    /// A change of the subscription, or nothing new.
    Update,
    /// The client accepted a response.
    Ack {
        /// When the oldest change in the response was received from upstream, if it had a change.
        since: Option<Instant>,
    },
    /// The client rejected a response.
    Nack {
        /// The client's error message.
        message: String,
    },
    /// The nonce is not that of a response on its way.
    Stale,
}

/// A response that was sent, and not acknowledged or rejected yet.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) nonce: u64,
    pub(super) batch: Arc<Batch>,
    /// Full state: the version of the set.
    pub(super) set: Option<Box<Version>>,
    pub(super) since: Option<Instant>,
    pub(super) sent: Instant,
}

impl Flight {
    /// Returns how many entries the response has.
    pub(super) fn len(&self) -> usize {
        self.batch.items().len() + self.batch.removed().len()
    }

    /// Drops everything that is not needed when the client answers.
    pub(super) fn lighten(&mut self, baselines: &mut Baselines) {
        self.batch = baselines.batch(&self.batch);
    }
}
