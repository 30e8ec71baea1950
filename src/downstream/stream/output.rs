//! What a stream puts out, and how a response of the machine becomes bytes.
//!
//! Owns which fields a response has. Does not decide what is in it.

use tonic::Status;

use crate::downstream::services::{Method, Transport};
use crate::protocol::Response;
use crate::wire::{ResponseFields, Rope, encode};
use crate::xds::Dialect;

/// The next output of a stream.
pub(super) enum Output {
    Response(Rope),
    End(Status),
}

/// Returns the bytes of a response, and whether their shared part was encoded for it. Inlined, because every response passes through
/// it.
#[inline(always)]
pub(super) fn rope(response: &Response, method: &Method, identifier: &str) -> (Rope, bool) {
    let (pieces, fresh) = response.batch.encoded(response.dialect);
    let version = response.version.text();
    let v2_delta = (method.transport, response.dialect) == (Transport::V2, Dialect::Delta);
    let fields = ResponseFields {
        dialect: response.dialect,
        version: &version,
        type_url: response.type_url.url(),
        nonce: response.nonce.as_bytes(),
        identifier: (!v2_delta).then_some(identifier),
    };
    (encode(fields, pieces), fresh)
}
