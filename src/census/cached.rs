// SPDX-License-Identifier: Apache-2.0
//! The states of a resource name, as gRPC calls them.
//!
//! Owns the words. Does not determine the state.

use crate::proto::envoy::admin::v3::ClientResourceStatus;
use crate::xds::worded;

worded! {
/// The state of a name (G-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cached {
    /// A client subscribes to it, and the server has not answered yet.
    Requested = "requested",
    /// The server says that it does not exist.
    DoesNotExist = "does_not_exist",
    /// The server has deleted it; the relay keeps it.
    DoesNotExistButCached = "does_not_exist_but_cached",
    /// The resource was accepted.
    Acked = "acked",
    /// The resource was invalid.
    Nacked = "nacked",
    /// The last resource was invalid; the relay keeps the one before.
    NackedButCached = "nacked_but_cached",
    /// The server sent an error for it.
    ReceivedError = "received_error",
    /// The server sent an error for it; the relay keeps the resource from before.
    ReceivedErrorButCached = "received_error_but_cached",
    /// The server did not answer in time. This does not mean that the resource does not exist (G-14).
    Timeout = "timeout",
}
}

impl Cached {
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
