// SPDX-License-Identifier: Apache-2.0
//! Where types and resources stand at a client.
//!
//! Owns the words, and the form in which a stream tells them. Does not find out what is true.

use std::sync::Arc;
use std::time::Instant;

use crate::{Name, Objection, Resource, TypeUrl, Version, worded};

worded! {
/// Where a type stands at a client, in the words of CSDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing was sent.
    NotSent = "NOT_SENT",
    /// The client has accepted the last response.
    Synced = "SYNCED",
    /// A response is on its way.
    Stale = "STALE",
    /// The client has rejected what it was sent.
    Error = "ERROR",
}
}

worded! {
/// Where a resource stands at a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The client has accepted what is current.
    Accepted = "accepted",
    /// What is current is on its way, or the client has not answered yet.
    Sent = "sent",
    /// The client holds something older, or it is not known what; what is current will be sent.
    Outdated = "outdated",
    /// The client holds nothing of it; it will be sent.
    NotSent = "not_sent",
    /// The client has rejected what is current.
    Rejected = "rejected",
    /// The client has rejected what is current, held nothing, and was sent older content.
    Older = "older",
    /// The server has not said anything about it yet.
    Unknown = "unknown",
    /// The server did not answer in time.
    TimedOut = "timed_out",
    /// It does not exist, and the client holds nothing of it.
    Missing = "missing",
    /// It does not exist any more, and the client may still hold it.
    Leaving = "leaving",
}
}

impl Standing {
    /// Whether the client has rejected what is current.
    #[must_use]
    pub const fn rejects(self) -> bool {
        matches!(self, Self::Rejected | Self::Older)
    }

    /// Whether nothing more will happen unless something changes, and the client has all that there is.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Accepted | Self::Missing)
    }
}

/// How much a stream says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Each type in one line.
    Types,
    /// Each resource.
    Resources,
    /// This resource of a type.
    Resource(TypeUrl, Name),
}

/// One type of a stream.
#[derive(Clone, Debug)]
pub struct ClientType {
    /// The type.
    pub type_url: TypeUrl,
    /// How it stands as a whole.
    pub status: Status,
    /// Whether the client asks for everything.
    pub wildcard: bool,
    /// How many names it asks for.
    pub names: usize,
    /// When the last response was sent.
    pub sent: Option<Instant>,
    /// When the client last accepted a response.
    pub accepted: Option<Instant>,
    /// Since when a response has not been answered.
    pub unanswered_since: Option<Instant>,
    /// Since when the client waits for something that nobody has answered.
    pub waiting_since: Option<Instant>,
    /// The number of the server that the wildcard and names without an authority are read from.
    pub server: Option<usize>,
    /// Why the client rejects what it has rejected and not accepted since.
    pub objections: Vec<Arc<Objection>>,
    /// What it rejects of what the server says now: some of that.
    pub rejected: Vec<ClientResource>,
    /// The resources that were asked about.
    pub resources: Vec<ClientResource>,
    /// Whether the client has accepted everything that it asked for; known if all resources were asked about.
    pub ready: Option<bool>,
}

/// One resource at a client.
#[derive(Clone, Debug)]
pub struct ClientResource {
    /// The name by which the client asked for it.
    pub name: Name,
    /// Where it stands.
    pub standing: Standing,
    /// What the server says now.
    pub resource: Option<Arc<Resource>>,
    /// Why the client has rejected it.
    pub objection: Option<Objection>,
    /// Since when it rejects that.
    pub since: Option<Instant>,
    /// The version of the older content that it was sent in its place.
    pub older: Option<Version>,
}

impl Depth {
    /// The only type that is looked at; `None`: all types are.
    pub const fn type_url(&self) -> Option<&TypeUrl> {
        match self {
            Self::Types | Self::Resources => None,
            Self::Resource(type_url, _) => Some(type_url),
        }
    }
}
