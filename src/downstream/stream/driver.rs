//! One client stream in its connection's task.
//!
//! Owns the reading of requests, the bell, all timers of the stream, and that nothing is said before the transport can take it.
//! Refuses to know what is said.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use h2::SendStream;
use tonic::Status;

use super::ends::trailers;
use super::requests::{Next, Requests};
use super::session::{Output, Session};
use crate::downstream::alarm::Alarm;
use crate::downstream::stall::Stall;
use crate::wire::{Progress, Rope};

/// The driver of one stream.
pub(in crate::downstream) struct Driver {
    session: Session,
    requests: Requests,
    /// How far the transport has come with what was said.
    progress: Arc<Progress>,
    alarm: Alarm,
    stall: Stall,
    times: Times,
}

/// When what happens to the stream, if nothing else does before.
struct Times {
    /// The client's own deadline.
    deadline: Option<Instant>,
    /// The client has closed its half, or asked once, and has waited long enough.
    given_up: Option<Instant>,
}

/// So many requests are read before other streams have their turn.
const REQUESTS_IN_A_TURN: usize = 32;
/// So many bytes of requests are read, the last one of them whole, before other connections have their turn.
const REQUEST_BYTES_IN_A_TURN: usize = 256 * 1024;

/// A name is as much work as so many bytes.
const NAME_BYTES: usize = 128;

/// What may still be read in a connection's turn: a large request is much work, and other connections have theirs.
pub(in crate::downstream) struct Allowance(usize);

impl Allowance {
    /// What one turn has.
    pub(in crate::downstream) const fn of_a_turn() -> Self {
        Self(REQUEST_BYTES_IN_A_TURN)
    }

    /// So much was read.
    fn count(&mut self, bytes: usize, names: usize) {
        self.0 = self.0.saturating_sub(bytes.max(names * NAME_BYTES));
    }

    /// Whether nothing more may be read.
    pub(in crate::downstream) const fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

impl Driver {
    /// Begins with the client's `timeout`.
    pub(in crate::downstream) fn new(
        session: Session,
        requests: Requests,
        progress: Arc<Progress>,
        timeout: Option<Duration>,
        now: Instant,
    ) -> Self {
        let times = Times {
            deadline: timeout.and_then(|timeout| now.checked_add(timeout)),
            given_up: None,
        };
        Self {
            session,
            requests,
            progress,
            alarm: Alarm::default(),
            stall: Stall::default(),
            times,
        }
    }

    /// Whether the client has accepted all that it was sent.
    pub(in crate::downstream) fn is_settled(&self) -> bool {
        self.session.is_settled()
    }

    /// The client is to go elsewhere.
    pub(in crate::downstream) fn drain(&mut self) {
        self.session.close();
    }

    /// Reads what the client sends. Ready when the stream is over: dropping what belongs to it then resets what is left of it.
    pub(in crate::downstream) fn hear(
        &mut self,
        allowance: &mut Allowance,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<()> {
        self.session.begin(now);
        self.read(allowance, cx, now)
    }

    /// Whether there is more to do about what was read.
    pub(in crate::downstream) const fn has_news(&self) -> bool {
        self.session.is_stirred() || self.requests.is_deaf()
    }

    /// Whether it is time to read on, because reading was held up.
    pub(in crate::downstream) fn hears_again(&self, now: Instant) -> bool {
        self.requests.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Everything else that can be done now. Ready as [`Self::hear`] is.
    pub(in crate::downstream) fn poll(
        &mut self,
        send: &mut SendStream<Rope>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<()> {
        self.session.begin(now);
        // After the first request, which is what brings the session to a view: before it there is no bell to wait at.
        self.session.handle_bell(cx);
        let due = self.alarm.is_due(now);
        let busy = self.session.is_stirred() || due || self.requests.poll_timeout().is_some();
        if busy {
            self.session.settle();
        }
        if due {
            self.handle_times(now);
        }
        if self.say(send, cx).is_ready() || self.requests.is_deaf() && send.poll_reset(cx).is_ready() {
            return Poll::Ready(());
        }
        // A task is often woken for what its timers have nothing to do with.
        if busy { self.poll_times(cx, now) } else { Poll::Pending }
    }

    /// Says what there is to be said, as long as the transport can take more. What it does not take now may be outdated when it
    /// does: it stays a difference that is not computed yet.
    fn say(&mut self, send: &mut SendStream<Rope>, cx: &Context<'_>) -> Poll<()> {
        while self.session.is_ending() || self.progress.ready(cx.waker()) {
            match ready!(self.session.poll_output()) {
                Output::Response(rope) => {
                    if send.send_data(rope.reporting(&self.progress), false).is_err() {
                        return Poll::Ready(());
                    }
                }
                Output::End(status) => {
                    // Whom it does not reach is not there any more.
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
            if let Some(names) = self.session.handle_rest() {
                // Other streams of the connection have their turns as well.
                allowance.count(0, names);
                break;
            }
            if self.session.is_ending() {
                self.requests.stop();
            }
            match self.requests.poll(cx, now) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Next::Message(message)) => {
                    let Some(share) = self.requests.share() else { continue };
                    let names = self.session.handle_message(&message, share);
                    allowance.count(message.len(), names);
                    if self.session.is_fetch() {
                        self.requests.stop();
                        self.give_up_later(now);
                    }
                }
                Poll::Ready(Next::Later) => allowance.0 = 0,
                Poll::Ready(Next::Closed) if self.session.is_fetch() => {
                    self.session.end(Status::invalid_argument("the call has no request"));
                }
                Poll::Ready(Next::Closed) => {
                    self.session.close();
                    self.give_up_later(now);
                }
                Poll::Ready(Next::Fault(status)) => self.session.end(status),
                Poll::Ready(Next::Gone) => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The client says nothing more, and is answered by then or not at all.
    fn give_up_later(&mut self, now: Instant) {
        self.times.given_up = now.checked_add(self.session.settings().protocol.timers.unanswered);
    }

    /// Some time has come, perhaps one of these.
    fn handle_times(&mut self, now: Instant) {
        let due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        self.session.handle_timeout();
        if due(&mut self.times.deadline) {
            self.session
                .end(Status::deadline_exceeded("the call's grpc-timeout has passed"));
        }
        if due(&mut self.times.given_up) {
            let bound = self.session.settings().protocol.timers.unanswered;
            self.session.give_up(bound);
        }
    }

    fn poll_times(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        // Only what was given to the transport can be stuck there: a window that is not opened holds up no timer.
        let progress = &self.progress;
        let stuck = (progress.waiting() > 0).then(|| progress.taken() + self.session.written());
        let stuck = self.stall.note(stuck, self.session.settings().timers.write_stall, now);
        if stuck.is_some_and(|at| at <= now) {
            tracing::info!(
                bytes = progress.waiting(),
                "a client takes nothing; its stream is ended"
            );
            return Poll::Ready(());
        }
        let times = [
            self.session.poll_timeout(),
            self.requests.poll_timeout(),
            self.times.deadline,
            self.times.given_up,
            stuck,
        ];
        if self.alarm.poll(times.into_iter().flatten().min(), cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 768 is a class of the allocator, the next one is 896, and every stream has one.
    #[test]
    fn what_every_stream_takes() {
        assert!(size_of::<Driver>() <= 768, "{}", size_of::<Driver>());
    }
}
