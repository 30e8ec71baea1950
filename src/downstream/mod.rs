//! Clients: their connections, streams and calls.
//!
//! Owns the way from an accepted socket to the machine of each stream and back. A connection is one task, in which
//! the transport and all of its calls have their turns. Refuses to know control planes; what clients want and get passes through the cache.

mod accounts;
mod age;
mod agenda;
mod alarm;

mod asked;
mod body;
mod connection;
mod decode;
mod driver;
mod ends;
mod handshakes;
mod health;
mod http2;
mod keepalive;
mod log;
mod pace;
mod requests;
mod rest;
mod seats;

mod serve;
mod service;
mod services;
mod session;
mod settings;
mod sliced;
mod stall;
mod unary;

pub use handshakes::Handshakes;
pub use seats::{Rung, Seats};
pub use serve::{Shared, serve};
pub use settings::{ConnectionLimits, ConnectionSettings, ConnectionTimers};
