//! Distributary, an xDS aggregating relay.
//!
//! Thousands of Envoys and gRPC clients open their xDS sessions to it; it asks a few control planes once for the
//! union of what they want, keeps the answers, and gives every client its own correct protocol session.
//!
//! Upwards flows interest (who wants which names), downwards flow changes. The parts, each knowing only those above:
//!
//! - [`proto`]: the wire messages.

pub mod admin;
pub mod app;
pub mod cache;
pub mod cli;
pub mod config;
pub mod downstream;
pub mod proto;
pub mod protocol;
pub mod shutdown;
pub mod telemetry;
pub mod wire;
pub mod xds;
