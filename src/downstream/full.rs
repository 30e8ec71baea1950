// SPDX-License-Identifier: Apache-2.0
//! Why a connection, a stream or a subscription is refused.
//!
//! Owns the text and the status. Decides nothing.

use std::fmt;
use std::time::Duration;

use http::HeaderMap;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

/// A limit that admits no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitReached {
    /// The key of the limit.
    pub(super) limit: &'static str,
    pub(super) max: usize,
    /// When it may be worth trying again; `None` if it is the peer's own limit.
    pub(super) again: Option<Duration>,
}

/// When a client that is refused because of others should come back.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

impl LimitReached {
    /// Returns the status of a call that is refused before its first response. A client that could be served later is told when
    /// to come back.
    pub(super) fn status(&self) -> Status {
        let Some(again) = self.again else {
            return self.late_status();
        };
        let mut headers = HeaderMap::new();
        let millis = u64::try_from(again.as_millis()).unwrap_or(u64::MAX);
        headers.insert("grpc-retry-pushback-ms", millis.into());
        Status::with_metadata(Code::Unavailable, self.to_string(), MetadataMap::from_headers(headers))
    }

    /// Returns the status of a stream that had a response.
    pub(super) fn late_status(&self) -> Status {
        Status::new(Code::ResourceExhausted, self.to_string())
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, max, .. } = self;
        let (why, then) = match self.again {
            Some(_) => ("the relay serves as much as it may", "; try another one, or later"),
            None => ("there is as much from this address as there may be", ""),
        };
        write!(out, "{why} (`limits.{limit}` = {max}){then}")
    }
}
