// SPDX-License-Identifier: Apache-2.0
//! The operator's settings for connections and streams.
//!
//! Owns plain numbers. Does not know where they come from.

use std::sync::Arc;
use std::time::Duration;

use crate::protocol;

/// The settings of every client connection.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// The settings of its streams.
    pub protocol: Arc<protocol::StreamSettings>,
    /// Whether the services of the v2 transport are served.
    pub transport_v2: bool,
    /// Limits on what a client may send.
    pub limits: ConnectionLimits,
    /// How long things may take.
    pub timers: ConnectionTimers,
}

/// Limits on what a client may send.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Open streams on one connection.
    pub streams_per_connection: u32,
    /// Bytes of one request, also after decompression.
    pub request: usize,
    /// Bytes of a node.
    pub node_bytes: usize,
    /// Requests on one stream in a second; requests beyond that are read later. 0 means no limit.
    pub requests_per_second: u32,
}

/// How many connections, streams and subscriptions there may be; 0 means no limit. An identity is the address of a peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmissionLimits {
    /// Open connections.
    pub connections: usize,
    /// Open connections of one identity.
    pub connections_per_identity: usize,
    /// Open streams.
    pub streams: usize,
    /// Open streams of one identity.
    pub streams_per_identity: usize,
    /// Streams that begin in a second.
    pub new_streams_per_second: u32,
    /// Names that all streams together subscribe to.
    /// `None`: as many as the limit of memory allows.
    pub subscriptions: Option<usize>,
}

/// How long things may take; `None` means forever.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTimers {
    /// How long a client that does not read keeps its stream.
    pub write_stall: Option<Duration>,
    /// After which time of silence a client gets a ping.
    pub keepalive: Option<Duration>,
    /// The age at which a connection ends, so that clients spread over all relays.
    pub stream_age: Option<Duration>,
    /// By how many percent that age varies at random.
    pub stream_age_jitter: u8,
    /// How long a poll waits for changes at most; zero means that it is answered at once (H-04).
    pub rest_poll: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            streams_per_connection: 4096,
            request: 16 * 1024 * 1024,
            node_bytes: 64 * 1024,
            requests_per_second: 1000,
        }
    }
}

impl Default for ConnectionTimers {
    fn default() -> Self {
        Self {
            write_stall: Some(Duration::from_secs(60)),
            keepalive: Some(Duration::from_secs(30)),
            stream_age: Some(Duration::from_secs(30 * 60)),
            stream_age_jitter: 20,
            rest_poll: Duration::from_millis(800),
        }
    }
}
