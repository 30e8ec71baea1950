// SPDX-License-Identifier: Apache-2.0
//! The values that must not be told of (S-12), found by what the API says of the fields.

use bytes::Bytes;
use distributary::json::{Bounds, Schemas, Tree, Unknown};

const LISTENER: &str = "envoy.config.listener.v3.Listener";
const SECRET: &str = "envoy.extensions.transport_sockets.tls.v3.Secret";

fn found(name: &str, text: &str) -> (Vec<Vec<u8>>, bool) {
    let schemas = Schemas::standard();
    let tree = Tree::json(text.as_bytes(), Bounds::FILE).unwrap();
    let body: Bytes = schemas.encode(name, &tree, "", Unknown::Deny).unwrap().value;
    schemas.sensitive(name, std::iter::once(body))
}

fn texts(name: &str, text: &str) -> Vec<String> {
    let (values, complete) = found(name, text);
    assert!(complete);
    values
        .into_iter()
        .map(|value| String::from_utf8_lossy(&value).into_owned())
        .collect()
}

/// Keys are found in secrets, in listeners below extensions, and as texts write bytes; names and certificates are not among them.
#[test]
fn where_values_are() {
    let certificate = r#"{"certificate_chain": {"inline_string": "public-certificate"}, "private_key": {"inline_bytes": "c2VjcmV0LWtleS1ieXRlcw=="}}"#;
    let secret = format!(r#"{{"name": "web", "tls_certificate": {certificate}}}"#);
    let values = texts(SECRET, &secret);
    assert!(
        values.contains(&"secret-key-bytes".to_owned()) && values.contains(&"c2VjcmV0LWtleS1ieXRlcw".to_owned()),
        "{values:?}"
    );
    assert!(
        !values.iter().any(|value| value.contains("public") || value == "web"),
        "{values:?}"
    );
    let listener = format!(
        r#"{{"name": "web", "filter_chains": [{{"transport_socket": {{"name": "tls", "typed_config": {{
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            "common_tls_context": {{"tls_certificates": [{certificate}]}}}}}}}}]}}"#
    );
    assert_eq!(texts(LISTENER, &listener), values);
    assert_eq!(texts(LISTENER, r#"{"name": "web"}"#), Vec::<String>::new());
}

/// What cannot be read, or is too much, is said to be incomplete; types without descriptors have nothing to find.
#[test]
fn what_is_not_found() {
    let schemas = Schemas::standard();
    let search = |name: &str, body: Vec<u8>| schemas.sensitive(name, std::iter::once(Bytes::from(body)));
    assert_eq!(search(LISTENER, vec![0xff; 9]), (Vec::new(), false));
    assert_eq!(search("acme.Unknown", vec![0xff; 9]), (Vec::new(), true));
    let key = "x".repeat(300_000);
    let secret = format!(r#"{{"tls_certificate": {{"private_key": {{"inline_string": "{key}"}}}}}}"#);
    assert!(!found(SECRET, &secret).1);
}
