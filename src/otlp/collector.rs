//! One export to a collector, over gRPC or HTTP.
//!
//! Owns the connection, one for each export, and how long an export may take. Knows nothing of what is exported.

use std::io::Write as _;

use bytes::{BufMut as _, Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, TE, USER_AGENT};
use http::request::Builder;
use http::{HeaderMap, HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::environment::{Protocol, Target};
use crate::clock;
use crate::tls::{HTTP1, HTTP2};
use crate::upstream::{Duplex, Failure, connect, host};

/// A collector.
pub(super) struct Collector {
    target: Target,
}

/// Why an export failed.
#[derive(Debug)]
pub(super) struct Rejected(pub(super) String);

/// The most that is read of an answer, and the most of it that is shown.
const ANSWER_BYTES: usize = 64 * 1024;
const WORDS: usize = 200;
/// The bytes before a gRPC message: whether it is compressed, and its length.
const PREFIX: usize = 5;

impl From<Failure> for Rejected {
    fn from(failure: Failure) -> Self {
        Self(failure.to_string())
    }
}

impl From<hyper::Error> for Rejected {
    fn from(error: hyper::Error) -> Self {
        Self(format!("HTTP/1.1: {error}; is it the port for OTLP over HTTP?"))
    }
}

impl From<h2::Error> for Rejected {
    fn from(error: h2::Error) -> Self {
        Self(format!("HTTP/2: {error}; is it the port for OTLP over gRPC?"))
    }
}

impl Collector {
    pub(super) const fn new(target: Target) -> Self {
        Self { target }
    }

    /// Returns where it is.
    pub(super) fn endpoint(&self) -> Uri {
        self.target.uri.clone()
    }

    /// Sends a message; returns the message that answers it.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<Bytes, Rejected> {
        let target = &self.target;
        let exchange = async {
            match target.protocol {
                Protocol::Grpc => self.call(message).await,
                Protocol::Http => self.post(message).await,
            }
        };
        let answer = clock::timeout(target.timeout, exchange).await;
        answer.unwrap_or_else(|| Err(Rejected(format!("no answer within {:?}", target.timeout))))
    }

    async fn connected(&self, protocol: &'static [u8]) -> Result<Box<dyn Duplex>, Failure> {
        let Target {
            endpoint, credentials, ..
        } = &self.target;
        let name = host(endpoint);
        let keepalive = std::time::Duration::ZERO;
        let connected = connect(endpoint, name, credentials, protocol, keepalive).await?;
        Ok(connected.io)
    }

    fn request(&self, content_type: &'static str) -> Builder {
        let mut request = Request::post(&self.target.uri)
            .header(CONTENT_TYPE, content_type)
            .header(USER_AGENT, concat!("distributary/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &self.target.headers {
            request = request.header(name, value);
        }
        request
    }

    fn body(&self, message: Vec<u8>) -> Vec<u8> {
        if self.target.gzip {
            compressed(&message)
        } else {
            message
        }
    }

    async fn post(&self, message: Vec<u8>) -> Result<Bytes, Rejected> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(self.connected(HTTP1).await?)).await?;
        let mut request = self.request("application/x-protobuf");
        if self.target.gzip {
            request = request.header(CONTENT_ENCODING, "gzip");
        }
        let uri = &self.target.uri;
        // In HTTP/1.1 the host is a field of its own.
        let host = uri.authority().map_or("", |authority| authority.as_str());
        let request = request
            .header(HOST, host)
            .uri(uri.path_and_query().map_or("/", |path| path.as_str()))
            .body(Full::new(Bytes::from(self.body(message))))
            .map_err(|error| Rejected(error.to_string()))?;
        let exchange = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| Rejected(error.to_string()))?.to_bytes();
            if head.status.is_success() {
                return Ok(body);
            }
            Err(Rejected(format!("HTTP status {}: {}", head.status, words(&body))))
        };
        tokio::select! {
            answer = exchange => answer,
            ended = connection => match ended {
                Err(error) => Err(error.into()),
                Ok(()) => Err(closed()),
            },
        }
    }

    async fn call(&self, message: Vec<u8>) -> Result<Bytes, Rejected> {
        let (sender, connection) = h2::client::handshake(self.connected(HTTP2).await?).await?;
        let mut request = self.request("application/grpc").header(TE, "trailers");
        if self.target.gzip {
            request = request.header("grpc-encoding", "gzip");
        }
        let request = request.body(()).map_err(|error| Rejected(error.to_string()))?;
        let body = framed(self.body(message), self.target.gzip);
        let exchange = async {
            let (response, mut stream) = sender.ready().await?.send_request(request, false)?;
            stream.send_data(body, true)?;
            let (head, mut body) = response.await?.into_parts();
            let mut read = BytesMut::new();
            while let Some(data) = body.data().await {
                let data = data?;
                // This fails only if the stream has ended.
                let _ = body.flow_control().release_capacity(data.len());
                if read.len() < ANSWER_BYTES {
                    read.extend_from_slice(&data);
                }
            }
            let trailers = body.trailers().await?;
            judged(&head.headers, trailers.as_ref())?;
            let message = read.freeze();
            Ok(message.slice(PREFIX.min(message.len())..))
        };
        tokio::select! {
            answer = exchange => answer,
            ended = connection => match ended {
                Err(error) => Err(error.into()),
                Ok(()) => Err(closed()),
            },
        }
    }
}

fn closed() -> Rejected {
    Rejected("the collector closed the connection without an answer".to_owned())
}

/// Returns an error unless the call ended with the status OK.
fn judged(head: &HeaderMap, trailers: Option<&HeaderMap>) -> Result<(), Rejected> {
    let all = trailers.into_iter().chain([head]);
    let field = |name: &str| {
        all.clone()
            .find_map(|fields| fields.get(name))
            .map(HeaderValue::as_bytes)
    };
    match field("grpc-status") {
        Some(b"0") => Ok(()),
        Some(status) => Err(Rejected(format!(
            "gRPC status {}: {}",
            words(status),
            words(field("grpc-message").unwrap_or_default())
        ))),
        None => Err(Rejected(
            "the answer is not gRPC; is it the port for OTLP over gRPC?".to_owned(),
        )),
    }
}

/// Returns the beginning of what a collector says, safe to print.
fn words(body: &[u8]) -> String {
    let shown = body.get(..WORDS).unwrap_or(body);
    String::from_utf8_lossy(shown).trim().escape_debug().to_string()
}

fn compressed(message: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(message);
    encoder.finish().unwrap_or_default()
}

fn framed(message: Vec<u8>, compressed: bool) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(u8::from(compressed));
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(&message);
    framed.freeze()
}
