//! The response to a call that is not a stream: to health checks, polls, and refused calls.
//!
//! Owns how it is sent to the transport. Knows nothing of its content.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use h2::SendStream;
use h2::server::SendResponse;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Response};
use http_body::Body as _;

use super::PendingResponse;
use crate::downstream::body::Body;
use crate::wire::{Progress, Rope, SharedSlices};

/// One call, until the transport has all of its response.
pub(in crate::downstream) struct UnaryCall {
    state: State,
    progress: Arc<Progress>,
}

enum State {
    /// The response is not ready yet.
    PendingResponse(PendingResponse, SendResponse<Rope>),
    Saying(Body, SendStream<Rope>),
}

impl UnaryCall {
    pub(in crate::downstream) fn new(
        answering: PendingResponse,
        respond: SendResponse<Rope>,
        shared_slices: Arc<SharedSlices>,
    ) -> Self {
        Self {
            state: State::PendingResponse(answering, respond),
            progress: Arc::new(Progress::new(shared_slices)),
        }
    }

    /// Ready when the call is over. Dropping it then resets what the client still sends.
    pub(in crate::downstream) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.state {
                State::PendingResponse(answering, respond) => {
                    if respond.poll_reset(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    let response = ready!(answering.poll_unpin(cx)).unwrap_or_else(|never| match never {});
                    let Some((body, send)) = begin(response, respond) else {
                        return Poll::Ready(());
                    };
                    self.state = State::Saying(body, send);
                }
                State::Saying(body, send) => {
                    if send.poll_reset(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    return say(body, send, &self.progress, cx);
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

fn say(body: &mut Body, send: &mut SendStream<Rope>, progress: &Arc<Progress>, cx: &mut Context<'_>) -> Poll<()> {
    while progress.ready(cx.waker()) {
        let sent = match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(rope) => {
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
