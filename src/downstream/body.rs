// SPDX-License-Identifier: Apache-2.0
//! The bodies of responses to requests that begin no stream.
//!
//! Owns the kinds of bodies. Decides nothing.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use tonic::Status;

use crate::wire::Rope;

/// A response body.
pub(super) enum Body {
    /// No body; the headers are enough.
    Empty,
    /// A text for a person.
    Text(Bytes),
    /// Bytes that are shared with other responses; none once they were taken.
    Shared(Option<Rope>),
    /// One gRPC message, and the trailers after it.
    Message(Option<Rope>, HeaderMap),
    /// The body of a small service, such as the health service.
    Small(tonic::body::Body),
}

impl http_body::Body for Body {
    type Data = Rope;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Rope>, Status>>> {
        let body = self.get_mut();
        match body {
            Self::Empty => Poll::Ready(None),
            Self::Text(text) => {
                let frame = Frame::data(Rope::from(std::mem::take(text)));
                *body = Self::Empty;
                Poll::Ready(Some(Ok(frame)))
            }
            Self::Shared(rope) => Poll::Ready(rope.take().map(|rope| Ok(Frame::data(rope)))),
            Self::Message(rope, trailers) => {
                let frame = match rope.take() {
                    Some(rope) => Frame::data(rope),
                    None => {
                        let trailers = std::mem::take(trailers);
                        *body = Self::Empty;
                        Frame::trailers(trailers)
                    }
                };
                Poll::Ready(Some(Ok(frame)))
            }
            Self::Small(small) => {
                let frame = Pin::new(small).poll_frame(cx);
                frame.map(|next| next.map(|frame| frame.map(|frame| frame.map_data(Rope::from))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Text(text) => text.is_empty(),
            Self::Shared(rope) => rope.is_none(),
            Self::Message(..) => false,
            Self::Small(small) => small.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Text(text) => SizeHint::with_exact(text.len() as u64),
            Self::Shared(rope) => SizeHint::with_exact(rope.as_ref().map_or(0, bytes::Buf::remaining) as u64),
            Self::Message(..) => SizeHint::default(),
            Self::Small(small) => small.size_hint(),
        }
    }
}
