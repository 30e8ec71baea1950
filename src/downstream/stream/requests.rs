//! The requests of one stream, as whole messages.
//!
//! Owns the request body and how fast it is read. Refuses to decode and to know answers: reading never waits for writing (E-21).

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use h2::RecvStream;
use tonic::Status;

use super::pace::Pace;
use crate::downstream::request_body::poll_chunk;
use crate::wire::{Deframer, Read, Share};

/// What a client sends on one stream.
pub(in crate::downstream) struct Requests {
    /// `None` after its end: nothing is held then.
    open: Option<(RecvStream, Deframer)>,
    pace: Pace,
    /// When reading goes on, while it is held up.
    resumes: Option<Instant>,
}

/// What comes next from a client.
#[derive(Debug)]
pub(super) enum Next {
    /// A request.
    Message(Bytes),
    /// There is work on a large one, and it goes on as soon as others have had their turns.
    Later,
    /// There will be no more: the client has closed its half.
    Closed,
    /// There will be no more, because of a fault.
    Fault(Status),
    /// The client, or its connection, has gone.
    Gone,
}

impl Requests {
    pub(in crate::downstream) const fn new(body: RecvStream, deframer: Deframer, pace: Pace) -> Self {
        Self {
            open: Some((body, deframer)),
            pace,
            resumes: None,
        }
    }

    /// What its connection holds of requests on their way in; none after the end.
    pub(super) fn share(&self) -> Option<&Arc<Share>> {
        self.open.as_ref().map(|(_, deframer)| deframer.share())
    }

    /// When it must be polled again although nothing came.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.resumes
    }

    /// Whether it is not read whether the client is still there.
    pub(super) const fn is_deaf(&self) -> bool {
        self.open.is_none() || self.resumes.is_some()
    }

    /// Pending for ever after the end.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Next> {
        let next = match self.poll_open(cx, now) {
            Poll::Ready(next) => next,
            Poll::Pending => Next::Fault(ready!(self.poll_given_up(cx))),
        };
        if !matches!(next, Next::Message(_) | Next::Later) {
            self.stop();
        }
        Poll::Ready(next)
    }

    /// Reads no further; what still comes is thrown away.
    pub(super) fn stop(&mut self) {
        self.open = None;
        self.resumes = None;
    }

    /// Ready when the beginning of a message must be given up.
    fn poll_given_up(&mut self, cx: &Context<'_>) -> Poll<Status> {
        match &mut self.open {
            Some((_, deframer)) => deframer.poll_given_up(cx),
            None => Poll::Pending,
        }
    }

    fn poll_open(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Next> {
        let Some((body, deframer)) = &mut self.open else {
            return Poll::Pending;
        };
        let resumes = self.pace.next();
        self.resumes = (resumes > now).then_some(resumes);
        if self.resumes.is_some() {
            return Poll::Pending;
        }
        loop {
            match deframer.read() {
                Ok(Read::Message(message)) => {
                    self.pace.count(now);
                    return Poll::Ready(Next::Message(message));
                }
                Ok(Read::Busy) => {
                    return Poll::Ready(match deframer.poll_given_up(cx) {
                        Poll::Ready(status) => Next::Fault(status),
                        Poll::Pending => Next::Later,
                    });
                }
                Ok(Read::Nothing) => {}
                Err(status) => return Poll::Ready(Next::Fault(status)),
            }
            match ready!(poll_chunk(body, cx)) {
                Some(Ok(chunk)) => deframer.push(chunk),
                Some(Err(error)) => {
                    tracing::debug!(%error, "a client is gone");
                    return Poll::Ready(Next::Gone);
                }
                None => {
                    let end = deframer.finish();
                    return Poll::Ready(end.map_or_else(Next::Fault, |()| Next::Closed));
                }
            }
        }
    }
}
