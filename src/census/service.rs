//! CSDS as a gRPC service: a stream of questions, and one question.
//!
//! Owns the methods. What is answered is in `answered`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use http::{Request, Response};
use http_body::Body;
use tonic::server::{Grpc, StreamingService, UnaryService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;

use super::ClientStatus;
use crate::proto::envoy::service::status::v3::{ClientStatusRequest, ClientStatusResponse};

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

type Answers = Pin<Box<dyn Stream<Item = Result<ClientStatusResponse, Status>> + Send>>;
type Codec = ProstCodec<ClientStatusResponse, ClientStatusRequest>;

impl ClientStatusServer {
    /// Serves these answers, as long as that is allowed.
    #[must_use]
    pub const fn new(answers: ClientStatus, allowed: Allowed) -> Self {
        Self { answers, allowed }
    }

    async fn answer(&self, request: ClientStatusRequest) -> Result<ClientStatusResponse, Status> {
        (self.allowed)()?;
        self.answers.answer(request).await
    }
}

impl<B> Service<Request<B>> for ClientStatusServer
where
    B: Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        let mut grpc = Grpc::new(Codec::default());
        let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        async move {
            Ok(match method.as_str() {
                "StreamClientStatus" => grpc.streaming(Questions(server), request).await,
                "FetchClientStatus" => grpc.unary(Question(server), request).await,
                _ => {
                    Status::unimplemented(format!("{SERVICE} has StreamClientStatus and FetchClientStatus")).into_http()
                }
            })
        }
        .boxed()
    }
}

/// The unary method.
struct Question(ClientStatusServer);

impl UnaryService<ClientStatusRequest> for Question {
    type Response = ClientStatusResponse;
    type Future = BoxFuture<'static, Result<tonic::Response<ClientStatusResponse>, Status>>;

    fn call(&mut self, request: tonic::Request<ClientStatusRequest>) -> Self::Future {
        let answers = self.0.clone();
        async move { answers.answer(request.into_inner()).await.map(tonic::Response::new) }.boxed()
    }
}

/// The stream: each question is answered once, in order.
struct Questions(ClientStatusServer);

impl StreamingService<ClientStatusRequest> for Questions {
    type Response = ClientStatusResponse;
    type ResponseStream = Answers;
    type Future = BoxFuture<'static, Result<tonic::Response<Answers>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<ClientStatusRequest>>) -> Self::Future {
        let answers = self.0.clone();
        let asked = request.into_inner();
        let answered = stream::unfold((asked, answers), |(mut asked, answers)| async {
            let answer = match asked.next().await? {
                Ok(request) => answers.answer(request).await,
                Err(status) => Err(status),
            };
            Some((answer, (asked, answers)))
        });
        let answered: Answers = Box::pin(answered);
        async { Ok(tonic::Response::new(answered)) }.boxed()
    }
}
