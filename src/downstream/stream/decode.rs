//! Decodes a client's message before the machine handles it.
//!
//! Owns the limits on the cost of decoding. Knows nothing of what follows.

use std::future::poll_fn;
use std::task::{Poll, ready};

use bytes::Buf as _;
use prost::Message;
use tonic::Status;

use super::requests::{Next, Requests};
use crate::clock;
use crate::downstream::settings::ConnectionSettings;
use crate::downstream::shared::Shared;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use crate::proto::google::rpc::Status as Detail;
use crate::wire::{Pieces, Scan, around};
use crate::xds::Dialect;

/// Reads the only request of a unary call.
pub(in crate::downstream) async fn only_request(
    mut requests: Requests,
    shared: &Shared,
    settings: &ConnectionSettings,
) -> Result<DiscoveryRequest, Status> {
    let message = first(&mut requests).await?;
    let Scan { entries, .. } = bounded(&message, Dialect::Sotw, shared, settings)?;
    let empty = DiscoveryRequest {
        resource_names: Vec::with_capacity(entries),
        ..Default::default()
    };
    decode(message, empty)
}

/// Reads the id of the node in the first request of a stream that is refused; none without a request that can be read.
pub(in crate::downstream) async fn first_node(
    mut requests: Requests,
    dialect: Dialect,
    shared: &Shared,
    settings: &ConnectionSettings,
) -> Option<String> {
    let message = first(&mut requests).await.ok()?;
    bounded(&message, dialect, shared, settings).ok()?;
    let node = match dialect {
        Dialect::Sotw => DiscoveryRequest::decode(message).ok()?.node,
        Dialect::Delta => DeltaDiscoveryRequest::decode(message).ok()?.node,
    };
    node.map(|node| node.id)
}

async fn first(requests: &mut Requests) -> Result<Pieces, Status> {
    poll_fn(|cx| match ready!(requests.poll(cx, clock::now())) {
        Next::Message(message) => Poll::Ready(Ok(message)),
        Next::Later => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Next::Closed => Poll::Ready(Err(Status::invalid_argument("the call has no request"))),
        Next::Fault(status) => Poll::Ready(Err(status)),
        Next::Gone => Poll::Ready(Err(Status::cancelled("the client is gone"))),
    })
    .await
}

/// Checks the cost of decoding a message against the limits, before it is decoded. Returns what it counts.
pub(super) fn bounded(
    message: &Pieces,
    dialect: Dialect,
    shared: &Shared,
    settings: &ConnectionSettings,
) -> Result<Scan, Status> {
    let scan = Scan::of(message, dialect).map_err(|_| malformed(message))?;
    let limits = &settings.limits;
    let bounds = &settings.protocol.limits;
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
            let message = format!("{count} {what} in one request are over the relay's limit `limits.{key}` of {max}");
            return Err(Status::resource_exhausted(message));
        }
    }
    Ok(scan)
}

/// A request that can reject a response, with a reason.
pub(super) trait Rejects: Message {
    /// The number of the field with the reason.
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

/// The field of [`Detail`] with the error text.
const WORDS: u32 = 2;
/// The most bytes that are read of the reason for a rejection; the rest is of no use.
const DETAIL_BYTES_MAX: usize = 16 * 1024;

/// Decodes a request into `into`, an empty one with room for all names: growing the list step by step would fragment the heap. Each piece
/// of the message is freed when it was decoded.
pub(super) fn decode<M: Rejects>(message: Pieces, mut into: M) -> Result<M, Status> {
    let wrong = |error| Status::invalid_argument(format!("the request cannot be decoded: {error}"));
    let Some([before, after, detail]) = around(&message, M::DETAIL, DETAIL_BYTES_MAX) else {
        into.merge(message).map_err(wrong)?;
        return Ok(into);
    };
    drop(message);
    into.merge(before).map_err(wrong)?;
    into.merge(after).map_err(wrong)?;
    let words = around(&detail, WORDS, 0).map(|[_, _, mut words]| words.split_to(DETAIL_BYTES_MAX));
    let mut words = words.unwrap_or_default();
    let words = words.copy_to_bytes(words.remaining());
    *into.detail() = Some(Detail {
        message: String::from_utf8_lossy(&words).into_owned(),
        ..Detail::default()
    });
    Ok(into)
}

fn malformed(message: &Pieces) -> Status {
    Status::invalid_argument(format!(
        "the request of {} bytes is not a protobuf message",
        message.remaining()
    ))
}
