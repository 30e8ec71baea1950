// SPDX-License-Identifier: Apache-2.0
//! gRPC reflection, with the messages that `grpcurl` sends.

use std::collections::BTreeMap;

use distributary::proto::grpc::reflection::v1::server_reflection_request::MessageRequest;
use distributary::proto::grpc::reflection::v1::server_reflection_response::MessageResponse;
use distributary::proto::grpc::reflection::v1::{ExtensionRequest, ServerReflectionRequest, ServerReflectionResponse};
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use prost_reflect::{DescriptorPool, prost::Message as _};

use super::Window;
use crate::support::Relay;
use crate::support::client::{Call, Client};

async fn call(window: &Window, version: &str) -> Call {
    let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
    Client::connect(window.0.socket().unwrap()).await.call(&path).await
}

async fn ask(call: &mut Call, asked: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest {
        host: "relay".to_owned(),
        message_request: Some(asked),
    };
    call.send(&request);
    let answer = call.next::<ServerReflectionResponse>().await.unwrap();
    assert_eq!(answer.original_request, Some(request));
    answer.message_response.unwrap()
}

async fn file(call: &mut Call, asked: MessageRequest) -> FileDescriptorProto {
    let answer = ask(call, asked).await;
    let MessageResponse::FileDescriptorResponse(found) = answer else {
        panic!("{answer:?}");
    };
    FileDescriptorProto::decode(found.file_descriptor_proto[0].clone()).unwrap()
}

/// Asks for the file of a symbol, and for all files that it needs.
async fn files_of(call: &mut Call, symbol: &str) -> DescriptorPool {
    let first = file(call, MessageRequest::FileContainingSymbol(symbol.to_owned())).await;
    let mut needed = first.dependency.clone();
    let mut files = BTreeMap::from([(first.name().to_owned(), first)]);
    while let Some(path) = needed.pop() {
        if files.contains_key(&path) {
            continue;
        }
        let next = file(call, MessageRequest::FileByFilename(path.clone())).await;
        needed.extend(next.dependency.iter().cloned());
        files.insert(path, next);
    }
    let file = files.into_values().collect();
    DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file }).unwrap()
}

/// `grpcurl list`, `describe` and a call: the services, and all messages that one needs to speak with them.
#[tokio::test]
async fn what_a_program_needs_to_ask_and_to_read() {
    let window = Window::of(&Relay::start());
    for version in ["v1", "v1alpha"] {
        let mut call = call(&window, version).await;
        let MessageResponse::ListServicesResponse(listed) =
            ask(&mut call, MessageRequest::ListServices(String::new())).await
        else {
            panic!("no list");
        };
        let names: Vec<&str> = listed.service.iter().map(|service| service.name.as_str()).collect();
        let expected = [
            "envoy.service.status.v3.ClientStatusDiscoveryService",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
        ];
        assert_eq!(names, expected);
        let pool = files_of(&mut call, names[0]).await;
        let service = pool.get_service_by_name(names[0]).unwrap();
        let methods = service
            .methods()
            .map(|one| format!("{} {}", one.name(), one.is_server_streaming()));
        let expected = ["StreamClientStatus true", "FetchClientStatus false"];
        assert_eq!(methods.collect::<Vec<_>>(), expected);
        let pool = files_of(&mut call, names[1]).await;
        assert!(pool.get_service_by_name(names[1]).is_some());
        // What is in an `Any`.
        let cluster = "envoy.config.cluster.v3.Cluster";
        let pool = files_of(&mut call, cluster).await;
        assert!(pool.get_message_by_name(cluster).is_some());
    }
}

#[tokio::test]
async fn what_is_not_described() {
    let window = Window::of(&Relay::start());
    let mut call = call(&window, "v1").await;
    let extension = ExtensionRequest {
        containing_type: "a.B".to_owned(),
        extension_number: 1,
    };
    for asked in [
        MessageRequest::FileByFilename("none.proto".to_owned()),
        MessageRequest::FileContainingSymbol("a.B".to_owned()),
        MessageRequest::FileContainingSymbol("grpc.reflection.v1.ServerReflectionX".to_owned()),
        MessageRequest::FileContainingExtension(extension),
        MessageRequest::AllExtensionNumbersOfType("a.B".to_owned()),
    ] {
        let answer = ask(&mut call, asked).await;
        let unknown = matches!(&answer, MessageResponse::ErrorResponse(error) if error.error_code == 5);
        assert!(unknown, "{answer:?}");
    }
}
