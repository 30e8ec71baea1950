// SPDX-License-Identifier: Apache-2.0
//! One request of a client stream. A request with many names is handled in slices, and one that brings more names than there may
//! be waits for room.
//!
//! Owns the rest of the request and how long it waits, and charges its memory as an unfinished request until the end. Knows
//! nothing of its meaning.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tonic::Status;

use super::accounts::Accounts;
use super::keeping::Keeping;
use super::reading::RequestMemory;
use crate::cache::{Library, Room};
use crate::protocol::{ClientRequest, End, Progress, Receipt, Server};

/// A request that is being handled.
pub(super) struct Sliced {
    progress: Progress,
    /// The nonce of the response that it answers.
    nonce: String,
    /// The memory that it takes until it is finished.
    bytes: usize,
    kept: Keeping,
    /// For the versions that it brings.
    room: Option<Room>,
    waits: Option<RoomWaits>,
}

/// The times of a request that waits for room.
#[derive(Clone, Copy)]
struct RoomWaits {
    since: Instant,
    /// When to look again.
    until: Instant,
}

/// The memory of a name or a version in addition to its text.
pub(super) const ENTRY_BYTES: usize = 96;
/// How often a request that waits looks for room.
const LOOK: Duration = Duration::from_millis(500);

impl Sliced {
    /// Begins to handle a request.
    pub(super) fn begin(
        request: ClientRequest,
        kept: RequestMemory,
        server: &mut Server,
        library: &Library,
        now: Instant,
    ) -> Result<Self, End> {
        Ok(Self {
            nonce: request.nonce().to_owned(),
            progress: server.begin(request, library, now)?,
            bytes: kept.bytes + kept.entries * ENTRY_BYTES,
            kept: kept.keeping,
            room: kept.room,
            waits: None,
        })
    }

    /// Handles the next slice. Returns whether there is more.
    pub(super) fn go_on(&mut self, server: &mut Server, library: &Library, now: Instant) -> Result<bool, End> {
        server.go_on(&mut self.progress, library, now)
    }

    /// Whether the stream may have as many names as it has now. If not, a client that was sent nothing goes elsewhere at once
    /// (G-18). One that was sent something waits for at most `patience`, and is not heard meanwhile: it keeps what it has, while a
    /// stream that ends would come back and cost more.
    pub(super) fn has_room(
        &mut self,
        accounts: &mut Accounts,
        server: &Server,
        patience: Duration,
        now: Instant,
    ) -> Result<bool, Status> {
        let Err(full) = accounts.subscribe(server.names()) else {
            self.waits = None;
            return Ok(true);
        };
        let since = self.waits.map_or(now, |waits| waits.since);
        if self.waits.is_none() {
            accounts.not_grown(server.node(), &full, now);
        }
        if server.sent() == 0 {
            return Err(full.status());
        }
        if now.saturating_duration_since(since) >= patience || self.keep().is_err() {
            return Err(full.late_status());
        }
        let until = now + LOOK;
        self.waits = Some(RoomWaits { since, until });
        Ok(false)
    }

    /// Returns when it must look for room again, if it waits.
    pub(super) fn resumes(&self) -> Option<Instant> {
        self.waits.map(|waits| waits.until)
    }

    /// Ready when it must be given up, because other connections need the memory.
    pub(super) fn poll_given_up(&mut self, cx: &Context<'_>) -> Poll<Status> {
        self.kept.poll_given_up(cx)
    }

    /// Keeps the rest until the next turn.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn keep(&mut self) -> Result<(), Status> {
        self.kept.keep(self.bytes)
    }

    /// Finishes a request of which nothing is left. Returns its receipt and its nonce.
    pub(super) fn finish(self, server: &Server) -> Result<(Receipt, String), End> {
        if let Some(mut room) = self.room {
            room.keep(server.brought());
        }
        Ok((server.finish(self.progress)?, self.nonce))
    }
}
