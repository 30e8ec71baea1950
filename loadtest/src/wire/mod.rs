// SPDX-License-Identifier: Apache-2.0
//! What goes over the wire: the types of resources and their names, protobuf, HTTP/2, TLS, and the addresses of servers.
//!
//! Owns how bytes are read and written. Refuses to know what is in resources, who reads them, and what is measured.

pub(crate) mod credentials;
pub(crate) mod folder;
pub(crate) mod http2;
pub(crate) mod kind;
pub(crate) mod pattern;
pub(crate) mod place;
mod reader;
pub(crate) mod tls;

pub(crate) use reader::{Level, Malformed, Piece, Reader, Unit, fields, first_field, number};

/// Returns bytes from a peer as readable text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
