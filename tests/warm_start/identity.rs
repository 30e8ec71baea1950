// SPDX-License-Identifier: Apache-2.0
//! Which node a control plane sees for each class of clients (K-28, K-04).

use std::net::SocketAddr;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::proto::google::protobuf::{Struct, Value, value::Kind};

use crate::plane::Plane;
use crate::stage::{ANYWHERE, CDS, Client, Delta, Relay, clusters};

fn relay(name: &str, server: &str, classes: &str) -> Relay {
    let own = "node: {id: relay, metadata: {OWN: x}}\n";
    let upstream = format!("upstream: {{xds_servers: [{{{server}}}]}}\n");
    Relay::run(name, &format!("{own}{upstream}{ANYWHERE}classes:\n{classes}"))
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
    ours.shows("shared_node_ids_total 0");

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
    assert_eq!(said("node"), "\"a/b/c\"");
    assert_eq!(said("server"), plane.address.to_string());
    theirs.shows("shared_node_ids_total 1");
}
