// SPDX-License-Identifier: Apache-2.0
//! The head of a poll.
//!
//! Owns the checks of the head, and how long the client allows the relay to wait. Does not read bodies.

use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method as Verb, Request};

use super::poll;
use super::refusal::PollRefusal;
use crate::downstream::settings::ConnectionSettings;
use crate::xds::TypeUrl;

/// The type that a path polls.
#[derive(Debug)]
pub(super) struct Method {
    pub(super) type_url: TypeUrl,
}

impl Method {
    /// Returns what a request polls, or why it cannot be answered.
    pub(super) fn of<B>(request: &Request<B>, settings: &ConnectionSettings) -> Result<Self, PollRefusal> {
        let path = request.uri().path();
        let full_name = TypeUrl::polled_at(path).ok_or_else(|| PollRefusal::unknown(path))?;
        if path.starts_with("/v2/") && !settings.transport_v2 {
            return Err(PollRefusal::missing(
                "the v2 transport is switched off by `transport_v2: false`; poll /v3/discovery:...",
            ));
        }
        let type_url = settings.protocol.types.resolve(full_name);
        // H-01: it is always a POST.
        if request.method() != Verb::POST {
            return Err(PollRefusal::verb());
        }
        check(request.headers())?;
        Ok(Self { type_url })
    }
}

/// Checks that the body is uncompressed JSON, as far as the headers say anything about it.
fn check(headers: &HeaderMap) -> Result<(), PollRefusal> {
    let value = |name| headers.get(name).map(|value: &http::HeaderValue| value.as_bytes());
    if let Some(encoding) = value(&CONTENT_ENCODING)
        && !encoding.eq_ignore_ascii_case(b"identity")
    {
        return Err(PollRefusal::media(format!(
            "content-encoding `{}` is not supported; send the body without compression",
            shown(encoding)
        )));
    }
    let Some(content_type) = value(&CONTENT_TYPE) else {
        return Ok(());
    };
    let bare = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    if bare.trim_ascii().eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    Err(PollRefusal::media(format!(
        "content-type is `{}`; a poll needs application/json",
        shown(content_type)
    )))
}

/// H-04: returns how long a poll may wait for changes. This is less than the client's own timeout, if it states one.
pub(super) fn hold(headers: &HeaderMap, most: Duration) -> Duration {
    let said = headers.get("x-envoy-expected-rq-timeout-ms");
    let said = said.and_then(|value| value.to_str().ok()?.parse().ok());
    let theirs = said.map(Duration::from_millis).filter(|theirs| !theirs.is_zero());
    poll::hold(theirs, most)
}

fn shown(bytes: &[u8]) -> String {
    bytes.get(..60).unwrap_or(bytes).escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H-04: a waiting poll is answered before its client gives up.
    #[test]
    fn a_client_that_waits_less_is_answered_earlier() {
        let hold = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-envoy-expected-rq-timeout-ms", text.parse().unwrap());
            hold(&headers, Duration::from_secs(2)).as_millis()
        };
        let held = ["1000", "60000", "0", "soon"].map(hold);
        assert_eq!(held, [800, 2000, 2000, 2000]);
    }
}
