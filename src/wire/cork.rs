// SPDX-License-Identifier: Apache-2.0
//! Many small writes of one turn become one large write.
//!
//! The transport writes one HTTP/2 frame at a time and flushes after each. This module gathers all frames of a turn (one poll of
//! the connection) and writes them at once when the turn ends: shared bytes by reference, the others copied into a buffer of the
//! thread. Owns what the socket did not take; until that is sent, writers wait. Knows nothing of frames.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::SharedSlices;
use super::gathering::{Gathering, PARTS_MAX, fill, skip};
use super::shared_slices::SHARED_BYTES_MIN;
use super::signal::SocketSignal;

/// The end that the connection's task keeps.
pub struct Cork<S>(Arc<Mutex<Inner<S>>>);

/// The progress of a connection, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Bytes that were ever read.
    pub received: u64,
    /// The bytes that the socket has ever taken, if it has not taken everything. If this does not grow, the client is stuck.
    pub stuck_at: Option<u64>,
}

/// The end that the transport reads from and writes to.
pub struct Corked<S>(Arc<Mutex<Inner<S>>>);

/// The most bytes that are copied before a write, and so the most memory that a stalled client costs here.
pub const COPIED_BYTES_MAX: usize = 128 * 1024;
/// The most bytes that are gathered before a write, give or take one frame: 256 KiB of content, and the framing around it.
pub const GATHERED_BYTES_MAX: usize = 272 * 1024;
/// The most bytes that are written in a turn, give or take one write. Then other connections have their turn.
const TURN_BYTES_MAX: u32 = 1024 * 1024;

thread_local! {
    /// Lent to one connection for the time of its turn; empty between turns.
    static SCRATCH: Cell<Gathering> = Cell::default();
}

/// The state that both ends share. Both belong to one task, so nobody ever waits for the lock.
struct Inner<S> {
    socket: S,
    /// Bytes that were read from the socket before the transport began to read.
    replay: Bytes,
    /// Whether the socket may have something to read.
    signal: SocketSignal,
    /// The shared bytes on their way through this connection; they need not be copied.
    shared_slices: Arc<SharedSlices>,
    /// Whether a turn is going on. Outside of one, writes go straight to the socket.
    within: bool,
    /// What this turn wrote, if it wrote anything.
    gathering: Option<Gathering>,
    /// What the socket has not taken. As long as it is not empty, writers wait.
    rest: VecDeque<Bytes>,
    /// Whether the socket still holds bytes that it took and has not sent, such as records that TLS has sealed.
    unsent: bool,
    /// Bytes that were ever written to the socket, and read from it.
    sent: u64,
    received: u64,
    /// [`low`] of what was written by the beginning of this turn.
    begun_at: u32,
    failed: Option<io::Error>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Cork<S> {
    /// Creates both ends for a socket, of which `replay` was already read. Bytes found in `shared_slices` are not copied.
    pub fn new(socket: S, replay: Bytes, shared_slices: Arc<SharedSlices>) -> (Self, Corked<S>) {
        let shared = Arc::new(Mutex::new(Inner {
            socket,
            replay,
            signal: SocketSignal::default(),
            shared_slices,
            within: false,
            gathering: None,
            rest: VecDeque::new(),
            unsent: false,
            begun_at: 0,
            sent: 0,
            received: 0,
            failed: None,
        }));
        (Self(shared.clone()), Corked(shared))
    }

    /// Runs one turn: what `turn` writes goes to the socket when the turn ends, or earlier if it is much.
    pub fn turn<T>(&self, cx: &mut Context<'_>, turn: impl FnOnce(&mut Context<'_>) -> T) -> (T, Flow) {
        self.0.lock().begin(cx);
        let result = turn(cx);
        let mut inner = self.0.lock();
        inner.end(cx);
        let flow = Flow {
            received: inner.received,
            stuck_at: inner.stuck_at(),
        };
        (result, flow)
    }

    /// Whether bytes wait that the socket has not taken.
    pub fn is_blocked(&self) -> bool {
        self.0.lock().is_blocked()
    }

    /// Returns the bytes that the socket has ever taken, if it has not taken everything.
    pub fn stuck_at(&self) -> Option<u64> {
        self.0.lock().stuck_at()
    }

    /// Returns the shared bytes on their way through this connection.
    pub fn shared_slices(&self) -> Arc<SharedSlices> {
        self.0.lock().shared_slices.clone()
    }
}

/// The lower half, which is enough for what one turn writes.
fn low(bytes: u64) -> u32 {
    u32::try_from(bytes & u64::from(u32::MAX)).unwrap_or_default()
}

impl<S: AsyncRead + AsyncWrite + Unpin> Inner<S> {
    fn is_blocked(&self) -> bool {
        self.unsent || !self.rest.is_empty()
    }

