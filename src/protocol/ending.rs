// SPDX-License-Identifier: Apache-2.0
//! How a stream to a control plane ended.
//!
//! Owns what an ending means for the choice of the dialect. Knows nothing of connections and the message of a status.

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server ended it with this gRPC status; 0 is OK.
    Status(i32),
    /// The server or something on the way reset the stream, or the connection was lost.
    Broken,
}

/// What an ending before the first response means for the dialect (E-23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server does not speak the dialect.
    Clear,
    /// The server perhaps cannot answer just now.
    Passing,
    /// The ending is not about the dialect: the server does not accept this client.
    Denied,
}

impl Ending {
    /// gRPC's RESOURCE_EXHAUSTED: the server has no room for the stream.
    pub const RESOURCE_EXHAUSTED: Self = Self::Status(RESOURCE_EXHAUSTED);

    /// gRPC's UNIMPLEMENTED: the server does not know the method.
    pub const UNIMPLEMENTED: Self = Self::Status(UNIMPLEMENTED);

    /// Whether the requested types may be the reason; `answered`: the stream ended after a response. Before the first response,
    /// the reason is more likely the server: its capacity, its methods, or its permissions.
    #[must_use]
    pub const fn accuses(self, answered: bool) -> bool {
        match self {
            Self::Status(OK | UNAVAILABLE) | Self::Broken => false,
            Self::Status(
                CANCELLED | DEADLINE_EXCEEDED | PERMISSION_DENIED | RESOURCE_EXHAUSTED | UNIMPLEMENTED
                | UNAUTHENTICATED,
            ) => answered,
            Self::Status(_) => true,
        }
    }

    /// Whether the server is reachable and refuses this stream. `false` means nothing: the server may be down or may have closed
    /// normally.
    #[must_use]
    pub const fn refuses(self) -> bool {
        !matches!(
            self,
            Self::Broken | Self::Status(OK | CANCELLED | DEADLINE_EXCEEDED | UNAVAILABLE)
        )
    }

    /// Returns what the ending means for the dialect, if no response came before it.
    #[must_use]
    pub const fn refusal(self) -> Refusal {
        match self {
            Self::Status(OK | UNKNOWN | INVALID_ARGUMENT | UNIMPLEMENTED | INTERNAL) => Refusal::Clear,
            Self::Status(PERMISSION_DENIED | UNAUTHENTICATED) => Refusal::Denied,
            Self::Status(_) | Self::Broken => Refusal::Passing,
        }
    }
}

const OK: i32 = 0;
const CANCELLED: i32 = 1;
const UNKNOWN: i32 = 2;
const INVALID_ARGUMENT: i32 = 3;
const DEADLINE_EXCEEDED: i32 = 4;
const PERMISSION_DENIED: i32 = 7;
const RESOURCE_EXHAUSTED: i32 = 8;
const UNIMPLEMENTED: i32 = 12;
const INTERNAL: i32 = 13;
const UNAVAILABLE: i32 = 14;
const UNAUTHENTICATED: i32 = 16;
