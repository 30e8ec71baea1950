// SPDX-License-Identifier: Apache-2.0
//! Transcripts: what a client sends and what the relay answers, line by line, without a socket and in simulated time.
//!
//! One story runs through both dialects wherever both have it, so that no difference between them stays hidden. `story`
//! describes the language of the stories; every story ends with a check that nothing more is sent.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot go on must stop"
)]

mod absence;
mod access;
mod changes;
mod chunks;
mod client;
mod collections;
mod endpoints;
mod errors;
mod full_state;
mod life;
mod limits;
mod lost;
mod names;
mod naming;
mod older;
mod order;
mod origin;
mod poller;
mod polls;
mod rejecting;
mod resending;
mod secrets;
mod settling;
mod story;
mod text;
mod topic;
mod types;
mod views;
mod wildcards;
mod wire;
