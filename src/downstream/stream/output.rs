// SPDX-License-Identifier: Apache-2.0
//! What a stream puts out, and how a response of the machine becomes bytes.
//!
//! Owns which fields a response has. Does not decide what is in it.

use tonic::Status;

use crate::downstream::services::{ApiVersion, Method};
use crate::protocol::Response;
use crate::wire::{Encoding, ResponseFields, Rope, encode, encode_gzip};
use crate::xds::{Dialect, is_secret};

/// The next output of a stream.
pub(super) enum NextOutput {
    Response(Rope),
    End(Status),
}

/// Returns the bytes of a response, and whether their shared part was encoded for it. Inlined, because every response passes through
/// it.
#[inline(always)]
pub(super) fn rope(response: &Response, method: &Method, identifier: &str) -> (Rope, bool) {
    let (pieces, fresh) = response.batch.encoded(response.dialect);
    let version = response.version.text();
    let v2_delta = (method.transport, response.dialect) == (ApiVersion::V2, Dialect::Delta);
    let fields = ResponseFields {
        dialect: response.dialect,
        version: &version,
        type_url: response.type_url.url(),
        nonce: response.nonce.as_bytes(),
        identifier: (!v2_delta).then_some(identifier),
    };
    let compressed = match method.responses {
        Encoding::Identity => None,
        Encoding::Gzip => compressed(response, fields),
    };
    (compressed.unwrap_or_else(|| encode(fields, pieces)), fresh)
}

/// Returns a response compressed, unless that is of no use. The length of a compressed secret would say something of its content to
/// those who can have other words sent beside it.
#[inline(never)]
fn compressed(response: &Response, fields: ResponseFields<'_>) -> Option<Rope> {
    if is_secret(&response.type_url) {
        return None;
    }
    encode_gzip(fields, response.batch.deflated(response.dialect)?)
}
