// SPDX-License-Identifier: Apache-2.0
//! Clients that poll over HTTP with JSON.
//!
//! Owns the checks of a request before it is read, and the HTTP form of every answer. Knows nothing of streams: each poll stands
//! alone (H-05). `poll` waits for changes, and `reply` writes the response.

mod head;
mod large;
mod poll;
mod refusal;
mod reply;

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt as _;

use head::Method;
pub(super) use poll::{Polled, WaitingPoll, hold};
pub(super) use refusal::PollRefusal;
use reply::reply;

use crate::clock;
use crate::downstream::bearer::{Unidentified, identified};
use crate::downstream::body::Body;
use crate::downstream::call::FIRST_REQUEST;
use crate::downstream::portion::Allotment;
use crate::downstream::request_body::RequestBody;
use crate::downstream::shared::Shared;
use crate::proto::envoy::service::discovery::v3::DiscoveryRequest;
use crate::protocol::{self, PollContent};
use crate::shutdown::Drain;
use crate::wire::Charge;

/// Answers all polls of one listener.
pub(super) struct Polls {
    shared: Arc<Shared>,
    drain: Drain,
}

/// How long a client may take to send its request.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Polls {
    pub(super) fn new(shared: Arc<Shared>, drain: Drain) -> Self {
        Self { shared, drain }
    }

    /// Returns what tells calls that wait that the relay stops.
    pub(super) fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// Whether a path belongs to polls.
    pub(super) fn path(path: &str) -> bool {
        path.starts_with("/v2/") || path.starts_with("/v3/")
    }

    /// Answers one poll.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<RequestBody>,
        portion: Arc<Allotment>,
    ) -> Result<Response<Body>, Infallible> {
        let path = request.uri().path().to_owned();
        let response = self.poll(request, portion).await.unwrap_or_else(|refusal| {
            tracing::debug!(
                path,
                status = refusal.status.as_u16(),
                why = refusal.why,
                "poll refused"
            );
            refusal.response()
        });
        Ok(response)
    }

    async fn poll(
        &self,
        request: Request<RequestBody>,
        portion: Arc<Allotment>,
    ) -> Result<Response<Body>, PollRefusal> {
        let settings = self.shared.settings.load_full();
        let method = Method::of(&request, &settings)?;
        let identity = identified(&self.shared, &portion, request.headers());
        let identity = match identity {
            Ok(identity) => identity,
            Err(token) => return Err(self.refused(token, request, &portion).await),
        };
        tracing::debug!(%identity, "a poll begins");
        let hold = head::hold(request.headers(), settings.timers.rest_poll);
        let mut charge = Charge::new(portion.share.clone());
        let body = clock::timeout(BODY_TIMEOUT, self.gather(request, &mut charge)).await;
        let body = body.unwrap_or_else(|| Err(PollRefusal::slow(BODY_TIMEOUT)))?;
        let asked = self.read(body).await?;
        drop(charge);
        let poll = WaitingPoll::begin(
            &self.shared,
            (&portion.claims, &identity),
            method.type_url,
            asked,
            clock::now(),
        )
        .await?;
        let told = |found: &PollContent<'_>, poll: &protocol::Poll| {
            reply(found, poll.type_url(), &self.shared).map_err(PollRefusal::internal)
        };
        match poll.wait(hold, self.drain.clone(), told).await? {
            Polled::News(rope) => {
                let mut response = Response::new(Body::Shared(Some(rope)));
                response.headers_mut().insert(CONTENT_TYPE, JSON);
                Ok(response)
            }
            // H-02: the client is up to date.
            Polled::Nothing => {
                let mut response = Response::new(Body::Empty);
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                Ok(response)
            }
        }
    }

    /// A poll that is refused because of who makes it. Its body says for the log who that says it is.
    async fn refused(&self, refused: Unidentified, request: Request<RequestBody>, portion: &Allotment) -> PollRefusal {
        let mut charge = Charge::new(portion.share.clone());
        let node = async {
            let asked = self.read(self.gather(request, &mut charge).await.ok()?).await.ok()?;
            asked.node.map(|node| node.id)
        };
        let node = match refused.is_logged() {
            true => clock::timeout(FIRST_REQUEST, node).await.flatten(),
            false => None,
        };
        PollRefusal::unauthenticated(refused.say(node.as_deref()))
    }

    /// Reads the body, and charges its memory.
    async fn gather(&self, request: Request<RequestBody>, charge: &mut Charge) -> Result<Bytes, PollRefusal> {
        let limits = self.shared.settings.load().limits;
        let (head, body) = request.into_parts();
        if announced(&head.headers).is_some_and(|length| length > limits.request) {
            return Err(PollRefusal::large(limits.request));
        }
        let body = gather(body, charge, limits.request).await?;
        if body.is_empty() {
            return Err(PollRefusal::bad("the body is empty; send a DiscoveryRequest as JSON"));
        }
        Ok(body)
    }

    async fn read(&self, body: Bytes) -> Result<DiscoveryRequest, PollRefusal> {
        let limits = self.shared.settings.load().limits;
        let schemas = self.shared.schemas.clone();
        let asked = if body.len() > large::BODY_BYTES || !schemas.are_unpacked() {
            large::in_turn(move || schemas.request(&body)).await?
        } else {
            schemas.request(&body)
        };
        let asked = asked.map_err(|fault| PollRefusal::bad(format!("the body is not a DiscoveryRequest: {fault}")))?;
        let node = asked.node.as_ref().map_or(0, prost::Message::encoded_len);
        if limits.node_bytes > 0 && node > limits.node_bytes {
            self.shared.metrics.refused("node_bytes");
            let max = limits.node_bytes;
            return Err(PollRefusal::over(format!(
                "a node of {node} bytes is over the relay's limit `node_bytes` of {max}"
            )));
        }
        Ok(asked)
    }
}

/// Reads the whole body, and charges its memory.
async fn gather(mut body: RequestBody, charge: &mut Charge, max: usize) -> Result<Bytes, PollRefusal> {
    let mut gathered = BytesMut::new();
    loop {
        let frame = body.frame();
        let given_up = poll_fn(|cx| charge.poll_given_up(cx));
        let frame = tokio::select! {
            frame = frame => frame,
            short = given_up => return Err(PollRefusal::short(short)),
        };
        let Some(frame) = frame else {
            return Ok(gathered.freeze());
        };
        let frame = frame.map_err(|error| PollRefusal::bad(format!("the body ended early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if gathered.len() + data.len() > max {
            return Err(PollRefusal::large(max));
        }
        charge.set(gathered.len() + data.len()).map_err(PollRefusal::short)?;
        gathered.extend_from_slice(&data);
    }
}

/// Returns the length of the body that the client announces.
fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
