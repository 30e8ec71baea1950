// SPDX-License-Identifier: Apache-2.0
//! One HTTP/2 connection with all of its calls, in one task.
//!
//! Owns the order of work: the transport and each call are polled when they were woken, and all that they write in one turn goes
//! to the socket together. Knows nothing of the content of calls.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, Connection, SendResponse};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};

use super::age::Age;
use super::agenda::{Ear, FIRST, Turn, WokenParts, WokenRound};
use super::keepalive::Keepalive;
use super::line::{HELPING_BYTES, WriteLine};
use super::open_call::{CallKind, OpenCall};
use super::open_calls::OpenCalls;
use super::watch::Watch;
use crate::clock;
use crate::downstream::call::{Calls, Links, StartedCall, UnaryCall};
use crate::downstream::portion::Allotment;
use crate::downstream::stream::Allowance;
use crate::wire::{Cork, Corked, Rope};

/// An established HTTP/2 connection.
pub(super) struct Http2<S> {
    cork: Cork<S>,
    /// In a box, because every connection has one of these, whose size is that of a class of the allocator.
    watch: Box<Watch>,
    agenda: Arc<WokenParts>,
    round: WokenRound,
    /// The transport's own part in the agenda.
    ear: Ear,
    inner: Http2Parts<S>,
}

struct Http2Parts<S> {
    calls: Arc<Calls>,
    links: Links,
    transport: Connection<Corked<S>, Rope>,
    open: OpenCalls,
    /// The streams that wait for room in the transport, by their first numbers.
    line: WriteLine,
    /// What those who are not in the line may do.
    allowance: Allowance,
    /// How many calls have begun in this turn.
    begun: u8,
    /// Whether the client had not taken everything after the last turn.
    stuck: bool,
    draining: bool,
}

/// The transport's number in the agenda.
const TRANSPORT: u32 = FIRST;
/// How many parts, and how often the transport, are polled in a turn. Then other connections have their turn.
const PARTS_IN_A_TURN: usize = 128;
const TRANSPORT_IN_A_TURN: usize = 4;
/// How many calls may begin in a turn, and after how long no more do: a call may have a token, whose signature takes long to check.
const CALLS_IN_A_TURN: u8 = 64;
const CALLS_TIME: Duration = Duration::from_micros(500);
/// The flow-control windows: how many bytes a stream may send before its requests are read, and the least and the most for all
/// streams of a connection together. A stream that is read slowly must leave room for the others.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES_MIN: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// The least size at which the transport counts an unread frame. It closes the connection when unread frames count for half of
/// the connection's window.
const FRAME_BYTES_MIN: u32 = 256;
/// The most bytes of a request's head.
const HEAD_BYTES_MAX: u32 = 16 * 1024;
/// A client that makes the relay reset more faulty streams than this loses its connection.
const FAULTY_STREAMS_MAX: usize = 1024;

impl<S: AsyncRead + AsyncWrite + Unpin> Http2<S> {
    /// Establishes the connection on a socket of which `begun` was already read.
    ///
    /// # Errors
    /// When the client does not speak HTTP/2.
    pub(super) async fn begin(
        calls: Arc<Calls>,
        portion: Arc<Allotment>,
        socket: S,
        begun: Bytes,
    ) -> Result<Self, h2::Error> {
        let settings = calls.shared.settings.load_full();
        let (cork, io) = Cork::new(socket, begun, Arc::default());
        let streams = settings.limits.streams_per_connection;
        let mut transport = Builder::new()
            .max_concurrent_streams(streams)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(window(streams))
            .max_header_list_size(HEAD_BYTES_MAX)
            .max_local_error_reset_streams(Some(FAULTY_STREAMS_MAX))
            .handshake(io)
            .await?;
        let agenda = Arc::new(WokenParts::default());
        let ear = agenda.part(TRANSPORT);
        ear.wake();
        let now = clock::now();
        let age = Age::new(settings.timers.stream_age, settings.timers.stream_age_jitter, now);
        let keepalive = Keepalive::new(settings.timers.keepalive, transport.ping_pong(), now);
        Ok(Self {
            watch: Box::new(Watch::new(age, keepalive)),
            agenda,
            round: WokenRound::default(),
            ear,
            inner: Http2Parts {
                links: Links {
                    portion,
                    shared_slices: cork.shared_slices(),
                },
                calls,
                transport,
                open: OpenCalls::default(),
                line: WriteLine::default(),
                allowance: Allowance::new(HELPING_BYTES),
                begun: 0,
                stuck: false,
                draining: false,
            },
            cork,
        })
    }

