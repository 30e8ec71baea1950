// SPDX-License-Identifier: Apache-2.0
//! A client's requests as gRPC frames. They are encoded field by field: a SotW request repeats all names, and building a message
//! of a thousand names first would be expensive.

use bytes::Bytes;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::google::rpc::Status;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, string};

use crate::wire;
use crate::wire::kind::Dialect;

/// One request.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    /// In the first request of a stream.
    pub(crate) node: Option<&'a Node>,
    pub(crate) type_url: &'a str,
    pub(crate) nonce: &'a str,
    /// SotW: the version that is acknowledged.
    pub(crate) version: &'a str,
    /// Delta: the new names; SotW: all names.
    pub(crate) names: &'a [String],
    /// Delta: the names that are no longer asked for.
    pub(crate) dropped: &'a [String],
    /// Delta, C-06: what the client holds, with versions.
    pub(crate) held: &'a [(String, String)],
    /// Why the response was rejected.
    pub(crate) rejection: Option<&'a str>,
}

impl Request<'_> {
    pub(crate) fn encode(&self, dialect: Dialect) -> Bytes {
        let mut out = vec![0; 5];
        match dialect {
            Dialect::Delta => self.delta(&mut out),
            Dialect::Sotw => self.sotw(&mut out),
        }
        let prefix = wire::prefix(out.len() - 5);
        if let Some(head) = out.first_chunk_mut::<5>() {
            *head = prefix;
        }
        out.into()
    }

    fn delta(&self, out: &mut Vec<u8>) {
        self.node(1, out);
        text(2, self.type_url, out);
        self.names.iter().for_each(|name| string::encode(3, name, out));
        self.dropped.iter().for_each(|name| string::encode(4, name, out));
        for (name, version) in self.held {
            let entry = string::encoded_len(1, name) + string::encoded_len(2, version);
            encode_key(5, WireType::LengthDelimited, out);
            encode_varint(u64::try_from(entry).unwrap_or_default(), out);
            string::encode(1, name, out);
            string::encode(2, version, out);
        }
        text(6, self.nonce, out);
        self.rejected(7, out);
    }

    fn sotw(&self, out: &mut Vec<u8>) {
        text(1, self.version, out);
        self.node(2, out);
        self.names.iter().for_each(|name| string::encode(3, name, out));
        text(4, self.type_url, out);
        text(5, self.nonce, out);
        self.rejected(6, out);
    }

    fn node(&self, field: u32, out: &mut Vec<u8>) {
        if let Some(node) = self.node {
            prost::encoding::message::encode(field, node, out);
        }
    }

    fn rejected(&self, field: u32, out: &mut Vec<u8>) {
        if let Some(reason) = self.rejection {
            let status = Status {
                // INVALID_ARGUMENT
                code: 3,
                message: reason.to_owned(),
                ..Status::default()
            };
            debug_assert!(status.encoded_len() > 0);
            prost::encoding::message::encode(field, &status, out);
        }
    }
}

fn text(field: u32, value: &str, out: &mut Vec<u8>) {
    if !value.is_empty() {
        string::encode(field, &value.to_owned(), out);
    }
}
