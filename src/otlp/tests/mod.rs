// SPDX-License-Identifier: Apache-2.0
//! Collectors of the suite's own, which take what the relay sends, refuse it, or say nothing.

mod faults;
mod measures;
mod traced;

use std::convert::Infallible;
use std::io::Read as _;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::proto::google::protobuf::{Any, Duration as Delay};
use crate::proto::google::rpc;

/// What a collector got: the header fields and the message.
type Got<M> = (HeaderMap, M);

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
const SOON: Duration = Duration::from_secs(20);

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(LOCAL).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Takes one export over HTTP and answers with this status.
async fn over_http<M: Message + Default>(listener: &TcpListener, path: &'static str, status: u16) -> Got<M> {
    let (stream, _) = listener.accept().await.unwrap();
    http_on(stream, path, status, None).await
}

/// Takes one export on a connection, and answers with this status and pause.
async fn http_on<M: Message + Default>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &'static str,
    status: u16,
    pause: Option<&'static str>,
) -> Got<M> {
    let (take, mut taken) = mpsc::channel(1);
    let service = service_fn(move |request: Request<Incoming>| {
        let take = take.clone();
        async move {
            assert_eq!(request.uri().path(), path);
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = if head.headers.contains_key("content-encoding") {
                unpacked(&body)
            } else {
                body.to_vec()
            };
            take.try_send((head.headers, body)).unwrap();
            let mut answer = Response::builder().status(status);
            if let Some(pause) = pause {
                answer = answer.header("retry-after", pause);
            }
            let answer = answer.body(Full::new(Bytes::from("no\x1b[2J")));
            Ok::<_, Infallible>(answer.unwrap())
        }
    });
    // The client closes the connection.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    let (headers, body) = taken.recv().await.unwrap();
    (headers, M::decode(&*body).unwrap())
}

/// Takes one export over gRPC.
async fn over_grpc<M: Message + Default>(listener: &TcpListener) -> Got<M> {
    let (stream, _) = listener.accept().await.unwrap();
    grpc_on(stream, 0, None).await
}

/// Takes one export on a connection, and answers with this gRPC status and pause.
async fn grpc_on<M: Message + Default>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    status: u8,
    pause: Option<Duration>,
) -> Got<M> {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let (request, mut respond) = connection.accept().await.unwrap().unwrap();
    let (head, mut body) = request.into_parts();
    let read = async {
        let mut message = Vec::new();
        while let Some(data) = body.data().await {
            let data = data.unwrap();
            body.flow_control().release_capacity(data.len()).unwrap();
            message.extend_from_slice(&data);
        }
        let mut end = respond.send_response(Response::new(()), false).unwrap();
        if status == 0 {
            // An empty message: it is not compressed, and has no bytes.
            end.send_data(Bytes::from_static(&[0; 5]), false).unwrap();
        }
        let mut fields = HeaderMap::new();
        fields.insert("grpc-status", u16::from(status).into());
        if let Some(pause) = pause {
            fields.insert("grpc-status-details-bin", details(status, pause).parse().unwrap());
        }
        end.send_trailers(fields).unwrap();
        message
    };
    let message = tokio::select! {
        message = read => message,
        _ = pending_connection(&mut connection) => panic!("the relay closed the connection early"),
    };
    while connection.accept().await.is_some() {}
    let is_packed = message[0] == 1;
    assert_eq!(
        u32::from_be_bytes(message[1..5].try_into().unwrap()) as usize,
        message.len() - 5
    );
    let message = if is_packed {
        unpacked(&message[5..])
    } else {
        message[5..].to_vec()
    };
    (head.headers, M::decode(&*message).unwrap())
}

/// Returns the details of a status that asks for a pause.
fn details(status: u8, pause: Duration) -> String {
    let delay = Some(Delay {
        seconds: pause.as_secs() as i64,
        nanos: pause.subsec_nanos() as i32,
    });
    let status = rpc::Status {
        code: status.into(),
        details: vec![Any {
            type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
            value: rpc::RetryInfo { retry_delay: delay }.encode_to_vec().into(),
        }],
        ..rpc::Status::default()
    };
    STANDARD_NO_PAD.encode(status.encode_to_vec())
}

async fn pending_connection(connection: &mut h2::server::Connection<impl AsyncRead + AsyncWrite + Unpin, Bytes>) {
    drop(connection.accept().await);
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut unpacked).unwrap();
    unpacked
}

/// Starts an export of both signals every 30 milliseconds.
fn start(metrics: &Arc<Metrics>, variables: Vec<(&'static str, String)>) -> Export {
    let every = ["OTEL_METRIC_EXPORT_INTERVAL", "OTEL_BSP_SCHEDULE_DELAY"].map(|name| (name, "30".to_owned()));
    let variable = move |name: &str| {
        let mut all = variables.iter().chain(&every);
        all.find(|(of, _)| *of == name).map(|(_, value)| value.clone())
    };
    Export::start(variable, reader(metrics.clone(), async || ()), &metrics.traces)
        .unwrap()
        .unwrap()
}
