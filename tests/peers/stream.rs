// SPDX-License-Identifier: Apache-2.0
//! A client's stream of all types, in one dialect.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use prost::Message;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse};
use tonic::Code;
use xds::Dialect;

use crate::client::{Call, Client, Ended};
use crate::messages::answer;
use crate::soon;

/// `R` is the type of its responses.
pub struct Stream<R> {
    call: Call,
    of: PhantomData<R>,
}

pub type Delta = Stream<DeltaDiscoveryResponse>;
pub type Sotw = Stream<DiscoveryResponse>;

/// A delta response, in short.
pub struct Got {
    pub versions: BTreeMap<String, String>,
    pub removed: Vec<String>,
}

/// A response, and the dialect that it is in.
pub trait Answer: Message + Default {
    const DIALECT: Dialect;
}

impl Answer for DeltaDiscoveryResponse {
    const DIALECT: Dialect = Dialect::Delta;
}

impl Answer for DiscoveryResponse {
    const DIALECT: Dialect = Dialect::Sotw;
}

impl Client {
    pub async fn open<M: Message, R: Answer>(&self, first: &M) -> Stream<R> {
        let mut call = self.ads(R::DIALECT).await;
        call.send(first);
        Stream { call, of: PhantomData }
    }
}

impl<R: Answer> Stream<R> {
    /// One more request.
    pub fn says<M: Message>(&mut self, request: &M) {
        self.call.send(request);
    }

    /// The next response, which is neither acknowledged nor rejected.
    pub async fn message(&mut self) -> R {
        self.message_or_end().await.expect("the stream goes on")
    }

    /// The same, or how the stream ends.
    pub async fn message_or_end(&mut self) -> Result<R, (Code, String)> {
        let bytes = self.call.next_bytes().await;
        bytes.map(|bytes| R::decode(bytes).unwrap()).map_err(words)
    }

    /// Waits for its end; returns the code and the message.
    pub async fn end(&mut self) -> (Code, String) {
        let end = async {
            loop {
                if let Err(ended) = self.call.next_bytes().await {
                    return words(ended);
                }
            }
        };
        soon("the end", end).await
    }

    /// Whether nothing comes for a while.
    pub async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(500), self.message())
            .await
            .is_err()
    }
}

fn words(ended: Ended) -> (Code, String) {
    (Code::from(ended.code), ended.message)
}

impl Delta {
    /// The next response, acknowledged, as a whole.
    pub async fn whole(&mut self) -> DeltaDiscoveryResponse {
        let response = soon("a response", self.message()).await;
        self.says(&answer(&response.type_url, &response.nonce, None));
        response
    }

    /// The next response, acknowledged.
    pub async fn first(&mut self) -> Got {
        let response = self.whole().await;
        let found = response.resources.into_iter();
        Got {
            versions: found.map(|found| (found.name, found.version)).collect(),
            removed: response.removed_resources,
        }
    }

    /// The next response that is not empty.
    pub async fn next(&mut self) -> Got {
        loop {
            let got = self.first().await;
            if !(got.versions.is_empty() && got.removed.is_empty()) {
                return got;
            }
        }
    }
}

impl Sotw {
    /// The next response, acknowledged, from a client that asks for everything.
    pub async fn next(&mut self) -> DiscoveryResponse {
        let response = soon("a response", self.message()).await;
        self.says(&DiscoveryRequest {
            type_url: response.type_url.clone(),
            response_nonce: response.nonce.clone(),
            version_info: response.version_info.clone(),
            ..DiscoveryRequest::default()
        });
        response
    }
}