    /// Tells the client to send new calls elsewhere; the present calls end by themselves.
    pub(super) fn drain(&mut self) {
        self.inner.drain(&self.ear);
    }

    /// Counts and logs that the connection is closed because its client does not read.
    pub(super) fn stalled(&self) {
        self.inner.open.stalled(clock::now());
    }

    /// Returns the bytes that the client has ever taken, if it has not taken everything.
    pub(super) fn stuck_at(&self) -> Option<u64> {
        self.inner.stuck.then(|| self.cork.stuck_at())?
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Http2<S> {
    type Output = Result<(), String>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let this = self.get_mut();
        let now = clock::now();
        let ended = this.turn(cx, now);
        this.inner.calls.shared.metrics.turns.client.end(now);
        ended
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http2<S> {
    #[inline]
    fn turn(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<Result<(), String>> {
        let Self {
            cork,
            watch,
            agenda,
            round,
            ear,
            inner,
        } = self;
        if watch.is_old(|| inner.open.are_settled(), now) {
            inner.drain(ear);
        }
        let turn = agenda.begin(round, cx.waker());
        // When the socket becomes readable or writable, the transport must be polled.
        let (ended, flow) = cork.turn(&mut Context::from_waker(ear.waker()), |cx| {
            if inner.begin() {
                inner.turn::<true>(turn, ear, cork, cx, now)
            } else {
                inner.turn::<false>(turn, ear, cork, cx, now)
            }
        });
        inner.stuck = flow.stuck_at.is_some();
        inner.open.poll_givers(now);
        if let Poll::Ready(ended) = ended {
            return Poll::Ready(ended.map_err(|error| error.to_string()));
        }
        let blocked = inner.stuck && inner.calls.shared.settings.load().timers.write_stall.is_some();
        let gone = watch.poll(flow.received, blocked, now, cx);
        if gone.is_ready() {
            inner.open.silent(now);
        }
        gone.map(|()| Err("the client does not answer pings".to_owned()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http2Parts<S> {
    /// Sends GOAWAY first, so that no new stream begins here; then lets each stream end.
    fn drain(&mut self, ear: &Ear) {
        self.draining = true;
        self.transport.graceful_shutdown();
        ear.wake();
        self.open.drain();
    }

    /// Begins a turn. Returns whether streams wait for the transport, or may have to.
    fn begin(&mut self) -> bool {
        let crowded = self.stuck || !self.line.is_empty();
        self.begun = 0;
        self.allowance.begin();
        if !crowded {
            self.allowance.set_room(HELPING_BYTES);
        }
        crowded
    }

    /// Polls the parts that have something to do. `CROWDED`: streams wait for the transport, or may have to. There are two copies of
    /// it, so that otherwise they cost nothing.
    fn turn<const CROWDED: bool>(
        &mut self,
        mut turn: Turn<'_>,
        ear: &Ear,
        cork: &Cork<S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<Result<(), h2::Error>> {
        let mut again = TRANSPORT_IN_A_TURN;
        for _ in 0..PARTS_IN_A_TURN {
            let waited = CROWDED && self.line.is_moving();
            let next = if waited { self.come_forward() } else { turn.next() };
            let Some(number) = next else { break };
            if number == TRANSPORT {
                ear.begin();
                if again == 0 {
                    ear.wake();
                    break;
                }
                again -= 1;
                if let Poll::Ready(ended) = self.poll_transport(&turn, ear, cx, now) {
                    return Poll::Ready(ended);
                }
                if CROWDED && self.allowance.room() == 0 && !cork.is_blocked() {
                    self.offer(HELPING_BYTES);
                }
                continue;
            }
            self.open.poll(number, &mut self.allowance, now);
            if waited {
                self.offer(self.allowance.room());
            }
            if self.allowance.is_spent() {
                if !self.line_up(number, ear) {
                    break;
                }
                if !CROWDED {
                    return self.turn::<true>(turn, ear, cork, cx, now);
                }
            }
        }
        if CROWDED && self.line.is_moving() {
            // The next turn goes on.
            ear.wake();
        }
        Poll::Pending
    }

    fn poll_transport(
        &mut self,
        turn: &Turn<'_>,
        ear: &Ear,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<Result<(), h2::Error>> {
        while self.begun < CALLS_IN_A_TURN {
            match ready!(self.transport.poll_accept(cx)) {
                Some(Ok((request, respond))) => {
                    self.accept(request, respond, turn, now);
                    self.allowance.ask(now);
                }
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(())),
            }
            self.begun += 1;
            if clock::now().saturating_duration_since(now) >= CALLS_TIME {
                self.begun = CALLS_IN_A_TURN;
            }
        }
        // The next turn goes on.
        ear.wake();
        Poll::Pending
    }

    fn accept(&mut self, request: Request<RecvStream>, mut respond: SendResponse<Rope>, turn: &Turn<'_>, now: Instant) {
        let Some(number) = self.open.next_number() else { return };
        let kind = match self.calls.call(request, &self.links, now) {
            StartedCall::Answer(answering) => {
                let patience = self.calls.shared.settings.load().timers.write_stall;
                let answer = UnaryCall::new(answering, respond, self.links.shared_slices.clone(), patience);
                CallKind::Unary(Box::new(answer))
            }
            // The headers are sent at once, because the first response may come much later.
            StartedCall::Stream(head, driver) => match respond.send_response(head, false) {
                Ok(send) => {
                    let requests = turn.part(number + 1);
                    requests.wake();
                    CallKind::Stream(driver, send, requests)
                }
                Err(error) => return tracing::debug!(%error, "a stream cannot begin"),
            },
        };
        let ear = turn.part(number);
        ear.wake();
        let mut call = OpenCall::new(ear, kind);
        if self.draining {
            call.drain();
        }
        self.open.add(number, call);
    }

    /// Returns who has waited longest, and gives it the room.
    #[cold]
    fn come_forward(&mut self) -> Option<u32> {
        let (number, room) = self.line.next()?;
        self.allowance.set_room(room);
        self.open.come_forward(number);
        Some(number)
    }

    /// The transport has room for this many bytes of responses.
    #[cold]
    fn offer(&mut self, room: usize) {
        let room = self.line.offer(room);
        self.allowance.set_room(room);
    }

    /// If the call had no room for a response, puts it in the line. Returns whether it had none.
    #[cold]
    fn line_up(&mut self, number: u32, ear: &Ear) -> bool {
        let denied = self.allowance.take_denied();
        if denied {
            self.line.enter(number);
            // After its poll there may be room.
            ear.wake();
        }
        denied
    }
}

/// Returns a window in which all streams of a connection can send a small request at the same time.
fn window(streams: u32) -> u32 {
    streams
        .saturating_mul(2 * FRAME_BYTES_MIN)
        .clamp(CONNECTION_WINDOW_BYTES_MIN, CONNECTION_WINDOW_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Socket;

    /// 1536 is a size class of the allocator, and the next one is 1792.
    #[test]
    fn what_every_connection_takes() {
        assert!(size_of::<Http2<Socket>>() <= 1536, "{}", size_of::<Http2<Socket>>());
    }
}
