// SPDX-License-Identifier: Apache-2.0
//! Parts of a request as people write them: headers, a locality, metadata. Owns their grammar, and what is wrong with a text. Sends
//! nothing.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::{HeaderName, HeaderValue, header};
use prost::Message as _;

use crate::json::{Bounds, Schemas, Tree, Unknown};
use crate::proto::envoy::config::core::v3::Locality;
use crate::proto::google::protobuf::Struct;

/// Headers that belong to gRPC and HTTP.
const RESERVED: [HeaderName; 6] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::TE,
    header::HOST,
    header::CONNECTION,
    header::TRANSFER_ENCODING,
];

/// Reads `KEY=VALUE`.
///
/// # Errors
/// It is something else, or a header that gRPC decides itself.
pub fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let usage = "write KEY=VALUE, such as x-team=edge or authorization='Bearer abc'";
    let (name, value) = text.split_once('=').ok_or(usage)?;
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{name}` is not the name of a header; {usage}"))?;
    if RESERVED.contains(&name) {
        return Err(format!("`{name}` cannot be set: gRPC decides it"));
    }
    let is_binary = name.as_str().ends_with("-bin");
    if is_binary && STANDARD_NO_PAD.decode(value.trim_end_matches('=')).is_err() {
        return Err(format!(
            "the value of `{name}` is not base64, as gRPC wants it for names that end with -bin"
        ));
    }
    let mut read = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of `{name}` has characters that no header may have"))?;
    // It may be a password.
    read.set_sensitive(true);
    Ok((name, read))
}

/// Reads `region/zone/sub_zone`; the last parts may be left out.
///
/// # Errors
/// It is empty, or has more parts.
pub fn locality(text: &str) -> Result<Locality, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let at = |part: usize| parts.get(part).copied().unwrap_or_default().to_owned();
    if text.is_empty() || parts.len() > 3 {
        return Err("write REGION/ZONE/SUB_ZONE, such as us-east1/b or us-east1/b/rack-7".to_owned());
    }
    Ok(Locality {
        region: at(0),
        zone: at(1),
        sub_zone: at(2),
    })
}

/// Reads JSON or YAML, or with `@` before it the file that has it.
///
/// # Errors
/// It is no object, or the file cannot be read.
pub fn metadata(text: &str) -> Result<Struct, String> {
    let (from, text) = match text.strip_prefix('@') {
        Some(path) => {
            let read = crate::config::read(Path::new(path)).map_err(|error| error.to_string())?;
            (format!("{path}:"), read)
        }
        None => (String::new(), text.as_bytes().to_vec()),
    };
    let read = || {
        let tree = Tree::yaml(&text, Bounds::FILE)?;
        let schemas = Schemas::standard();
        schemas.encode("google.protobuf.Struct", &tree, "", Unknown::Deny)
    };
    let wrong = |what: &dyn std::fmt::Display| {
        format!("{from}{what}; write an object in JSON or YAML, such as '{{\"ISTIO_VERSION\": \"1.30\"}}', or @FILE")
    };
    let read = read().map_err(|fault| wrong(&fault))?;
    Struct::decode(read.value).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::google::protobuf::value::Kind;

    #[test]
    fn headers() {
        let read =
            |text: &str| header(text).map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or_default()));
        assert_eq!(read("X-Team=a=b"), Ok("x-team: a=b".to_owned()));
        assert_eq!(read("x="), Ok("x: ".to_owned()));
        assert_eq!(read("trace-bin=AAE="), Ok("trace-bin: AAE=".to_owned()));
        for wrong in [
            "x",
            "=v",
            "a b=c",
            "x=a\nb",
            "te=x",
            "Content-Type=x",
            ":path=/",
            "trace-bin=%",
        ] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn localities() {
        let parts = |text: &str| locality(text).map(|place| [place.region, place.zone, place.sub_zone].join("|"));
        assert_eq!(parts("r/z/s"), Ok("r|z|s".to_owned()));
        assert_eq!(parts("r"), Ok("r||".to_owned()));
        assert_eq!(parts("/z"), Ok("|z|".to_owned()));
        assert!(parts("").is_err() && parts("a/b/c/d").is_err());
    }

    #[test]
    fn metadata_in_json_and_yaml() {
        for text in ["{\"a\": {\"b\": [1]}, \"c\": true}", "a: {b: [1]}\nc: true"] {
            let read = metadata(text).unwrap();
            assert_eq!(read.fields.len(), 2, "{text}");
            assert_eq!(read.fields["c"].kind, Some(Kind::BoolValue(true)));
        }
        for (wrong, words) in [
            ("[1]", "write an object"),
            ("{", "write an object"),
            ("x", "write an object"),
            ("@/nowhere", "/nowhere: cannot be read"),
        ] {
            let error = metadata(wrong).unwrap_err();
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }
}
