//! Where types and resources stand at a client.
//!
//! Owns the words. Does not find out which one is true.

/// Where a type stands at a client, in the words of CSDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing was sent.
    NotSent,
    /// The client has accepted the last response.
    Synced,
    /// A response is on its way.
    Stale,
    /// The client has rejected what it was sent.
    Error,
}

/// Where a resource stands at a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The client has accepted what is current.
    Accepted,
    /// What is current is on its way, or the client has not answered yet.
    Sent,
    /// The client holds something older, or it is not known what; what is current will be sent.
    Outdated,
    /// The client holds nothing of it; it will be sent.
    NotSent,
    /// The client has rejected what is current.
    Rejected,
    /// The client has rejected what is current, held nothing, and was sent older content.
    Older,
    /// The server has not said anything about it yet.
    Unknown,
    /// The server did not answer in time.
    TimedOut,
    /// It does not exist, and the client holds nothing of it.
    Missing,
    /// It does not exist any more, and the client may still hold it.
    Leaving,
}

impl Status {
    /// Returns the word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotSent => "NOT_SENT",
            Self::Synced => "SYNCED",
            Self::Stale => "STALE",
            Self::Error => "ERROR",
        }
    }
}

impl Standing {
    /// Returns the word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Sent => "sent",
            Self::Outdated => "outdated",
            Self::NotSent => "not_sent",
            Self::Rejected => "rejected",
            Self::Older => "older",
            Self::Unknown => "unknown",
            Self::TimedOut => "timed_out",
            Self::Missing => "missing",
            Self::Leaving => "leaving",
        }
    }

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
