// SPDX-License-Identifier: Apache-2.0
//! Turns the reason for the end of a client's stream or poll into a gRPC status, and that into trailers.
//!
//! Owns the counting of exceeded limits. Does not decide that a stream ends.

use http::{HeaderMap, HeaderValue};
use tonic::{Code, Status};

use crate::cache::NoPlace;
use crate::downstream::shared::Shared;
use crate::protocol::End;

/// Returns the status for a client that gets no seat at a view, or no further names there.
pub(super) fn no_place(shared: &Shared, error: NoPlace) -> Status {
    count_no_place(shared, &error);
    match error {
        NoPlace::Full(full) => Status::resource_exhausted(full.to_string()),
        NoPlace::Unfit(_) | NoPlace::Key(_) => Status::permission_denied(error.to_string()),
        NoPlace::Loop(_) => Status::failed_precondition(error.to_string()),
    }
}

/// Returns the status for a stream that its machine has ended.
pub(super) fn status(shared: &Shared, end: End) -> Status {
    count_end(shared, &end);
    Status::new(Code::from_i32(end.code.number().cast_signed()), end.message)
}

pub(in crate::downstream) fn count_no_place(shared: &Shared, error: &NoPlace) {
    match error {
        NoPlace::Full(full) => shared.metrics.refused(full.limit),
        NoPlace::Unfit(_) | NoPlace::Key(_) => {
            shared.metrics.refused_classes.inc();
        }
        NoPlace::Loop(_) => {}
    }
}

pub(in crate::downstream) fn count_end(shared: &Shared, end: &End) {
    if let Some(limit) = end.limit {
        shared.metrics.refused(limit);
    }
    if end.code == protocol::Code::PermissionDenied {
        shared.metrics.denied.inc();
    }
}

/// Returns the trailers that end a stream with this status.
pub(in crate::downstream) fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    if status.add_header(&mut trailers).is_err() {
        // The message cannot be written as a header, so the code must be enough.
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from(status.code() as i32));
    }
    trailers
}
