//! What the operator decided about connections and streams.
//!
//! Owns plain numbers. Refuses to know where they were written.

use std::sync::Arc;
use std::time::Duration;

use crate::protocol;

/// What holds for every client connection.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// What holds for what is said on its streams.
    pub protocol: Arc<protocol::StreamSettings>,
    /// Whether the services of the v2 transport are there.
    pub transport_v2: bool,
    /// Bounds on what a client may send.
    pub limits: ConnectionLimits,
    /// How long things may take.
    pub timers: ConnectionTimers,
}

/// Bounds on what a client may send.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Open streams on one connection.
    pub streams_per_connection: u32,
    /// Bytes of one request, also after decompression.
    pub request: usize,
    /// Bytes of a node.
    pub node_bytes: usize,
    /// Requests on one stream in a second; what is sent faster is read later. 0 is no bound.
    pub requests_per_second: u32,
}

/// How long things may take; `None` is for ever.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTimers {
    /// How long a client that takes no bytes keeps its stream.
    pub write_stall: Option<Duration>,
    /// How often a connection is asked whether anybody is there.
    pub keepalive: Option<Duration>,
    /// How old a connection becomes before its client is sent elsewhere, so that clients spread over all relays.
    pub stream_age: Option<Duration>,
    /// By how many percent that is more or less.
    pub stream_age_jitter: u8,
    /// How long a client that polls waits for news at most; zero: it is answered at once (H-04).
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
