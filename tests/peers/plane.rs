// SPDX-License-Identifier: Apache-2.0
//! A control plane on a real socket that does what a test tells it to.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Response};
use prost::Message;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::request::{Messages, framed, prefix};
pub use crate::{PATIENCE, soon};
use crate::{now, spawn};

/// A listener that hands every call to the test.
pub struct Plane {
    pub address: SocketAddr,
    calls: mpsc::Receiver<Call>,
    task: JoinHandle<()>,
}

/// One stream of a client.
pub struct Call {
    pub path: String,
    pub authority: String,
    pub headers: HeaderMap,
    requests: RecvStream,
    buffer: Messages,
    respond: SendResponse<Bytes>,
    responses: Option<SendStream<Bytes>>,
    connection: mpsc::Sender<Order>,
}

/// What the connection of a call is to do.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// Send a GOAWAY, and close.
    GoAway(Reason),
    /// Take no more calls, and close when the open ones have ended.
    Drain,
    /// Neither read nor write, but keep the socket open.
    Freeze,
}

/// Listens on an address that was in use before.
pub async fn listen(address: SocketAddr) -> TcpListener {
    let end = now() + PATIENCE;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => assert!(now() < end, "{error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

impl Plane {
    pub async fn start() -> Self {
        Self::with(h2::server::Builder::new()).await
    }

    /// A plane with its own HTTP/2 settings.
    pub async fn with(builder: h2::server::Builder) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::tcp(listener, builder)
    }

    /// A plane that returns to its address.
    pub async fn again(address: SocketAddr) -> Self {
        Self::tcp(listen(address).await, h2::server::Builder::new())
    }

    /// A plane on this listener.
    pub fn tcp(listener: TcpListener, builder: h2::server::Builder) -> Self {
        let address = listener.local_addr().unwrap();
        let listener = Arc::new(listener);
        Self::on(address, builder, move || {
            let listener = listener.clone();
            async move { listener.accept().await.unwrap().0 }
        })
    }

    pub fn unix(path: &std::path::Path) -> Self {
        Self::on_unix(UnixListener::bind(path).unwrap())
    }

    /// A plane on this listener.
    pub fn on_unix(listener: UnixListener) -> Self {
        let listener = Arc::new(listener);
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        Self::on(nowhere, h2::server::Builder::new(), move || {
            let listener = listener.clone();
            async move { listener.accept().await.unwrap().0 }
        })
    }

    /// A plane on the connections that `accept` returns.
    pub fn on<S, A, F>(address: SocketAddr, builder: h2::server::Builder, mut accept: A) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        A: FnMut() -> F + Send + 'static,
        F: Future<Output = S> + Send,
    {
        let (sender, calls) = mpsc::channel(16);
        let task = spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let io = accept().await;
                connections.spawn(serve(io, builder.clone(), sender.clone()));
            }
        });
        Self { address, calls, task }
    }

    /// The next call.
    pub async fn call(&mut self) -> Call {
        soon("a call", self.next_call()).await.unwrap()
    }

    /// The next call, however long it takes.
    pub async fn next_call(&mut self) -> Option<Call> {
        self.calls.recv().await
    }

    /// Whether a call is there already.
    pub fn has_call(&mut self) -> Option<Call> {
        self.calls.try_recv().ok()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve<S>(io: S, builder: h2::server::Builder, calls: mpsc::Sender<Call>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Ok(mut connection) = builder.handshake::<_, Bytes>(io).await else {
        return;
    };
    let (sender, mut orders) = mpsc::channel(4);
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::GoAway(reason)) => connection.abrupt_shutdown(reason),
                Some(Order::Drain) => connection.graceful_shutdown(),
                Some(Order::Freeze) => std::future::pending().await,
                None => {}
            },
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else {
                    return;
                };
                let (parts, requests) = request.into_parts();
                let call = Call {
                    path: parts.uri.path().to_owned(),
                    authority: parts.uri.authority().map(ToString::to_string).unwrap_or_default(),
                    headers: parts.headers,
                    requests,
                    buffer: Messages::default(),
                    respond,
                    responses: None,
                    connection: sender.clone(),
                };
                if calls.send(call).await.is_err() {
                    return;
                }
            }
        }
    }
}

impl Call {
    /// The next request.
    pub async fn request<M: Message + Default>(&mut self) -> M {
        soon("a request", self.try_request())
            .await
            .expect("the client closed the stream")
    }

    /// The next request, if the client has not closed the stream.
    pub async fn try_request<M: Message + Default>(&mut self) -> Option<M> {
        loop {
            if let Some((_, message)) = self.buffer.take() {
                return Some(M::decode(message).unwrap());
            }
            let data = self.requests.data().await?.ok()?;
            self.requests.flow_control().release_capacity(data.len()).unwrap();
            self.buffer.extend(&data);
        }
    }

    pub async fn delta(&mut self) -> DeltaDiscoveryRequest {
        self.request().await
    }

    pub async fn sotw(&mut self) -> DiscoveryRequest {
        self.request().await
    }

    /// Waits until the client is gone.
    pub async fn gone(&mut self) {
        soon("the end of the stream", async {
            while self.try_request::<DeltaDiscoveryRequest>().await.is_some() {}
        })
        .await;
    }

    pub fn send(&mut self, message: &impl Message) {
        self.send_raw(framed(message));
    }

    /// Sends a message of these bytes.
    pub fn send_bytes(&mut self, message: &[u8]) {
        self.send_raw([&prefix(message.len()), message].concat().into());
    }

    /// Sends these bytes as they are.
    pub fn send_raw(&mut self, bytes: Bytes) {
        self.begin();
        // The client may have closed the stream; the test checks that later.
        let _ = self.responses.as_mut().unwrap().send_data(bytes, false);
    }

    fn begin(&mut self) {
        if self.responses.is_none() {
            self.begin_with(Response::builder());
        }
    }

    /// Begins the responses with these header fields as well.
    pub fn begin_with(&mut self, head: http::response::Builder) {
        if self.responses.is_none() {
            let head = head.header("content-type", "application/grpc");
            self.responses = Some(self.respond.send_response(head.body(()).unwrap(), false).unwrap());
        }
    }

    /// Ends the stream with a gRPC status.
    pub fn finish(mut self, code: tonic::Code, message: &str) {
        let code = (code as i32).to_string();
        if let Some(mut responses) = self.responses.take() {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", code.parse().unwrap());
            trailers.insert("grpc-message", message.parse().unwrap());
            let _ = responses.send_trailers(trailers);
        } else {
            let head = Response::builder()
                .header("content-type", "application/grpc")
                .header("grpc-status", code)
                .header("grpc-message", message);
            let _ = self.respond.send_response(head.body(()).unwrap(), true);
        }
    }

    /// Resets the stream.
    pub fn reset(mut self, reason: Reason) {
        match self.responses.take() {
            Some(mut responses) => responses.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
    }

    pub async fn go_away(&self, reason: Reason) {
        self.connection.send(Order::GoAway(reason)).await.unwrap();
    }

    pub async fn drain(&self) {
        self.connection.send(Order::Drain).await.unwrap();
    }

    pub async fn freeze(&self) {
        self.connection.send(Order::Freeze).await.unwrap();
    }
}
