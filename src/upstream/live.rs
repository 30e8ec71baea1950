//! One open ADS stream.
//!
//! Owns both directions. Refuses to know what the messages mean.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use futures_core::Stream;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::{Response, Streaming};

use super::channel::{Channel, Hold};
use super::clock::now;
use super::codec::Raw;
use super::failure::Failure;
use super::outbox::Outbox;
use super::target::Settings;
use crate::xds::Dialect;

/// A stream, from its request on.
pub(super) struct Live {
    pub(super) dialect: Dialect,
    pub(super) opened: Instant,
    /// A response has come.
    pub(super) answered: bool,
    pub(super) outbox: Outbox,
    inbound: Inbound,
    pulse: std::sync::Arc<super::pulse::Pulse>,
    /// The last byte that is accounted for.
    last: Instant,
    _hold: Hold,
}

type Reply = Result<Response<Streaming<Bytes>>, tonic::Status>;

enum Inbound {
    /// The server has not begun to answer; many do so only with their first response.
    Asked(Pin<Box<dyn Future<Output = Reply> + Send>>),
    Flowing(Box<Streaming<Bytes>>),
}

impl Live {
    pub(super) fn begin(channel: Channel, dialect: Dialect, settings: &Settings) -> Self {
        let (origin, pulse) = (channel.origin.clone(), channel.pulse.clone());
        let (sender, hold) = channel.split();
        let (outbox, requests) = Outbox::new();
        let mut grpc = Grpc::with_origin(sender, origin).max_decoding_message_size(settings.upstream_message);
        let path = PathAndQuery::from_static(match dialect {
            Dialect::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
            Dialect::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
        });
        let ask = async move {
            grpc.ready().await.map_err(tonic::Status::from_error)?;
            grpc.streaming(tonic::Request::new(requests), path, Raw).await
        };
        Self {
            dialect,
            opened: now(),
            answered: false,
            outbox,
            inbound: Inbound::Asked(Box::pin(ask)),
            pulse,
            last: now(),
            _hold: hold,
        }
    }

    /// The next response, or why there is none any more.
    pub(super) fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Failure>> {
        if let Inbound::Asked(reply) = &mut self.inbound {
            match ready!(reply.as_mut().poll(cx)) {
                Ok(reply) => self.inbound = Inbound::Flowing(Box::new(reply.into_inner())),
                Err(status) => return Poll::Ready(Err(self.failure(status))),
            }
        }
        let Inbound::Flowing(stream) = &mut self.inbound else {
            return Poll::Pending;
        };
        Poll::Ready(match ready!(Pin::new(&mut **stream).poll_next(cx)) {
            Some(Ok(bytes)) => {
                self.last = now();
                Ok(bytes)
            }
            Some(Err(status)) => Err(self.failure(status)),
            None => Err(Failure::Ended),
        })
    }

    fn failure(&self, status: tonic::Status) -> Failure {
        // What the server itself says of the stream has no cause; what the transport says may have one in its farewell.
        match self.pulse.farewell().filter(|_| status.source().is_some()) {
            Some(farewell) => Failure::GoneAway(farewell),
            None => Failure::stream(status),
        }
    }

    /// When the last part of a message came that is not whole yet, if that is news.
    pub(super) fn partial(&mut self) -> Option<Instant> {
        let at = self.pulse.data().filter(|at| *at > self.last)?;
        self.last = at;
        Some(at)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.outbox.close();
    }
}
