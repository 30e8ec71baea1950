// SPDX-License-Identifier: Apache-2.0
//! What all sessions of the relay share, so that it is computed and kept once.
//!
//! Owns the store of answers, the one copy of each name, and the one copy of what clients remember. Knows nothing of views
//! and sessions: it does not keep alive what somebody subscribes to.

mod interner;
mod library;
mod remembered;
mod weak_map;

pub use library::{Library, Text, Uses};
