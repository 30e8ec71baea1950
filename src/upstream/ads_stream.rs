// SPDX-License-Identifier: Apache-2.0
//! One open ADS stream.
//!
//! Owns the responses, and why they end. Knows nothing of what the messages mean.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use http::{HeaderMap, Request, Uri, header};
use http_body::Frame;
use http_body_util::StreamBody;
use opentelemetry::trace::SpanContext;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service as _;

use super::channel::{Channel, ConnectionRun, Sender, Vigil};
use super::clock::now;
use super::failure::{Failure, Unheeded};
use super::health_question::unanswered;
use super::inbox::Inbox;
use super::io_monitor::IoMonitor;
use super::outbox::{Outbox, Requests};
use super::target::{ServerTarget, UpstreamSettings};
use crate::protocol::{Cutter, Ending};
use crate::wire::{ACCEPT_ENCODING, ACCEPTED_ENCODINGS, message_before};
use crate::xds::Dialect;

/// A stream, from the moment its HTTP/2 request is sent.
pub(super) struct AdsStream {
    inbound: Inbound,
    io_monitor: Arc<IoMonitor>,
    vigil: Vigil,
    /// Ends with the time since when the server is silent, if it forbids pings and does not answer questions.
    hangs: Option<Pin<Box<dyn Future<Output = Instant> + Send>>>,
    /// When the last byte arrived that was reported or belongs to a complete message.
    last: Instant,
    hold: ConnectionRun,
}

type Reply = Result<Inbox, Failure>;

enum Inbound {
    /// The server has not sent response headers yet; many servers send them only with their first response.
    Unheeded(Pin<Box<dyn Future<Output = Reply> + Send>>),
    Flowing(Box<Inbox>),
}

impl AdsStream {
    /// Returns the stream, and the place for its requests.
    pub(super) fn begin(
        channel: Channel,
        dialect: Dialect,
        target: &ServerTarget,
        settings: &UpstreamSettings,
    ) -> (Self, Outbox) {
        let (origin, io_monitor, vigil) = (channel.origin.clone(), channel.io_monitor.clone(), channel.vigil);
        let (sender, hold) = channel.split();
        let (outbox, requests) = Outbox::new();
        let path = match dialect {
            Dialect::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
            Dialect::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
        };
        let headers = target.call.headers.clone();
        let hangs: Option<Pin<Box<dyn Future<Output = Instant> + Send>>> = match vigil {
            Vigil::None | Vigil::Pings(_) => None,
            Vigil::Questions(after) => {
                let (sender, origin, headers) = (sender.clone(), origin.clone(), headers.clone());
                Some(Box::pin(unanswered(sender, origin, headers, io_monitor.clone(), after)))
            }
        };
        let ask = ask(sender, uri(origin, path), headers, requests, settings.upstream_message);
        let stream = Self {
            inbound: Inbound::Unheeded(Box::pin(ask)),
            io_monitor,
            vigil,
            hangs,
            last: now(),
            hold,
        };
        (stream, outbox)
    }

    /// Returns the next response, or why the stream ended.
    pub(super) fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Result<Cutter, Failure>> {
        self.hold.run(cx);
        if let Some(hangs) = &mut self.hangs
            && let Poll::Ready(since) = hangs.as_mut().poll(cx)
        {
            self.hangs = None;
            let asked = Unheeded::Call;
            return Poll::Ready(Err(Failure::Hangs { since, asked }));
        }
        if let Inbound::Unheeded(reply) = &mut self.inbound {
            match ready!(reply.as_mut().poll(cx)) {
                Ok(inbox) => self.inbound = Inbound::Flowing(Box::new(inbox)),
                Err(failure) => return Poll::Ready(Err(self.farewell(failure))),
            }
        }
        let Inbound::Flowing(inbox) = &mut self.inbound else {
            return Poll::Pending;
        };
        Poll::Ready(match ready!(inbox.poll_next(cx)) {
            Some(Ok(message)) => {
                self.last = now();
                Ok(message)
            }
            Some(Err(failure)) => Err(self.farewell(failure)),
            None => Err(Failure::Ended),
        })
    }

    /// Returns the span of the server for the stream, if it says one.
    pub(super) fn context(&self) -> Option<SpanContext> {
        match &self.inbound {
            Inbound::Unheeded(_) => None,
            Inbound::Flowing(inbox) => inbox.context(),
        }
    }

    fn farewell(&self, failure: Failure) -> Failure {
        // The server's GOAWAY explains the end of the stream better than the transport's error does.
        let broken = failure.ending() == Some(Ending::Broken);
        let now = now();
        let silence = self.io_monitor.silence(now);
        match self.io_monitor.farewell().filter(|_| broken) {
            Some(farewell) => Failure::GoneAway(farewell),
            None if broken && self.vigil.explains(silence) => Failure::Hangs {
                since: now.checked_sub(silence).unwrap_or(now),
                asked: Unheeded::Ping,
            },
            None => failure,
        }
    }

    /// Returns when the last part of an incomplete message arrived, if it arrived after the last call.
    pub(super) fn partial(&mut self) -> Option<Instant> {
        let at = self.io_monitor.data().filter(|at| *at > self.last)?;
        self.last = at;
        Some(at)
    }
}

/// Opens the stream and waits for the response headers. Many servers send them only with their first response.
async fn ask(mut sender: Sender, uri: Uri, headers: HeaderMap, requests: Requests, bytes_max: usize) -> Reply {
    poll_fn(|cx| sender.poll_ready(cx)).await.map_err(failure)?;
    let frames = requests.flat_map(|[request, node]| {
        let pieces = [message_before(&request, node.len()), node];
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
        iter(pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece))))
    });
    let mut request = head(uri, headers);
    *request.body_mut() = Body::new(StreamBody::new(frames));
    let headers = request.headers_mut();
    headers.insert(ACCEPT_ENCODING, header::HeaderValue::from_static(ACCEPTED_ENCODINGS));
    let response = sender.call(request).await.map_err(failure)?;
    Inbox::of(response, bytes_max).map_err(Failure::stream)
}

/// Returns the beginning of a call.
pub(super) fn head(uri: Uri, headers: HeaderMap) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = http::Method::POST;
    *request.version_mut() = http::Version::HTTP_2;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    let headers = request.headers_mut();
    headers.insert(header::TE, header::HeaderValue::from_static("trailers"));
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/grpc"),
    );
    request
}

/// Tells the errors of `Sender` apart: a gRPC status comes from the token, and the request was not sent.
fn failure(error: Box<dyn Error + Send + Sync>) -> Failure {
    match error.downcast() {
        Ok(status) => Failure::Token(status),
        Err(error) => Failure::stream(Status::from_error(error)),
    }
}

fn uri(origin: Uri, path: &'static str) -> Uri {
    let mut parts = origin.into_parts();
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static(path));
    Uri::from_parts(parts).unwrap_or_default()
}
