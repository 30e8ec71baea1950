//! How many files and connections the process may have open.
//!
//! Owns the raising of that limit. Refuses to set one of the relay's own.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Shells and service managers give far fewer than the system allows, for the sake of programs that cannot deal with many.
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
