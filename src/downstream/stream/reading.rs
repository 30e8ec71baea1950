// SPDX-License-Identifier: Apache-2.0
//! One request of a client stream while it is decoded.
//!
//! Owns what must be kept for it until then. Knows nothing of its meaning.

use std::task::{Context, Poll};

use bytes::Buf as _;
use tonic::Status;

use super::decoding::Decoding;
use super::keeping::Keeping;
use crate::cache::Room;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use crate::protocol::ClientRequest;
use crate::wire::{Pieces, Scan};
use crate::xds::Dialect;

/// A request that is being decoded.
pub(super) struct PartialRequest {
    decoding: Either<Decoding<DiscoveryRequest>, Decoding<DeltaDiscoveryRequest>>,
    kept: RequestMemory,
}

/// What a request takes until it was handled.
pub(super) struct RequestMemory {
    /// How many bytes its message has.
    pub(super) bytes: usize,
    /// How many names and versions it has.
    pub(super) entries: usize,
    pub(super) keeping: Keeping,
    /// For the versions that it brings.
    pub(super) room: Option<Room>,
}

/// One of both dialects.
enum Either<S, D> {
    Sotw(S),
    Delta(D),
}

impl PartialRequest {
    /// Begins to decode a request that counts so much. There must be `room` for its versions.
    pub(super) fn begin(message: Pieces, dialect: Dialect, scan: &Scan, keeping: Keeping, room: Option<Room>) -> Self {
        let kept = RequestMemory {
            bytes: message.remaining(),
            entries: scan.entries,
            keeping,
            room,
        };
        let decoding = match dialect {
            Dialect::Sotw => Either::Sotw(Decoding::sotw(message, scan)),
            Dialect::Delta => Either::Delta(Decoding::delta(message, scan)),
        };
        Self { decoding, kept }
    }

    /// Decodes the next part. Returns whether there is more.
    pub(super) fn go_on(&mut self) -> Result<bool, Status> {
        match &mut self.decoding {
            Either::Sotw(decoding) => decoding.go_on(),
            Either::Delta(decoding) => decoding.go_on(),
        }
    }

    /// Ready when it must be given up, because other connections need the memory.
    pub(super) fn poll_given_up(&mut self, cx: &Context<'_>) -> Poll<Status> {
        self.kept.keeping.poll_given_up(cx)
    }

    /// Returns the request, of which nothing is left to decode, and what is kept for it.
    pub(super) fn finish(self) -> (ClientRequest, RequestMemory) {
        let request = match self.decoding {
            Either::Sotw(decoding) => decoding.finish().into(),
            Either::Delta(decoding) => decoding.finish().into(),
        };
        (request, self.kept)
    }
}
