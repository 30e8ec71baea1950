// SPDX-License-Identifier: Apache-2.0
//! An answer that goes on as long as its visitor has the right to it (K-31).
//!
//! Owns when that is looked at again: with each part once the rules are others, and each second, because tokens expire. Does not decide.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::{Interval, MissedTickBehavior};
use tonic::Status;

use super::guard::{Guard, Visitor, judge};
use crate::config::{AdminAction, AdminRules};

/// What a visitor has shown, and for what.
pub(super) struct Credential {
    guard: Guard,
    visitor: Visitor,
    token: HeaderMap,
    action: AdminAction,
}

/// The body of such an answer.
struct Tenure {
    body: Body,
    shown: Credential,
    /// The rules by which the right was last looked at.
    rules: Arc<AdminRules>,
    ticks: Interval,
    grpc: bool,
    over: bool,
}

const LOOK: Duration = Duration::from_secs(1);

impl Credential {
    /// Keeps what decides of these headers.
    pub(super) fn new(guard: Guard, visitor: Visitor, headers: &HeaderMap, action: AdminAction) -> Self {
        let tokens = headers.get_all(AUTHORIZATION).iter();
        Self {
            guard,
            visitor,
            token: tokens.map(|token| (AUTHORIZATION, token.clone())).collect(),
            action,
        }
    }

    /// Returns the answer, which ends when the visitor has no right to it any more. One that is there as a whole ends by itself.
    pub(super) fn bound(self, answer: Response) -> Response {
        if answer.body().size_hint().exact().is_some() {
            return answer;
        }
        let kind = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let grpc = kind.is_some_and(|kind| kind.starts_with(b"application/grpc"));
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        answer.map(|body| {
            Body::new(Tenure {
                body,
                rules: self.guard.rules.load_full(),
                shown: self,
                ticks,
                grpc,
                over: false,
            })
        })
    }

    fn holds(&self, rules: &AdminRules) -> bool {
        rules.is_empty() || judge(&self.guard, &self.visitor, &self.token, self.action).is_ok()
    }
}

impl Tenure {
    /// Whether the visitor still has the right.
    fn holds(&mut self, cx: &mut Context<'_>) -> bool {
        let rules = self.shown.guard.rules.load_full();
        let mut due = !Arc::ptr_eq(&rules, &self.rules);
        while self.ticks.poll_tick(cx).is_ready() {
            due = true;
        }
        let holds = !due || self.shown.holds(&rules);
        self.rules = rules;
        holds
    }
}

impl http_body::Body for Tenure {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        if self.holds(cx) {
            return Pin::new(&mut self.body).poll_frame(cx);
        }
        self.over = true;
        self.body = Body::empty();
        let mut trailers = HeaderMap::new();
        let lost = Status::permission_denied(
            "this visitor has no right to this answer any more: the rules changed, or its token is not valid",
        );
        if self.grpc && lost.add_header(&mut trailers).is_ok() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
