// SPDX-License-Identifier: Apache-2.0
//! The response to a call that is not a stream: to health checks, polls, and refused calls.
//!
//! Owns how it is sent to the transport, and that a client which does not read it gives it up. Knows nothing of its content.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt as _;
use h2::SendStream;
use h2::server::SendResponse;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Response};
use http_body::Body as _;

use super::PendingResponse;
use crate::clock::{Sleep, sleep};
use crate::downstream::body::Body;
use crate::wire::{Rope, RopeProgress, SharedSlices};

/// One call, until the transport has all of its response.
pub(in crate::downstream) struct UnaryCall {
    state: UnaryState,
    progress: Arc<RopeProgress>,
    /// How long the client may read nothing.
    patience: Option<Duration>,
    /// The end of that, while the client reads nothing.
    stalls: Option<Sleep>,
}

enum UnaryState {
    /// The response is not ready yet.
    PendingResponse(PendingResponse, SendResponse<Rope>),
    Saying(Body, SendStream<Rope>),
}

impl UnaryCall {
    pub(in crate::downstream) fn new(
        answering: PendingResponse,
        respond: SendResponse<Rope>,
        shared_slices: Arc<SharedSlices>,
        patience: Option<Duration>,
    ) -> Self {
        Self {
            state: UnaryState::PendingResponse(answering, respond),
            progress: Arc::new(RopeProgress::new(shared_slices)),
            patience,
            stalls: None,
        }
    }

    /// Ready when the call is over. Dropping it then resets what the client still sends.
    pub(in crate::downstream) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.state {
                UnaryState::PendingResponse(answering, respond) => {
                    if respond.poll_reset(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    let response = ready!(answering.poll_unpin(cx)).unwrap_or_else(|never| match never {});
                    let Some((body, send)) = begin(response, respond) else {
                        return Poll::Ready(());
                    };
                    self.state = UnaryState::Saying(body, send);
                }
                UnaryState::Saying(body, send) => {
                    if send.poll_reset(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    let mut sent = false;
                    if say(body, send, &self.progress, &mut sent, cx).is_ready() {
                        return Poll::Ready(());
                    }
                    if sent || self.progress.ready(cx.waker()) {
                        self.stalls = None;
                    }
                    return match self.progress.ready(cx.waker()) {
                        true => Poll::Pending,
                        false => stall(send, self.patience, &mut self.stalls, cx),
                    };
                }
            }
        }
    }
}

/// Sends the head. `None` if there is nothing more to send.
fn begin(response: Response<Body>, respond: &mut SendResponse<Rope>) -> Option<(Body, SendStream<Rope>)> {
    let (head, body) = response.into_parts();
    let mut head = Response::from_parts(head, ());
    let over = body.is_end_stream();
    if let Some(length) = body.size_hint().exact().filter(|_| !over) {
        let length = HeaderValue::from(length);
        head.headers_mut().entry(CONTENT_LENGTH).or_insert(length);
    }
    match respond.send_response(head, over) {
        Ok(send) => (!over).then_some((body, send)),
        Err(error) => {
            tracing::debug!(%error, "a response cannot be sent");
            None
        }
    }
}

/// Ready when the client has read nothing for too long.
fn stall(
    send: &mut SendStream<Rope>,
    patience: Option<Duration>,
    stalls: &mut Option<Sleep>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let Some(patience) = patience else {
        return Poll::Pending;
    };
    ready!(stalls.get_or_insert_with(|| sleep(patience)).poll_unpin(cx));
    tracing::debug!("the client does not read a response");
    send.send_reset(h2::Reason::CANCEL);
    Poll::Ready(())
}

/// Sends the body as far as there is room. Ready when all of it was sent.
fn say(
    body: &mut Body,
    send: &mut SendStream<Rope>,
    progress: &Arc<RopeProgress>,
    some: &mut bool,
    cx: &mut Context<'_>,
) -> Poll<()> {
    while progress.ready(cx.waker()) {
        let sent = match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(rope) => {
                    *some = true;
                    let over = body.is_end_stream();
                    let sent = send.send_data(rope.reporting(progress), over);
                    if over {
                        return Poll::Ready(());
                    }
                    sent
                }
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    drop(send.send_trailers(trailers));
                    return Poll::Ready(());
                }
            },
            Some(Err(error)) => {
                tracing::debug!(%error, "a response ended early");
                send.send_reset(h2::Reason::INTERNAL_ERROR);
                return Poll::Ready(());
            }
            None => {
                drop(send.send_data(Rope::from(bytes::Bytes::new()), true));
                return Poll::Ready(());
            }
        };
        if sent.is_err() {
            return Poll::Ready(());
        }
    }
    Poll::Pending
}
