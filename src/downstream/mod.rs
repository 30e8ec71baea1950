//! Clients: their connections, streams and calls.
//!
//! Owns the way from an accepted socket to the machine of each stream and back. A connection is one task, in which
//! the transport and all of its calls have their turns. Refuses to know control planes; what clients want and get passes through
//! the cache.
//!
//! Each room knows only those after it: `serve` accepts; `connection` is one socket with HTTP on it; `call` is one request
//! and which service it is for; `stream` is a discovery stream, `rest` a poll.

mod alarm;
mod body;
mod call;
mod connection;
mod handshakes;
mod log;
mod request_body;
mod rest;
mod serve;
mod services;
mod settings;
mod shared;
mod stall;
mod stream;

pub use handshakes::Handshakes;
pub use serve::serve;
pub use settings::{ConnectionLimits, ConnectionSettings, ConnectionTimers};
pub use shared::Shared;
pub use stream::{Rung, Seats};
