// SPDX-License-Identifier: Apache-2.0
//! The responses on a stream, message by message.
//!
//! Owns the borders of messages, the bound on their size, and how a stream ends. Knows nothing of what a message says, and never
//! holds one as a whole: [`Cutter`] takes it apart as it arrives.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use opentelemetry::trace::SpanContext;
use tonic::{Code, Status};

use super::failure::Failure;
use super::inflating::{InflatingResponse, stated};
use crate::protocol::Cutter;
use crate::telemetry::traceparent;
use crate::wire::Encoding;

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
    begun: Option<Begun>,
    encoding: Encoding,
    bytes_max: usize,
}

/// A message that is not complete yet.
#[derive(Debug)]
enum Begun {
    Plain(Cutter),
    /// So many bytes of a compressed message are still to come.
    Compressed(BytesMut, usize),
    Inflating(Box<InflatingResponse>),
}

/// What has arrived.
enum Arrived {
    Message(Cutter),
    /// Not all of the next message.
    Part,
    /// All of it; it is inflated further after others had their turn.
    Busy,
}

/// The field of a response's head with the span of the server.
const TRACEPARENT: &str = "traceparent";
/// How many bytes of a message are cut at most before others have the thread.
const CUT_AT_ONCE: usize = 256 * 1024;
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
        // What the head says matters only once a message is compressed.
        let encoding = Encoding::of(response.headers()).unwrap_or(Encoding::Identity);
        let context = response.headers().get(TRACEPARENT);
        Ok(Self {
            context: context.and_then(|value| traceparent::read(value.to_str().ok()?)),
            body: response.into_body(),
            come: Come::new(encoding, bytes_max),
            ended,
        })
    }

    /// Returns the span of the server for the stream, if it says one.
    pub(super) fn context(&self) -> Option<SpanContext> {
        self.context.clone()
    }

    /// Returns the next message, or `None` when the server has ended the stream without an error.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cutter, Failure>>> {
        let mut cut = 0;
        loop {
            match self.come.message() {
                Ok(Arrived::Message(message)) => return Poll::Ready(Some(Ok(message))),
                Ok(Arrived::Part) if cut < CUT_AT_ONCE => {}
                Ok(Arrived::Part | Arrived::Busy) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(status) => return Poll::Ready(Some(Err(Failure::Message(Box::new(status))))),
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return ended(Status::from_error(error.into())),
                None if self.ended => return Poll::Ready(None),
                None => return ended(cut_off()),
            };
            match frame.into_data() {
                Ok(data) => {
                    cut += data.len();
                    self.come.bytes = data;
                }
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
    const fn new(encoding: Encoding, bytes_max: usize) -> Self {
        Self {
            bytes: Bytes::new(),
            prefix: Vec::new(),
            begun: None,
            encoding,
            bytes_max,
        }
    }

    /// Returns the next message, if it is complete; otherwise consumes all bytes that have arrived.
    fn message(&mut self) -> Result<Arrived, Status> {
        let begun = match self.begun.take() {
            Some(begun) => begun,
            None => match self.begin()? {
                Some(begun) => begun,
                None => return Ok(Arrived::Part),
            },
        };
        let (arrived, begun) = match begun {
            Begun::Plain(mut message) => {
                message.push(&self.take(message.left()));
                match message.left() {
                    0 => return Ok(Arrived::Message(message)),
                    _ => (Arrived::Part, Begun::Plain(message)),
                }
            }
            Begun::Compressed(mut compressed, left) => {
                let part = self.take(left);
                compressed.extend_from_slice(&part);
                match left - part.len() {
                    0 => return self.inflate(self.inflating(compressed.freeze())?),
                    left => (Arrived::Part, Begun::Compressed(compressed, left)),
                }
            }
            Begun::Inflating(inflating) => return self.inflate(inflating),
        };
        self.begun = Some(begun);
        Ok(arrived)
    }

    fn take(&mut self, left: usize) -> Bytes {
        self.bytes.split_to(self.bytes.len().min(left))
    }

    fn inflating(&self, compressed: Bytes) -> Result<Box<InflatingResponse>, Status> {
        let length = stated(&compressed);
        self.check(length)?;
        Ok(Box::new(InflatingResponse::new(
            compressed,
            Cutter::new(length, self.bytes_max),
        )))
    }

    fn inflate(&mut self, mut inflating: Box<InflatingResponse>) -> Result<Arrived, Status> {
        let broken = |error| Status::internal(format!("a compressed message of the server is damaged: {error}"));
        if inflating.step().map_err(broken)? {
            return Ok(Arrived::Message(inflating.whole()));
        }
        self.begun = Some(Begun::Inflating(inflating));
        Ok(Arrived::Busy)
    }

    /// Reads a prefix; returns the message that follows, once the prefix is complete.
    fn begin(&mut self) -> Result<Option<Begun>, Status> {
        let part = self.take(PREFIX.saturating_sub(self.prefix.len()));
        self.prefix.extend_from_slice(&part);
        let [flag, a, b, c, d] = *self.prefix else {
            return Ok(None);
        };
        self.prefix.clear();
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if flag > 1 || flag == 1 && self.encoding == Encoding::Identity {
            let what = "the server sends messages that are not compressed with gzip, or something that is not gRPC";
            return Err(Status::internal(what));
        }
        self.check(length)?;
        Ok(Some(if flag == 1 {
            Begun::Compressed(BytesMut::new(), length)
        } else {
            Begun::Plain(Cutter::new(length, self.bytes_max))
        }))
    }

    fn check(&self, length: usize) -> Result<(), Status> {
        let bytes_max = self.bytes_max;
        if length > bytes_max {
            return Err(Status::out_of_range(format!(
                "message length too large: found {length} bytes, the limit is {bytes_max} bytes"
            )));
        }
        Ok(())
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
    use std::io::Write as _;

    use prost::Message as _;

    use super::*;
    use crate::proto::envoy::service::discovery::v3::DiscoveryResponse;
    use crate::protocol::Arrival;
    use crate::xds::Dialect;

    fn said() -> [DiscoveryResponse; 4] {
        ["", "one", "another", &"long ".repeat(1000)].map(|version_info| DiscoveryResponse {
            version_info: version_info.to_owned(),
            ..DiscoveryResponse::default()
        })
    }

    fn gzip(message: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(vec![1, 0, 0, 0, 0], flate2::Compression::default());
        encoder.write_all(message).unwrap();
        let mut framed = encoder.finish().unwrap();
        let length = u32::try_from(framed.len() - PREFIX).unwrap();
        framed[1..PREFIX].copy_from_slice(&length.to_be_bytes());
        framed
    }

    /// Reads these bytes in parts of `cut` bytes.
    fn read(bytes: &Bytes, cut: usize, bytes_max: usize) -> Result<Vec<Cutter>, Status> {
        let mut come = Come::new(Encoding::Gzip, bytes_max);
        let mut heard = Vec::new();
        for from in (0..bytes.len()).step_by(cut) {
            come.bytes = bytes.slice(from..bytes.len().min(from + cut));
            loop {
                match come.message()? {
                    Arrived::Message(message) => heard.push(message),
                    Arrived::Busy => {}
                    Arrived::Part => break,
                }
            }
        }
        assert!(come.bytes.is_empty() && come.prefix.is_empty() && come.begun.is_none());
        Ok(heard)
    }

    /// The same messages are read wherever the bytes are cut, compressed ones beside others.
    #[test]
    fn cuts_do_not_matter() {
        let said = said();
        let framed = said.iter().flat_map(|said| {
            let message = said.encode_to_vec();
            [crate::wire::message(&message).to_vec(), gzip(&message)].concat()
        });
        let whole: Bytes = framed.collect();
        for cut in (1..=64).chain([whole.len()]) {
            let heard = read(&whole, cut, usize::MAX).unwrap();
            let heard = heard.into_iter().map(|message| message.finish(Dialect::Sotw).unwrap());
            let twice = said.iter().flat_map(|said| [said.clone(), said.clone()]);
            let twice: Vec<Arrival> = twice.map(Arrival::from).collect();
            assert_eq!(heard.collect::<Vec<_>>(), twice, "cut at {cut}");
        }
    }

    /// what is larger than a message may be is refused: by the size that it states, or as soon as it is larger than that.
    #[test]
    fn bombs() {
        let bomb = gzip(&vec![0; 100_000]);
        let refused = |bytes: Vec<u8>| read(&bytes.into(), 1000, 5000).unwrap_err();
        let end = bomb.len() - 4;
        assert_eq!(refused(bomb.clone()).code(), Code::OutOfRange);
        for stated in [0_u32, 5000, 99_999] {
            let mut lie = bomb.clone();
            lie[end..].copy_from_slice(&stated.to_le_bytes());
            let expected = if stated > 5000 {
                Code::OutOfRange
            } else {
                Code::Internal
            };
            assert_eq!(refused(lie).code(), expected, "{stated}");
        }
        assert_eq!(refused(vec![1, 0, 0, 0, 4, 0, 0, 0, 0]).code(), Code::Internal);
        assert_eq!(refused(vec![2, 0, 0, 0, 0]).code(), Code::Internal);
    }

    #[test]
    fn nothing_is_inflated_unannounced() {
        let mut come = Come::new(Encoding::Identity, usize::MAX);
        come.bytes = gzip(b"").into();
        assert!(come.message().is_err());
    }
}
