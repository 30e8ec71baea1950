// SPDX-License-Identifier: Apache-2.0
//! A client that can also do what no well-behaved client does.

use std::net::SocketAddr;
use std::path::PathBuf;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use prost::Message;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::Code;
use xds::Dialect;

use crate::request::{Messages, framed};
use crate::{PATIENCE, path, spawn};

/// Where a relay listens.
#[derive(Clone, Debug)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<&Self> for Address {
    fn from(address: &Self) -> Self {
        address.clone()
    }
}

/// One HTTP/2 connection.
#[derive(Clone)]
pub struct Client {
    send: SendRequest<Bytes>,
}

/// One call, whose response headers have come.
pub struct Call {
    pub head: Response<()>,
    pub requests: SendStream<Bytes>,
    pub responses: RecvStream,
    read: Messages,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: i32,
    pub message: String,
    /// Whether the client is told when to come back.
    pub pushback: bool,
}

impl Ended {
    /// The call ended with this code, and the client was told when to come back, or was not.
    #[track_caller]
    pub fn assert(&self, code: Code, pushback: bool) {
        assert_eq!((self.code, self.pushback), (code as i32, pushback), "{self:?}");
    }
}

/// What the client sends before it waits for the response headers.
pub enum Half {
    Open,
    Closed,
    /// One message, and then the end of the request.
    Unary(Bytes),
}

impl Client {
    pub async fn connect(address: impl Into<Address>) -> Self {
        Self::with(
            &address.into(),
            h2::client::Builder::new()
                .initial_window_size(16 << 20)
                .initial_connection_window_size(64 << 20),
        )
        .await
        .0
    }

    /// A connection with other settings, and the task that keeps it going.
    pub async fn with(address: &Address, builder: &h2::client::Builder) -> (Self, JoinHandle<()>) {
        match address {
            Address::Tcp(address) => Self::over(tcp(*address).await, builder).await,
            Address::Unix(path) => Self::over(UnixStream::connect(path).await.unwrap(), builder).await,
        }
    }

    pub async fn over<S>(socket: S, builder: &h2::client::Builder) -> (Self, JoinHandle<()>)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (send, connection) = builder.handshake(socket).await.unwrap();
        let task = spawn(async move { drop(connection.await) });
        (Self { send }, task)
    }

    /// A stream of all types.
    pub async fn ads(&self, dialect: Dialect) -> Call {
        self.call(path(dialect)).await
    }

    /// A call of a gRPC method.
    pub async fn call(&self, path: &str) -> Call {
        self.call_with(path, &[]).await
    }

    pub async fn call_with(&self, path: &str, headers: &[(&str, &str)]) -> Call {
        let mut all = vec![("content-type", "application/grpc"), ("te", "trailers")];
        all.extend_from_slice(headers);
        self.request("POST", path, &all, Half::Open).await.unwrap()
    }

    /// A call of a method that takes exactly one message.
    pub async fn unary(&self, path: &str, request: &impl Message) -> Call {
        let headers = [("content-type", "application/grpc"), ("te", "trailers")];
        let half = Half::Unary(framed(request));
        self.request("POST", path, &headers, half).await.unwrap()
    }

    /// Any request, as soon as the server allows one more.
    pub async fn request(
        &self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        half: Half,
    ) -> Result<Call, h2::Error> {
        let mut request = Request::builder().method(verb).uri(format!("http://relay{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let answered = async {
            let mut send = self.send.clone().ready().await?;
            let (response, mut requests) = send.send_request(request, matches!(half, Half::Closed))?;
            if let Half::Unary(bytes) = half {
                requests.send_data(bytes, true)?;
            }
            let (head, responses) = response.await?.into_parts();
            Ok(Call {
                head: Response::from_parts(head, ()),
                requests,
                responses,
                read: Messages::default(),
            })
        };
        timeout(PATIENCE, answered).await.expect("no response headers")
    }
}

async fn tcp(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

impl Call {
    /// Sends one message.
    pub fn send(&mut self, request: &impl Message) {
        self.send_bytes(framed(request));
    }

    pub fn send_bytes(&mut self, bytes: impl Into<Bytes>) {
        // A call that the server has ended takes no more messages; its end says why.
        drop(self.requests.send_data(bytes.into(), false));
    }

    pub fn close_half(&mut self) {
        self.requests.send_data(Bytes::new(), true).unwrap();
    }

    /// The next message, or how the call ended.
    pub async fn next<M: Message + Default>(&mut self) -> Result<M, Ended> {
        timeout(PATIENCE, self.next_bytes())
            .await
            .expect("no response")
            .map(|bytes| M::decode(bytes).unwrap())
    }

    pub async fn end(&mut self) -> Ended {
        let ended = timeout(PATIENCE, self.next_bytes()).await.expect("the call goes on");
        ended.expect_err("a response instead of the end")
    }

    /// Whether nothing comes for a while.
    pub async fn is_silent(&mut self) -> bool {
        timeout(std::time::Duration::from_millis(300), self.next_bytes())
            .await
            .is_err()
    }

    pub async fn next_bytes(&mut self) -> Result<Bytes, Ended> {
        Ok(self.next_flagged().await?.1)
    }

    /// The next message, and whether it is compressed.
    pub async fn next_flagged(&mut self) -> Result<(u8, Bytes), Ended> {
        loop {
            if let Some(message) = self.read.take() {
                return Ok(message);
            }
            match self.responses.data().await {
                Some(Ok(bytes)) => {
                    self.responses.flow_control().release_capacity(bytes.len()).unwrap();
                    self.read.extend(&bytes);
                }
                Some(Err(error)) => {
                    return Err(Ended {
                        code: -1,
                        message: format!("reset: {error}"),
                        pushback: false,
                    });
                }
                None => {
                    assert!(self.read.is_empty(), "the response ends in the middle of a message");
                    let trailers = self.responses.trailers().await.unwrap();
                    let trailers = trailers.unwrap_or_else(|| self.head.headers().clone());
                    return Err(ended(&trailers));
                }
            }
        }
    }
}

fn ended(headers: &HeaderMap) -> Ended {
    let status = tonic::Status::from_header_map(headers).expect("no grpc-status");
    Ended {
        code: status.code() as i32,
        message: status.message().to_owned(),
        pushback: headers.contains_key("grpc-retry-pushback-ms"),
    }
}
