//! When bytes came on a connection.
//!
//! Owns the first and the last time. Refuses to know what they were.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::clock::now;

/// What was last heard of a peer.
#[derive(Debug)]
pub(super) struct Pulse {
    start: Instant,
    /// Nanoseconds from `start`; 0: nothing was heard yet.
    last: AtomicU64,
    first: Notify,
}

impl Pulse {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            start: now(),
            last: AtomicU64::new(0),
            first: Notify::new(),
        })
    }

    /// Waits for the first byte.
    pub(super) async fn first(&self) {
        if self.last().is_none() {
            self.first.notified().await;
        }
    }

    /// When the last byte came.
    pub(super) fn last(&self) -> Option<Instant> {
        let nanos = self.last.load(Ordering::Relaxed);
        (nanos > 0).then(|| self.start + Duration::from_nanos(nanos))
    }

    fn beat(&self) {
        let nanos = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if self.last.swap(nanos.max(1), Ordering::Relaxed) == 0 {
            self.first.notify_one();
        }
    }
}

/// A connection of which the pulse is taken.
pub(super) struct Watched<S> {
    inner: S,
    pulse: Arc<Pulse>,
}

impl<S> Watched<S> {
    pub(super) const fn new(inner: S, pulse: Arc<Pulse>) -> Self {
        Self { inner, pulse }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, into))?;
        if into.filled().len() > before {
            self.pulse.beat();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, from)
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
