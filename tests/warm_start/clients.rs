// SPDX-License-Identifier: Apache-2.0
//! Clients of the relay.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse};
use distributary::wire::message;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::Request;
use prost::Message;

use crate::plane::soon;

const SERVICE: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService";

/// One connection of clients.
pub(crate) struct Client(SendRequest<Bytes>);

/// One ADS stream; `R` is the type of its responses.
pub(crate) struct Stream<R> {
    requests: SendStream<Bytes>,
    responses: RecvStream,
    read: BytesMut,
    of: PhantomData<R>,
}

pub(crate) type Delta = Stream<DeltaDiscoveryResponse>;
pub(crate) type Sotw = Stream<DiscoveryResponse>;

/// A delta response, in short.
pub(crate) struct Got {
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) removed: Vec<String>,
}

/// A response, and the method that it comes from.
pub(crate) trait Answer: Message + Default {
    const METHOD: &'static str;
}

impl Answer for DeltaDiscoveryResponse {
    const METHOD: &'static str = "DeltaAggregatedResources";
}

impl Answer for DiscoveryResponse {
    const METHOD: &'static str = "StreamAggregatedResources";
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let socket = soon("a connection", tokio::net::TcpStream::connect(address))
            .await
            .unwrap();
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(1 << 20)
            .initial_connection_window_size(64 << 20);
        let (send, connection) = builder.handshake(socket).await.unwrap();
        #[expect(clippy::disallowed_methods, reason = "a connection runs beside the test")]
        tokio::spawn(async move { drop(connection.await) });
        Self(send)
    }

    pub(crate) async fn open<M: Message, R: Answer>(&self, first: &M) -> Stream<R> {
        let request = Request::post(format!("http://relay{SERVICE}/{}", R::METHOD))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let mut send = self.0.clone().ready().await.unwrap();
        let (response, mut requests) = send.send_request(request, false).unwrap();
        requests.send_data(message(&first.encode_to_vec()), false).unwrap();
        let responses = soon("an answer", response).await.unwrap().into_body();
        Stream {
            requests,
            responses,
            read: BytesMut::new(),
            of: PhantomData,
        }
    }
}

impl<R: Answer> Stream<R> {
    /// One more request.
    pub(crate) fn says<M: Message>(&mut self, request: &M) {
        self.requests
            .send_data(message(&request.encode_to_vec()), false)
            .unwrap();
    }

    /// The next response, which is neither acknowledged nor rejected.
    pub(crate) async fn message(&mut self) -> R {
        self.message_or_end().await.expect("the stream goes on")
    }

    /// The same, or how the stream ends.
    pub(crate) async fn message_or_end(&mut self) -> Result<R, (tonic::Code, String)> {
        loop {
            if let Some(length) = self.read.get(1..5).map(|mut bytes| bytes.get_u32() as usize)
                && self.read.len() >= 5 + length
            {
                self.read.advance(5);
                return Ok(R::decode(self.read.split_to(length)).unwrap());
            }
            let Some(bytes) = self.responses.data().await else {
                return Err(self.end().await);
            };
            let bytes = bytes.unwrap();
            self.responses.flow_control().release_capacity(bytes.len()).unwrap();
            self.read.extend_from_slice(&bytes);
        }
    }

    /// Waits for its end; returns the code and the message.
    pub(crate) async fn end(&mut self) -> (tonic::Code, String) {
        let trailers = soon("the end", async {
            while let Some(bytes) = self.responses.data().await {
                let length = bytes.unwrap().len();
                self.responses.flow_control().release_capacity(length).unwrap();
            }
            self.responses.trailers().await.unwrap().unwrap()
        })
        .await;
        let status = tonic::Status::from_header_map(&trailers).unwrap();
        (status.code(), status.message().to_owned())
    }

    /// The same of a stream on which there must be no response.
    pub(crate) async fn ends_unanswered(&mut self) -> (tonic::Code, String) {
        let data = soon("the end", self.responses.data()).await;
        assert!(self.read.is_empty() && data.is_none(), "it is answered");
        self.end().await
    }

    /// Whether nothing comes for a while.
    pub(crate) async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(500), self.message())
            .await
            .is_err()
    }
}

impl Delta {
    /// The next response, acknowledged, as a whole.
    pub(crate) async fn whole(&mut self) -> DeltaDiscoveryResponse {
        let response = soon("a response", self.message()).await;
        let ack = proto::envoy::service::discovery::v3::DeltaDiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            ..Default::default()
        };
        self.says(&ack);
        response
    }

    /// The next response, acknowledged.
    pub(crate) async fn first(&mut self) -> Got {
        let response = self.whole().await;
        Got {
            versions: response
                .resources
                .into_iter()
                .map(|found| (found.name, found.version))
                .collect(),
            removed: response.removed_resources,
        }
    }

    /// The next response that is not empty.
    pub(crate) async fn next(&mut self) -> Got {
        loop {
            let got = self.first().await;
            if !(got.versions.is_empty() && got.removed.is_empty()) {
                return got;
            }
        }
    }
}

impl Sotw {
    /// The next response, from a client that asks for everything.
    pub(crate) async fn next(&mut self) -> DiscoveryResponse {
        self.next_asking(|_| Vec::new()).await
    }

    /// The next response, acknowledged with the names of its type.
    pub(crate) async fn next_asking(&mut self, names: impl FnOnce(&str) -> Vec<String>) -> DiscoveryResponse {
        let response = soon("a response", self.message()).await;
        let ack = proto::envoy::service::discovery::v3::DiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            version_info: response.version_info.clone(),
            resource_names: names(&response.type_url),
            ..Default::default()
        };
        self.says(&ack);
        response
    }
}
