// SPDX-License-Identifier: Apache-2.0
//! The timeouts and intervals, one row each. Owns their numbers and what is said of them; other modules wait.

use std::time::Duration;

use super::reading::Shape;
use super::rows::section;
use crate::protocol::StreamTimers;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

section!(
/// The timeouts and intervals. Zero turns one off: the relay does not wait, or does not end what would time out.
#[derive(PartialEq, Eq)]
pub struct Timers {
    /// How long the relay stays subscribed to a name that no client wants any more; to a wildcard, until its stream ends.
    Next "linger" => linger: Duration = seconds(30);
    /// When a name that the control plane never answers counts as non-existent.
    Next "does_not_exist" => does_not_exist: Duration = seconds(15);
    /// How long a client waits for the control plane; well below the 15s of gRPC clients. Not 0.
    Next "unanswered" => unanswered: Duration = StreamTimers::default().unanswered,
        unless Duration::is_zero => "0 would make clients wait forever; write the longest wait, such as 8s";
    /// How long listeners and routes wait for the clusters and endpoints that they need.
    Next "order_gate" => order_gate: Duration = StreamTimers::default().order_gate;
    /// How long a removed cluster, listener or endpoint assignment waits for late routes, and for the next question of a gRPC client that was
    /// just answered; at most `order_gate`.
    Next "removal_quiet" => removal_quiet: Duration = StreamTimers::default().removal_quiet;
    /// How often an idle connection is tested; control planes: every 35s at most.
    Next "keepalive" => keepalive: Duration = seconds(30);
    /// When a connection is closed, once its client has settled every response, so that clients spread. It varies by 20 percent.
    Next "stream_age" => stream_age: Duration = seconds(30 * 60);
    /// How long a poll of a client waits for a change; below the client's own timeout, which is 1s in Envoy.
    Next "rest_poll" => rest_poll: Duration = Duration::from_millis(800);
    /// How often a control plane with a rest+http(s) URI is polled. Not 0.
    Next "rest_interval" => rest_interval: Duration = seconds(5),
        unless Duration::is_zero => "0 would poll without a pause; write the pause, such as 5s";
    /// The longest pause between two attempts to connect to a control plane: at most 5s while a client waits, 1s while clients read a lower
    /// server. At least 1s.
    Next "reconnect_max" => reconnect_max: Duration = seconds(30), unless |pause: &Duration| *pause < seconds(1) =>
        "the first pause is already 1s; write a longest pause of at least that, such as 30s";
    /// How long the relay still serves all clients after it has stopped being ready.
    Now "drain_announce" => drain_announce: Duration = seconds(5);
    /// The time over which it then disconnects the clients, one after the other.
    Now "drain" => drain: Duration = seconds(20);
});

impl Timers {
    /// Returns the keys with their values.
    pub fn cells(&self) -> Vec<(&'static str, String)> {
        <Self as Shape>::cells(self)
    }
}
