// SPDX-License-Identifier: Apache-2.0
//! CSDS as a gRPC service: a stream of questions, and one question.
//!
//! Owns the methods, and that an answer is sent part by part, as its reader takes it. What is answered is in `answered`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::future::{Ready, ready};
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, Request, Response, header};
use http_body::{Body, Frame};
use http_body_util::StreamBody;
use tonic::codec::Codec as _;
use tonic::metadata::GRPC_CONTENT_TYPE;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;

use super::ClientStatus;
use crate::proto::envoy::service::status::v3::ClientStatusRequest;

/// The service as clients call it.
pub const SERVICE: &str = "envoy.service.status.v3.ClientStatusDiscoveryService";

/// The gRPC server of the service, for one visitor.
#[derive(Clone)]
pub struct ClientStatusServer {
    answers: ClientStatus,
    allowed: Allowed,
}

/// Whether the visitor may ask. It is looked up at each question, because rules change.
pub type Allowed = Arc<dyn Fn() -> Result<(), Status> + Send + Sync>;

/// How a method is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMethod {
    /// Each question is answered once, in order.
    Stream,
    /// There is one question.
    Fetch,
}

/// One call.
struct Call {
    server: ClientStatusServer,
    method: StatusMethod,
    questions: Streaming<ClientStatusRequest>,
    /// What is left of the answer that is sent.
    parts: VecDeque<Bytes>,
    answered: u64,
    over: bool,
}

/// The most bytes of a question.
const QUESTION_BYTES_MAX: usize = 256 << 10;

impl StatusMethod {
    /// Returns the method with this path.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        let (service, method) = path.strip_prefix('/')?.split_once('/')?;
        match method {
            "StreamClientStatus" if service == SERVICE => Some(Self::Stream),
            "FetchClientStatus" if service == SERVICE => Some(Self::Fetch),
            _ => None,
        }
    }
}

impl ClientStatusServer {
    /// Serves these answers, as long as that is allowed.
    #[must_use]
    pub const fn new(answers: ClientStatus, allowed: Allowed) -> Self {
        Self { answers, allowed }
    }
}

impl<B> Service<Request<B>> for ClientStatusServer
where
    B: Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(method) = StatusMethod::of(request.uri().path()) else {
            let why = format!("{SERVICE} has StreamClientStatus and FetchClientStatus");
            return ready(Ok(Status::unimplemented(why).into_http()));
        };
        let decoder = ProstCodec::<ClientStatusRequest, ClientStatusRequest>::default().decoder();
        let call = Call {
            server: self.clone(),
            method,
            questions: Streaming::new_request(decoder, request.into_body(), None, Some(QUESTION_BYTES_MAX)),
            parts: VecDeque::new(),
            answered: 0,
            over: false,
        };
        let frames = stream::unfold(call, async |mut call| Some((call.frame().await?, call)));
        let mut response = Response::new(tonic::body::Body::new(StreamBody::new(frames.map(Ok::<_, Status>))));
        response.headers_mut().insert(header::CONTENT_TYPE, GRPC_CONTENT_TYPE);
        ready(Ok(response))
    }
}

impl Call {
    /// Returns what is sent next.
    async fn frame(&mut self) -> Option<Frame<Bytes>> {
        if let Some(part) = self.parts.pop_front() {
            return Some(Frame::data(part));
        }
        if self.over {
            return None;
        }
        let end = match self.next().await {
            Ok(Some(parts)) => {
                self.answered += 1;
                self.parts = parts.into();
                return Some(Frame::data(prefix(&self.parts)));
            }
            Ok(None) => Status::ok(""),
            Err(status) => status,
        };
        self.over = true;
        let mut trailers = HeaderMap::new();
        // It fails only for a text that is no header, and tonic encodes texts.
        let _ = end.add_header(&mut trailers);
        Some(Frame::trailers(trailers))
    }

    /// Returns the answer to the next question; none after the last one.
    async fn next(&mut self) -> Result<Option<Vec<Bytes>>, Status> {
        if self.method == StatusMethod::Fetch && self.answered > 0 {
            return Ok(None);
        }
        let Some(question) = self.questions.next().await.transpose()? else {
            return match self.method {
                StatusMethod::Stream => Ok(None),
                StatusMethod::Fetch => Err(Status::internal("the call has no message")),
            };
        };
        (self.server.allowed)()?;
        self.server.answers.answer(&question).await.map(Some)
    }
}

/// Returns what gRPC has before a message of these parts.
fn prefix(parts: &VecDeque<Bytes>) -> Bytes {
    let bytes = parts.iter().map(Bytes::len).sum::<usize>();
    let mut prefix = BytesMut::with_capacity(5);
    prefix.put_u8(0);
    // An answer has a bound far below that.
    prefix.put_u32(u32::try_from(bytes).unwrap_or(u32::MAX));
    prefix.freeze()
}
