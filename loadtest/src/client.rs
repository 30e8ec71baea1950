//! One simulated client: one connection, one ADS stream, an acknowledgement for every response. It owns the socket and
//! the requests; what is right and wrong is the checker's.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use h2::client::{Connection, ResponseFuture};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Method, Request};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::arguments::{Dialect, Kind};
use crate::checker::{Answer, Checker};
use crate::tally::Feed;
use crate::violation::Violation;
use crate::wire::{self, Reader};

/// What a client asks for and how.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) number: u32,
    pub(crate) dialect: Dialect,
    pub(crate) kind: Kind,
    /// None for everything.
    pub(crate) names: Vec<String>,
    /// C-06: the versions of what it holds from streams before.
    pub(crate) held: BTreeMap<String, String>,
}

/// What some clients are told to ask for besides: those whose number is a multiple of `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) every: u32,
    pub(crate) index: u32,
}

/// As Envoy's, so that the server's own limits are what is seen.
const STREAM_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 24 * 1024 * 1024;

type Http2 = Connection<TcpStream, Bytes>;

/// A connected client.
pub(crate) struct Client {
    asking: Asking,
    connection: Http2,
    requests: SendStream<Bytes>,
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    reader: Reader,
}

impl Client {
    /// Connects and asks.
    pub(crate) async fn connect(server: SocketAddr, asking: Asking) -> Result<Self, Violation> {
        let socket = TcpStream::connect(server).await?;
        socket.set_nodelay(true)?;
        let (mut sender, connection) = h2::client::Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake::<_, Bytes>(socket)
            .await?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{server}{}", asking.dialect.path()))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .map_err(|error| Violation::Connection(error.to_string()))?;
        let (response, mut requests) = sender.send_request(request, false)?;
        requests.send_data(asking.first(), false)?;
        Ok(Self {
            asking,
            connection,
            requests,
            response: Some(response),
            body: None,
            reader: Reader::default(),
        })
    }

    /// Reads until the stream ends, and asks for what is wished. `answered` is called after every response.
    pub(crate) async fn run(
        &mut self,
        checker: &RefCell<Checker>,
        feed: &Feed,
        wishes: &mut watch::Receiver<Option<Wish>>,
        mut answered: impl FnMut(&Answer),
    ) -> Result<(), Violation> {
        loop {
            let data = tokio::select! {
                data = poll_fn(|context| self.poll(context)) => data?,
                Ok(()) = wishes.changed() => {
                    let wish = *wishes.borrow_and_update();
                    if let Some(wish) = wish.filter(|wish| self.asking.number.is_multiple_of(wish.every)) {
                        self.requests.send_data(self.asking.also(&mut checker.borrow_mut(), wish.index), false)?;
                    }
                    continue;
                }
            };
            let Some(data) = data else {
                return Err(Violation::Ended(self.status().await));
            };
            let now = now();
            let mut answers = Vec::new();
            {
                let (mut checker, mut tally) = (checker.borrow_mut(), feed.tally());
                tally.bytes += u64::try_from(data.len()).unwrap_or_default();
                self.reader.feed(&data, |unit| {
                    answers.extend(checker.handle(&unit, &mut tally, now)?);
                    Ok::<(), Violation>(())
                })?;
                tally.acknowledgements += u64::try_from(answers.len()).unwrap_or_default();
            }
            if let Some(body) = &mut self.body {
                body.flow_control().release_capacity(data.len())?;
            }
            for answer in answers {
                answered(&answer);
                self.requests.send_data(self.asking.acknowledgement(answer), false)?;
            }
        }
    }

    /// Connection and stream live in one task: nothing has to be woken from one to the other.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Violation>> {
        let closed = Pin::new(&mut self.connection).poll(context)?.is_ready();
        if let Some(response) = &mut self.response
            && let Poll::Ready(response) = Pin::new(response).poll(context)?
        {
            self.response = None;
            if response.status() != http::StatusCode::OK {
                return Poll::Ready(Err(Violation::Status(response.status().as_u16())));
            }
            if let Some(status) = grpc_status(response.headers()) {
                return Poll::Ready(Err(Violation::Ended(status)));
            }
            self.body = Some(response.into_body());
        }
        let Some(body) = &mut self.body else {
            return if closed { Poll::Ready(Ok(None)) } else { Poll::Pending };
        };
        match body.poll_data(context)? {
            Poll::Ready(data) => Poll::Ready(Ok(data)),
            Poll::Pending if closed => Poll::Ready(Ok(None)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// What the server said at the end.
    async fn status(&mut self) -> String {
        let Some(body) = &mut self.body else {
            return "none, not even headers".to_owned();
        };
        match body.trailers().await {
            Ok(Some(trailers)) => grpc_status(&trailers).unwrap_or_else(|| "none in the trailers".to_owned()),
            Ok(None) => "none".to_owned(),
            Err(error) => format!("none: {error}"),
        }
    }
}

fn grpc_status(headers: &HeaderMap) -> Option<String> {
    let code = headers.get("grpc-status")?;
    let message = headers
        .get("grpc-message")
        .map(|text| text.as_bytes())
        .unwrap_or_default();
    Some(format!(
        "{} {}",
        String::from_utf8_lossy(code.as_bytes()),
        String::from_utf8_lossy(message)
    ))
}

impl Asking {
    fn node(&self) -> Node {
        Node {
            id: format!("load-{}", self.number),
            cluster: "load".to_owned(),
            user_agent_name: "distributary-load".to_owned(),
            ..Node::default()
        }
    }

    fn first(&self) -> Bytes {
        match self.dialect {
            Dialect::Delta => wire::frame(&DeltaDiscoveryRequest {
                node: Some(self.node()),
                type_url: self.kind.type_url().to_owned(),
                resource_names_subscribe: self.names.clone(),
                initial_resource_versions: self.held.clone(),
                ..DeltaDiscoveryRequest::default()
            }),
            Dialect::Sotw => wire::frame(&DiscoveryRequest {
                node: Some(self.node()),
                type_url: self.kind.type_url().to_owned(),
                resource_names: self.names.clone(),
                ..DiscoveryRequest::default()
            }),
        }
    }

    /// One extra more; only delta has scenarios with those.
    fn also(&self, checker: &mut Checker, index: u32) -> Bytes {
        checker.want_also(index);
        wire::frame(&DeltaDiscoveryRequest {
            type_url: self.kind.type_url().to_owned(),
            resource_names_subscribe: vec![checker.name(index)],
            ..DeltaDiscoveryRequest::default()
        })
    }

    fn acknowledgement(&self, answer: Answer) -> Bytes {
        match self.dialect {
            Dialect::Delta => wire::frame(&DeltaDiscoveryRequest {
                type_url: self.kind.type_url().to_owned(),
                response_nonce: answer.nonce,
                ..DeltaDiscoveryRequest::default()
            }),
            // E-02: a SotW acknowledgement repeats all names.
            Dialect::Sotw => wire::frame(&DiscoveryRequest {
                version_info: answer.version,
                type_url: self.kind.type_url().to_owned(),
                resource_names: self.names.clone(),
                response_nonce: answer.nonce,
                ..DiscoveryRequest::default()
            }),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the edge where bytes arrive is where their time is taken"
)]
fn now() -> Instant {
    Instant::now()
}
