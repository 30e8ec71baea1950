// SPDX-License-Identifier: Apache-2.0
//! What is looked at of a client's message before it is decoded.
//!
//! Owns the limits on the cost of decoding. Knows nothing of what follows.

use std::future::poll_fn;
use std::task::{Poll, ready};

use bytes::Buf as _;
use prost::Message as _;
use tonic::Status;

use super::decoding::Decoding;
use super::requests::{ClientRequests, NextRequest};
use crate::clock;
use crate::downstream::settings::ConnectionSettings;
use crate::downstream::shared::Shared;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use crate::wire::{Pieces, Scan};
use crate::xds::Dialect;

/// Reads the only request of a unary call.
pub(in crate::downstream) async fn only_request(
    mut requests: ClientRequests,
    shared: &Shared,
    settings: &ConnectionSettings,
) -> Result<DiscoveryRequest, Status> {
    let message = first(&mut requests).await?;
    let scan = bounded(&message, Dialect::Sotw, shared, settings)?;
    let mut decoding = Decoding::sotw(message, &scan);
    while decoding.go_on()? {}
    Ok(decoding.finish())
}

/// Reads the id of the node in the first request of a stream that is refused; none without a request that can be read.
pub(in crate::downstream) async fn first_node(
    mut requests: ClientRequests,
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

async fn first(requests: &mut ClientRequests) -> Result<Pieces, Status> {
    poll_fn(|cx| match ready!(requests.poll(cx, clock::now())) {
        NextRequest::Message(message) => Poll::Ready(Ok(message)),
        NextRequest::Later => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        NextRequest::Closed => Poll::Ready(Err(Status::invalid_argument("the call has no request"))),
        NextRequest::Fault(status) => Poll::Ready(Err(status)),
        NextRequest::Gone => Poll::Ready(Err(Status::cancelled("the client is gone"))),
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
            "limits.names_per_stream",
            "names and versions",
            scan.entries,
            bounds.names_per_stream,
        ),
    ] {
        if max > 0 && count > max {
            shared.metrics.refused(key.rsplit('.').next().unwrap_or(key));
            let message = format!("{count} {what} in one request are over the relay's limit `{key}` of {max}");
            return Err(Status::resource_exhausted(message));
        }
    }
    Ok(scan)
}

/// The message is no protobuf message.
pub(super) fn malformed(message: &Pieces) -> Status {
    Status::invalid_argument(format!(
        "the request of {} bytes is not a protobuf message",
        message.remaining()
    ))
}
