// SPDX-License-Identifier: Apache-2.0
//! Which node a control plane sees for each class of clients (K-28, K-04).

use std::net::SocketAddr;

use distributary::proto::envoy::config::core::v3::{Node, node::UserAgentVersionType};
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::proto::google::protobuf::{ListValue, Struct, Value, value::Kind};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::plane::{Plane, soon};
use crate::stage::{CDS, Client, Delta, Relay, clusters};

fn relay(name: &str, server: &str, classes: &str) -> Relay {
    let text = format!(
        "node: {{id: relay, metadata: {{OWN: x}}}}\nupstream: {{xds_servers: [{{{server}}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\n\
         admin: {{address: '127.0.0.1:0'}}\nclasses:\n{classes}"
    );
    Relay::run(name, &text)
}

fn grpc(address: SocketAddr) -> String {
    format!("server_uri: '{address}', transport: delta")
}

fn text(text: &str) -> Value {
    Value {
        kind: Some(Kind::StringValue(text.to_owned())),
    }
}

fn node(cluster: &str, metadata: &[(&str, Value)]) -> Node {
    let fields = metadata.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
    Node {
        id: "client".to_owned(),
        cluster: cluster.to_owned(),
        metadata: Some(Struct {
            fields: fields.collect(),
        }),
        ..Node::default()
    }
}

fn request(node: Node) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(node),
        type_url: CDS.to_owned(),
        ..Default::default()
    }
}

/// Removes from the node the list of relays, which contains this relay's own id.
fn unmarked(mut node: Node) -> Node {
    let members = &mut node.metadata.as_mut().unwrap().fields;
    assert!(members.remove("distributary.relays").is_some());
    node
}

/// K-28: two tenants whose values look the same when joined have two node ids, and each gets its own resources. If a template
/// gives both the same id, the log names both, and it is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_have_different_node_ids() {
    let key = "key: [cluster, 'metadata.\"tenant.id\"']";
    let tenants = [("a/b", "c"), ("a", "b/c")].map(|(cluster, tenant)| node(cluster, &[("tenant.id", text(tenant))]));
    let mut plane = Plane::start().await;
    let ours = relay("tenants", &grpc(plane.address), &format!("  - {{{key}}}\n"));
    let connection = Client::connect(ours.address).await;
    let mut open = Vec::new();
    for (client, id) in tenants.iter().zip([
        "relay/cluster=a%2Fb/metadata.\"tenant.id\"=c",
        "relay/cluster=a/metadata.\"tenant.id\"=b%2Fc",
    ]) {
        let mut stream: Delta = connection.open(&request(client.clone())).await;
        let mut call = plane.call().await;
        let seen = unmarked(call.delta().await.node.unwrap());
        assert_eq!((seen.id.as_str(), &seen.cluster), (id, &client.cluster));
        let mut metadata = client.metadata.clone().unwrap();
        metadata.fields.insert("OWN".to_owned(), text("x"));
        assert_eq!(seen.metadata, Some(metadata));
        call.send(&clusters("n", &[(&client.cluster, "1")], &[]));
        let got: Vec<String> = stream.next().await.versions.into_keys().collect();
        assert_eq!(got, std::slice::from_ref(&client.cluster));
        open.push((stream, call));
    }
    assert!(
        ours.admin("/metrics")
            .contains("distributary_shared_node_ids_total 0\n")
    );

    let template = "node: {id: '{cluster}/{metadata.\"tenant.id\"}'}";
    let mut plane = Plane::start().await;
    let theirs = relay("collide", &grpc(plane.address), &format!("  - {{{key}, {template}}}\n"));
    let connection = Client::connect(theirs.address).await;
    let mut open = Vec::new();
    for client in &tenants {
        let stream: Delta = connection.open(&request(client.clone())).await;
        let mut call = plane.call().await;
        assert_eq!(call.delta().await.node.unwrap().id, "a/b/c");
        open.push((stream, call));
    }
    let line: serde_json::Value = serde_json::from_str(&theirs.line("two views have one node id")).unwrap();
    let said = |field: &str| line.get(field).unwrap().as_str().unwrap().to_owned();
    assert!(said("class").contains("cluster=\"a\""), "{line}");
    assert!(said("other").contains("cluster=\"a/b\""), "{line}");
    assert_eq!(
        (said("node"), said("server")),
        ("\"a/b/c\"".to_owned(), plane.address.to_string())
    );
    assert!(
        theirs
            .admin("/metrics")
            .contains("distributary_shared_node_ids_total 1\n")
    );
}

