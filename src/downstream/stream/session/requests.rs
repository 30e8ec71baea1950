// SPDX-License-Identifier: Apache-2.0
//! The requests of one client stream that are more than acknowledgements.
//!
//! Owns when they are read, and in which slices. Does not know what their names mean.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tonic::Status;

use super::Session;
use super::syncz::SYNCZ;
use crate::cache::Room;
use crate::downstream::full::{AGAIN, LimitReached};
use crate::downstream::stream::decode::bounded;
use crate::downstream::stream::ends::status;
use crate::downstream::stream::keeping::Keeping;
use crate::downstream::stream::large::{HandledStage, Large};
use crate::downstream::stream::reading::PartialRequest;
use crate::downstream::stream::sliced::Sliced;
use crate::protocol::SLICE;
use crate::wire::{Pieces, Scan, Share};
use crate::xds::Dialect;

impl Session {
    /// Handles the next slice of a request, if one is unfinished. Pending while that waits. Returns how many names that counts for.
    pub(in crate::downstream::stream) fn handle_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let Some(rest) = self.rest.as_mut().filter(|_| self.end.is_none()) else {
            self.rest = None;
            return Poll::Ready(None);
        };
        let turn = ready!(rest.poll_turn(cx, self.now));
        self.accounts.set_asks(true);
        // The turn lasts until the slice is handled.
        let taken = match (&turn, self.rest.take().map(|rest| rest.into_stage())) {
            (Err(given_up), _) => Err(given_up.clone()),
            (Ok(_), Some(HandledStage::Begun(sliced))) => self.take_slice(sliced),
            (Ok(_), Some(HandledStage::Unread(unread))) => {
                let taken = unread.take();
                let read = taken.and_then(|(message, scan, kept)| self.read(message, scan, kept));
                read.map(|reading| self.wait(HandledStage::Reading(reading)))
            }
            (Ok(_), Some(HandledStage::Reading(reading))) => self.take_part(reading),
            (Ok(_), None) => Ok(()),
        };
        if let Err(end) = taken {
            self.end = Some(end);
        }
        Poll::Ready(Some(SLICE))
    }

    /// Lets the rest of a request wait for its turn.
    fn wait(&mut self, stage: HandledStage) {
        self.rest = Some(Box::new(Large::at(stage)));
    }

    /// Whether a request waits.
    pub(in crate::downstream::stream) const fn waits(&self) -> bool {
        self.rest.is_some()
    }

    /// Returns when to look again whether there is room for the names of a request, if one waits for that.
    pub(in crate::downstream::stream) fn resumes(&self) -> Option<Instant> {
        self.rest.as_ref().and_then(|rest| rest.resumes())
    }

    /// Decodes and handles a request, or lets it wait for its turn. Returns how many names were handled.
    pub(super) fn try_handle(&mut self, message: Pieces, share: &Arc<Share>) -> Result<usize, Status> {
        let scan = bounded(&message, self.method.dialect, &self.shared, self.settings())?;
        // A rejection is followed by a try, and very many clients may reject a change at the same time.
        if scan.entries > SLICE || scan.rejects {
            self.rest = Some(Box::new(Large::unread(message, scan, share)?));
            return Ok(0);
        }
        let mut reading = self.read(message, scan, Keeping::new(share.clone()))?;
        while reading.go_on()? {}
        self.begin_slices(reading)?;
        Ok(scan.entries)
    }

    fn read(&self, message: Pieces, scan: Scan, keeping: Keeping) -> Result<PartialRequest, Status> {
        let room = match scan.versions {
            0 => None,
            versions => Some(self.bring(versions)?),
        };
        Ok(PartialRequest::begin(
            message,
            self.method.dialect,
            &scan,
            keeping,
            room,
        ))
    }

    /// Decodes the next part of a request.
    fn take_part(&mut self, mut reading: PartialRequest) -> Result<(), Status> {
        if reading.go_on()? {
            self.wait(HandledStage::Reading(reading));
            return Ok(());
        }
        self.begin_slices(reading)
    }

    /// Handles the first slice of a request that is decoded.
    fn begin_slices(&mut self, reading: PartialRequest) -> Result<(), Status> {
        let (request, kept) = reading.finish();
        let is_aggregated = self.method.dialect == Dialect::Sotw && self.method.service.is_none();
        if is_aggregated && request.type_url() == SYNCZ {
            return self.ask_syncz(request.nonce());
        }
        let library = &*self.shared.library;
        let begun = Sliced::begin(request, kept, &mut self.server, library, self.now);
        let begun = begun.map_err(|end| status(&self.shared, end))?;
        self.take_slice(begun)
    }

    /// B-34: takes room for versions before they are decoded. Without them the client could not be told what is gone.
    fn bring(&self, versions: usize) -> Result<Room, Status> {
        self.shared.scopes.bring(versions).map_err(|max| {
            let full = LimitReached {
                limit: "memory",
                max,
                again: Some(AGAIN),
            };
            self.accounts.not_grown(self.server.node(), &full, self.now);
            if self.answered() {
                full.late_status()
            } else {
                full.status()
            }
        })
    }

    /// Handles one slice of a request, unless it still waits for room. The names of a slice are only passed on when there is room for
    /// them.
    fn take_slice(&mut self, mut request: Sliced) -> Result<(), Status> {
        let shared = self.shared.clone();
        let over = |end| status(&shared, end);
        if request.resumes().is_some() && !self.has_room(&mut request)? {
            self.wait(HandledStage::Begun(request));
            return Ok(());
        }
        // What a collection has brought meanwhile is no growth by this request.
        self.accounts.count_names(self.server.names());
        let more = request
            .go_on(&mut self.server, &shared.library, self.now)
            .map_err(over)?;
        if self.has_room(&mut request)? {
            if !more {
                let (receipt, nonce) = request.finish(&self.server).map_err(over)?;
                self.brings = self.server.brought() > 0;
                let entered = self.enter();
                self.accounts
                    .receipt(&receipt, self.server.node(), nonce.as_bytes(), self.now);
                self.say_stances();
                return entered.and_then(|()| self.say_wants());
            }
            self.enter()?;
            self.say_wants()?;
            request.keep()?;
        }
        self.wait(HandledStage::Begun(request));
        Ok(())
    }

    fn has_room(&mut self, request: &mut Sliced) -> Result<bool, Status> {
        let patience = self.settings().protocol.timers.unanswered;
        request.has_room(&mut self.accounts, &self.server, patience, self.now)
    }
}
