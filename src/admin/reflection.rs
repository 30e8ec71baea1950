// SPDX-License-Identifier: Apache-2.0
//! gRPC reflection: which services the admin address has, and how their messages are described, for `grpcurl` and its like.
//!
//! Owns the list of services and the service itself. The descriptions of messages are those by which the relay reads resources,
//! so that a program can read these too.

use std::pin::Pin;
use std::sync::OnceLock;

use axum::extract::{Request, State};
use axum::http;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::{FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto};
use tonic::server::{Grpc, StreamingService};
use tonic::{Code, Status, Streaming};
use tonic_prost::ProstCodec;

use super::Shown;
use crate::census::SERVICE as CLIENT_STATUS;
use crate::json::Schemas;
use crate::proto::grpc::reflection::v1::server_reflection_request::MessageRequest;
use crate::proto::grpc::reflection::v1::server_reflection_response::MessageResponse;
use crate::proto::grpc::reflection::v1::{
    ErrorResponse, FileDescriptorResponse, ListServiceResponse, ServerReflectionRequest, ServerReflectionResponse,
    ServiceResponse,
};

/// The service itself. Older programs call it by its first name; the messages are the same.
const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
const REFLECTION_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";

/// The most bytes of a request.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// The file of the messages of CSDS.
const CLIENT_STATUS_FILE: &str = "envoy/service/status/v3/csds.proto";

/// Answers a call.
pub(super) async fn answer(State(shown): State<Shown>, request: Request) -> http::Response<tonic::body::Body> {
    let grpc = Grpc::new(Codec::default()).max_decoding_message_size(REQUEST_BYTES_MAX);
    { grpc }
        .streaming(Reflection(shown.status.schemas().clone()), request)
        .await
}

/// The gRPC server of the service.
#[derive(Clone)]
struct Reflection(Schemas);

type ReflectionAnswers = Pin<Box<dyn Stream<Item = Result<ServerReflectionResponse, Status>> + Send>>;
type Codec = ProstCodec<ServerReflectionResponse, ServerReflectionRequest>;

impl StreamingService<ServerReflectionRequest> for Reflection {
    type Response = ServerReflectionResponse;
    type ResponseStream = ReflectionAnswers;
    type Future = BoxFuture<'static, Result<tonic::Response<ReflectionAnswers>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<ServerReflectionRequest>>) -> Self::Future {
        let server = self.clone();
        let answers = request
            .into_inner()
            .map(move |asked| asked.map(|asked| server.answer(asked)));
        let answers: ReflectionAnswers = Box::pin(answers);
        async { Ok(tonic::Response::new(answers)) }.boxed()
    }
}

impl Reflection {
    fn answer(&self, asked: ServerReflectionRequest) -> ServerReflectionResponse {
        let answer = match &asked.message_request {
            Some(MessageRequest::ListServices(_)) => services(),
            Some(MessageRequest::FileByFilename(path)) => file(self.file(path), path),
            Some(MessageRequest::FileContainingSymbol(name)) => file(self.file_of(name), name),
            Some(MessageRequest::FileContainingExtension(extension)) => none(&extension.containing_type),
            Some(MessageRequest::AllExtensionNumbersOfType(name)) => none(name),
            None => error(Code::InvalidArgument, "the request asks nothing".to_owned()),
        };
        ServerReflectionResponse {
            valid_host: asked.host.clone(),
            original_request: Some(asked),
            message_response: Some(answer),
        }
    }

    fn file(&self, path: &str) -> Option<FileDescriptorProto> {
        let known = self.0.file(path).or_else(|| own().get_file_by_name(path));
        let mut file = known?.file_descriptor_proto().clone();
        if path == CLIENT_STATUS_FILE {
            file.service.push(client_status());
        }
        Some(file)
    }

    fn file_of(&self, name: &str) -> Option<FileDescriptorProto> {
        let is_of = |service: &str| {
            name.strip_prefix(service)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if is_of(CLIENT_STATUS) {
            return self.file(CLIENT_STATUS_FILE);
        }
        let own_file = own().files().next()?;
        let is_own = is_of(REFLECTION) || own().get_message_by_name(name).is_some();
        let path = match is_own {
            true => own_file.name().to_owned(),
            false => self.0.file_of(name)?.name().to_owned(),
        };
        self.file(&path)
    }
}

fn own() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| DescriptorPool::decode(proto::REFLECTION).unwrap_or_default())
}

/// Describes CSDS. The descriptions of the API have only messages.
fn client_status() -> ServiceDescriptorProto {
    let method = |name: &str, streams: bool| MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(".envoy.service.status.v3.ClientStatusRequest".to_owned()),
        output_type: Some(".envoy.service.status.v3.ClientStatusResponse".to_owned()),
        client_streaming: Some(streams),
        server_streaming: Some(streams),
        options: None,
    };
    ServiceDescriptorProto {
        name: CLIENT_STATUS.rsplit('.').next().map(str::to_owned),
        method: vec![method("StreamClientStatus", true), method("FetchClientStatus", false)],
        options: None,
    }
}

fn services() -> MessageResponse {
    let names = [CLIENT_STATUS, REFLECTION, REFLECTION_ALPHA].into_iter();
    let service = names.map(|name| ServiceResponse { name: name.to_owned() });
    MessageResponse::ListServicesResponse(ListServiceResponse {
        service: service.collect(),
    })
}

fn file(found: Option<FileDescriptorProto>, what: &str) -> MessageResponse {
    let Some(found) = found else {
        return error(Code::NotFound, format!("`{what}` is not described here"));
    };
    MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
        file_descriptor_proto: vec![found.encode_to_vec().into()],
    })
}

fn none(what: &str) -> MessageResponse {
    error(Code::NotFound, format!("no extension of `{what}` is described here"))
}

fn error(code: Code, error_message: String) -> MessageResponse {
    MessageResponse::ErrorResponse(ErrorResponse {
        error_code: code.into(),
        error_message,
    })
}
