//! What ends a client's stream, in the words of gRPC, or its poll.
//!
//! Owns that what is over a limit is counted. Refuses to decide that a stream ends.

use http::{HeaderMap, HeaderValue};
use tonic::{Code, Status};

use crate::cache::NoPlace;
use crate::downstream::shared::Shared;
use crate::protocol::End;

/// The client has no place at a view, or no more of it.
pub(super) fn no_place(shared: &Shared, error: NoPlace) -> Status {
    count_no_place(shared, &error);
    match error {
        NoPlace::Full(full) => Status::resource_exhausted(full.to_string()),
        NoPlace::Unfit(unfit) => Status::permission_denied(unfit.to_string()),
    }
}

/// The stream's machine has ended it.
pub(super) fn status(shared: &Shared, end: End) -> Status {
    count_end(shared, &end);
    Status::new(Code::from_i32(end.code.number().cast_signed()), end.message)
}

pub(in crate::downstream) fn count_no_place(shared: &Shared, error: &NoPlace) {
    match error {
        NoPlace::Full(full) => shared.metrics.refused(full.limit),
        NoPlace::Unfit(_) => {
            shared.metrics.refused_classes.inc();
        }
    }
}

pub(in crate::downstream) fn count_end(shared: &Shared, end: &End) {
    if let Some(limit) = end.limit {
        shared.metrics.refused(limit);
    }
}

/// The end of a stream as headers.
pub(in crate::downstream) fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    if status.add_header(&mut trailers).is_err() {
        // Its own text cannot be written as a header: the code alone says enough.
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from(status.code() as i32));
    }
    trailers
}
