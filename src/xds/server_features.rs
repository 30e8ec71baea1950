// SPDX-License-Identifier: Apache-2.0
//! What the bootstrap says about a control plane.
//!
//! Owns which of gRPC's server features there are. Does not decide what follows from them.

/// The `server_features` of a bootstrap that the relay knows; all of them count when servers are compared (F-12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerFeatures {
    /// G-13: resources that it deletes are kept.
    pub ignore_resource_deletion: bool,
    /// G-13: an error in its data drops the cached resource.
    pub fail_on_data_errors: bool,
    /// G-14: it reports errors itself, so that silence does not mean absence.
    pub resource_timer_is_transient_error: bool,
    /// Clients may trust what it says about other hosts.
    pub trusted_xds_server: bool,
}
