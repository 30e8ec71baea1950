// SPDX-License-Identifier: Apache-2.0
//! Tests over real sockets: what clients see on the wire.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod access;
mod admin_rules;
mod admission;
mod bad_input;
mod calls;
mod classes;
mod cork;
mod hostile;
mod identity;
mod jwks;
mod laggards;
mod lifetimes;
mod lockout;
mod matrix;
mod memory;
mod moves;
mod neighbours;
mod overload;
mod rejected;
mod rest;
mod returns;
mod services;
mod support;
mod tls;
mod tokens;
mod turns;
mod unix_sockets;
mod window;
