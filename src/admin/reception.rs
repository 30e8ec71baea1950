// SPDX-License-Identifier: Apache-2.0
//! Serves an address: accepts connections, and has each request answered.
//!
//! Owns what a connection may send and how long its head may be. `visits` says who may stay, the router what is answered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use futures_util::future::Abortable;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::MissedTickBehavior;
use tower::ServiceExt as _;

use super::PathAccess;
use super::entrance::{Entrance, SilentVisitor};
use super::forms;
use super::guard::Visitor;
use super::http::is_lost;
use super::visits::{Answering, VisitorPresence, VisitorRoom, Visits};
use crate::{clock, config};

/// How connections are served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    room: VisitorRoom,
    /// How long a connection lasts that has one request; without it, each may have many.
    once: Option<Duration>,
}

/// What a connection is served with.
pub(super) struct Conversation {
    router: Router,
    manner: Terms,
    presence: Arc<VisitorPresence>,
}

/// The most bytes of the head of a request.
const HEAD_BYTES_MAX: u32 = 16 << 10;
/// The most bytes of a body, apart from those of streams and of a configuration.
const BODY_BYTES_MAX: usize = 256 << 10;
/// How many requests a connection may have at a time over HTTP/2.
const STREAMS_MAX: u32 = 16;
/// How many bytes a visitor may send before the relay has taken them, and the relay before the visitor has.
const WINDOW: u32 = 64 << 10;
/// How many bytes of an answer are given to the transport at a time.
const SENT_BYTES_MAX: usize = 16 << 10;
/// From how many bytes on an answer that is in memory as a whole counts with its size.
const LARGE: u64 = 64 << 10;
/// How often is looked who has kept the relay waiting for too long.
const LOOK: Duration = Duration::from_secs(1);
/// How long to wait after an error of the system, so that it is not repeated without end.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves this entrance for as long as it is polled.
pub(super) async fn serve(entrance: Entrance, router: Router, manner: Terms) {
    let visits = Visits::new(manner.room);
    let mut here = FuturesUnordered::new();
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut arriving = std::pin::pin!(arrival(&entrance));
    loop {
        tokio::select! {
            // First who leaves: then there is room for who comes.
            biased;
            Some(_) = here.next() => {}
            _ = ticks.tick() => visits.end_overdue(clock::now()),
            arrived = &mut arriving, if visits.may_enter() => {
                arriving.set(arrival(&entrance));
                let (presence, registration) = visits.enter(clock::now());
                let router = router.clone();
                let visit = arrived.visit(Conversation { router, manner, presence });
                here.push(Abortable::new(visit, registration));
            }
        }
    }
}

/// Waits for a connection, whatever the system says meanwhile.
async fn arrival(entrance: &Entrance) -> SilentVisitor {
    loop {
        match entrance.accept().await {
            Ok(arrival) => return arrival,
            Err(error) => tracing::warn!(%error, "the admin address cannot accept a connection"),
        }
        clock::sleep(PAUSE).await;
    }
}

impl Terms {
    /// Lets each connection have many requests.
    pub(super) const fn many(room: VisitorRoom) -> Self {
        Self { room, once: None }
    }

    /// Lets each connection have one request and last so long.
    pub(super) const fn once(room: VisitorRoom, lifetime: Duration) -> Self {
        Self {
            room,
            once: Some(lifetime),
        }
    }
}

