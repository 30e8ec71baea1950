//! How a stream to a control plane ended.
//!
//! Owns what an ending says of the dialect. Refuses to know connections and the words of a status.

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server ended it with this gRPC status; 0 is OK.
    Status(i32),
    /// The server or something on the way reset it, or the connection was lost.
    Broken,
}

/// What an ending before the first response says of the dialect (E-23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server does not know the dialect.
    Clear,
    /// The server perhaps cannot answer just now.
    Passing,
    /// It is not about the dialect: the server does not accept who asks.
    Denied,
}

impl Ending {
    /// gRPC's RESOURCE_EXHAUSTED: the server has no room for the stream.
    pub const RESOURCE_EXHAUSTED: Self = Self::Status(RESOURCE_EXHAUSTED);

    /// gRPC's UNIMPLEMENTED: the server does not know the method.
    pub const UNIMPLEMENTED: Self = Self::Status(UNIMPLEMENTED);

    /// Whether it may be because of what was asked for, if `answered` after a response. Before one it is more likely about the server,
    /// its room, its methods, or who asks.
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

    /// Whether the server is there and does not want this stream; of others that says nothing.
    #[must_use]
    pub const fn refuses(self) -> bool {
        !matches!(
            self,
            Self::Broken | Self::Status(OK | CANCELLED | DEADLINE_EXCEEDED | UNAVAILABLE)
        )
    }

    /// What it says of the dialect, before the first response.
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
