// SPDX-License-Identifier: Apache-2.0
//! What one client is given by a control plane, written down: as a bootstrap for an Envoy, and as files for a relay.
//!
//! Owns what is written, and that no secret is without being asked for. Refuses to know what the files are for.

mod bootstrap;
pub(crate) mod given;
mod refused;
