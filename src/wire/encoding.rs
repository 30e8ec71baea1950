// SPDX-License-Identifier: Apache-2.0
//! How gRPC messages are compressed, and what the heads of calls say of it.
//!
//! Owns who is sent compressed messages. Does not compress.

use http::HeaderMap;
use http::header::USER_AGENT;
use tonic::Status;

/// How messages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// They are not.
    Identity,
    /// With gzip.
    Gzip,
}

/// What a side says of the compression of its messages.
pub const ENCODING: &str = "grpc-encoding";
/// What each side says of the encodings that it reads, and what the relay says.
pub const ACCEPT_ENCODING: &str = "grpc-accept-encoding";
/// The value of [`ACCEPT_ENCODING`] in the relay's own heads.
pub const ACCEPTED_ENCODINGS: &str = "identity,gzip";
/// How the user agent of every relay begins.
const AGENT: &str = "distributary/";

impl Encoding {
    /// Reads `grpc-encoding`.
    ///
    /// # Errors
    /// When it names an encoding that the relay does not support.
    pub fn of(headers: &HeaderMap) -> Result<Self, Status> {
        match headers.get(ENCODING).map(|value| value.as_bytes()) {
            None | Some(b"identity") => Ok(Self::Identity),
            Some(b"gzip") => Ok(Self::Gzip),
            Some(other) => Err(Status::unimplemented(format!(
                "grpc-encoding `{}` is not supported; use one of {ACCEPTED_ENCODINGS}",
                other.get(..32).unwrap_or(other).escape_ascii()
            ))),
        }
    }

    /// Returns how the responses to a client are compressed. Only relays are known to read what they say that they read: an Envoy
    /// may pass on a list that its own gRPC client cannot keep to.
    #[must_use]
    pub fn of_responses(headers: &HeaderMap) -> Self {
        let is_relay = headers
            .get(USER_AGENT)
            .is_some_and(|agent| agent.as_bytes().starts_with(AGENT.as_bytes()));
        let lists = headers.get_all(ACCEPT_ENCODING).iter();
        let mut accepted = lists.flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
        if is_relay && accepted.any(|word| word.trim_ascii() == b"gzip") {
            Self::Gzip
        } else {
            Self::Identity
        }
    }
}
