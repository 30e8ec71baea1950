//! The requests of one stream to the control plane: its bytes, and who asks. Knows nothing of answers.

use anyhow::Context as _;
use bytes::{Buf as _, Bytes, BytesMut};
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use h2::RecvStream;
use prost::Message as _;

use crate::wire::kind::Dialect;

/// What was read of a stream.
pub(super) struct Requests {
    body: RecvStream,
    received: BytesMut,
}

/// The length of what stands before each gRPC message.
pub(super) const PREFIX_BYTES: usize = 5;

impl Requests {
    pub(super) fn new(body: RecvStream) -> Self {
        Self {
            body,
            received: BytesMut::new(),
        }
    }

    /// Waits for more bytes.
    pub(super) async fn read(&mut self) -> anyhow::Result<()> {
        let data = self.body.data().await.context("the peer ended the stream")??;
        self.body.flow_control().release_capacity(data.len())?;
        self.received.extend_from_slice(&data);
        Ok(())
    }

    /// Takes the next request that is complete.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        let length = self.next()?;
        self.received.advance(PREFIX_BYTES);
        Some(self.received.split_to(length).freeze())
    }

    /// Waits for the first request, which stays there, and returns the id of its node.
    pub(super) async fn node(&mut self, dialect: Dialect) -> anyhow::Result<String> {
        loop {
            let first = self
                .next()
                .and_then(|length| self.received.get(PREFIX_BYTES..PREFIX_BYTES + length));
            let Some(first) = first else {
                self.read().await?;
                continue;
            };
            let node = match dialect {
                Dialect::Delta => DeltaDiscoveryRequest::decode(first)?.node,
                Dialect::Sotw => DiscoveryRequest::decode(first)?.node,
            };
            return Ok(node.map_or_else(String::new, |node| node.id));
        }
    }

    /// Returns the length of the next request, if it is complete.
    fn next(&self) -> Option<usize> {
        let [_, length @ ..] = *self.received.first_chunk::<PREFIX_BYTES>()?;
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        (self.received.len() >= PREFIX_BYTES + length).then_some(length)
    }
}
