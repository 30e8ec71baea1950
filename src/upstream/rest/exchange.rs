// SPDX-License-Identifier: Apache-2.0
//! One poll: a request over HTTP/1.1, and its answer.
//!
//! Owns connections, which are kept from one poll to the next, and how long a poll may take. Knows nothing of the contents.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use super::RestServer;
use crate::clock;
use crate::tls::HTTP1;
use crate::upstream::access::ServerAccess;
use crate::upstream::connect::{self, Connected};
use crate::upstream::failure::Failure;
use crate::upstream::target::UpstreamSettings;

/// One poll of a path.
pub(super) struct PollExchange<'a> {
    pub(super) server: &'a RestServer,
    pub(super) access: &'a ServerAccess,
    pub(super) settings: &'a UpstreamSettings,
    pub(super) path: &'a str,
}

/// A connection between two polls.
pub(super) struct PollConnection {
    sender: SendRequest<Full<Bytes>>,
    /// Runs the connection; dropping it closes the connection.
    _runs: JoinSet<()>,
}

/// An answer without an error.
#[derive(Debug)]
pub(super) enum Reply {
    News(Bytes),
    /// The server's last answer is still valid (304).
    Nothing,
}

/// How long a poll may take.
const POLL: Duration = Duration::from_secs(30);
/// How much of the body of an error status is shown.
const WORDS: usize = 200;

impl PollExchange<'_> {
    /// Polls with this body; returns the connection as well if it can be used again.
    pub(super) async fn run(
        &self,
        body: Bytes,
        kept: Option<PollConnection>,
    ) -> (Result<Reply, Failure>, Option<PollConnection>) {
        match clock::timeout(POLL, self.poll(body, kept)).await {
            Some(Ok((reply, link))) => (Ok(reply), Some(link)),
            Some(Err(failure)) => (Err(failure), None),
            None => {
                let path = self.path.to_owned();
                (Err(Failure::Slow { path, within: POLL }), None)
            }
        }
    }

    async fn poll(&self, body: Bytes, kept: Option<PollConnection>) -> Result<(Reply, PollConnection), Failure> {
        let (rest, access) = (&self.server.rest, self.access);
        let mut request = Request::post(format!("{}{}", rest.prefix, self.path))
            .header(HOST, rest.endpoint.authority(access.credentials.server_name()))
            .header(USER_AGENT, concat!("distributary/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &access.token {
            let header = token.header().await;
            request = request.header(
                AUTHORIZATION,
                header.map_err(|status| Failure::Token(Box::new(status)))?,
            );
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| self.failed(error.to_string()))?;
        // The server may have closed an idle connection: then the poll is sent on a new one.
        if let Some(mut link) = kept
            && link.sender.ready().await.is_ok()
            && let Ok(response) = link.sender.send_request(request.clone()).await
        {
            return Ok((self.read(response).await?, link));
        }
        let mut link = connect(self.server, access, self.settings).await?;
        let response = link.sender.send_request(request).await.map_err(Failure::Http)?;
        Ok((self.read(response).await?, link))
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Reply, Failure> {
        let (head, mut body) = response.into_parts();
        let coding = head.headers.get(CONTENT_ENCODING).map(http::HeaderValue::as_bytes);
        if let Some(coding) = coding.filter(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
            return Err(self.failed(format!(
                "the answer has the content encoding `{}`, which is not supported",
                coding.escape_ascii()
            )));
        }
        let limit = self.settings.upstream_message;
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame.map_err(Failure::Http)?.into_data() {
                read.extend_from_slice(&data);
            }
            if read.len() > limit {
                return Err(self.failed(format!(
                    "the answer is larger than `limits.upstream_message` of {limit} bytes"
                )));
            }
        }
        match head.status {
            StatusCode::OK => Ok(Reply::News(read.freeze())),
            // H-02, H-07: the resources of the last answer stay valid.
            StatusCode::NOT_MODIFIED => Ok(Reply::Nothing),
            status => Err(Failure::Refused {
                path: self.path.to_owned(),
                status: status.as_u16(),
                words: String::from_utf8_lossy(read.get(..WORDS.min(read.len())).unwrap_or_default()).into_owned(),
            }),
        }
    }

    fn failed(&self, why: String) -> Failure {
        let path = self.path.to_owned();
        Failure::Response { path, why }
    }
}

/// Opens a connection.
pub(super) async fn connect(
    server: &RestServer,
    access: &ServerAccess,
    settings: &UpstreamSettings,
) -> Result<PollConnection, Failure> {
    let rest = &server.rest;
    let name = connect::host(&rest.endpoint);
    let Connected { io, .. } =
        connect::connect(&rest.endpoint, name, &access.credentials, HTTP1, settings.keepalive).await?;
    let (sender, connection) = handshake(TokioIo::new(io)).await.map_err(Failure::Http)?;
    let mut runs = JoinSet::new();
    runs.spawn(async move { drop(connection.await) });
    Ok(PollConnection { sender, _runs: runs })
}
