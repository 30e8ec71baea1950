// SPDX-License-Identifier: Apache-2.0
//! Routes a request by its head.
//!
//! Owns the checks of a gRPC call before its stream begins: method, content type, encoding, deadline. Knows nothing of messages.

mod fetch;
mod health;
mod refused;
mod status;
mod unary;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, Ready, ready};
use h2::RecvStream;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method as Verb, Request, Response, StatusCode};
use hyper::body::Incoming;
use tonic::Status;
use tonic_health::pb::health_server::SERVICE_NAME;

use fetch::Fetch;
use health::HealthCalls;
pub(super) use refused::FIRST_REQUEST;
pub(super) use unary::UnaryCall;

use crate::census;
use crate::clock;
use crate::downstream::bearer::identified;
use crate::downstream::body::Body;
use crate::downstream::connection::HeaderFault;
use crate::downstream::full::LimitReached;
use crate::downstream::handshakes::HandshakeFault;
use crate::downstream::log::ClientLog;
use crate::downstream::portion::Allotment;
use crate::downstream::request_body::RequestBody;
use crate::downstream::rest::Polls;
use crate::downstream::services::{self, UnknownPath};
use crate::downstream::shared::Shared;
use crate::downstream::stream::{Accounts, ClientRequests, Driver, RequestPace, Session, trailers};
use crate::identity::{Identity, SvidFault};
use crate::shutdown::Drain;
use crate::wire::{
    ACCEPT_ENCODING, ACCEPTED_ENCODINGS, Deframer, ENCODING, Encoding, Peer, RopeProgress, SharedSlices, timeout,
};

/// Answers the requests of all connections of one listener.
pub(super) struct Calls {
    pub(super) shared: Arc<Shared>,
    polls: Arc<Polls>,
    log: Arc<ClientLog>,
    health: HealthCalls,
}

/// How long a client may take to send the request of a unary call.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) type HttpResult = Result<Response<Body>, Infallible>;
pub(super) type PendingResponse = Either<Ready<HttpResult>, BoxFuture<'static, HttpResult>>;

/// How a request on an HTTP/2 connection goes on.
pub(super) enum StartedCall {
    /// It gets one response, now or later.
    Answer(PendingResponse),
    /// It begins a stream, with this response head.
    Stream(Response<()>, Box<Driver>),
}

/// The state that the calls of a connection share.
pub(super) struct Links {
    /// What the connection takes of what all share.
    pub(super) portion: Arc<Allotment>,
    /// The shared bytes that they have given to the transport.
    pub(super) shared_slices: Arc<SharedSlices>,
}

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Waits for the request of a unary call.
async fn in_time<T>(request: impl Future<Output = T>) -> Result<T, Status> {
    let request = clock::timeout(REQUEST_TIMEOUT, request).await;
    request.ok_or_else(|| Status::deadline_exceeded(format!("the request did not arrive within {REQUEST_TIMEOUT:?}")))
}

impl Calls {
    pub(super) fn new(shared: Arc<Shared>, drain: Drain) -> Self {
        Self {
            polls: Arc::new(Polls::new(shared.clone(), drain)),
            health: HealthCalls::new(shared.health.clone(), shared.settings.load().transport_v2),
            shared,
            log: Arc::default(),
        }
    }

    /// Counts and logs a TLS handshake that failed.
    pub(super) fn not_secure(&self, peer: &Peer, fault: &HandshakeFault) {
        self.shared.metrics.handshakes.failed(fault.reason(), fault.result());
        self.log.handshake(peer, fault, clock::now());
    }

    /// Logs a certificate with a SPIFFE name that is no identity. `texts` are what else it says.
    pub(super) fn not_spiffe(&self, identity: &Identity, texts: &[String], fault: &SvidFault) {
        self.log.not_spiffe(identity, texts, fault, clock::now());
    }

    /// Counts and logs a PROXY header with a fault.
    pub(super) fn not_proxied(&self, peer: &Peer, fault: &HeaderFault) {
        self.shared.metrics.arrivals.proxy_header(fault.reason());
        self.log.not_proxied(peer, fault, clock::now());
    }

    /// Counts and logs a connection that is closed because there are too many.
    pub(super) fn not_admitted(&self, peer: &Peer, full: &LimitReached) {
        self.shared.metrics.refused(full.limit);
        self.log.not_admitted(peer, full, clock::now());
    }

    /// Counts and logs a connection that could not be accepted.
    pub(super) fn not_accepted(&self, error: &std::io::Error) {
        self.shared.metrics.not_accepted.inc();
        self.log.not_accepted(error, clock::now());
    }

