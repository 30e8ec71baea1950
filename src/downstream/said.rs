//! A client's message, before the machine takes it.
//!
//! Owns the bounds on what decoding may cost. Refuses to know what follows.

use bytes::Bytes;
use prost::Message;
use tonic::Status;

use super::Shared;
use crate::wire::Scan;
use crate::xds::Dialect;

/// What decoding would cost is bounded before it is paid. Gives how many names and versions there are.
pub(super) fn bounded(message: &[u8], dialect: Dialect, shared: &Shared) -> Result<usize, Status> {
    let scan = Scan::of(message, dialect).map_err(|_| malformed(message))?;
    let limits = &shared.settings.limits;
    let bounds = &shared.settings.protocol.limits;
    for (key, what, count, max) in [
        ("node_bytes", "bytes of node", scan.node, limits.node_bytes),
        ("name_bytes", "bytes of type_url", scan.type_url, bounds.name_bytes),
        (
            "names_per_stream",
            "names and versions",
            scan.entries,
            bounds.names_per_stream,
        ),
    ] {
        if max > 0 && count > max {
            shared.metrics.refused(key);
            let message = format!("{count} {what} in one request: over the relay's limit `limits.{key}` of {max}");
            return Err(Status::resource_exhausted(message));
        }
    }
    Ok(scan.entries)
}

/// Any request, decoded into an empty one with room for its names: a list that grows from size to size leaves holes in the heap.
pub(super) fn decode<M: Message>(message: &Bytes, mut into: M) -> Result<M, Status> {
    into.merge(message.clone())
        .map_err(|error| Status::invalid_argument(format!("the request cannot be decoded: {error}")))?;
    Ok(into)
}

fn malformed(message: &[u8]) -> Status {
    Status::invalid_argument(format!(
        "the request of {} bytes is not a protobuf message",
        message.len()
    ))
}
