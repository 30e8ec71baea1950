// SPDX-License-Identifier: Apache-2.0
//! Unary calls of the discovery services: one request, one response.
//!
//! Owns their gRPC form. What is answered, and when, is decided as for a poll over HTTP.

use std::sync::Arc;

use h2::RecvStream;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use tonic::Status;

use super::{GRPC, HttpResult, in_time, refusal, refused};
use crate::clock;
use crate::downstream::bearer::identified;
use crate::downstream::body::Body;
use crate::downstream::portion::Allotment;
use crate::downstream::rest::{PollRefusal, Polled, WaitingPoll, hold};
use crate::downstream::shared::Shared;
use crate::downstream::stream::{ClientRequests, RequestPace, only_request, trailers};
use crate::protocol::{self, PollContent};
use crate::shutdown::Drain;
use crate::wire::{Deframer, Encoding, ResponseFields, Rope, encode, timeout};
use crate::xds::{Batch, Dialect, Form, Item, NameRule, TypeUrl};

/// One unary call.
pub(super) struct Fetch {
    pub(super) shared: Arc<Shared>,
    pub(super) type_url: TypeUrl,
    /// What the connection takes of what all share.
    pub(super) portion: Arc<Allotment>,
    pub(super) drain: Drain,
}

impl Fetch {
    /// Answers the call.
    pub(super) async fn answer(self, request: Request<RecvStream>) -> HttpResult {
        let path = request.uri().path().to_owned();
        let response = match self.fetch(request).await {
            Ok(rope) => {
                let mut response = Response::new(Body::Message(Some(rope), trailers(&Status::ok(""))));
                response.headers_mut().insert(CONTENT_TYPE, GRPC);
                response
            }
            Err(status) => {
                tracing::debug!(path, %status, "call refused");
                refusal(&status)
            }
        };
        Ok(response)
    }

    async fn fetch(self, request: Request<RecvStream>) -> Result<Rope, Status> {
        let shared = &*self.shared;
        let settings = shared.settings.load_full();
        let encoding = Encoding::of(request.headers())?;
        let hold = match timeout(request.headers())? {
            Some(theirs) if theirs.is_zero() => return Err(Status::deadline_exceeded("grpc-timeout is zero")),
            theirs => hold(theirs, settings.protocol.timers.unanswered),
        };
        let identity = identified(shared, &self.portion, request.headers());
        let limits = &settings.limits;
        let deframer = Deframer::new(encoding, limits.request, self.portion.share.clone());
        let pace = RequestPace::new(limits.requests_per_second, clock::now());
        let requests = ClientRequests::new(request.into_body(), deframer, pace);
        let identity = match identity {
            Ok(identity) => identity,
            Err(token) => return Err(refused::status(token, requests, Dialect::Sotw, shared, &settings).await),
        };
        tracing::debug!(%identity, "a unary call begins");
        let asked = only_request(requests, shared, &settings);
        let mut asked = in_time(asked).await??;
        // the method names the type.
        if !asked.type_url.is_empty() && settings.protocol.types.resolve(&asked.type_url) != self.type_url {
            let shown: String = asked.type_url.chars().take(100).collect();
            let message = format!("type_url `{shown}` is not served by the {} service", self.type_url);
            return Err(Status::invalid_argument(message));
        }
        // A unary call is always answered, whatever the client has.
        asked.version_info = String::new();
        let who = (&self.portion.claims, &identity);
        let poll = WaitingPoll::begin(shared, who, self.type_url, asked, clock::now()).await;
        let poll = poll.map_err(PollRefusal::status)?;
        let polled = poll.wait(hold, self.drain, |found, poll| Ok(reply(found, poll, shared)));
        match polled.await.map_err(PollRefusal::status)? {
            Polled::News(rope) => Ok(rope),
            Polled::Nothing => Err(Status::unavailable("nothing is known of what the client asks for")),
        }
    }
}

/// Returns the response as one gRPC message. K-09: its version is that of a stream with the same content.
fn reply(found: &PollContent<'_>, poll: &protocol::Poll, shared: &Shared) -> Rope {
    let type_url = poll.type_url();
    let node = poll.server().node();
    let reads_wrapper = node.is_some_and(|node| node.features.wrapper);
    // resources whose name is only in the wrapper are for clients that read it.
    let unnamed = type_url.traits().name == NameRule::Wrapper;
    let items = found.resources().filter_map(|resource| {
        let wrapped = unnamed && !resource.name().is_empty();
        let form = if wrapped { Form::Wrapped } else { Form::Whole };
        (!wrapped || reads_wrapper).then(|| Item {
            form,
            ..Item::plain(resource.clone())
        })
    });
    let (pieces, _) = Batch::new(items.collect(), Vec::new()).encoded(Dialect::Sotw);
    let fields = ResponseFields {
        dialect: Dialect::Sotw,
        version: &found.version().text(),
        type_url: type_url.url(),
        nonce: &[],
        identifier: Some(&shared.identifier),
    };
    encode(fields, pieces)
}
