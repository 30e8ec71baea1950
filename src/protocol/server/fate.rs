//! What ends a stream, if that is not its client.
//!
//! Owns plain values. Does not know when a stream ends.

use std::time::Instant;

use crate::end::End;

/// What ends a stream, if that is not its client.
#[derive(Debug)]
pub(super) enum Fate {
    /// It ends now.
    Ends(End),
    /// It is a client of gRPC, which may have another server.
    Loses(Loss),
}

/// A stream of a gRPC client while a server that it reads is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) since: Instant,
    /// When to look again.
    pub(super) until: Instant,
    /// Whether the stream ends then, unless something changes. Otherwise it was sent nothing yet, and is read until then before it
    /// is answered.
    pub(super) ends: bool,
}
