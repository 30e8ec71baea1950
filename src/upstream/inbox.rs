//! The responses on a stream, message by message.
//!
//! Owns the borders of messages, the bound on their size, and how a stream ends. Knows nothing of what a message says, and never
//! holds one as a whole: [`Cutter`] takes it apart as it arrives.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use opentelemetry::trace::SpanContext;
use tonic::{Code, Status};

use super::failure::Failure;
use crate::protocol::Cutter;
use crate::telemetry::traceparent;

/// The responses on one stream.
pub(super) struct Inbox {
    body: Incoming,
    come: Come,
    /// Whether the status came with the headers, so the stream has already ended.
    ended: bool,
    /// The span of the server for the stream, if it says one.
    context: Option<SpanContext>,
}

/// Bytes that have arrived and were not returned yet.
#[derive(Debug)]
struct Come {
    bytes: Bytes,
    /// The first bytes of an incomplete prefix.
    prefix: Vec<u8>,
    /// A message that is not complete yet.
    begun: Option<Cutter>,
    bytes_max: usize,
}

/// The field of a response's head with the span of the server.
const TRACEPARENT: &str = "traceparent";
/// The size of gRPC's prefix of a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

impl Inbox {
    /// Reads the server's response; a message may have at most `bytes_max` bytes.
    pub(super) fn of(response: Response<Incoming>, bytes_max: usize) -> Result<Self, Status> {
        let status = Status::from_header_map(response.headers());
        let ended = status.is_some();
        if let Some(status) = status.filter(|status| status.code() != Code::Ok) {
            return Err(status);
        }
        if response.status() != StatusCode::OK {
            return Err(mapped(response.status()));
        }
        let context = response.headers().get(TRACEPARENT);
        Ok(Self {
            context: context.and_then(|value| traceparent::read(value.to_str().ok()?)),
            body: response.into_body(),
            come: Come::new(bytes_max),
            ended,
        })
    }

    /// Returns the span of the server for the stream, if it says one.
    pub(super) fn context(&self) -> Option<SpanContext> {
        self.context.clone()
    }

    /// Returns the next message, or `None` when the server has ended the stream without an error.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cutter, Failure>>> {
        loop {
            if let Some(message) = self.come.message().transpose() {
                return Poll::Ready(Some(message));
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return ended(Status::from_error(error.into())),
                None if self.ended => return Poll::Ready(None),
                None => return ended(cut_off()),
            };
            match frame.into_data() {
                Ok(data) => self.come.bytes = data,
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    let status = Status::from_header_map(&trailers).unwrap_or_else(cut_off);
                    return ended(status);
                }
            }
        }
    }
}

impl Come {
    const fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Bytes::new(),
            prefix: Vec::new(),
            begun: None,
            bytes_max,
        }
    }

    /// Returns the next message, if it is complete; otherwise consumes all bytes that have arrived.
    fn message(&mut self) -> Result<Option<Cutter>, Failure> {
        let mut message = match self.begun.take() {
            Some(begun) => begun,
            None => match self.begin().map_err(|status| Failure::Message(Box::new(status)))? {
                Some(length) => Cutter::new(length, self.bytes_max),
                None => return Ok(None),
            },
        };
        let part = self.bytes.split_to(self.bytes.len().min(message.left()));
        message.push(&part);
        if message.left() > 0 {
            self.begun = Some(message);
            return Ok(None);
        }
        Ok(Some(message))
    }

    /// Reads a prefix; returns the length of the message that follows, once the prefix is complete.
    fn begin(&mut self) -> Result<Option<usize>, Status> {
        let lacks = PREFIX.saturating_sub(self.prefix.len());
        let part = self.bytes.split_to(self.bytes.len().min(lacks));
        self.prefix.extend_from_slice(&part);
        let [compressed, a, b, c, d] = *self.prefix else {
            return Ok(None);
        };
        self.prefix.clear();
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if compressed != 0 {
            let what = "the server sends compressed messages or something that is not gRPC";
            return Err(Status::internal(what));
        }
        if length > self.bytes_max {
            let bytes_max = self.bytes_max;
            return Err(Status::out_of_range(format!(
                "message length too large: found {length} bytes, the limit is {bytes_max} bytes"
            )));
        }
        Ok(Some(length))
    }
}

/// Returns the end of a stream with this status.
fn ended<T>(status: Status) -> Poll<Option<Result<T, Failure>>> {
    Poll::Ready((status.code() != Code::Ok).then(|| Err(Failure::stream(status))))
}

/// A gRPC stream ends with a status. If there is none, something on the way has cut the stream.
fn cut_off() -> Status {
    Status::unavailable("the stream ended without a status; something between the relay and the server may have cut it")
}

/// Maps an HTTP status, which a gRPC server would not send, to a gRPC status.
fn mapped(status: StatusCode) -> Status {
    let code = match status {
        StatusCode::BAD_REQUEST => Code::Internal,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
        _ => Code::Unknown,
    };
    Status::new(
        code,
        format!("the answer is HTTP status {status} without a gRPC status"),
    )
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::proto::envoy::service::discovery::v3::DiscoveryResponse;

    /// The same messages are read wherever the bytes are cut, and none before its last byte.
    #[test]
    fn cuts_do_not_matter() {
        let said = ["", "one", "another"].map(|version_info| DiscoveryResponse {
            version_info: version_info.to_owned(),
            ..DiscoveryResponse::default()
        });
        let framed = said.iter().flat_map(|said| crate::wire::message(&said.encode_to_vec()));
        let whole: Bytes = framed.collect();
        for cut in 1..=whole.len() {
            let mut come = Come::new(usize::MAX);
            let mut heard = Vec::new();
            for part in 0..whole.len().div_ceil(cut) {
                assert!(heard.len() < said.len(), "cut at {cut}");
                come.bytes = whole.slice(part * cut..whole.len().min((part + 1) * cut));
                while let Some(message) = come.message().unwrap() {
                    heard.push(message.sotw().unwrap().head().clone());
                }
            }
            assert_eq!(heard, said, "cut at {cut}");
            assert!(come.bytes.is_empty() && come.prefix.is_empty() && come.begun.is_none());
        }
    }
}
