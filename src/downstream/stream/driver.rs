// SPDX-License-Identifier: Apache-2.0
//! One client stream in its connection's task.
//!
//! Owns the reading of requests, the bell, all timers of the stream, and that no response is made before the transport can take
//! it. Knows nothing of the content.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Buf as _;
use h2::SendStream;
use tonic::Status;

use super::allowance::Allowance;
use super::ends::trailers;
use super::output::NextOutput;
use super::requests::{ClientRequests, NextRequest};
use super::session::Session;
use crate::clock;
use crate::downstream::alarm::Alarm;
use crate::downstream::stall::Stall;
use crate::wire::{Rope, RopeProgress};

/// The driver of one stream.
pub(in crate::downstream) struct Driver {
    session: Session,
    requests: ClientRequests,
    /// How much of the responses the transport has taken.
    progress: Arc<RopeProgress>,
    alarm: Alarm,
    stall: Stall,
    /// Most streams have none.
    times: Option<Box<StreamTimes>>,
    /// Whether it had no room for a response, and is in the connection's line until it comes forward: nobody is in the line twice.
    in_line: bool,
}

/// The deadlines of the stream.
#[derive(Default)]
struct StreamTimes {
    /// The client's own deadline.
    deadline: Option<Instant>,
    /// When to give up a client that sends no more: it has closed its side, or this is a unary call.
    given_up: Option<Instant>,
}

impl StreamTimes {
    const NONE: Self = Self {
        deadline: None,
        given_up: None,
    };
}

