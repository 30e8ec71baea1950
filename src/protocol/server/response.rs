//! What passes between a client stream and its transport.
//!
//! Owns plain values: a response, and what a request was. Does not build or judge them.

use std::sync::Arc;
use std::time::Instant;

use super::name_faults::NameFaults;
use super::nonce::Nonce;
use xds::{Batch, Dialect, TypeUrl, Version};

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
        /// What was rejected: the first names with their versions, and how many more there are.
        response: String,
        /// The client's error message.
        message: String,
        /// How many resources are held back from now on because the client has rejected too many tries in a row.
        given_up: usize,
    },
    /// The nonce is not that of a response on its way.
    Stale,
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
}
