// SPDX-License-Identifier: Apache-2.0
//! Where types and resources stand at a client.
//!
//! Owns the words. Does not find out which one is true.

use crate::worded;

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
