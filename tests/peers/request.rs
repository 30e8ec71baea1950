// SPDX-License-Identifier: Apache-2.0
//! What a client says of one type in one request, and messages in the bytes of a stream. Without I/O.
//!
//! Owns which field of which dialect says what, and the borders of messages. Nothing that a peer sends makes it panic, because the load
//! tool uses it. Does not know what is right to say.

#![deny(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "it is in a program"
)]

use std::collections::BTreeMap;

use bytes::{Buf as _, Bytes, BytesMut};
use prost::Message;
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use proto::google::rpc::Status;
use xds::Dialect;

/// One request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// In the first request of a stream.
    pub node: Option<Node>,
    pub type_url: String,
    pub nonce: String,
    /// SotW: the version that was accepted last.
    pub version: String,
    /// Delta: the new names; SotW: all names.
    pub names: Vec<String>,
    /// Delta: the names that are no longer asked for.
    pub dropped: Vec<String>,
    /// Delta, C-06: what the client holds, with versions.
    pub held: BTreeMap<String, String>,
    /// Why the response was rejected.
    pub rejection: Option<Status>,
}

impl Request {
    #[must_use]
    pub fn delta(self) -> DeltaDiscoveryRequest {
        DeltaDiscoveryRequest {
            node: self.node,
            type_url: self.type_url,
            resource_names_subscribe: self.names,
            resource_names_unsubscribe: self.dropped,
            initial_resource_versions: self.held,
            response_nonce: self.nonce,
            error_detail: self.rejection,
            ..DeltaDiscoveryRequest::default()
        }
    }

    #[must_use]
    pub fn sotw(self) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: self.version,
            node: self.node,
            resource_names: self.names,
            type_url: self.type_url,
            response_nonce: self.nonce,
            error_detail: self.rejection,
            ..DiscoveryRequest::default()
        }
    }

    /// Returns it as bytes of a stream.
    #[must_use]
    pub fn framed(self, dialect: Dialect) -> Bytes {
        match dialect {
            Dialect::Delta => framed(&self.delta()),
            Dialect::Sotw => framed(&self.sotw()),
        }
    }
}

const PREFIX_BYTES: usize = 5;

/// Returns the five bytes before a message of `length` bytes that is not compressed.
#[must_use]
pub fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [0, a, b, c, d]
}

/// Returns a message as bytes of a stream.
pub fn framed(message: &impl Message) -> Bytes {
    let message = message.encode_to_vec();
    [&prefix(message.len()), message.as_slice()].concat().into()
}

/// The messages in the bytes of a stream.
#[derive(Debug, Default)]
pub struct Messages(BytesMut);

impl Messages {
    pub fn extend(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Takes the next message that is complete, with the flag that says whether it is compressed.
    pub fn take(&mut self) -> Option<(u8, Bytes)> {
        let [flag, length @ ..] = *self.0.first_chunk::<PREFIX_BYTES>()?;
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        if self.0.len() - PREFIX_BYTES < length {
            return None;
        }
        self.0.advance(PREFIX_BYTES);
        Some((flag, self.0.split_to(length).freeze()))
    }

    /// Whether no part of a message is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
