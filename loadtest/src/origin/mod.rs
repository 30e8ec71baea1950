// SPDX-License-Identifier: Apache-2.0
//! The origin of resources: the built-in control plane, the ledger of all that was said, and the shapes of resources.
//!
//! Owns what the content of a resource may be, and when it changed. Refuses to know clients: they look here.

pub(crate) mod control_plane;
pub(crate) mod ledger;
mod references;
pub(crate) mod shape;
pub(crate) mod world;
