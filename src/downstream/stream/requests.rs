// SPDX-License-Identifier: Apache-2.0
//! The requests of one stream, as complete messages.
//!
//! Owns the request body and how fast it is read. Does not decode. Knows nothing of responses: reading never waits for writing
//! (E-21).

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use h2::RecvStream;
use tonic::Status;

use super::pace::RequestPace;
use crate::downstream::request_body::poll_chunk;
use crate::wire::{Deframer, Pieces, Read, Share};

/// The requests of a client on one stream.
pub(in crate::downstream) struct ClientRequests {
    /// `None` after the end; no memory is held then.
    open: Option<(RecvStream, Deframer)>,
    pace: RequestPace,
    /// When reading goes on, if it is paused.
    resumes: Option<Instant>,
}

/// What a client has sent next.
#[derive(Debug)]
pub(super) enum NextRequest {
    /// A request.
    Message(Pieces),
    /// A large message is being inflated: poll again after others have had their turn.
    Later,
    /// There are no more requests: the client has closed its side.
    Closed,
    /// There are no more requests, because of this error.
    Fault(Status),
    /// The client or its connection is gone.
    Gone,
}

impl ClientRequests {
    pub(in crate::downstream) const fn new(body: RecvStream, deframer: Deframer, pace: RequestPace) -> Self {
        Self {
            open: Some((body, deframer)),
            pace,
            resumes: None,
        }
    }

    /// Returns the connection's share of the memory for unfinished requests; none after the end.
    pub(super) fn share(&self) -> Option<&Arc<Share>> {
        self.open.as_ref().map(|(_, deframer)| deframer.share())
    }

    /// Returns when it must be polled again, even if nothing has arrived.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.resumes
    }

    /// Whether reading is paused or over, so that a read cannot notice that the client is gone.
    pub(super) const fn is_deaf(&self) -> bool {
        self.open.is_none() || self.resumes.is_some()
    }

    /// Reads the next message. Pending forever after the end. Inlined, because every request passes through it.
    #[inline(always)]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<NextRequest> {
        let next = match self.poll_open(cx, now) {
            Poll::Ready(next) => next,
            Poll::Pending => NextRequest::Fault(ready!(self.poll_given_up(cx))),
        };
        if !matches!(next, NextRequest::Message(_) | NextRequest::Later) {
            self.stop();
        }
        Poll::Ready(next)
    }

    /// Ends the reading; later bytes are discarded.
    pub(super) fn stop(&mut self) {
        self.open = None;
        self.resumes = None;
    }

    /// Ready when an incomplete message must be given up, because other connections need the memory.
    fn poll_given_up(&mut self, cx: &Context<'_>) -> Poll<Status> {
        match &mut self.open {
            Some((_, deframer)) => deframer.poll_given_up(cx),
            None => Poll::Pending,
        }
    }

    fn poll_open(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<NextRequest> {
        let Some((body, deframer)) = &mut self.open else {
            return Poll::Pending;
        };
        let resumes = self.pace.next();
        self.resumes = (resumes > now).then_some(resumes);
        if self.resumes.is_some() {
            return Poll::Pending;
        }
        loop {
            // While it waits for a turn, its memory may be needed by others.
            let turn = ready!(deframer.poll_turn(cx));
            let read = deframer.read();
            drop(turn);
            match read {
                Ok(Read::Message(message)) => {
                    self.pace.count(now);
                    return Poll::Ready(NextRequest::Message(message));
                }
                Ok(Read::Busy) => {
                    return Poll::Ready(match deframer.poll_given_up(cx) {
                        Poll::Ready(status) => NextRequest::Fault(status),
                        Poll::Pending => NextRequest::Later,
                    });
                }
                Ok(Read::Nothing) => {}
                Err(status) => return Poll::Ready(NextRequest::Fault(status)),
            }
            match ready!(poll_chunk(body, cx)) {
                Some(Ok(chunk)) => deframer.push(chunk),
                Some(Err(error)) => {
                    tracing::debug!(%error, "a client is gone");
                    return Poll::Ready(NextRequest::Gone);
                }
                None => {
                    let end = deframer.finish();
                    return Poll::Ready(end.map_or_else(NextRequest::Fault, |()| NextRequest::Closed));
                }
            }
        }
    }
}
