// SPDX-License-Identifier: Apache-2.0
//! Clients: their connections, streams and calls.
//!
//! Owns the way from an accepted socket to the machine of each stream and back. A connection is one task, in which the transport
//! and all of its calls have their turns. Knows nothing of control planes: subscriptions and content go through the cache.
//!
//! Each module knows only those after it: `serve` accepts connections; `connection` is one socket with HTTP on it; `call` is one
//! request and its service; `stream` is a discovery stream, and `rest` a poll.

mod admission;
mod alarm;
mod bearer;
mod body;
mod burden;
mod call;
mod connection;
mod entrance;
mod full;
mod handshakes;
mod lockout;
mod log;
mod overload;
mod portion;
mod questions;
mod request_body;
mod rest;
mod returns;
mod serve;
mod services;
mod settings;
mod shared;
mod stall;
mod stream;

pub use admission::{Admission, Used};
pub use bearer::TokenLog;
pub use entrance::Entrance;
pub use handshakes::Handshakes;
pub use overload::Action;
pub use returns::Returns;
pub use serve::serve;
pub use services::methods;
pub use settings::{AdmissionLimits, ConnectionLimits, ConnectionSettings, ConnectionTimers};
pub use shared::Shared;
pub use stream::{Rung, Seats};
