// SPDX-License-Identifier: Apache-2.0
//! One HTTP/2 connection to a control plane.
//!
//! Owns its keepalive. Knows nothing of the messages on it.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::BufReader;
use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::codegen::Service;

use super::access::ServerAccess;
use super::connect::{self, Connected};
use super::failure::Failure;
use super::io_monitor::{IoMonitor, Monitored};
use super::target::{ServerTarget, UpstreamSettings};
use super::token::ServerToken;
use crate::clock;
use crate::config::Credentials;
use crate::tls::HTTP2;

/// A connection on which the server has begun HTTP/2.
pub(super) struct Channel {
    sender: SendRequest<Body>,
    pub(super) io_monitor: Arc<IoMonitor>,
    round_trip: Duration,
    pub(super) origin: Uri,
    token: Option<Arc<ServerToken>>,
    pub(super) vigil: Vigil,
    hold: ConnectionRun,
}

/// How it is noticed that a silent server hangs.
#[derive(Clone, Copy)]
pub(super) enum Vigil {
    /// By nothing.
    None,
    /// By an HTTP/2 ping after so much silence.
    Pings(Duration),
    /// By a question after so much silence: the server forbids pings.
    Questions(Duration),
}

/// The futures of a connection that its [`ConnectionRun`] has not taken over yet.
#[derive(Clone, Default)]
struct ConnectionFutures(Arc<Mutex<Vec<ConnectionFuture>>>);

type ConnectionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl ConnectionFutures {
    fn take(&self) -> Vec<ConnectionFuture> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl<F> Executor<F> for ConnectionFutures
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        // A panic in it ends the connection, not the owner's task.
        let part = Box::pin(AssertUnwindSafe(task).catch_unwind().map(drop));
        self.0.lock().push(part);
    }
}

/// Runs a connection in its owner's task. Data is then consumed on the thread that read it, before much of it piles up, and its
/// memory is reused. Dropping this closes the connection and the socket, even if the peer no longer responds.
#[derive(Default)]
pub(super) struct ConnectionRun {
    driver: ConnectionFutures,
    running: FuturesUnordered<ConnectionFuture>,
}

impl ConnectionRun {
    /// Runs the connection until all its futures wait.
    pub(super) fn run(&mut self, cx: &mut Context<'_>) {
        let mut begun = self.driver.take();
        loop {
            self.running.extend(begun);
            while let Poll::Ready(Some(())) = self.running.poll_next_unpin(cx) {}
            begun = self.driver.take();
            if begun.is_empty() {
                return;
            }
        }
    }
}

impl Drop for ConnectionRun {
    fn drop(&mut self) {
        // Futures that were not taken over keep a handle to the driver that stores them: a reference cycle.
        drop(self.driver.take());
    }
}

/// How long a server has to begin HTTP/2 after it accepted the connection.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a server has to answer an HTTP/2 ping, or a question.
pub(super) const ALIVE: Duration = Duration::from_secs(20);
/// Large flow-control windows make large responses faster.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 8 * 1024 * 1024;
/// How much is read from the socket at a time.
const READ_BYTES: usize = 32 * 1024;

impl Channel {
    /// Connects and waits for the server's first bytes: it may never read what is sent before them (E-08).
    pub(super) async fn open(
        target: &ServerTarget,
        access: &ServerAccess,
        settings: &UpstreamSettings,
    ) -> Result<Self, Failure> {
        let (grpc, vigil) = (&target.grpc, target.vigil(settings));
        let Connected { io, round_trip } = connect::connect(
            &grpc.endpoint,
            target.host(),
            &access.credentials,
            HTTP2,
            settings.keepalive,
        )
        .await?;
        let io_monitor = Arc::new(IoMonitor::new(target.heard.clone()));
        // hyper reads a few KiB at a time.
        let io = BufReader::with_capacity(READ_BYTES, Monitored::new(io, io_monitor.clone()));
        let io = TokioIo::new(io);
        let mut hold = ConnectionRun::default();
        let mut builder = Builder::new(hold.driver.clone());
        builder
            .timer(clock::OwnTimer)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        if let Vigil::Pings(ping) = vigil {
            builder
                .keep_alive_interval(ping)
                .keep_alive_timeout(ALIVE.min(ping))
                .keep_alive_while_idle(true);
        }
        let (sender, connection) = builder.handshake(io).await.map_err(Failure::Http2)?;
        let (ended, end) = oneshot::channel();
        hold.driver.execute(async move {
            // The receiver is gone if the owner has dropped the connection.
            let _ = ended.send(connection.await);
        });
        tokio::select! {
            http2 = io_monitor.first() => if !http2 {
                return Err(Failure::Foreign);
            },
            ended = end => return Err(match ended {
                Ok(Err(error)) => Failure::Http2(error),
                Ok(Ok(())) | Err(_) => Failure::Ended,
            }),
            () = clock::sleep(SILENCE) => return Err(Failure::Silent(SILENCE)),
            never = poll_fn(|cx| { hold.run(cx); Poll::<Infallible>::Pending }) => match never {},
        }
        Ok(Self {
            sender,
            io_monitor,
            round_trip,
            origin: origin(target),
            token: access.token.clone(),
            vigil,
            hold,
        })
    }

    /// Returns how long the transport takes for a round trip.
    pub(super) const fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// Splits the connection into the sender of requests and the hold, which must live as long as the responses.
    pub(super) fn split(self) -> (Sender, ConnectionRun) {
        let Self {
            sender, token, hold, ..
        } = self;
        (Sender { sender, token }, hold)
    }
}

/// Returns the scheme and authority of requests to the server.
fn origin(target: &ServerTarget) -> Uri {
    let scheme = match target.grpc.credentials {
        Credentials::Insecure => "http",
        Credentials::Tls(_) => "https",
    };
    let authority = target.grpc.endpoint.authority(target.grpc.credentials.server_name());
    let uri = Uri::builder()
        .scheme(scheme)
        .authority(target.call.authority.as_ref().map_or(authority, ToString::to_string))
        .path_and_query(PathAndQuery::from_static("/"));
    // The host was resolved although it is not a valid authority; then any name will do.
    uri.build().unwrap_or_else(|_| Uri::from_static("http://localhost/"))
}

impl Vigil {
    /// Whether a connection that breaks after so much silence does so because a ping was not answered.
    pub(super) fn explains(self, silence: Duration) -> bool {
        match self {
            // The transport does not tell for how long it has waited, give or take some milliseconds.
            Self::Pings(ping) => silence >= ping + ALIVE.min(ping) / 2,
            Self::None | Self::Questions(_) => false,
        }
    }
}

/// Sends requests on the connection.
#[derive(Clone)]
pub(super) struct Sender {
    sender: SendRequest<Body>,
    token: Option<Arc<ServerToken>>,
}

impl Service<Request<Body>> for Sender {
    type Response = Response<Incoming>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.sender.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let agent = HeaderValue::from_static(concat!("distributary/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(header::USER_AGENT, agent);
        let Some(token) = self.token.clone() else {
            let sent = self.sender.send_request(request);
            return Box::pin(async move { Ok(sent.await?) });
        };
        let mut sender = self.sender.clone();
        Box::pin(async move {
            // A97: without a token the call fails with a status of its own, and is not sent.
            let header = token.header().await?;
            request.headers_mut().insert(header::AUTHORIZATION, header);
            sender.ready().await?;
            Ok(sender.send_request(request).await?)
        })
    }
}