impl Conversation {
    /// Answers the requests on this connection.
    pub(super) async fn hold(self, connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, visitor: Visitor) {
        let once = self.manner.once;
        let mut http = Builder::new(TokioExecutor::new());
        if once.is_some() {
            http = http.http1_only();
        }
        http.http1()
            .max_buf_size(HEAD_BYTES_MAX as usize)
            .keep_alive(once.is_none());
        http.http2()
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buf_size(WINDOW as usize);
        let conversation = Arc::new(self);
        let answer = service_fn(|request| conversation.clone().answer(request, visitor.clone()));
        let held = http.serve_connection(TokioIo::new(connection), answer);
        let held = match once {
            Some(lifetime) => clock::timeout(lifetime, held).await.unwrap_or(Ok(())),
            None => held.await,
        };
        if let Err(error) = held {
            tracing::debug!(error, "a connection of the admin address failed");
        }
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        visitor: Visitor,
    ) -> hyper::Result<Response<AnswerBody>> {
        let path = request.uri().path();
        let access = super::access_of(path);
        let streams = access == PathAccess::Stream || is_lost(path, request.headers());
        // Probes share no room with anything else.
        let counts = !(access == PathAccess::Probe && request.body().is_end_stream());
        let Some(answering) = self.presence.request(counts, clock::now()) else {
            return Ok(AnswerBody::response(busy(), None, false));
        };
        let mut request = match streams {
            true => request.map(Body::new),
            false => match whole(request, access).await {
                Ok(request) => request,
                Err(refused) => return Ok(AnswerBody::response(refused, Some(answering), false)),
            },
        };
        answering.works();
        request.extensions_mut().insert(visitor);
        let response = self.router.clone().oneshot(request).await;
        let mut response = response.unwrap_or_else(|never| match never {});
        let bytes = response.body().size_hint().lower();
        if bytes > LARGE && !answering.weighs(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            response = busy();
        }
        Ok(AnswerBody::response(response, Some(answering), streams))
    }
}

/// Returns a request with all of its body, or why that is not taken.
async fn whole(request: Request<Incoming>, access: PathAccess) -> Result<Request<Body>, Response<Body>> {
    let (head, body) = request.into_parts();
    let most = match access == PathAccess::Config {
        true => config::SENT_BYTES_MAX,
        false => BODY_BYTES_MAX,
    };
    if body.is_end_stream() {
        return Ok(Request::from_parts(head, Body::empty()));
    }
    match axum::body::to_bytes(Body::new(body), most).await {
        Ok(bytes) => Ok(Request::from_parts(head, Body::from(bytes))),
        Err(error) => {
            let why = format!("the body has more than {most} bytes, or did not arrive: {error}\n");
            Err((StatusCode::PAYLOAD_TOO_LARGE, why).into_response())
        }
    }
}

/// Answers that there is no room for an answer.
fn busy() -> Response<Body> {
    forms::later("too many requests are being answered already; ask again in a few seconds\n").into_response()
}

/// The body of an answer. It notes when the visitor has to take something.
struct AnswerBody {
    body: Body,
    /// What is left of the last frame.
    left: Bytes,
    /// None if there was no room for the answer.
    answering: Option<Arc<Answering>>,
    /// Whether the visitor may ask again and again.
    streams: bool,
}

/// Some bytes of an answer. It is open for as long as the transport has them.
struct Sent {
    bytes: Bytes,
    _answering: Option<Arc<Answering>>,
}

impl AnswerBody {
    fn response(response: Response<Body>, answering: Option<Answering>, streams: bool) -> Response<Self> {
        if let Some(answering) = &answering {
            answering.sent(clock::now());
        }
        response.map(|body| Self {
            body,
            left: Bytes::new(),
            answering: answering.map(Arc::new),
            streams,
        })
    }

    /// Returns the next bytes: few, because each time they are asked for the visitor has taken something.
    fn next(&mut self) -> Frame<Bytes> {
        let bytes = self.left.split_to(self.left.len().min(SENT_BYTES_MAX));
        let answering = self.answering.clone();
        Frame::data(Bytes::from_owner(Sent {
            bytes,
            _answering: answering,
        }))
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = match self.left.is_empty() {
            true => Pin::new(&mut self.body).poll_frame(cx),
            false => Poll::Ready(Some(Ok(Frame::data(Bytes::new())))),
        };
        if let Some(answering) = &self.answering {
            match &polled {
                Poll::Ready(_) => answering.sent(clock::now()),
                Poll::Pending if self.streams => answering.listens(clock::now()),
                Poll::Pending => answering.works(),
            }
        }
        polled.map_ok(|frame| match frame.into_data() {
            Ok(bytes) => {
                if self.left.is_empty() {
                    self.left = bytes;
                }
                self.next()
            }
            Err(frame) => frame,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // It is asked for before the first frame.
        self.body.size_hint()
    }
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