/// K-04: the control plane gets 60 KB of metadata of all kinds unchanged, on every stream of the view, also after a client has
/// sent other metadata; the log reports the difference.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_s_whole_node_is_passed_on() {
    let mut plane = Plane::start().await;
    let relay = relay("whole", &grpc(plane.address), "  - {key: [id], node: client}\n");
    let connection = Client::connect(relay.address).await;
    let list = |n: u32| Value {
        kind: Some(Kind::ListValue(ListValue {
            values: vec![
                text(&n.to_string()),
                Value {
                    kind: Some(Kind::NumberValue(f64::from(n))),
                },
            ],
        })),
    };
    let keys: Vec<String> = (0..2000).map(|n| format!("k{n}")).collect();
    let members: Vec<(&str, Value)> = keys.iter().zip(0..).map(|(key, n)| (key.as_str(), list(n))).collect();
    let client = Node {
        user_agent_name: "envoy".to_owned(),
        user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion("1.36".to_owned())),
        client_features: vec!["envoy.lb.does_not_support_overprovisioning".to_owned()],
        ..node("web", &members)
    };
    let bytes = prost::Message::encoded_len(&client);
    assert!((60_000..65_536).contains(&bytes), "{bytes}");
    let mut stream: Delta = connection.open(&request(client.clone())).await;
    let mut call = plane.call().await;
    let seen = unmarked(call.delta().await.node.unwrap());
    let features = seen.client_features.clone();
    assert!(
        !features.iter().any(|feature| feature.starts_with("envoy.lb")),
        "{features:?}"
    );
    let expected = Node {
        client_features: features,
        ..client.clone()
    };
    assert_eq!(seen, expected);
    // The same client sends other metadata: the view keeps the first, also on its next stream.
    let _changed: Delta = connection.open(&request(node("web", &[("k1", text("other"))]))).await;
    assert!(
        relay
            .line("clients that differ in `metadata.k0` share one view, and the control plane")
            .contains("WARN")
    );
    call.send(&clusters("n", &[("a", "1")], &[]));
    stream.next().await;
    call.finish(tonic::Code::Unavailable, "again");
    let again = unmarked(plane.call().await.delta().await.node.unwrap());
    assert_eq!(again, expected);
}

/// Returns the request on a connection, if one comes.
async fn body(mut socket: TcpStream) -> Option<serde_json::Value> {
    let mut read = Vec::new();
    while socket.read_buf(&mut read).await.unwrap() > 0 {
        let text = String::from_utf8_lossy(&read);
        let body = text
            .split_once("\r\n\r\n")
            .and_then(|(_, body)| serde_json::from_str(body).ok());
        if body.is_some() {
            return body;
        }
    }
    None
}

/// K-04: a control plane that is polled gets the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_polled_control_plane_is_told_the_same() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("server_uri: 'rest+http://{}'", listener.local_addr().unwrap());
    let classes = "  - {key: [cluster], node: {metadata: [PORTS, 'LABELS.*']}}\n";
    let relay = relay("polled", &server, classes);
    let connection = Client::connect(relay.address).await;
    let ports = Value {
        kind: Some(Kind::ListValue(ListValue {
            values: vec![text("80")],
        })),
    };
    let labels = Struct {
        fields: [("a.b/c".to_owned(), text("x"))].into(),
    };
    let labels = Value {
        kind: Some(Kind::StructValue(labels)),
    };
    let client = node("web", &[("PORTS", ports), ("LABELS", labels), ("SECRET", text("s"))]);
    let _stream: Delta = connection.open(&request(client)).await;
    // The first connection only checks that the server is reachable.
    let asked = soon("a poll", async {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            if let Some(asked) = body(socket).await {
                return asked;
            }
        }
    })
    .await;
    let mut node = asked.get("node").unwrap().clone();
    node.pointer_mut("/metadata")
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove("distributary.relays");
    assert_eq!(node.get("id").unwrap(), "relay/cluster=web");
    let expected = serde_json::json!({"OWN": "x", "PORTS": ["80"], "LABELS": {"a.b/c": "x"}});
    assert_eq!(node.get("metadata"), Some(&expected));
}
