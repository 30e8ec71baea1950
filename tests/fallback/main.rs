// SPDX-License-Identifier: Apache-2.0
//! Failover as one session sees it: the pure choice, and stories of a session at the views of several servers.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must stop"
)]

mod choice;
mod reasons;
mod stage;
mod stories;
mod wakes;
