//! One request of a client stream, which is taken in slices where it names much.
//!
//! Owns what is left of it, and that it counts as something that is on its way in for as long. Refuses to know what it means.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tonic::Status;

use super::decode::decode;
use crate::cache::Library;
use crate::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use crate::protocol::{Changing, End, Listing, Progress, Receipt, Server};
use crate::wire::{Charge, Share};
use crate::xds::Dialect;

/// A request, decoded.
pub(super) enum Request {
    Sotw(DiscoveryRequest),
    Delta(DeltaDiscoveryRequest),
}

/// A request that has begun to count.
pub(super) struct Sliced {
    way: Way,
    /// What it takes until then.
    bytes: usize,
    charge: Charge,
}

enum Way {
    Sotw(DiscoveryRequest, Progress<Listing>),
    Delta(DeltaDiscoveryRequest, Progress<Changing>),
}

/// What is kept of a name or a version besides its text.
const ENTRY_BYTES: usize = 96;

impl Request {
    /// Decodes one, with room for so many names.
    pub(super) fn read(message: &Bytes, dialect: Dialect, entries: usize) -> Result<Self, Status> {
        Ok(match dialect {
            Dialect::Sotw => {
                let empty = DiscoveryRequest {
                    resource_names: Vec::with_capacity(entries),
                    ..Default::default()
                };
                Self::Sotw(decode(message, empty)?)
            }
            Dialect::Delta => {
                let empty = DeltaDiscoveryRequest {
                    resource_names_subscribe: Vec::with_capacity(entries),
                    ..Default::default()
                };
                Self::Delta(decode(message, empty)?)
            }
        })
    }
}

impl Sliced {
    /// The request counts from now on; `bytes` and `entries` say how large it is.
    pub(super) fn begin(
        request: Request,
        (bytes, entries): (usize, usize),
        share: &Arc<Share>,
        server: &mut Server,
        library: &Library,
        now: Instant,
    ) -> Result<Self, End> {
        let way = match request {
            Request::Sotw(request) => {
                let progress = server.begin_sotw(&request, library, now)?;
                Way::Sotw(request, progress)
            }
            Request::Delta(request) => {
                let progress = server.begin_delta(&request, library, now)?;
                Way::Delta(request, progress)
            }
        };
        Ok(Self {
            way,
            bytes: bytes + entries * ENTRY_BYTES,
            charge: Charge::new(share.clone()),
        })
    }

    /// Takes the next slice. Gives whether there is more.
    pub(super) fn go_on(&mut self, server: &mut Server, library: &Library, now: Instant) -> Result<bool, End> {
        match &mut self.way {
            Way::Sotw(request, progress) => server.go_on_sotw(request, progress, library, now),
            Way::Delta(request, progress) => server.go_on_delta(request, progress, library, now),
        }
    }

    /// Whether what is left of it may be kept until the next turn.
    pub(super) fn is_kept(&mut self) -> bool {
        self.charge.set(self.bytes).is_ok()
    }

    /// Nothing is left: what it was, and its nonce.
    pub(super) fn finish(self, server: &Server) -> Result<(Receipt, String), End> {
        Ok(match self.way {
            Way::Sotw(request, progress) => (server.finish(progress)?, request.response_nonce),
            Way::Delta(request, progress) => (server.finish(progress)?, request.response_nonce),
        })
    }
}
