// SPDX-License-Identifier: Apache-2.0
//! One client connection.
//!
//! Owns its version of HTTP, its writes, and its end. Knows nothing of the calls on it.

mod age;
mod agenda;
mod entry;
mod http2;
mod keepalive;
mod line;
mod open_call;
mod open_calls;
mod places;
mod watch;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::future::Either;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt as _;

pub(super) use entry::HeaderFault;
use http2::Http2;

use crate::clock;
use crate::downstream::admission::Guest;
use crate::downstream::alarm::Alarm;
use crate::downstream::call::Calls;
use crate::downstream::entrance::Entrance;
use crate::downstream::handshakes::HandshakeFault;
use crate::downstream::portion::Allotment;
use crate::downstream::stall::Stall;
use crate::identity::Identity;
use crate::shutdown::{Departure, Drain, Draining};
use crate::wire::{Cork, HANDSHAKE, Peer, Socket, is_proxy_header};

/// A connection that was accepted.
pub(super) struct Connection {
    pub(super) calls: Arc<Calls>,
    pub(super) socket: Socket,
    pub(super) peer: Peer,
    pub(super) guest: Guest,
    pub(super) entrance: Arc<Entrance>,
    pub(super) drain: Drain,
}

/// The first bytes of every HTTP/2 client.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long a client may take to send the preface, and before that, for the PROXY header and the TLS handshake together.
const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client of HTTP/1.1 may take from one request to the next.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Why a connection is closed whose client does not read.
const NOT_READ: &str = "the client does not read";
/// How many bytes of an HTTP/1.1 request's head or body are read at once.
const HTTP1_BUFFER_BYTES: usize = 16 * 1024;

/// Starts the connection's task.
#[expect(clippy::disallowed_methods, reason = "one task for each client connection")]
pub(super) fn start(connection: Connection) {
    let metrics = connection.calls.shared.metrics.clone();
    let peer = connection.peer;
    // In a box, because the memory for the beginning would otherwise stay allocated as long as the connection.
    let beginning = Box::pin(connection.begin());
    drop(tokio::spawn(async move {
        metrics.connections.inc();
        if let Some(served) = metrics.turns.entering.of(beginning).await {
            let ended = served.await;
            // What it held is gone by now.
            metrics.turns.leaving.end(ended);
        }
        metrics.connections.dec();
        tracing::debug!(%peer, "a connection has ended");
    }));
}

impl Connection {
    /// Finds out which protocol the client speaks, and returns the connection to serve. None if the client sends nothing.
    async fn begin(self) -> Option<impl Future<Output = Instant> + Send> {
        // In a box of its own, so that what comes after does not pay for it.
        let (mut this, identity) = Box::pin(self.enter()).await?;
        let (begun, http2) = match clock::timeout(PREFACE_TIMEOUT, sniff(&mut this.socket)).await {
            Some(Ok(sniffed)) => sniffed,
            Some(Err(error)) => {
                tracing::debug!(peer = %this.peer, %error, "a connection ended before it began");
                return None;
            }
            None => {
                tracing::debug!(peer = %this.peer, "a client sent nothing in time");
                return None;
            }
        };
        if is_proxy_header(&begun) {
            this.calls.not_proxied(&this.peer, &HeaderFault::Stranger);
            return None;
        }
        if begun.first() == Some(&HANDSHAKE) {
            // TLS clients recognize the HTTP response and report it as such.
            this.calls.not_secure(&this.peer, &HandshakeFault::Plaintext);
        }
        if !http2 {
            return Some(Either::Right(Box::pin(this.speak_http1(begun, identity))));
        }
        let served = Box::pin(this.begin_http2(begun, identity)).await;
        served.map(|served| Either::Left(Box::pin(served)))
    }

