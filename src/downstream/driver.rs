//! Everything about one client stream that must not wait for the transport to take responses.
//!
//! Owns the reading of requests, the bell, and all timers of the stream. Refuses to write.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tonic::Status;

use super::alarm::Alarm;
use super::clock;
use super::requests::{Next, Requests};
use super::session::{Session, State};
use super::settings::Settings;
use super::stall::Stall;

/// The driver of one stream.
pub(super) struct Driver {
    session: Arc<Session>,
    requests: Requests,
    alarm: Alarm,
    stall: Stall,
    times: Times,
    /// Whether this turn has anything to do: a task is often woken for what hyper alone looks after.
    busy: bool,
}

/// When what happens to the stream, if nothing else does before.
struct Times {
    write_stall: Option<Duration>,
    unanswered: Duration,
    /// The client's own deadline.
    deadline: Option<Instant>,
    /// It has lived long enough.
    old: Option<Instant>,
    /// The client has closed its half, or asked once, and has waited long enough.
    given_up: Option<Instant>,
}

/// So many requests are read before other streams have their turn.
const REQUESTS_IN_A_TURN: usize = 32;

impl Driver {
    /// Begins with the client's `timeout`; how old the stream becomes is `settings`' figure, give or take a fifth.
    pub(super) fn new(
        session: Arc<Session>,
        requests: Requests,
        settings: &Settings,
        timeout: Option<Duration>,
        now: Instant,
    ) -> Self {
        let old = settings
            .timers
            .stream_age
            .map(|age| age.mul_f64(rand::random_range(0.8..1.2)));
        let times = Times {
            write_stall: settings.timers.write_stall,
            unanswered: settings.protocol.timers.unanswered,
            deadline: timeout.and_then(|timeout| now.checked_add(timeout)),
            old: old.and_then(|old| now.checked_add(old)),
            given_up: None,
        };
        Self {
            session,
            requests,
            alarm: Alarm::default(),
            stall: Stall::default(),
            times,
            busy: true,
        }
    }

    /// The relay is about to stop.
    pub(super) fn drain(&self) {
        self.session.lock().close();
    }

    /// Everything that can be done now. Ready when the stream must be given up without another word.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = clock::now();
        let session = self.session.clone();
        let mut state = session.lock();
        state.begin(now);
        if self.read(&mut state, cx, now).is_ready() {
            return Poll::Ready(());
        }
        // After the first request, which is what brings the session to a view: before it there is no bell to wait at.
        state.handle_bell(cx);
        let due = self.alarm.is_due(now);
        self.busy = state.is_stirred() || due || self.requests.poll_timeout().is_some();
        if self.busy {
            state.settle();
        }
        if due {
            self.handle_times(&mut state, now);
        }
        Poll::Pending
    }

    /// The timers alone: to be called again when a response may have been made, for that may set one.
    pub(super) fn poll_timers(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.busy {
            return Poll::Pending;
        }
        let session = self.session.clone();
        let state = session.lock();
        let now = state.now();
        self.poll_times(&state, cx, now)
    }

    fn read(&mut self, state: &mut State, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        for _ in 0..REQUESTS_IN_A_TURN {
            if state.is_ending() {
                self.requests.stop();
            }
            match self.requests.poll(cx, now) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Next::Message(message)) => {
                    state.handle_message(&message);
                    if state.is_fetch() {
                        self.requests.stop();
                        self.times.given_up = now.checked_add(self.times.unanswered);
                    }
                }
                Poll::Ready(Next::Closed) if state.is_fetch() => {
                    state.end(Status::invalid_argument("the call has no request"));
                }
                Poll::Ready(Next::Closed) => {
                    state.close();
                    self.times.given_up = now.checked_add(self.times.unanswered);
                }
                Poll::Ready(Next::Fault(status)) => state.end(status),
                Poll::Ready(Next::Gone) => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Some time has come, perhaps one of these.
    fn handle_times(&mut self, state: &mut State, now: Instant) {
        let due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        state.handle_timeout();
        if due(&mut self.times.deadline) {
            state.end(Status::deadline_exceeded("the call's grpc-timeout has passed"));
        }
        if due(&mut self.times.old) {
            state.close();
        }
        if due(&mut self.times.given_up) {
            let bound = self.times.unanswered;
            state.end(Status::unavailable(format!(
                "there is no answer within {bound:?}, and the client sends no more"
            )));
        }
    }

    fn poll_times(&mut self, state: &State, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        // Only what was given to the transport can be stuck there: a window that is not opened holds up no timer.
        let progress = &self.session.progress;
        let stuck = (progress.waiting() > 0).then(|| progress.taken() + state.written());
        let stuck = self.stall.note(stuck, self.times.write_stall, now);
        if stuck.is_some_and(|at| at <= now) {
            tracing::info!(
                bytes = progress.waiting(),
                "a client takes nothing; its stream is ended"
            );
            return Poll::Ready(());
        }
        let times = [
            state.poll_timeout(),
            self.requests.poll_timeout(),
            self.times.deadline,
            self.times.old,
            self.times.given_up,
            stuck,
        ];
        if self.alarm.poll(times.into_iter().flatten().min(), cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
