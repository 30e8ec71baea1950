//! Clients: their connections, streams and calls.
//!
//! Owns the way from an accepted socket to the machine of each stream and back. A connection is one task, and so is each
//! of its streams: in it a driver reads requests and looks after timers, and hyper takes responses when it can send more.
//! Refuses to know control planes; what clients want and get passes through the cache.

mod accounts;
mod alarm;
mod body;
mod clock;
mod connection;
mod driver;
mod echo;
mod handshakes;
mod health;
mod log;
mod pace;
mod place;
mod requests;
mod rest;
mod said;
mod serve;
mod service;
mod services;
mod session;
mod settings;
mod stall;
mod streams;

pub use handshakes::{Handshakes, Places};
pub use place::{Place, Rung};
pub use serve::{Shared, serve};
pub use settings::{Limits, Settings, Timers};