    async fn begin_http2(self, begun: Bytes, identity: Identity) -> Option<impl Future<Output = Instant> + Send> {
        let bound = self.calls.shared.settings.load().timers.write_stall;
        let portion = Allotment::of_a_connection(&self.calls.shared, self.entrance, Arc::new(self.guest), identity);
        let beginning = Http2::begin(self.calls, portion, self.socket, begun);
        let connection = match clock::timeout(PREFACE_TIMEOUT, beginning).await {
            Some(Ok(connection)) => Box::pin(connection),
            Some(Err(error)) => {
                tracing::debug!(peer = %self.peer, %error, "a connection ended before it began");
                return None;
            }
            None => {
                tracing::debug!(peer = %self.peer, "a client read nothing in time");
                return None;
            }
        };
        Some(Served {
            peer: self.peer,
            connection,
            draining: self.drain.listen(),
            bound,
            end: Ending::default(),
            poll: |mut connection: Pin<&mut Http2<Socket>>, cx: &mut Context<'_>| {
                (connection.as_mut().poll(cx), connection.stuck_at())
            },
            shut_down: |connection: Pin<&mut Http2<Socket>>| connection.get_mut().drain(),
            stalled: |connection: Pin<&mut Http2<Socket>>| connection.stalled(),
        })
    }

    /// Serves HTTP/1.1, which only polling clients use.
    async fn speak_http1(self, begun: Bytes, identity: Identity) -> Instant {
        let bound = self.calls.shared.settings.load().timers.write_stall;
        let calls = self.calls.clone();
        let portion = Allotment::of_a_connection(&calls.shared, self.entrance, Arc::new(self.guest), identity);
        let asked = Arc::new(AtomicBool::new(false));
        let was_asked = asked.clone();
        let service = service_fn(move |request| {
            asked.store(true, Ordering::Relaxed);
            calls.call_http1(request, &portion)
        });
        let (cork, io) = Cork::new(self.socket, begun, Arc::default());
        let connection = http1::Builder::new()
            .timer(clock::OwnTimer)
            .header_read_timeout(IDLE_TIMEOUT)
            .auto_date_header(false)
            .max_buf_size(HTTP1_BUFFER_BYTES)
            .serve_connection(TokioIo::new(io), service);
        let answered = Served {
            peer: self.peer,
            connection: Box::pin(connection),
            draining: self.drain.listen(),
            bound,
            end: Ending::default(),
            poll: |connection: Pin<&mut http1::Connection<_, _>>, cx: &mut Context<'_>| {
                let (ended, flow) = cork.turn(cx, |cx| connection.poll(cx));
                (ended.map_err(|error: hyper::Error| error.to_string()), flow.stuck_at)
            },
            shut_down: |connection: Pin<&mut http1::Connection<_, _>>| connection.graceful_shutdown(),
            stalled: |_: Pin<&mut http1::Connection<_, _>>| {},
        };
        let unasked = async {
            clock::sleep(PREFACE_TIMEOUT).await;
            if was_asked.load(Ordering::Relaxed) {
                std::future::pending().await
            }
        };
        tokio::select! {
            ended = answered => return ended,
            () = unasked => tracing::debug!(peer = %self.peer, "a client did not finish its request in time"),
        }
        clock::now()
    }
}

/// Drives a connection until it ends, or must end. The connection is in a box, and so is this future where it lives long, because
/// a value moved into a future takes its space twice. `poll` also returns the bytes that the client has ever taken, if it has not
/// taken everything. Returns when it ended.
struct Served<C, P, D, S> {
    peer: Peer,
    connection: Pin<Box<C>>,
    draining: Draining,
    bound: Option<Duration>,
    end: Ending,
    poll: P,
    shut_down: D,
    /// It is closed because its client does not read.
    stalled: S,
}

