//! What is known of a name, in gRPC's words.
//!
//! Owns the words. Refuses to find anything out.

/// What is known of a name (G-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cached {
    /// Somebody wants it, and nothing is known.
    Requested,
    /// It does not exist.
    DoesNotExist,
    /// The server has deleted it, and it is kept.
    DoesNotExistButCached,
    /// It exists.
    Acked,
    /// What came of it was not sound.
    Nacked,
    /// What came last was not sound; what came before is kept.
    NackedButCached,
    /// The server says that something is wrong with it.
    ReceivedError,
    /// The same; what came before is kept.
    ReceivedErrorButCached,
    /// The server did not say anything in its time, which says nothing of the name (G-14).
    Timeout,
}

impl Cached {
    /// The name that gRPC gives it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::DoesNotExist => "does_not_exist",
            Self::DoesNotExistButCached => "does_not_exist_but_cached",
            Self::Acked => "acked",
            Self::Nacked => "nacked",
            Self::NackedButCached => "nacked_but_cached",
            Self::ReceivedError => "received_error",
            Self::ReceivedErrorButCached => "received_error_but_cached",
            Self::Timeout => "timeout",
        }
    }
}
