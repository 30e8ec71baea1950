// SPDX-License-Identifier: Apache-2.0
//! Watches the bytes that a server sends on a connection.
//!
//! Owns when anything and when data arrived last, whether the server speaks HTTP/2, and why it closed the connection. Notes when something
//! was sent to it. Does not decode messages.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::clock::now;
use super::frames::{Farewell, Frames};

/// What was noticed in a server's bytes.
#[derive(Debug)]
pub(super) struct IoMonitor {
    noticed: Mutex<Noticed>,
    first: Notify,
    /// When the server sent anything on any connection.
    anywhere: Arc<Mutex<Option<Instant>>>,
}

#[derive(Debug, Default)]
struct Noticed {
    frames: Frames,
    /// When the server last sent anything.
    heard: Option<Instant>,
    foreign: bool,
    data: Option<Instant>,
    farewell: Option<Farewell>,
    /// When the transport last took something for the server.
    wrote: Option<Instant>,
}

impl IoMonitor {
    pub(super) fn new(anywhere: Arc<Mutex<Option<Instant>>>) -> Self {
        Self {
            noticed: Mutex::default(),
            first: Notify::new(),
            anywhere,
        }
    }

    /// Waits for the server's first bytes. Returns whether they may be HTTP/2.
    pub(super) async fn first(&self) -> bool {
        if self.noticed.lock().heard.is_none() {
            self.first.notified().await;
        }
        !self.noticed.lock().foreign
    }

    /// Returns when the last part of a message arrived.
    pub(super) fn data(&self) -> Option<Instant> {
        self.noticed.lock().data
    }

    /// Returns for how long the server has sent nothing at all.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        let heard = self.noticed.lock().heard;
        heard.map_or(Duration::ZERO, |heard| now.saturating_duration_since(heard))
    }

    /// Whether something was sent to the server since then.
    pub(super) fn wrote_since(&self, then: Instant) -> bool {
        self.noticed.lock().wrote.is_some_and(|wrote| wrote >= then)
    }

    /// Returns why the server closes the connection, if it sent a GOAWAY frame.
    pub(super) fn farewell(&self) -> Option<Farewell> {
        self.noticed.lock().farewell.clone()
    }

    fn beat(&self, bytes: &[u8]) {
        let mut noticed = self.noticed.lock();
        let new = noticed.frames.read(bytes);
        noticed.foreign |= new.foreign;
        if new.data {
            noticed.data = Some(now());
        }
        if new.farewell.is_some() {
            noticed.farewell = new.farewell;
        }
        let now = now();
        let first = noticed.heard.replace(now).is_none();
        drop(noticed);
        *self.anywhere.lock() = Some(now);
        if first {
            self.first.notify_one();
        }
    }
}

/// A connection that is monitored.
pub(super) struct Monitored<S> {
    inner: S,
    io_monitor: Arc<IoMonitor>,
    /// How much was read since the last pause.
    read: usize,
}

/// Reading pauses after this many bytes, so that they are consumed first.
const READ_BYTES_MAX: usize = 128 * 1024;

impl<S> Monitored<S> {
    pub(super) const fn new(inner: S, io_monitor: Arc<IoMonitor>) -> Self {
        Self {
            inner,
            io_monitor,
            read: 0,
        }
    }

    fn sent(&self, bytes: usize) -> usize {
        self.io_monitor.noticed.lock().wrote = Some(now());
        bytes
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Monitored<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read >= READ_BYTES_MAX {
            self.read = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, into))?;
        if let Some(read @ [_, ..]) = into.filled().get(before..) {
            self.io_monitor.beat(read);
            self.read += read.len();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Monitored<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, from))?;
        Poll::Ready(Ok(self.sent(written)))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, from))?;
        Poll::Ready(Ok(self.sent(written)))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