impl<C, P, D, S> Future for Served<C, P, D, S>
where
    P: Fn(Pin<&mut C>, &mut Context<'_>) -> (Poll<Result<(), String>>, Option<u64>) + Unpin,
    D: Fn(Pin<&mut C>) + Unpin,
    S: Fn(Pin<&mut C>) + Unpin,
{
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        let this = &mut *self;
        if this.end.deadline.is_none()
            && let Poll::Ready(departure) = this.draining.poll(cx)
        {
            this.end.leave(departure);
        }
        if this.end.begins() {
            // Clients must send new calls elsewhere; the present calls end by themselves.
            (this.shut_down)(this.connection.as_mut());
        }
        let (ended, stuck_at) = (this.poll)(this.connection.as_mut(), cx);
        let error = match ended {
            Poll::Ready(Ok(())) => return Poll::Ready(clock::now()),
            Poll::Ready(Err(error)) => error,
            Poll::Pending => {
                let reason = ready!(this.end.poll(stuck_at, this.bound, cx));
                if reason == NOT_READ {
                    (this.stalled)(this.connection.as_mut());
                }
                reason.to_owned()
            }
        };
        tracing::debug!(peer = %this.peer, error, "a connection ended early");
        Poll::Ready(clock::now())
    }
}

/// When a connection begins to leave, and when it is closed even if streams are still open.
#[derive(Default)]
struct Ending {
    begins: Option<Instant>,
    deadline: Option<Instant>,
    stall: Stall,
    alarm: Alarm,
}

impl Ending {
    fn leave(&mut self, departure: Departure) {
        self.begins = Some(clock::of(departure.begins.into_std()));
        self.deadline = Some(clock::of(departure.deadline.into_std()));
    }

    /// Whether it must begin to leave now; true only once.
    fn begins(&mut self) -> bool {
        self.begins.is_some() && self.begins.take_if(|at| *at <= clock::now()).is_some()
    }

    /// Ready, with the reason, when the connection must be closed.
    #[inline]
    fn poll(&mut self, stuck_at: Option<u64>, bound: Option<Duration>, cx: &mut Context<'_>) -> Poll<&'static str> {
        if stuck_at.is_some() || self.deadline.is_some() {
            return self.poll_times(stuck_at, bound, cx);
        }
        // A connection that was stuck once keeps no memory for that.
        self.stall = Stall::default();
        self.alarm = Alarm::default();
        Poll::Pending
    }

    fn poll_times(
        &mut self,
        stuck_at: Option<u64>,
        bound: Option<Duration>,
        cx: &mut Context<'_>,
    ) -> Poll<&'static str> {
        let now = clock::now();
        let stuck = self.stall.note(stuck_at, bound, now);
        if stuck.is_some_and(|at| at <= now) {
            return Poll::Ready(NOT_READ);
        }
        if self.deadline.is_some_and(|at| at <= now) {
            return Poll::Ready("the time to drain is over");
        }
        let next = clock::earliest([stuck, self.begins, self.deadline]);
        if self.alarm.poll(next, cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// Reads until it is known whether the client speaks HTTP/2. Returns what was read, and whether it does.
async fn sniff(socket: &mut Socket) -> std::io::Result<(Bytes, bool)> {
    let mut begun = BytesMut::with_capacity(PREFACE.len());
    loop {
        let mut rest = vec![0; PREFACE.len() - begun.len()];
        let count = Pin::new(&mut *socket).read(&mut rest).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        begun.extend_from_slice(rest.get(..count).unwrap_or_default());
        if !PREFACE.starts_with(&begun) {
            return Ok((begun.freeze(), false));
        }
        if begun.len() == PREFACE.len() {
            return Ok((begun.freeze(), true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_not_stuck_has_no_alarm() {
        let (mut ending, bound) = (Ending::default(), Some(Duration::from_secs(60)));
        let cx = &mut Context::from_waker(std::task::Waker::noop());
        for _ in 0..2 {
            assert!(ending.poll(Some(5), bound, cx).is_pending() && ending.alarm.is_set());
            assert!(ending.poll(None, bound, cx).is_pending() && !ending.alarm.is_set());
        }
    }
}
