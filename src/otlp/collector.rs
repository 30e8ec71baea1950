// SPDX-License-Identifier: Apache-2.0
//! One export to a collector, over gRPC or HTTP.
//!
//! Owns the connection, one for each export, and how long an export may take. Knows nothing of what is exported.

use std::future::ready;
use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Uri;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prost::Message;
use tonic::client::Grpc;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::transport::Endpoint;
use tonic::{Extensions, Request};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::environment::{CollectorTarget, Protocol};
use super::refusal::CollectorRefusal;
use crate::clock;
use crate::tls::{HTTP1, HTTP2};
use crate::upstream::{Duplex, Failure, connect, host};

/// A collector.
pub(super) struct Collector {
    target: CollectorTarget,
}

/// The most that is read of an answer.
const ANSWER_BYTES: usize = 64 * 1024;
const AGENT: &str = concat!("distributary/", env!("CARGO_PKG_VERSION"));

impl Collector {
    pub(super) const fn new(target: CollectorTarget) -> Self {
        Self { target }
    }

    /// Returns where it is, and how it is spoken to.
    pub(super) const fn target(&self) -> &CollectorTarget {
        &self.target
    }

    /// Sends a message; returns the message that answers it.
    pub(super) async fn send<Q, A>(&self, message: Q) -> Result<A, CollectorRefusal>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let target = &self.target;
        let exchange = async {
            match target.protocol {
                Protocol::Grpc => self.call(message).await,
                Protocol::Http => {
                    let answer = self.post(message.encode_to_vec()).await?;
                    // The status has said that the collector took the message.
                    Ok(A::decode(answer).unwrap_or_default())
                }
            }
        };
        let answer = clock::timeout(target.timeout, exchange).await;
        answer.unwrap_or(Err(CollectorRefusal::Late(target.timeout)))
    }

    async fn connected(&self, protocol: &'static [u8]) -> Result<Box<dyn Duplex>, Failure> {
        let CollectorTarget {
            endpoint, credentials, ..
        } = &self.target;
        let name = host(endpoint);
        let keepalive = std::time::Duration::ZERO;
        let connected = connect(endpoint, name, credentials, protocol, keepalive).await?;
        Ok(connected.io)
    }

    async fn post(&self, message: Vec<u8>) -> Result<Bytes, CollectorRefusal> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(self.connected(HTTP1).await?)).await?;
        let uri = &self.target.uri;
        // In HTTP/1.1 the host is a field of its own.
        let host = uri.authority().map_or("", |authority| authority.as_str());
        let mut request = http::Request::post(uri.path_and_query().map_or("/", |path| path.as_str()))
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(USER_AGENT, AGENT);
        let body = if self.target.gzip {
            request = request.header(CONTENT_ENCODING, "gzip");
            compressed(&message)
        } else {
            message
        };
        let mut request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| CollectorRefusal::Unwritten(error.to_string()))?;
        request.headers_mut().extend(self.target.headers.clone());
        let exchange = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            // The status alone says whether the message was taken, so an answer that is too long or cut off counts as an empty one.
            let body = Limited::new(body, ANSWER_BYTES).collect().await;
            let body = body.map(|body| body.to_bytes()).unwrap_or_default();
            if head.status.is_success() {
                return Ok(body);
            }
            Err(CollectorRefusal::http(head.status, &head.headers, &body))
        };
        tokio::select! {
            answer = exchange => answer,
            ended = connection => match ended {
                Err(error) => Err(error.into()),
                Ok(()) => Err(CollectorRefusal::Broken("the collector closed the connection without an answer".to_owned())),
            },
        }
    }

    async fn call<Q, A>(&self, message: Q) -> Result<A, CollectorRefusal>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let target = &self.target;
        let mut connected = Some(TokioIo::new(self.connected(HTTP2).await?));
        let connect = service_fn(move |_: Uri| {
            let io = connected.take();
            ready(io.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)))
        });
        let endpoint = Endpoint::from(target.uri.clone()).user_agent(AGENT)?;
        let channel = endpoint.connect_with_connector(connect).await?;
        let mut client = Grpc::new(channel).max_decoding_message_size(ANSWER_BYTES);
        if target.gzip {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        client.ready().await?;
        let headers = MetadataMap::from_headers(target.headers.clone());
        let path = target.uri.path_and_query().cloned();
        let answer = client.unary(
            Request::from_parts(headers, Extensions::default(), message),
            path.unwrap_or_else(|| PathAndQuery::from_static("/")),
            ProstCodec::default(),
        );
        Ok(answer.await?.into_inner())
    }
}

fn compressed(message: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(message);
    encoder.finish().unwrap_or_default()
}
