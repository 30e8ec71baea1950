// SPDX-License-Identifier: Apache-2.0
//! The relay's peers in tests: control planes and clients, and what they say.
//!
//! Three parts have no I/O: [`request`] is what a client says (the load tool uses it as well), [`session`] a stream of a control plane as a
//! machine, and [`state`] one with content. The others play on sockets: [`plane`], which does what a test tells it, [`server`], which has
//! a state, and [`client`]. Refuses to know the relay: it is on the other side.

#![expect(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and its words are names"
)]

pub mod agent;
pub mod asked;
pub mod client;
pub mod folder;
pub mod messages;
pub mod names;
pub mod plane;
pub mod process;
pub mod request;
pub mod secured;
pub mod server;
pub mod session;
pub mod state;
pub mod stream;
pub mod subscriber;
pub mod subscription;

use std::time::{Duration, Instant};

use xds::Dialect;

/// How long a test waits for anything before it fails.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// The path of the stream of all types.
#[must_use]
pub const fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
        Dialect::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    }
}

/// Waits for a future, but fails after a time limit.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not happen within {PATIENCE:?}"),
    }
}

/// Looks until something is there.
pub async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < end, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The time now.
#[expect(clippy::disallowed_methods, reason = "tests measure real time")]
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Runs something beside the test.
#[expect(clippy::disallowed_methods, reason = "a test runs both sides")]
pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    tokio::spawn(task)
}
