//! What comes on a stream, message by message.
//!
//! Owns the borders of messages, the bound on their size, and how a stream ends. Refuses to know what a message says, and to put it
//! together: it stays in the pieces that it came in.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use tonic::{Code, Status};

/// The responses on one stream.
pub(super) struct Inbox {
    body: Incoming,
    /// What has come and was not taken yet.
    come: Pieces,
    bytes_max: usize,
    /// The status came with the headers.
    ended: bool,
}

/// Bytes in the pieces that they came in.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    pieces: VecDeque<Bytes>,
    left: usize,
}

/// gRPC's prefix of a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

impl Inbox {
    /// Reads what a server answers; a message has at most `bytes_max` bytes.
    pub(super) fn of(response: Response<Incoming>, bytes_max: usize) -> Result<Self, Status> {
        let status = Status::from_header_map(response.headers());
        let ended = status.is_some();
        if let Some(status) = status.filter(|status| status.code() != Code::Ok) {
            return Err(status);
        }
        if response.status() != StatusCode::OK {
            return Err(mapped(response.status()));
        }
        Ok(Self {
            body: response.into_body(),
            come: Pieces::default(),
            bytes_max,
            ended,
        })
    }

    /// The next message; `None` when the server has ended the stream without an error.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Pieces, Status>>> {
        loop {
            if let Some(message) = self.message().transpose() {
                return Poll::Ready(Some(message));
            }
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(Status::from_error(error.into())))),
                None => return Poll::Ready((!self.ended).then(|| Err(cut_off()))),
            };
            match frame.into_data() {
                Ok(data) => self.come.push(data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    let status = Status::from_header_map(&trailers).unwrap_or_else(cut_off);
                    return Poll::Ready((status.code() != Code::Ok).then_some(Err(status)));
                }
            }
        }
    }

    fn message(&mut self) -> Result<Option<Pieces>, Status> {
        let Some([compressed, length @ ..]) = self.come.peek::<PREFIX>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if compressed != 0 {
            let what = "the server sends compressed messages, or what is no gRPC";
            return Err(Status::internal(what));
        }
        if length > self.bytes_max {
            let bytes_max = self.bytes_max;
            return Err(Status::out_of_range(format!(
                "message length too large: found {length} bytes, the limit is {bytes_max} bytes"
            )));
        }
        if self.come.left - PREFIX < length {
            return Ok(None);
        }
        self.come.advance(PREFIX);
        Ok(Some(self.come.split_to(length)))
    }
}

impl Pieces {
    fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.left += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// The first bytes, if there are so many.
    fn peek<const N: usize>(&self) -> Option<[u8; N]> {
        let mut first = [0; N];
        let bytes = self.pieces.iter().flat_map(|piece| piece.iter().take(N));
        let count = first.iter_mut().zip(bytes).map(|(to, from)| *to = *from).count();
        (count == N).then_some(first)
    }

    fn split_to(&mut self, length: usize) -> Self {
        let mut part = Self::default();
        while part.left < length
            && let Some(piece) = self.pieces.front_mut()
        {
            let taken = piece.split_to(piece.len().min(length - part.left));
            self.left -= taken.len();
            if piece.is_empty() {
                self.pieces.pop_front();
            }
            part.push(taken);
        }
        part
    }
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn advance(&mut self, count: usize) {
        drop(self.split_to(count));
    }

    /// Shares the bytes where they came in one piece.
    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        match self.pieces.front_mut() {
            Some(piece) if piece.len() > length => {
                self.left -= length;
                piece.split_to(length)
            }
            Some(_) | None => {
                let mut part = self.split_to(length);
                match part.pieces.len() {
                    0 | 1 => part.pieces.pop_front().unwrap_or_default(),
                    _ => part
                        .pieces
                        .iter()
                        .fold(BytesMut::with_capacity(length), |mut all, piece| {
                            all.extend_from_slice(piece);
                            all
                        })
                        .freeze(),
                }
            }
        }
    }
}

/// A stream that ends has a status; one without was cut by something on the way.
fn cut_off() -> Status {
    Status::unknown("the stream ended without a status, as if something between here and the server had cut it")
}

/// What an answer means that no gRPC server gives.
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
    use super::*;

    /// However what comes is cut, the same can be read, and only what was cut is copied.
    #[test]
    fn cuts_do_not_matter() {
        let whole: Vec<u8> = (0..100).collect();
        for cut in 1..=whole.len() {
            let mut pieces = Pieces::default();
            whole
                .chunks(cut)
                .for_each(|piece| pieces.push(Bytes::copy_from_slice(piece)));
            assert_eq!(pieces.peek::<5>(), Some([0, 1, 2, 3, 4]));
            let mut taken = pieces.split_to(90);
            assert_eq!((taken.remaining(), pieces.remaining()), (90, 10));
            taken.advance(1);
            let first = taken.chunk().as_ptr();
            let part = taken.copy_to_bytes(39);
            assert_eq!(part, whole[1..40]);
            assert_eq!(part.as_ptr() == first, cut >= 40, "cut at {cut}");
            assert_eq!(taken.copy_to_bytes(50), whole[40..90]);
            assert_eq!((taken.remaining(), taken.chunk().len()), (0, 0));
            assert_eq!(pieces.get_u8(), 90);
        }
        assert_eq!(Pieces::default().peek::<5>(), None);
    }
}
