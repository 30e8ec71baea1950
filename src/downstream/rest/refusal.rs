// SPDX-License-Identifier: Apache-2.0
//! Why a poll is refused.
//!
//! Owns the status codes and error texts. Decides nothing.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use tonic::Status;

use super::JSON;
use crate::downstream::body::Body;
use crate::protocol::{Code, End};
use crate::wire::Short;

/// A status, and why.
#[derive(Debug)]
pub(in crate::downstream) struct PollRefusal {
    pub(super) status: StatusCode,
    pub(super) why: String,
}

impl PollRefusal {
    pub(super) fn bad(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    pub(super) fn unauthenticated(why: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, why)
    }

    pub(super) fn forbidden(why: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, why)
    }

    pub(super) fn missing(why: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, why)
    }

    pub(super) fn unknown(path: &str) -> Self {
        let shown: String = path.chars().take(100).collect();
        Self::missing(format!(
            "`{shown}` cannot be polled; the paths are /v3/discovery:listeners, routes, scoped-routes, clusters, endpoints, secrets, \
             runtime and extension_configs; use gRPC for other types and for several types together"
        ))
    }

    pub(super) fn verb() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "polls are POST requests with a DiscoveryRequest as JSON",
        )
    }

    pub(super) fn slow(within: Duration) -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not arrive within {within:?}"),
        )
    }

    pub(super) fn large(max: usize) -> Self {
        Self::over(format!(
            "the body is over the relay's limit `limits.request` of {max} bytes"
        ))
    }

    pub(super) fn over(why: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, why)
    }

    pub(super) fn media(why: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why)
    }

    pub(super) fn internal(why: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, why)
    }

    pub(super) fn unavailable(why: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    /// There is no memory for more of the body.
    pub(super) fn short(short: Short) -> Self {
        match short {
            Short::Own(..) => Self::over(short.to_string()),
            Short::Shared => Self::unavailable(short.to_string()),
        }
    }

    /// Returns the refusal for what would end a stream.
    pub(super) fn of(end: End) -> Self {
        match end.code {
            Code::InvalidArgument | Code::FailedPrecondition | Code::Unimplemented => Self::bad(end.message),
            Code::PermissionDenied => Self::forbidden(end.message),
            Code::ResourceExhausted => Self::over(end.message),
            Code::Unavailable | Code::DeadlineExceeded => Self::unavailable(end.message),
            Code::Ok | Code::Internal => Self::internal(end.message),
        }
    }

    /// Returns the same as a gRPC status, for a unary call.
    pub(in crate::downstream) fn status(self) -> Status {
        let code = match self.status {
            StatusCode::BAD_REQUEST => tonic::Code::InvalidArgument,
            StatusCode::FORBIDDEN => tonic::Code::PermissionDenied,
            StatusCode::PAYLOAD_TOO_LARGE => tonic::Code::ResourceExhausted,
            StatusCode::SERVICE_UNAVAILABLE => tonic::Code::Unavailable,
            _ => tonic::Code::Internal,
        };
        Status::new(code, self.why)
    }

    pub(super) fn response(self) -> Response<Body> {
        let why = serde_json::Value::from(self.why);
        let text = format!("{{\"status\":{},\"error\":{why}}}\n", self.status.as_u16());
        let mut response = Response::new(Body::Text(Bytes::from(text)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self {
            status,
            why: why.into(),
        }
    }
}
