//! Limits, timers, and the default of every setting. Owns the numbers; other modules enforce them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::Address;
use crate::protocol::{StreamLimits, StreamTimers};

pub(super) const LISTENER: Address = Address::Socket(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 15010));
pub(super) const ADMIN: Address = Address::Socket(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901));
pub(super) const CHUNK: usize = 2 * MIB;
pub(super) const TRANSPORT_V2: bool = true;
pub(super) const CLOCK_SKEW: Duration = Duration::from_secs(30);
pub(super) const ANONYMOUS: bool = false;
pub(super) const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(30);

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The limits for peers and views. 0 means no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections of clients.
    pub connections: usize,
    /// Those of one identity, which is the address of the peer.
    pub connections_per_identity: usize,
    /// Open streams.
    pub streams: usize,
    /// Those of one identity.
    pub streams_per_identity: usize,
    /// Streams that begin in a second.
    pub new_streams_per_second: usize,
    /// Names that all streams together subscribe to; `None`: as many as `memory` allows.
    pub subscriptions: Option<usize>,
    /// Open streams of one connection.
    pub streams_per_connection: usize,
    /// Resource types that one stream subscribes to.
    pub types_per_stream: usize,
    /// Names that one stream subscribes to, over all types.
    pub names_per_stream: usize,
    /// Bytes of one resource name.
    pub name_bytes: usize,
    /// Bytes of the responses of one type that a delta client has not acknowledged.
    pub window_bytes: usize,
    /// Bytes of a client's encoded node.
    pub node_bytes: usize,
    /// Bytes of memory of the process.
    pub memory: MemoryLimit,
    /// Bytes of one decoded request of a client.
    pub request: usize,
    /// Bytes of one decoded message of a control plane.
    pub upstream_message: usize,
    /// Requests of one stream per second.
    pub requests_per_second: usize,
    /// Concurrent TLS handshakes of one listener; the others wait.
    pub handshakes: usize,
    /// Views; needed because clients choose the values by which `classes` separates them.
    pub views: usize,
    /// Names that one view asks the control plane for.
    pub names_per_view: usize,
    /// Bytes of outdated resource bodies that one view keeps for slow clients.
    pub pinned_bytes_per_view: usize,
    /// Bytes of replaced content that one view keeps to stand in for what is rejected.
    pub history_bytes: usize,
}

/// The limit of the memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// Four fifths of the nearest limit of the system: of the cgroup, of the process, or the memory of the machine.
    Auto,
    /// So many bytes; 0 means no limit.
    Bytes(usize),
}

impl Default for Limits {
    fn default() -> Self {
        let stream = StreamLimits::default();
        Self {
            connections: 0,
            connections_per_identity: 0,
            streams: 0,
            streams_per_identity: 0,
            new_streams_per_second: 0,
            subscriptions: None,
            streams_per_connection: 4096,
            types_per_stream: stream.types_per_stream,
            names_per_stream: stream.names_per_stream,
            name_bytes: stream.name_bytes,
            window_bytes: stream.window_bytes,
            node_bytes: 64 * KIB,
            memory: MemoryLimit::Auto,
            request: 16 * MIB,
            upstream_message: 64 * MIB,
            requests_per_second: 1000,
            handshakes: 64,
            views: 256,
            names_per_view: 1_000_000,
            pinned_bytes_per_view: 256 * MIB,
            history_bytes: 16 * MIB,
        }
    }
}

/// The timeouts and intervals. Zero turns one off: the relay does not wait, or does not end what would time out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timers {
    /// K-01: how long the relay stays subscribed to a name that no client wants any more.
    pub linger: Duration,
    /// E-08: when a name that the control plane does not answer counts as non-existent.
    pub does_not_exist: Duration,
    /// How long a client's request waits for the control plane before it counts as unanswered.
    pub unanswered: Duration,
    /// G-17: how long a session waits for a server that answers without all that it wants, before it moves to it.
    pub move_after: Duration,
    /// How long a delta control plane must be silent before its first wildcard answer counts as complete.
    pub wildcard_quiet: Duration,
    /// How long listeners and routes wait for the clusters and endpoints that they need.
    pub order_gate: Duration,
    /// D-03: how long a control plane must have sent no routes before what it removes is removed from clients.
    pub removal_quiet: Duration,
    /// When the relay closes the stream of a client that reads nothing.
    pub write_stall: Duration,
    /// How often an idle connection is tested.
    pub keepalive: Duration,
    /// The age at which a connection is closed, so that its client reconnects and clients spread over new relays.
    pub stream_age: Duration,
    /// By how many percent that age varies.
    pub stream_age_jitter: u8,
    /// H-04: how long a poll of a client waits for a change; the client's own timeout must be longer.
    pub rest_poll: Duration,
    /// H-07: how often a control plane with a REST URI is polled.
    pub rest_interval: Duration,
    /// E-14: the longest pause between two attempts to open a stream to a control plane, before jitter.
    pub reconnect_max: Duration,
    /// How long the relay still serves all clients after it has stopped being ready.
    pub drain_announce: Duration,
    /// The time over which it then disconnects the clients.
    pub drain: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        let stream = StreamTimers::default();
        Self {
            linger: Duration::from_secs(30),
            does_not_exist: Duration::from_secs(15),
            unanswered: stream.unanswered,
            move_after: stream.move_after,
            wildcard_quiet: Duration::from_millis(250),
            order_gate: stream.order_gate,
            removal_quiet: stream.removal_quiet,
            write_stall: Duration::from_secs(60),
            keepalive: Duration::from_secs(30),
            stream_age: Duration::from_secs(30 * 60),
            stream_age_jitter: 20,
            rest_poll: Duration::from_millis(800),
            rest_interval: Duration::from_secs(5),
            reconnect_max: Duration::from_secs(30),
            drain_announce: Duration::from_secs(5),
            drain: Duration::from_secs(20),
        }
    }
}
