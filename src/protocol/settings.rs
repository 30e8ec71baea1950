// SPDX-License-Identifier: Apache-2.0
//! The operator's settings for client streams.
//!
//! Owns plain values. Does not know where they were configured.

use std::sync::Arc;
use std::time::Duration;

use classes::Classes;
use xds::{Access, Types};

/// The settings that hold for every client stream of the relay.
#[derive(Clone, Debug)]
pub struct StreamSettings {
    /// The table of types.
    pub types: Types,
    /// Which parts of clients' nodes are kept and passed on to control planes.
    pub classes: Classes,
    /// S-01: what clients may have. Open streams get other rules by `handle_access`.
    pub access: Arc<Access>,
    /// Bounds on what one client may ask for.
    pub limits: StreamLimits,
    /// How long things may take.
    pub timers: StreamTimers,
    /// Whether a stream may begin without a node (B-01).
    pub anonymous: bool,
    /// The relay's own id, by which it recognizes itself in a chain of relays (K-25).
    pub relay_id: String,
}

/// Bounds on what one client may ask for; 0 means no bound.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// Types on one stream.
    pub types_per_stream: usize,
    /// Names on one stream, over all types.
    pub names_per_stream: usize,
    /// Bytes of one name.
    pub name_bytes: usize,
    /// Bytes of the responses of one type that are on their way in delta.
    pub window_bytes: usize,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct StreamTimers {
    /// How long one type waits for another.
    pub order_gate: Duration,
    /// How long a removal waits for the next step of a client that was just answered.
    pub removal_quiet: Duration,
    /// How long a request may stay without any answer (G-18).
    pub unanswered: Duration,
    /// How long a session waits for a server that answers without all that it wants, before it moves to it (G-17).
    pub move_after: Duration,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            types_per_stream: 64,
            names_per_stream: 200_000,
            name_bytes: 4096,
            window_bytes: 4 << 20,
        }
    }
}

impl Default for StreamTimers {
    fn default() -> Self {
        Self {
            order_gate: Duration::from_secs(2),
            removal_quiet: Duration::from_millis(100),
            unanswered: Duration::from_secs(8),
            move_after: Duration::from_secs(1),
        }
    }
}
