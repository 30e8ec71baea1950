// SPDX-License-Identifier: Apache-2.0
//! JSON in which every character can be seen.
//!
//! Owns the escapes of those that cannot: they would turn the direction of the text around them, or hide in it. Such characters only occur
//! within strings, where JSON allows to write any character as its number. Knows nothing of what is answered.

use std::borrow::Cow;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use http_body::Body as _;
use http_body_util::BodyExt as _;

use crate::xds::printable_json;

/// Escapes what an answer has of them, if it is JSON.
pub(super) async fn answer(mut answer: Response) -> Response {
    let json = answer
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|is| is.as_bytes().starts_with(b"application/json"));
    if !json {
        return answer;
    }
    answer.headers_mut().remove(CONTENT_LENGTH);
    let (head, body) = answer.into_parts();
    // What is there as a whole says how long it is. Any other part is written as one text: no character begins in one and ends in the next.
    let body = match body.size_hint().exact() {
        Some(_) => body.collect().await.map(|whole| Body::from(part(whole.to_bytes()))),
        None => Ok(Body::new(body.map_frame(|frame| frame.map_data(part)))),
    };
    Response::from_parts(head, body.unwrap_or_default())
}

fn part(bytes: Bytes) -> Bytes {
    match std::str::from_utf8(&bytes).map(printable_json) {
        Ok(Cow::Owned(text)) => text.into(),
        Ok(Cow::Borrowed(_)) | Err(_) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_a_number() {
        let json = "{\"a\u{202e}\": \"\u{e0041}ä\u{85}\u{7f}\"}\n";
        let written = printable_json(json);
        assert_eq!(written, "{\"a\\u202e\": \"\\udb40\\udc41ä\\u0085\\u007f\"}\n");
        let values = [json, &*written].map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(values[0], values[1]);
        assert!(matches!(printable_json("{\"ä\": 1}"), Cow::Borrowed(_)));
    }

    #[tokio::test]
    async fn only_json_is_changed() {
        for (kind, written) in [("application/json", "\"\\u202e\""), ("text/plain", "\"\u{202e}\"")] {
            let asked = Response::builder()
                .header(CONTENT_TYPE, kind)
                .body("\"\u{202e}\"".into());
            let body = answer(asked.unwrap()).await.into_body().collect().await.unwrap();
            assert_eq!(body.to_bytes(), written);
        }
    }
}
