// SPDX-License-Identifier: Apache-2.0
//! The limit of open files and connections of the process.
//!
//! Raises that limit. Does not set a limit of the relay's own.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system allows. Shells and service managers set it far lower, because some programs cannot
/// handle many descriptors.
pub(super) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return tracing::info!(descriptors = limit.current, "limit of open files and connections");
    }
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::info!(
            descriptors = raised.current,
            before = limit.current,
            "limit of open files and connections"
        ),
        Err(error) => tracing::warn!(
            descriptors = limit.current,
            %error,
            "the limit of open files and connections cannot be raised; raise it where the relay is started"
        ),
    }
}
