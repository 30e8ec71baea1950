// SPDX-License-Identifier: Apache-2.0
//! The requests of one stream to the control plane, from its bytes. Knows nothing of answers.

use anyhow::Context as _;
use bytes::Bytes;
use h2::RecvStream;
use peers::request::Messages;

/// What was read of a stream.
pub(super) struct Requests {
    body: RecvStream,
    received: Messages,
}

impl Requests {
    pub(super) fn new(body: RecvStream) -> Self {
        Self {
            body,
            received: Messages::default(),
        }
    }

    /// Waits for more bytes.
    pub(super) async fn read(&mut self) -> anyhow::Result<()> {
        let data = self.body.data().await.context("the peer ended the stream")??;
        self.body.flow_control().release_capacity(data.len())?;
        self.received.extend(&data);
        Ok(())
    }

    /// Takes the next request that is complete.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        self.received.take().map(|(_, request)| request)
    }
}
