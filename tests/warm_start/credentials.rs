// SPDX-License-Identifier: Apache-2.0
//! Which credentials the relay uses for each class of clients, and what clients are told when a control plane refuses the relay.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tonic::Code;

use crate::folder::Folder;
use crate::plane::{Call, Plane};
use crate::secured::tls_plane_for;
use crate::stage::{ANYWHERE, CDS, Client, Delta, Relay, clusters, until};

fn certified() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

/// Writes the files of a tenant; returns the header with its token.
fn admit(dir: &Path, tenant: &str, identity: &CertifiedKey<KeyPair>) -> String {
    let dir = dir.join(tenant);
    std::fs::create_dir_all(&dir).unwrap();
    let claims = BASE64_URL_SAFE_NO_PAD.encode(format!(r#"{{"exp":9999999999,"sub":"{tenant}"}}"#));
    let token = format!("e30.{claims}.c2ln");
    std::fs::write(dir.join("cert.pem"), identity.cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), identity.signing_key.serialize_pem()).unwrap();
    std::fs::write(dir.join("token"), &token).unwrap();
    format!("Bearer {token}")
}

async fn client(relay: &Relay, tenant: &str) -> Delta {
    let first = DeltaDiscoveryRequest {
        node: Some(Node {
            id: "client".to_owned(),
            cluster: tenant.to_owned(),
            ..Node::default()
        }),
        type_url: CDS.to_owned(),
        ..Default::default()
    };
    Client::connect(relay.address).await.open(&first).await
}

/// Answers the next call with a cluster of this name; returns the call and its token.
async fn answer(plane: &mut Plane, cluster: &str) -> (String, Call) {
    let mut call = plane.call().await;
    let token = call.headers.get("authorization").unwrap().to_str().unwrap().to_owned();
    call.delta().await;
    call.send(&clusters("n1", &[(cluster, "1")], &[]));
    (token, call)
}

/// K-29: each class uses its own certificate and token. Files that vanish affect only their class, which recovers when they are
/// back. A client cannot choose a directory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_by_certificate() {
    let folder = Folder::new();
    let [server, gold, iron] = [certified(), certified(), certified()];
    let ca = folder.put("ca.pem", &server.cert.pem());
    let dir = ca.parent().unwrap().to_owned();
    let tokens = [admit(&dir, "gold", &gold), admit(&dir, "iron", &iron)];
    let (mut plane, port, shown) = tls_plane_for(&server, &[&gold, &iron]).await;
    let (ca, tenants) = (ca.display(), dir.display());
    let relay = Relay::run(
        "tenants",
        &format!(
            "upstream: {{xds_servers: [{{server_uri: 'localhost:{port}', channel_creds: [{{type: tls, config: {{ca_certificate_file: '{ca}'}}}}]}}]}}
classes:
  - key: [cluster]
    credentials:
      certificate_file: '{tenants}/{{cluster}}/cert.pem'
      private_key_file: '{tenants}/{{cluster}}/key.pem'
      jwt_token_file: '{tenants}/{{cluster}}/token'
timers: {{unanswered: 1s, linger: 0}}
{ANYWHERE}"
        ),
    );
    relay.line("every client is in this class");
    until("ready without a certificate for all", || {
        relay.admin("/ready").contains(" 200 ")
    })
    .await;

    let (mut streams, mut calls) = (Vec::new(), Vec::new());
    for (tenant, (token, certificate)) in ["gold", "iron"].iter().zip(tokens.iter().zip([&gold, &iron])) {
        let mut stream = client(&relay, tenant).await;
        let (sent, call) = answer(&mut plane, tenant).await;
        assert_eq!(sent, *token);
        let last = shown.lock().unwrap().last().unwrap().0.clone();
        assert_eq!(last.as_ref(), Some(certificate.cert.der()));
        assert_eq!(stream.next().await.versions.into_keys().collect::<Vec<_>>(), [*tenant]);
        streams.push(stream);
        calls.push(call);
    }

    // One loses its key, and both lose their streams.
    std::fs::remove_file(dir.join("iron/key.pem")).unwrap();
    for call in calls {
        call.finish(Code::Unavailable, "restarting");
    }
    let (sent, _gold) = answer(&mut plane, "gold").await;
    assert_eq!(sent, tokens[0]);
    relay.line("cannot read the certificate or its key in");
    for stream in &mut streams {
        assert!(stream.is_silent().await);
    }
    let mut stream = client(&relay, "copper").await;
    let (code, message) = stream.end().await;
    assert_eq!(code, Code::Unavailable, "{message}");
    assert!(message.contains("/copper/cert.pem"), "{message}");

    for name in ["", ".", "..", "../gold", "gold/", "go\nld"] {
        let (code, message) = client(&relay, name).await.end().await;
        assert_eq!(code, Code::PermissionDenied, "{name:?}: {message}");
        assert!(message.starts_with("`cluster` of the client "), "{message}");
    }
    let metrics = relay.admin("/metrics");
    assert!(metrics.contains("distributary_refused_classes_total 6\n"), "{metrics}");

    // The files are read again for each attempt.
    admit(&dir, "iron", &iron);
    let (sent, _iron) = answer(&mut plane, "iron").await;
    assert_eq!(sent, tokens[1]);
    assert!(plane.has_call().is_none());
}

/// G-18: a client that cannot be served gets the control plane's error, shortened and in one line, on a stream and in a poll.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_are_told_why() {
    let mut plane = Plane::start().await;
    let address = plane.address;
    let relay = Relay::asks("why", address, "timers: {unanswered: 1s}\n");
    let mut stream = client(&relay, "any").await;
    let mut call = plane.call().await;
    call.delta().await;
    call.finish(Code::PermissionDenied, &format!("who%0Aare you?{}", "!".repeat(2000)));
    let (code, message) = stream.end().await;
    assert_eq!(code, Code::Unavailable, "{message}");
    let said = format!("; control plane {address}: the stream ended: PERMISSION_DENIED: who\\nare you?!!!");
    assert!(message.contains(&said), "{message}");
    assert!(message.len() < 800 && message.ends_with("!..."), "{message}");

    let text = poll(&relay).await;
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    assert!(text.contains("PERMISSION_DENIED: who"), "{text}");
}

/// Polls for clusters and returns the response.
async fn poll(relay: &Relay) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut socket = tokio::net::TcpStream::connect(relay.address).await.unwrap();
    let body = r#"{"node":{"id":"client","cluster":"any"}}"#;
    let request = format!(
        "POST /v3/discovery:clusters HTTP/1.1\r\nhost: relay\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    crate::plane::soon("an answer", socket.read_to_string(&mut answer))
        .await
        .unwrap();
    answer
}
