// SPDX-License-Identifier: Apache-2.0
//! The requests of one stream to the control plane, from its bytes. Knows nothing of answers.

use anyhow::Context as _;
use bytes::{Buf as _, Bytes, BytesMut};
use h2::RecvStream;

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

    /// Returns the length of the next request, if it is complete.
    fn next(&self) -> Option<usize> {
        let [_, length @ ..] = *self.received.first_chunk::<PREFIX_BYTES>()?;
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        (self.received.len() >= PREFIX_BYTES + length).then_some(length)
    }
}
