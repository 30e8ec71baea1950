// SPDX-License-Identifier: Apache-2.0
//! S-12: a client that quotes a private key when it rejects something: the key is nowhere but in what is served.

use std::path::Path;

use bytes::Bytes;
use distributary::json::{Bounds, Schemas, Tree, Unknown};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use distributary::proto::google::rpc::Status;

use crate::plane::{Plane, soon};
use crate::stage::{Client, Delta, Relay, directory, eventually};

const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIHlvdXNob3VsZG5ldmVyc2VldGhpc2tleWluYWxvZ2ZpbGVhbnl3aGVy\nZW9rYXkxMjM0NTY3ODkwMTIzNDU2Nzg5MA==\n-----END EC PRIVATE KEY-----\n";
/// Enough of each line of it to be known again.
const PARTS: [&str; 4] = ["PRIVATE KEY", "HcCAQEEIHl", "ZGZ5ldmVyc2Vl", "0NTY3ODkwMTIz"];

/// Returns the name of a type, and a resource of it with the key.
fn content(secret: bool) -> (&'static str, Bytes) {
    let key = serde_json::Value::from(KEY);
    let pair =
        format!(r#"{{"certificate_chain": {{"inline_string": "c"}}, "private_key": {{"inline_string": {key}}}}}"#);
    let (name, text) = if secret {
        let text = format!(r#"{{"name": "web", "tls_certificate": {pair}}}"#);
        ("envoy.extensions.transport_sockets.tls.v3.Secret", text)
    } else {
        let text = format!(
            r#"{{"name": "web", "filter_chains": [{{"transport_socket": {{"name": "tls", "typed_config": {{
                "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
                "common_tls_context": {{"tls_certificates": [{pair}]}}}}}}}}]}}"#
        );
        ("envoy.config.listener.v3.Listener", text)
    };
    let tree = Tree::json(text.as_bytes(), Bounds::FILE).unwrap();
    (
        name,
        Schemas::standard()
            .encode(name, &tree, "", Unknown::Deny)
            .unwrap()
            .value,
    )
}

/// The words of an Envoy, in which the whole message stands as protobuf's text, and of others.
fn words(secret: bool) -> Vec<String> {
    let escaped = KEY.escape_default().to_string();
    let what = if secret {
        "SecretValidationError.TlsCertificate"
    } else {
        "ListenerValidationError.FilterChains"
    };
    let envoy = format!(
        "Proto constraint validation failed ({what}: embedded message failed validation): name: \"web\" private_key {{ inline_string: \"{escaped}\" }}"
    );
    let cut = envoy.chars().take(envoy.find("HlvdXNob3").unwrap() + 60).collect();
    vec![
        envoy,
        cut,
        format!("web: cannot read {KEY}"),
        format!("web: key={escaped}"),
    ]
}

/// Whether a text has any part of the key.
fn leaks(text: &str) -> bool {
    PARTS.iter().any(|part| text.contains(part))
}

fn files(dir: &Path) -> Vec<u8> {
    let all = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    all.flat_map(|path| std::fs::read(path).unwrap_or_default()).collect()
}

/// What the control plane sends; each version is another content.
fn response(type_url: &str, body: &[u8], version: usize) -> DeltaDiscoveryResponse {
    let value = [body, &[0xf8, 0xff, 0x03, u8::try_from(version).unwrap()]].concat();
    DeltaDiscoveryResponse {
        type_url: type_url.to_owned(),
        nonce: version.to_string(),
        resources: vec![Resource {
            name: "web".to_owned(),
            version: version.to_string(),
            resource: Some(Any {
                type_url: type_url.to_owned(),
                value: value.into(),
            }),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// Nothing that operators are shown has any part of the key. Returns the page of rejections.
async fn no_page_leaks(relay: &Relay) -> String {
    let page = eventually("the rejection is shown", || {
        Some(relay.admin("/nacks")).filter(|page| page.contains("gateway"))
    })
    .await;
    let paths = [
        "/nacks",
        "/clients",
        "/clients/gateway",
        "/resources/web",
        "/resources",
        "/holds",
        "/views",
    ];
    let mut pages: Vec<String> = paths.iter().map(|path| relay.admin(path)).collect();
    let question = r#"{"node_matchers": [{"node_id": {"exact": "gateway"}}]}"#;
    let statuses = relay.post_json("/v3/discovery:client_status", question);
    assert!(statuses.contains("error_state"), "{statuses}");
    pages.push(statuses);
    for page in pages {
        assert!(!leaks(&page), "{page}");
    }
    page
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_the_words_of_a_rejection_goes_nowhere() {
    for secret in [false, true] {
        let mut plane = Plane::start().await;
        let dir = directory(&format!("words-{secret}"));
        let snapshot = format!("snapshot: {{dir: '{}', interval: 100ms}}\n", dir.display());
        let more = format!("secrets: allow\nlogging: {{level: debug}}\n{snapshot}");
        let relay = Relay::asks(&format!("words-{secret}"), plane.address, &more);
        let (name, body) = content(secret);
        let type_url = format!("type.googleapis.com/{name}");
        let request = |names: &[&str], nonce: &str, error: Option<&str>| DeltaDiscoveryRequest {
            node: nonce.is_empty().then(|| Node {
                id: "gateway".to_owned(),
                user_agent_name: "envoy".to_owned(),
                ..Node::default()
            }),
            type_url: type_url.clone(),
            resource_names_subscribe: names.iter().map(|name| (*name).to_owned()).collect(),
            response_nonce: nonce.to_owned(),
            error_detail: error.map(|message| Status {
                code: 13,
                message: message.to_owned(),
                ..Status::default()
            }),
            ..Default::default()
        };
        let wanted = if secret { &["web"][..] } else { &[] };
        let mut stream: Delta = Client::connect(relay.address)
            .await
            .open(&request(wanted, "", None))
            .await;
        let mut call = plane.call().await;
        call.delta().await;
        for (version, words) in words(secret).iter().enumerate() {
            call.send(&response(&type_url, &body, version));
            let response = soon("the resource", stream.message()).await;
            stream.says(&request(&[], &response.nonce, Some(words)));
            // The control plane is told, and in what it is told there is no key.
            let told = soon("a complaint", async {
                loop {
                    if let Some(error) = call.delta().await.error_detail {
                        return error.message;
                    }
                }
            })
            .await;
            assert!(!leaks(&told), "the control plane is told {told}");
            relay.line("a client rejected a response");
            let shown = if secret {
                "Proto constraint validation failed"
            } else {
                "web"
            };
            let page = no_page_leaks(&relay).await;
            assert!(page.contains(shown) || version > 1, "{page}");
        }
        // A snapshot has the content, once; the words are not in it.
        let kept = eventually("a snapshot", || Some(files(&dir)).filter(|kept| !kept.is_empty())).await;
        let kept = String::from_utf8_lossy(&kept).into_owned();
        assert!(kept.matches(PARTS[1]).count() <= 2, "{kept}");
        for line in relay.seen() {
            assert!(!leaks(&line), "{line}");
        }
    }
}
