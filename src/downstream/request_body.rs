// SPDX-License-Identifier: Apache-2.0
//! The body of a request in either version of HTTP.
//!
//! Owns flow control: what was read makes room for more. Does not collect the body.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame};
use hyper::body::Incoming;

/// The body of one request.
pub(super) enum RequestBody {
    Http1(Incoming),
    Http2(RecvStream),
}

/// Returns the next chunk of an HTTP/2 stream, and lets the client send as many bytes again.
pub(super) fn poll_chunk(stream: &mut RecvStream, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
    let next = ready!(stream.poll_data(cx));
    if let Some(Ok(chunk)) = &next {
        stream.flow_control().release_capacity(chunk.len())?;
    }
    Poll::Ready(next)
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Box<dyn Error + Send + Sync>>>> {
        match self.get_mut() {
            Self::Http1(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Http2(stream) => {
                let next = ready!(poll_chunk(stream, cx));
                Poll::Ready(next.map(|chunk| chunk.map(Frame::data).map_err(Into::into)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(stream) => stream.is_end_stream(),
        }
    }
}
