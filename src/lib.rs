//! Distributary, an xDS aggregating relay.
//!
//! Thousands of Envoys and gRPC clients open their xDS sessions to it; it asks a few control planes once for the
//! union of what they want, keeps the answers, and gives every client its own correct protocol session.
//!
//! ```text
//!  control plane                                                                    Envoy, gRPC, ...
//!      | response                                                                       ^ response
//!      v                                                                                |
//!  upstream --> protocol::Client --Changes--> cache::View ==wake==> downstream --> protocol::Server
//!      ^             (pure)                        ^              session (cell)       (pure)
//!      +------- requests <-------- interest <------+------- leases <-------+
//! ```
//!
//! Upwards flows interest (who wants which names), downwards flow changes. Every arrow is a latest value and a wake-up:
//! nothing is queued for a client, a slow one gets a bigger next difference. The parts, each knowing only those above it:
//!
//! - [`proto`]: the wire messages that the relay itself reads and writes.
//! - [`xds`]: the vocabulary, immutable values: types, names, resources, states, differences.
//! - [`json`]: resources as people and polling clients write them.
//! - [`clock`]: the relay's own time, which stands still while the process does.
//! - [`protocol`]: what is said and when, as pure machines without I/O, clock or randomness.
//! - [`cache`]: what control planes said, who waits for it, and which clients share it.
//! - [`tls`]: certificates and keys.
//! - [`wire`]: shared bytes on their way into sockets.
//! - [`downstream`]: clients: sessions and services.
//! - [`snapshot`]: what is known, on disk, for the next start.
//! - [`config`], [`telemetry`], [`shutdown`], [`admin`]: what operators choose and see.
//! - [`get`]: one question to a server, for people.
//! - [`app`]: the only place where all of this is connected; [`cli`] runs it.
//!
//! `upstream` and `downstream` do not know each other; a test keeps the order of the parts.

pub mod admin;
pub mod app;
pub mod cache;
pub mod cli;
pub mod clock;
pub mod config;
pub mod downstream;
pub mod get;
pub mod json;
pub mod proto;
pub mod protocol;
pub mod shutdown;
pub mod snapshot;
pub mod telemetry;
pub mod tls;
pub mod upstream;
pub mod wire;
pub mod xds;
