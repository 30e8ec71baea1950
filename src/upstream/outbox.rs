// SPDX-License-Identifier: Apache-2.0
//! Room for one request, filled only when the transport takes it.
//!
//! Owns the hand-over. E-21: nothing is queued and nobody waits; a request is not even built until the transport takes it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::Stream;
use parking_lot::Mutex;

/// The writer's end. Dropping it ends the stream of requests.
pub(super) struct Outbox(Arc<Mutex<RequestSlot>>);

/// A request, and the field with the node, which all requests share.
pub(super) type RequestPieces = [Bytes; 2];

/// The transport's end: the stream of requests.
pub(super) struct Requests(Arc<Mutex<RequestSlot>>);

#[derive(Default)]
struct RequestSlot {
    request: Option<RequestPieces>,
    /// The transport wants a request and waits to be woken.
    transport: Option<Waker>,
    writer: Option<Waker>,
    closed: bool,
}

impl Outbox {
    pub(super) fn new() -> (Self, Requests) {
        let slot = Arc::<Mutex<RequestSlot>>::default();
        (Self(slot.clone()), Requests(slot))
    }

    /// Is ready if the transport takes a request now; otherwise the writer is woken when it does.
    pub(super) fn poll_hungry(&self, cx: &Context<'_>) -> Poll<()> {
        let mut slot = self.0.lock();
        if slot.request.is_none() && slot.transport.is_some() {
            return Poll::Ready(());
        }
        slot.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether the transport takes a request now.
    pub(super) fn is_hungry(&self) -> bool {
        let slot = self.0.lock();
        slot.request.is_none() && slot.transport.is_some()
    }

    /// Hands a request over.
    pub(super) fn put(&self, request: RequestPieces) {
        self.change(|slot| slot.request = Some(request));
    }

    /// Changes the slot and wakes the transport.
    fn change(&self, change: impl FnOnce(&mut RequestSlot)) {
        let transport = {
            let mut slot = self.0.lock();
            change(&mut slot);
            slot.transport.take()
        };
        if let Some(transport) = transport {
            transport.wake();
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.change(|slot| slot.closed = true);
    }
}

impl Stream for Requests {
    type Item = RequestPieces;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RequestPieces>> {
        let mut slot = self.0.lock();
        if let Some(request) = slot.request.take() {
            return Poll::Ready(Some(request));
        }
        if slot.closed {
            return Poll::Ready(None);
        }
        slot.transport = Some(cx.waker().clone());
        let writer = slot.writer.take();
        drop(slot);
        if let Some(writer) = writer {
            writer.wake();
        }
        Poll::Pending
    }
}
