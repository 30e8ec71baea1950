//! A client's message, before the machine takes it.
//!
//! Owns the bounds on what decoding may cost. Refuses to know what follows.

use bytes::Bytes;
use prost::Message;
use tonic::Status;

use crate::downstream::shared::Shared;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use crate::proto::google::rpc::Status as Detail;
use crate::wire::{Scan, around};
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

/// A request that can say that a response was rejected, and why.
pub(super) trait Rejects: Message {
    /// The number of the field in which it does.
    const DETAIL: u32;

    fn detail(&mut self) -> &mut Option<Detail>;
}

impl Rejects for DiscoveryRequest {
    const DETAIL: u32 = 6;

    fn detail(&mut self) -> &mut Option<Detail> {
        &mut self.error_detail
    }
}

impl Rejects for DeltaDiscoveryRequest {
    const DETAIL: u32 = 7;

    fn detail(&mut self) -> &mut Option<Detail> {
        &mut self.error_detail
    }
}

/// The field of [`Detail`] that says it in words.
const WORDS: u32 = 2;
/// Of a longer reason for a rejection only the beginning is read: nobody has a use for more.
const DETAIL_BYTES_MAX: usize = 16 * 1024;

/// Any request, decoded into an empty one with room for its names: a list that grows from size to size leaves holes in the heap.
pub(super) fn decode<M: Rejects>(message: &Bytes, mut into: M) -> Result<M, Status> {
    let wrong = |error| Status::invalid_argument(format!("the request cannot be decoded: {error}"));
    let Some([before, after, detail]) = around(message, M::DETAIL, DETAIL_BYTES_MAX) else {
        into.merge(message.clone()).map_err(wrong)?;
        return Ok(into);
    };
    into.merge(before).map_err(wrong)?;
    into.merge(after).map_err(wrong)?;
    let words = around(&detail, WORDS, 0).map(|[_, _, words]| words.slice(..words.len().min(DETAIL_BYTES_MAX)));
    let words = words.unwrap_or_default();
    *into.detail() = Some(Detail {
        message: String::from_utf8_lossy(&words).into_owned(),
        ..Detail::default()
    });
    Ok(into)
}

fn malformed(message: &[u8]) -> Status {
    Status::invalid_argument(format!(
        "the request of {} bytes is not a protobuf message",
        message.len()
    ))
}
