// SPDX-License-Identifier: Apache-2.0
//! What a relay takes of the snapshots of its neighbour: over TLS, with secrets or without, and only what its own clients may have.

use std::net::SocketAddr;

use distributary::json::Schemas;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use serde_json::Value;

use crate::folder::Folder;
use crate::messages::{of_node, resources, wants};
use crate::plane::{Call, Plane};
use crate::stage::{CDS, Client, Delta, Relay, asking, clusters};

const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

fn relay(name: &str, upstream: SocketAddr, more: &str) -> Relay {
    let text = asking(upstream, "timers: {unanswered: 1m}\n").replace("admin: {address: '127.0.0.1:0'}\n", more);
    Relay::run(&format!("taken-{name}"), &text)
}

/// A relay that begins with the snapshots of this one, whose admin address has no TLS.
fn beginning(name: &str, upstream: SocketAddr, neighbour: &Relay, more: &str) -> Relay {
    let from = neighbour.admin_address();
    let more = format!("admin: {{address: '127.0.0.1:0'}}\nsnapshot: {{from: 'http://{from}'}}\n{more}");
    relay(name, upstream, &more)
}

async fn client(relay: &Relay, first: &DeltaDiscoveryRequest) -> Delta {
    Client::connect(relay.address).await.open(first).await
}

/// Waits until this type is asked for on the only stream to the control plane, and sends this.
async fn answers(call: &mut Call, response: &DeltaDiscoveryResponse) {
    loop {
        let request = call.delta().await;
        if request.type_url == response.type_url && request.response_nonce.is_empty() {
            return call.send(response);
        }
    }
}

/// Two listeners, of which one has a private key in it, and one that cannot be read.
fn listeners() -> DeltaDiscoveryResponse {
    let mut response = resources(LDS, "l1", &[("broken", "1")], &[]);
    let inline = r#"name: "inline" filter_chains { transport_socket { name: "tls" typed_config {
        [type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext] { common_tls_context {
        tls_certificates { private_key { inline_string: "very private" } } } } } } }"#;
    for (name, text) in [("plain", r#"name: "plain""#), ("inline", inline)] {
        let schemas = Schemas::standard();
        let value = schemas.encode_text("envoy.config.listener.v3.Listener", text.as_bytes());
        response.resources.push(Resource {
            name: name.to_owned(),
            resource: Some(Any {
                type_url: LDS.to_owned(),
                value: value.unwrap(),
            }),
            ..Resource::default()
        });
    }
    response
}

/// How many resources the only view begins with.
fn begins_with(relay: &Relay) -> u64 {
    let line = relay.line("a view begins with its snapshot");
    let fields: Value = serde_json::from_str(&line).unwrap();
    fields.get("resources").and_then(Value::as_u64).unwrap()
}

