// SPDX-License-Identifier: Apache-2.0
//! What passes between a client stream and its transport.
//!
//! Owns plain values: a response, and what a request was. Does not build or judge them.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::name_faults::NameFaults;
use super::nonce::Nonce;
use xds::{Batch, Dialect, Name, Objection, Stance, TypeUrl, Version};

/// A response for the transport to encode.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its dialect.
    pub dialect: Dialect,
    /// Its nonce.
    pub nonce: Nonce,
    /// The version of what it lists (K-09). Delta: only for people who debug.
    pub version: Version,
    /// Its resources and removals.
    pub batch: Arc<Batch>,
    /// When the oldest content in it that is new to the client was received from upstream, if it has any.
    pub since: Option<Instant>,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The request's type.
    pub type_url: TypeUrl,
    /// The kind of the request.
    pub kind: ReceiptKind,
    /// What was wrong with single names.
    pub faults: NameFaults,
}

/// The kind of a request (B-05).
#[derive(Clone, Debug)]
pub enum ReceiptKind {
    /// The first request of its type on the stream.
    First,
    /// A change of the subscription, or nothing new.
    Update,
    /// The client accepted a response. Has what was new to it, if anything was.
    Ack(Option<Changed>),
    /// The client rejected a response.
    Nack {
        /// What was rejected.
        response: RejectedResponse,
        /// Why, in the client's words.
        objection: Arc<Objection>,
        /// How many resources are held back from now on because the client has rejected too many tries in a row.
        given_up: usize,
    },
    /// The nonce is not that of a response on its way.
    Stale,
}

/// A rejected response, to be shown: its first names with their versions, removed names with a minus, and how many more there are. `None`:
/// the client, a relay, holds it itself, and its clients reject it.
#[derive(Clone, Debug)]
pub struct RejectedResponse(pub(super) Option<Arc<Batch>>);

/// How many names of a rejected response are shown, and how much of each.
const SHOWN_MAX: usize = 5;
const SHOWN_CHARS_MAX: usize = 200;

impl fmt::Display for RejectedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(batch) = &self.0 else {
            return f.write_str("what it holds itself");
        };
        let items = batch.items().iter();
        let items = items.map(|item| (item.name(), Some(item.resource.version())));
        let removed = batch.removed().iter().map(|name| (name, None));
        for (nth, (name, version)) in items.chain(removed).take(SHOWN_MAX).enumerate() {
            let name: String = name.as_str().chars().take(SHOWN_CHARS_MAX).collect();
            let comma = if nth > 0 { ", " } else { "" };
            match version {
                Some(version) => write!(f, "{comma}{name}@{version}")?,
                None => write!(f, "{comma}-{name}")?,
            }
        }
        let all = batch.items().len() + batch.removed().len();
        match all.checked_sub(SHOWN_MAX) {
            Some(more @ 1..) => write!(f, " and {more} more"),
            Some(0) | None => Ok(()),
        }
    }
}

/// What a view must be told of what a client rejects.
#[derive(Clone, Debug)]
pub struct Told {
    /// The type.
    pub type_url: TypeUrl,
    /// The name; `None`: the client is a relay, and says in words what its own clients reject.
    pub name: Option<Name>,
    /// Where the client stands; `None`: it rejects nothing of it any more.
    pub stance: Option<Stance>,
    /// Whether older content is wanted: the client holds nothing of the name.
    pub asks: bool,
}

/// What changed at a client with a response: content that is new to it.
#[derive(Clone, Debug)]
pub struct Changed {
    /// When the oldest of it was received from upstream.
    pub since: Instant,
    /// When the newest content in the response was received.
    pub until: Instant,
    /// Whether the oldest of it came after the client had asked, was answered, or had rejected something: then nothing but its delivery
    /// has taken the time since it came.
    pub news: bool,
    /// Whether the client had rejected anything of the type before, and accepted nothing of that name since.
    pub mends: bool,
}