    fn stuck_at(&self) -> Option<u64> {
        self.is_blocked().then_some(self.sent)
    }

    fn begin(&mut self, cx: &mut Context<'_>) {
        self.begun_at = low(self.sent);
        if let Poll::Ready(Err(error)) = self.send_rest(cx) {
            self.failed = Some(error);
        }
        self.within = true;
    }

    fn end(&mut self, cx: &mut Context<'_>) {
        self.within = false;
        if self.gathering.is_none() {
            return;
        }
        if let Poll::Ready(Err(error)) = self.send_gathered(cx) {
            self.failed = Some(error);
            // The transport believes that all this was written. Wake it, so that its next call gets the error.
            cx.waker().wake_by_ref();
        }
        if let Some(mut gathering) = self.gathering.take() {
            gathering.clear();
            SCRATCH.set(gathering);
        }
    }

    /// Sends what the socket did not take earlier.
    #[inline]
    fn send_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.rest.is_empty() && !self.unsent {
            return Poll::Ready(Ok(()));
        }
        self.send_some_rest(cx)
    }

    fn send_some_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let mut slices = [IoSlice::new(&[]); PARTS_MAX];
            let parts = fill(self.rest.iter().map(|part| &**part), &mut slices);
            let slices = slices.get(..parts).unwrap_or_default();
            let count = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, slices))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += count as u64;
            skip(&mut self.rest, count);
        }
        // Frees the memory instead of keeping it for the next time.
        self.rest = VecDeque::new();
        self.flush_socket(cx)
    }

    /// Sends what this turn gathered, and keeps what the socket did not take.
    fn send_gathered(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(gathering) = &mut self.gathering else {
            return Poll::Ready(Ok(()));
        };
        let mut from = 0;
        while from < gathering.len() {
            let socket = Pin::new(&mut self.socket);
            let written = match gathering.whole(from) {
                Some(whole) => socket.poll_write(cx, whole),
                None => {
                    let mut slices = [IoSlice::new(&[]); PARTS_MAX];
                    let parts = gathering.slices(from, &mut slices);
                    socket.poll_write_vectored(cx, slices.get(..parts).unwrap_or_default())
                }
            };
            match written {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.sent += count as u64;
                    from += count;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    debug_assert!(self.rest.is_empty(), "gathered while bytes before were unsent");
                    self.rest = gathering.rest(from);
                    gathering.clear();
                    return Poll::Pending;
                }
            }
        }
        gathering.clear();
        if from == 0 {
            Poll::Ready(Ok(()))
        } else {
            self.flush_socket(cx)
        }
    }

    fn flush_socket(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        self.unsent = flushed.is_pending();
        flushed
    }

    /// Sends what is left from before, and what is gathered if that is much, so that there is room for more.
    fn make_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        ready!(self.send_rest(cx))?;
        if self.within && low(self.sent).wrapping_sub(self.begun_at) >= TURN_BYTES_MAX {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let full =
            |gathering: &Gathering| gathering.len() >= GATHERED_BYTES_MAX || gathering.copied() >= COPIED_BYTES_MAX;
        if self.gathering.as_ref().is_some_and(full) {
            ready!(self.send_gathered(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        ready!(self.make_room(cx))?;
        if !self.within {
            let count = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, slices))?;
            self.sent += count as u64;
            return Poll::Ready(Ok(count));
        }
        let gathering = self.gathering.get_or_insert_with(|| SCRATCH.take());
        let before = gathering.len();
        for slice in slices {
            let shared = Some(slice).filter(|slice| slice.len() >= SHARED_BYTES_MIN);
            if let Some(shared) = shared.and_then(|slice| self.shared_slices.find(slice)) {
                gathering.share(shared);
                continue;
            }
            let room = COPIED_BYTES_MAX.saturating_sub(gathering.copied());
            let fits = slice.get(..room).unwrap_or(slice);
            gathering.copy(fits);
            if fits.len() < slice.len() {
                break;
            }
        }
        Poll::Ready(Ok(gathering.len() - before))
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        ready!(self.send_rest(cx))?;
        if self.within {
            // The end of the turn flushes.
            return Poll::Ready(Ok(()));
        }
        self.flush_socket(cx)
    }

    fn shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.send_rest(cx))?;
        ready!(self.send_gathered(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.replay.is_empty() {
            if !self.signal.take(cx.waker()) {
                return Poll::Pending;
            }
            let before = into.filled().len();
            let read = Pin::new(&mut self.socket).poll_read(&mut self.signal.context(), into);
            if read.is_ready() {
                // There may be more.
                self.signal.set();
            }
            self.received += (into.filled().len() - before) as u64;
            return read;
        }
        let count = self.replay.len().min(into.remaining());
        into.put_slice(&self.replay.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Corked<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.lock().read(cx, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Corked<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().write(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().write(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().shutdown(cx)
    }
}
