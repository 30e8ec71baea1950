//! JSON in which every character can be seen.
//!
//! Owns the escapes of those that cannot: they would turn the direction of the text around them, or hide in it. Such characters only occur
//! within strings, where JSON allows to write any character as its number. Knows nothing of what is answered.

use std::borrow::Cow;
use std::fmt::Write as _;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use http_body::Body as _;
use http_body_util::BodyExt as _;

use crate::xds::is_escaped;

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
    match std::str::from_utf8(&bytes).map(escaped) {
        Ok(Cow::Owned(text)) => text.into(),
        Ok(Cow::Borrowed(_)) | Err(_) => bytes,
    }
}

fn escaped(json: &str) -> Cow<'_, str> {
    let hidden = |character: char| !character.is_ascii() && is_escaped(character);
    if json.is_ascii() || !json.chars().any(hidden) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        if hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_a_number() {
        let json = "{\"a\u{202e}\": \"\u{e0041}ä\u{85}\"}\n";
        let written = escaped(json);
        assert_eq!(written, "{\"a\\u202e\": \"\\udb40\\udc41ä\\u0085\"}\n");
        let values = [json, &*written].map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(values[0], values[1]);
        assert!(matches!(escaped("{\"ä\": 1}"), Cow::Borrowed(_)));
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