/// How many requests are read before other streams have their turn.
const REQUESTS_IN_A_TURN: usize = 32;
impl Driver {
    /// Creates the driver; `timeout` is the client's own.
    pub(in crate::downstream) fn new(
        session: Session,
        requests: ClientRequests,
        progress: Arc<RopeProgress>,
        timeout: Option<Duration>,
        now: Instant,
    ) -> Self {
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout));
        let times = deadline.map(|deadline| {
            Box::new(StreamTimes {
                deadline: Some(deadline),
                given_up: None,
            })
        });
        Self {
            session,
            requests,
            progress,
            alarm: Alarm::default(),
            stall: Stall::default(),
            times,
            in_line: false,
        }
    }

    /// Counts and logs that the stream ends because its client does not answer pings.
    pub(in crate::downstream) fn silent(&self, now: Instant) {
        self.session.silent(now);
    }

    /// Counts and logs that the stream ends because its client does not read.
    pub(in crate::downstream) fn stalled(&self, now: Instant) {
        self.session.stalled(self.progress.waiting(), now);
    }

    /// Whether the client has accepted everything that was sent.
    pub(in crate::downstream) fn is_settled(&self) -> bool {
        self.session.is_settled()
    }

    /// Lets the stream end in good order, so that the client goes to another relay.
    pub(in crate::downstream) fn drain(&mut self) {
        self.session.close();
    }

    /// Reads requests. Ready when the stream is over: dropping the driver and its stream handle then resets the rest of it.
    pub(in crate::downstream) fn hear(
        &mut self,
        allowance: &mut Allowance,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<()> {
        self.session.begin(now);
        let over = self.read(allowance, cx, now);
        if self.session.asks() {
            allowance.ask(now);
        }
        over
    }

    /// Whether the requests that were read need more work: [`Self::poll`] must be called.
    pub(in crate::downstream) fn has_news(&self) -> bool {
        self.session.is_stirred() || self.is_deaf()
    }

    /// Whether reading was paused and must go on now.
    pub(in crate::downstream) fn hears_again(&self, now: Instant) -> bool {
        self.resumes().is_some_and(|at| at <= now)
    }

    /// Returns when reading goes on, if it is paused.
    fn resumes(&self) -> Option<Instant> {
        clock::earliest([self.requests.poll_timeout(), self.session.resumes()])
    }

    /// Whether reading is paused or over, so that a read cannot notice that the client is gone.
    fn is_deaf(&self) -> bool {
        self.requests.is_deaf() || self.session.waits()
    }

    /// It has left the line, to be polled with room.
    pub(in crate::downstream) const fn come_forward(&mut self) {
        self.in_line = false;
    }

    /// Does everything else: changes, timers, responses as far as there is room. If it gave the transport a response,
    /// [`Self::poll_times`] must be called after the transport's turn. Ready when the stream is over, as with [`Self::hear`].
    pub(in crate::downstream) fn poll(
        &mut self,
        send: &mut SendStream<Rope>,
        allowance: &mut Allowance,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<()> {
        self.session.begin(now);
        // The first request brings the session to a view; before that there is no bell to wait for.
        self.session.handle_bell(cx);
        let due = self.alarm.has_rung();
        let busy = self.session.is_stirred() || due || self.resumes().is_some();
        if busy {
            self.session.settle();
        }
        if due {
            self.handle_times(now);
        }
        let asks = self.session.asks();
        let over = self.say(send, allowance, cx).is_ready();
        if asks {
            allowance.ask(now);
        }
        if over || self.is_deaf() && send.poll_reset(cx).is_ready() {
            return Poll::Ready(());
        }
        // Most wakes have nothing to do with timers.
        if busy && !allowance.has_given() {
            self.poll_times(cx, now)
        } else {
            Poll::Pending
        }
    }

    /// Sends responses as long as the transport can take more. Further responses are not made yet, because their content might be
    /// outdated when the transport takes them.
    fn say(&mut self, send: &mut SendStream<Rope>, allowance: &mut Allowance, cx: &mut Context<'_>) -> Poll<()> {
        while self.session.is_ending() || self.progress.ready(cx.waker()) {
            if allowance.room() == 0 && self.session.is_stirred() && !self.session.is_ending() {
                if !std::mem::replace(&mut self.in_line, true) {
                    allowance.deny();
                }
                return Poll::Pending;
            }
            let Poll::Ready(output) = self.session.poll_output(cx) else {
                if self.session.is_stirred() {
                    // The session has more to look at, after others had their turn.
                    cx.waker().wake_by_ref();
                }
                return Poll::Pending;
            };
            match output {
                NextOutput::Response(rope) => {
                    allowance.give(rope.remaining());
                    if send.send_data(rope.reporting(&self.progress), false).is_err() {
                        return Poll::Ready(());
                    }
                }
                NextOutput::End(status) => {
                    // If this fails, the client is gone.
                    drop(send.send_trailers(trailers(&status)));
                    return Poll::Ready(());
                }
            }
        }
        Poll::Pending
    }

    fn read(&mut self, allowance: &mut Allowance, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        for _ in 0..REQUESTS_IN_A_TURN {
            if allowance.is_spent() {
                break;
            }
            if let Some(names) = ready!(self.session.handle_rest(cx)) {
                // A slice of a large request: other streams of the connection have their turn now.
                allowance.count(0, names);
                break;
            }
            if self.session.is_ending() {
                self.requests.stop();
            }
            match self.requests.poll(cx, now) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(NextRequest::Message(message)) => {
                    let Some(share) = self.requests.share() else { continue };
                    let bytes = message.remaining();
                    let names = self.session.handle_message(message, share);
                    allowance.count(bytes, names);
                }
                Poll::Ready(NextRequest::Later) => allowance.stop(),
                Poll::Ready(NextRequest::Closed) => {
                    self.session.close();
                    self.give_up_later(now);
                }
                Poll::Ready(NextRequest::Fault(status)) => self.session.end(status),
                Poll::Ready(NextRequest::Gone) => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The client sends no more: sets the time until which it may get an answer.
    fn give_up_later(&mut self, now: Instant) {
        let until = now.checked_add(self.session.settings().protocol.timers.unanswered);
        self.times.get_or_insert_default().given_up = until;
    }

    /// Handles those times that have come.
    fn handle_times(&mut self, now: Instant) {
        let due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        self.session.handle_timeout();
        let Some(times) = &mut self.times else { return };
        let (over, given_up) = (due(&mut times.deadline), due(&mut times.given_up));
        if over {
            self.session
                .end(Status::deadline_exceeded("the call's grpc-timeout has passed"));
        }
        if given_up {
            let bound = self.session.settings().protocol.timers.unanswered;
            self.session.give_up(bound);
        }
    }

    /// Sets the timer for what comes next. Ready when the client does not read what waits for it.
    pub(in crate::downstream) fn poll_times(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        // Only bytes that the transport holds can be stuck. Without such bytes, a closed window starts no timer.
        let progress = &self.progress;
        let stuck = (progress.waiting() > 0).then(|| progress.taken() + u64::from(self.session.written()));
        let stuck = self.stall.note(stuck, self.session.settings().timers.write_stall, now);
        if stuck.is_some_and(|at| at <= now) {
            self.stalled(now);
            return Poll::Ready(());
        }
        let own = self.times.as_deref().unwrap_or(&StreamTimes::NONE);
        let times = [
            self.session.poll_timeout(),
            self.resumes(),
            own.deadline,
            own.given_up,
            stuck,
        ];
        if self.alarm.poll(clock::earliest(times), cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 640 is a size class of the allocator, and the next one is 768. Every stream has a driver.
    #[test]
    fn what_every_stream_takes() {
        assert!(size_of::<Driver>() <= 640, "{}", size_of::<Driver>());
    }
}
