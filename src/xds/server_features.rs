//! What a control plane says of itself.
//!
//! Owns which of gRPC's server features there are. Refuses to decide what follows from them.

/// The `server_features` of a bootstrap that the relay knows; all of them count when servers are compared (F-12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerFeatures {
    /// G-13: what it deletes is kept.
    pub ignore_resource_deletion: bool,
    /// G-13: what is wrong in what it says drops what is cached.
    pub fail_on_data_errors: bool,
    /// G-14: it reports errors itself, so that silence is no answer.
    pub resource_timer_is_transient_error: bool,
    /// Clients may believe what it says of other hosts.
    pub trusted_xds_server: bool,
}
