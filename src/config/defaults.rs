//! Limits, timers, and the default of every setting. It owns the numbers; who enforces them stands elsewhere.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::Address;

pub(super) const LISTENER: Address = Address::Socket(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 15010));
pub(super) const ADMIN: Address = Address::Socket(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901));
pub(super) const CHUNK: usize = 2 * MIB;
pub(super) const TRANSPORT_V2: bool = true;
pub(super) const ANONYMOUS: bool = false;
pub(super) const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(30);

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// What a peer may cost. 0 is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Streams that one connection has open.
    pub streams_per_connection: usize,
    /// Resource types that one stream subscribes.
    pub types_per_stream: usize,
    /// Names that one stream subscribes, over all types.
    pub names_per_stream: usize,
    /// Bytes of one resource name.
    pub name_bytes: usize,
    /// Bytes of a client's encoded node.
    pub node_bytes: usize,
    /// Bytes of one decoded request of a client.
    pub request: usize,
    /// Bytes of one decoded message of a control plane.
    pub upstream_message: usize,
    /// Requests that one stream sends in a second.
    pub requests_per_second: usize,
    /// TLS handshakes of a listener that are worked on at the same time; the others wait.
    pub handshakes: usize,
    /// Views, since clients choose the values that `classes` separates by.
    pub views: usize,
    /// Names that one view asks the control plane for.
    pub names_per_view: usize,
    /// Bytes of outdated bodies that slow clients hold in one view.
    pub pinned_bytes_per_view: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams_per_connection: 4096,
            types_per_stream: 64,
            names_per_stream: 200_000,
            name_bytes: 4096,
            node_bytes: 64 * KIB,
            request: 16 * MIB,
            upstream_message: 64 * MIB,
            requests_per_second: 1000,
            handshakes: 64,
            views: 256,
            names_per_view: 1_000_000,
            pinned_bytes_per_view: 256 * MIB,
        }
    }
}

/// How long things wait. Zero is off: what would be waited for is not, and what would end does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timers {
    /// K-01: how long a name that nobody wants any more stays subscribed.
    pub linger: Duration,
    /// E-08: when a name that the control plane does not answer counts as not existing.
    pub does_not_exist: Duration,
    /// How long a client's request waits for the control plane before it counts as unanswered.
    pub unanswered: Duration,
    /// How long a delta control plane must be silent before its first wildcard answer counts as complete.
    pub wildcard_quiet: Duration,
    /// How long listeners and routes wait for the clusters and endpoints that they need.
    pub order_gate: Duration,
    /// When a client that takes no bytes loses its stream.
    pub write_stall: Duration,
    /// How often an idle connection is tested.
    pub keepalive: Duration,
    /// How old a connection becomes before its client is sent elsewhere, so that clients spread over new relays.
    pub stream_age: Duration,
    /// By how many percent that is more or less.
    pub stream_age_jitter: u8,
    /// H-04: how long a client that polls waits for news; its own time-out must be longer.
    pub rest_poll: Duration,
    /// H-07: how often a control plane is polled that is asked over REST.
    pub rest_interval: Duration,
    /// E-14: the longest pause between two attempts to open a stream to a control plane, before it is spread.
    pub reconnect_max: Duration,
    /// How long everybody is still served after the relay has said that it is not ready any more.
    pub drain_announce: Duration,
    /// Within which time clients leave after that.
    pub drain: Duration,
    /// The least time between two responses of one type to one client; never delays a first answer.
    pub pace: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            linger: Duration::from_secs(30),
            does_not_exist: Duration::from_secs(15),
            unanswered: Duration::from_secs(8),
            wildcard_quiet: Duration::from_millis(250),
            order_gate: Duration::from_secs(2),
            write_stall: Duration::from_secs(60),
            keepalive: Duration::from_secs(30),
            stream_age: Duration::from_secs(30 * 60),
            stream_age_jitter: 20,
            rest_poll: Duration::from_millis(800),
            rest_interval: Duration::from_secs(5),
            reconnect_max: Duration::from_secs(30),
            drain_announce: Duration::from_secs(5),
            drain: Duration::from_secs(20),
            pace: Duration::ZERO,
        }
    }
}