/// Over TLS between two relays: who has a certificate that a rule names takes keys and certificates, if it wants them. Others take all
/// else, and nobody takes anything without a certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tls_as_the_rules_say() {
    let certified = |name: &str| generate_simple_self_signed([name.to_owned()]).unwrap();
    let folder = Folder::new();
    let put = |name: &str, of: &CertifiedKey<KeyPair>| {
        let key = folder.put(&format!("{name}.key"), &of.signing_key.serialize_pem());
        let certificate = folder.put(&format!("{name}.pem"), &of.cert.pem());
        (certificate.display().to_string(), key.display().to_string())
    };
    let [server, friend, other] = ["localhost", "relay.example", "other.example"].map(certified);
    let (certificate, key) = put("server", &server);
    let shown = [put("friend", &friend), put("other", &other)];
    let known = folder.put("known.pem", &(friend.cert.pem() + &other.cert.pem()));

    let mut plane = Plane::start().await;
    let above = plane.address;
    let admin = format!(
        "secrets: allow\nadmin:\n  address: '127.0.0.1:0'\n  tls: {{certificate: '{certificate}', private_key: '{key}', client_ca: '{}'}}\n  \
         rules: [{{identities: 'dns:relay.example', allow: [read, secrets]}}, {{identities: 'dns:other.example', allow: read}}]\n",
        known.display()
    );
    let old = relay("old", above, &admin);
    let mut stream = client(&old, &wants(CDS, &[])).await;
    let mut call = plane.call().await;
    answers(&mut call, &clusters("c1", &[("c", "1")], &[])).await;
    assert_eq!(stream.next().await.versions.len(), 1);
    stream.says(&wants(LDS, &[]));
    answers(&mut call, &listeners()).await;
    assert_eq!(stream.next().await.versions.len(), 3);
    stream.says(&wants(SDS, &["key"]));
    answers(&mut call, &resources(SDS, "s1", &[("key", "1")], &[])).await;
    assert_eq!(stream.next().await.versions.len(), 1);
    drop((plane, call));

    let port = old.admin_address().port();
    let [friend, other] = &shown;
    for (name, shown, secrets, taken) in [
        ("friend", friend, true, 5),
        ("modest", friend, false, 2),
        ("other", other, true, 2),
    ] {
        let (shown, shown_key) = shown;
        let more = format!(
            "admin: {{address: '127.0.0.1:0'}}\nsnapshot:\n  from: 'https://localhost:{port}'\n  include_secrets: {secrets}\n  \
             tls: {{ca_certificate_file: '{certificate}', certificate_file: '{shown}', private_key_file: '{shown_key}'}}\n"
        );
        let new = relay(name, above, &more);
        let mut stream = client(&new, &wants(CDS, &[])).await;
        assert_eq!(stream.next().await.versions.len(), 1, "{name}");
        assert_eq!(begins_with(&new), taken, "{name}");
        if name == "other" {
            new.line("a neighbour gives no keys and certificates; it is asked for the rest");
        }
    }
    for (name, scheme) in [("nobody", "https"), ("plain", "http")] {
        let tls = format!("tls: {{ca_certificate_file: '{certificate}'}}");
        let tls = if scheme == "https" { tls } else { String::new() };
        let from = format!("snapshot: {{from: '{scheme}://localhost:{port}', {tls}}}\n");
        let new = relay(name, above, &format!("admin: {{address: '127.0.0.1:0'}}\n{from}"));
        new.line("a neighbour gives no snapshots; the control plane is asked");
        if name == "nobody" {
            new.line("wants a certificate, and the relay showed none");
        }
        assert!(new.admin("/ready").starts_with("HTTP/1.1 503 "), "{name}");
    }
}

/// A snapshot is for the clients of one class, from one server: others do not begin with it, and wait for their control plane.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn class_and_server_must_match() {
    let classes = "classes: [{key: [cluster]}]\nnode: {id: relay}\n";
    let (mut plane, elsewhere) = (Plane::start().await, Plane::start().await.address);
    let above = plane.address;
    let old = relay(
        "classes",
        above,
        &format!("admin: {{address: '127.0.0.1:0'}}\n{classes}"),
    );
    let mut all = Vec::new();
    for cluster in ["gold", "iron"] {
        let mut stream = client(&old, &of_node("one", cluster, wants(CDS, &[]))).await;
        let mut call = plane.call().await;
        answers(&mut call, &clusters("n1", &[(cluster, "1")], &[])).await;
        assert_eq!(stream.next().await.versions.len(), 1);
        all.push((stream, call));
    }
    drop(plane);
    for (name, server, more, served) in [
        ("same", above, classes, &["gold", "iron"][..]),
        ("classless", above, "", &[]),
        ("elsewhere", elsewhere, classes, &[]),
    ] {
        let new = beginning(name, server, &old, more);
        new.line("a neighbour has given its snapshots");
        for cluster in ["gold", "iron", "copper"] {
            let mut stream = client(&new, &of_node("two", cluster, wants(CDS, &[]))).await;
            if served.contains(&cluster) {
                let got: Vec<_> = stream.next().await.versions.into_keys().collect();
                assert_eq!(got, [cluster], "{name}");
            } else {
                assert!(stream.is_silent().await, "{name} {cluster}");
            }
        }
        let loaded = format!("distributary_snapshots_total{{result=\"loaded\"}} {}\n", served.len());
        assert!(new.admin("/metrics").contains(&loaded), "{name}");
    }
}
