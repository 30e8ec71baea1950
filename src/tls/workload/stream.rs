// SPDX-License-Identifier: Apache-2.0
//! The call of a SPIFFE Workload API: one request, and a message whenever something changes.
//!
//! Owns the connection. Does not know what is in a message.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::path::Path;

use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::Endpoint;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::config::system_path;
use crate::proto::spiffe::workload::{X509svidRequest, X509svidResponse};

const METHOD: &str = "/SpiffeWorkloadAPI/FetchX509SVID";
/// Without it an agent refuses the call: what has made a process call a URL of somebody's choice cannot set it.
const HEADER: &str = "workload.spiffe.io";
/// The largest message, as in other implementations of gRPC.
const MESSAGE_MAX: usize = 4 << 20;

/// Passes on every message. Returns why there are no more.
pub(super) async fn run(socket: &Path, mut take: impl FnMut(X509svidResponse)) -> Result<Infallible, String> {
    let mut stream = open(socket).await?;
    while let Some(message) = stream.message().await.map_err(words)? {
        take(message);
    }
    Err("the agent has ended the stream".to_owned())
}

async fn open(socket: &Path) -> Result<Streaming<X509svidResponse>, String> {
    let connected = UnixStream::connect(system_path(socket)).await;
    let mut connected = Some(connected.map_err(|error| format!("cannot connect: {error}"))?);
    // There is one connection for each stream.
    let connect = service_fn(move |_: Uri| {
        let io = connected.take().map(TokioIo::new);
        ready(io.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)))
    });
    let endpoint = Endpoint::from_static("http://localhost");
    let channel = endpoint.connect_with_connector(connect).await;
    let channel = channel.map_err(|error| format!("no HTTP/2 on it: {error}"))?;
    let mut client = Grpc::new(channel).max_decoding_message_size(MESSAGE_MAX);
    client
        .ready()
        .await
        .map_err(|error| format!("no HTTP/2 on it: {error}"))?;
    let mut request = Request::new(X509svidRequest {});
    request
        .metadata_mut()
        .insert(HEADER, MetadataValue::from_static("true"));
    let answer = client.server_streaming(request, PathAndQuery::from_static(METHOD), ProstCodec::default());
    Ok(answer.await.map_err(words)?.into_inner())
}

fn words(status: Status) -> String {
    format!("{:?}: {}", status.code(), status.message().escape_debug())
}
