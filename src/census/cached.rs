//! The states of a resource name, as gRPC calls them.
//!
//! Owns the words. Does not determine the state.

use crate::proto::envoy::admin::v3::ClientResourceStatus;

/// The state of a name (G-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cached {
    /// A client subscribes to it, and the server has not answered yet.
    Requested,
    /// The server says that it does not exist.
    DoesNotExist,
    /// The server has deleted it; the relay keeps it.
    DoesNotExistButCached,
    /// The resource was accepted.
    Acked,
    /// The resource was invalid.
    Nacked,
    /// The last resource was invalid; the relay keeps the one before.
    NackedButCached,
    /// The server sent an error for it.
    ReceivedError,
    /// The server sent an error for it; the relay keeps the resource from before.
    ReceivedErrorButCached,
    /// The server did not answer in time. This does not mean that the resource does not exist (G-14).
    Timeout,
}

impl Cached {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Requested,
        Self::DoesNotExist,
        Self::DoesNotExistButCached,
        Self::Acked,
        Self::Nacked,
        Self::NackedButCached,
        Self::ReceivedError,
        Self::ReceivedErrorButCached,
        Self::Timeout,
    ];

    /// Returns gRPC's name of the state.
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

    /// Returns the state in the words of Envoy's API, which has fewer.
    #[must_use]
    pub const fn status(self) -> ClientResourceStatus {
        match self {
            Self::Requested => ClientResourceStatus::Requested,
            Self::DoesNotExist | Self::DoesNotExistButCached => ClientResourceStatus::DoesNotExist,
            Self::Acked => ClientResourceStatus::Acked,
            Self::Nacked | Self::NackedButCached => ClientResourceStatus::Nacked,
            Self::ReceivedError | Self::ReceivedErrorButCached => ClientResourceStatus::ReceivedError,
            Self::Timeout => ClientResourceStatus::Timeout,
        }
    }
}