    /// Handles one request on an HTTP/2 connection.
    pub(super) fn call(&self, request: Request<RecvStream>, links: &Links, now: Instant) -> StartedCall {
        if Polls::path(request.uri().path()) {
            let request = request.map(RequestBody::Http2);
            return StartedCall::Answer(Either::Right(
                self.polls.clone().answer(request, links.portion.clone()).boxed(),
            ));
        }
        let response = match refuse(request.method(), request.headers()) {
            Some(response) => response,
            None if services::split(request.uri().path()).is_some_and(|(service, _)| service == census::SERVICE) => {
                let request = request.map(RequestBody::Http2);
                let answer = status::answer(self.shared.clone(), request, links.portion.clone());
                return StartedCall::Answer(Either::Right(answer.boxed()));
            }
            None if services::split(request.uri().path()).is_some_and(|(service, _)| service == SERVICE_NAME) => {
                let request = request.map(RequestBody::Http2);
                return StartedCall::Answer(Either::Right(self.health.clone().answer(request).boxed()));
            }
            None => {
                let path = request.uri().path().to_owned();
                match self.begin(request, links, now) {
                    Ok(called) => return called,
                    Err(status) => {
                        tracing::debug!(path, %status, "call refused");
                        refusal(&status)
                    }
                }
            }
        };
        StartedCall::Answer(Either::Left(ready(Ok(response))))
    }

    /// Handles one request on an HTTP/1.1 connection. Polling clients may use HTTP/1.1; gRPC cannot.
    pub(super) fn call_http1(&self, request: Request<Incoming>, portion: &Arc<Allotment>) -> PendingResponse {
        if Polls::path(request.uri().path()) {
            let request = request.map(RequestBody::Http1);
            return Either::Right(self.polls.clone().answer(request, portion.clone()).boxed());
        }
        let message = "gRPC needs HTTP/2 with prior knowledge; over HTTP/1.1 there are only polls, such as POST \
                       /v3/discovery:clusters\n";
        let mut response = text(StatusCode::HTTP_VERSION_NOT_SUPPORTED, message);
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        Either::Left(ready(Ok(response)))
    }

    /// Starts a discovery stream or a unary call.
    fn begin(&self, request: Request<RecvStream>, links: &Links, now: Instant) -> Result<StartedCall, Status> {
        let settings = self.shared.settings.load_full();
        let mut method = services::method(request.uri().path(), settings.transport_v2, &settings.protocol.types)
            .map_err(|UnknownPath(message)| Status::unimplemented(message))?;
        if let Some(type_url) = method.service.clone().filter(|_| method.fetch) {
            let fetch = Fetch {
                shared: self.shared.clone(),
                type_url,
                portion: links.portion.clone(),
                drain: self.polls.drain(),
            };
            return Ok(StartedCall::Answer(Either::Right(fetch.answer(request).boxed())));
        }
        let encoding = Encoding::of(request.headers())?;
        method.responses = Encoding::of_responses(request.headers());
        let timeout = timeout(request.headers())?;
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Status::deadline_exceeded("grpc-timeout is zero"));
        }
        let stay = links.portion.guest.stream(now).map_err(|full| {
            self.not_admitted(links.portion.guest.peer(), &full);
            full.status()
        })?;
        let identity = identified(&self.shared, &links.portion, request.headers());
        let deframer = Deframer::new(encoding, settings.limits.request, links.portion.share.clone());
        let pace = RequestPace::new(settings.limits.requests_per_second, now);
        let place = (links.portion.claims.clone(), request.body().stream_id().as_u32());
        let requests = ClientRequests::new(request.into_body(), deframer, pace);
        let identity = match identity {
            Ok(identity) => identity,
            Err(token) => {
                let shared = self.shared.clone();
                let ended = async move {
                    let status = refused::status(token, requests, method.dialect, &shared, &settings).await;
                    tracing::debug!(%status, "call refused");
                    // The call counts as a stream until here.
                    drop(stay);
                    Ok(refusal(&status))
                };
                return Ok(StartedCall::Answer(Either::Right(ended.boxed())));
            }
        };
        let who = (stay, identity);
        let accounts = Accounts::open(
            &self.shared,
            self.log.clone(),
            who,
            settings,
            place,
            method.dialect,
            now,
        );
        let is_compressed = method.responses == Encoding::Gzip;
        let session = Session::new(self.shared.clone(), accounts, method, now);
        let progress = Arc::new(RopeProgress::new(links.shared_slices.clone()));
        let mut head = Response::new(());
        head.headers_mut().insert(CONTENT_TYPE, GRPC);
        if is_compressed {
            head.headers_mut().insert(ENCODING, HeaderValue::from_static("gzip"));
        }
        let driver = Driver::new(session, requests, progress, timeout, now);
        Ok(StartedCall::Stream(head, Box::new(driver)))
    }
}

/// Returns an HTTP error response if the request is not a gRPC call.
fn refuse(verb: &Verb, headers: &HeaderMap) -> Option<Response<Body>> {
    if verb != Verb::POST {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "gRPC calls are POST requests\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return Some(response);
    }
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let rest = content_type.strip_prefix(b"application/grpc");
    // gRPC requires `te: trailers` of clients, but a client without it still gets trailers here.
    // whatever a client calls its codec, the messages are protobuf.
    let good = matches!(rest, Some([] | [b'+' | b';', ..]));
    (!good).then(|| {
        let shown = content_type.get(..60).unwrap_or(content_type).escape_ascii();
        let message = format!("content-type is `{shown}`; a gRPC call needs application/grpc\n");
        text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    })
}

/// Returns a plain-text response, for people with HTTP tools.
pub(super) fn text(status: StatusCode, message: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Text(message.into()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Returns the response that ends a call at once with this status.
pub(super) fn refusal(status: &Status) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.headers_mut() = trailers(status);
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
        .headers_mut()
        .insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED_ENCODINGS));
    response
}
