//! What ends a client stream, in the words of gRPC.
//!
//! Owns that what is over a limit is counted. Refuses to decide that a stream ends.

use tonic::{Code, Status};

use super::Shared;
use crate::cache::NoPlace;
use crate::protocol::End;

/// The client has no place at a view, or no more of it.
pub(super) fn no_place(shared: &Shared, error: NoPlace) -> Status {
    match error {
        NoPlace::Full(full) => {
            shared.metrics.refused(full.limit);
            Status::resource_exhausted(full.to_string())
        }
        NoPlace::Unfit(unfit) => {
            shared.metrics.refused_classes.inc();
            Status::permission_denied(unfit.to_string())
        }
    }
}

/// The stream's machine has ended it.
pub(super) fn status(shared: &Shared, end: End) -> Status {
    if let Some(limit) = end.limit {
        shared.metrics.refused(limit);
    }
    Status::new(Code::from_i32(end.code.number().cast_signed()), end.message)
}
