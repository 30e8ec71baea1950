// SPDX-License-Identifier: Apache-2.0
//! One client rejects a change, another takes it: whoever asks, and however, is told the same.

use std::process::Command;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use distributary::proto::envoy::service::status::v3::{ClientConfig, ConfigStatus};
use prost::Message as _;
use serde_json::Value;

use crate::messages::{self, of_node};
use crate::plane::{Plane, soon};
use crate::stage::{CDS, Client, Delta, Relay, Sotw, clusters, eventually};

const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";
const WORDS: &str = "connect_timeout: value must be greater than 0";
const SYNCZ: &str = "istio.io/debug/syncz";

fn wants(id: &str) -> DeltaDiscoveryRequest {
    of_node(id, "", messages::wants(CDS, &[]))
}

/// Answers the next response: with words of rejection, or by accepting it. Returns the version of its only resource.
async fn answer(stream: &mut Delta, words: Option<&str>) -> String {
    let response = soon("a response", stream.message()).await;
    stream.says(&messages::answer(CDS, &response.nonce, words));
    response.resources.first().unwrap().version.clone()
}

fn json(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    // The body of a list is in pieces.
    let begin = body.find('{').unwrap();
    let end = body.rfind('}').unwrap();
    serde_json::from_str(&body[begin..=end]).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// Runs a command of the program. Returns its exit code, what it prints, and what it says is wrong.
fn command(words: &[&str], relay: &Relay) -> (Option<i32>, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_distributary"))
        .args(words)
        .args(["--admin", &relay.admin_address().to_string()])
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code(), text(run.stdout), text(run.stderr))
}

/// What Istio's own program is told of each client.
async fn syncz(client: &Client) -> Vec<(String, ConfigStatus)> {
    let question = DiscoveryRequest {
        node: Some(Node {
            id: "debug~0.0.0.0~istioctl~cluster.local".to_owned(),
            ..Node::default()
        }),
        type_url: SYNCZ.to_owned(),
        response_nonce: "2026-11-21 10:00:00.000000000 +0000 UTC".to_owned(),
        ..DiscoveryRequest::default()
    };
    let mut stream: Sotw = client.open(&question).await;
    let said = soon("the fleet", stream.message()).await;
    let clients = said.resources.iter().map(|any| {
        let client = ClientConfig::decode(any.value.clone()).unwrap();
        let status = client.generic_xds_configs.first().unwrap().config_status();
        (client.node.unwrap().id, status)
    });
    let mut clients: Vec<_> = clients.collect();
    clients.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    clients
}

fn nacks_say(relay: &Relay, version: &str) {
    let nacks = json(&relay.admin("/nacks"));
    let all = nacks["rejections"].as_array().unwrap();
    assert_eq!(all.len(), 1, "{nacks}");
    assert_eq!(
        (
            &all[0]["type"],
            &all[0]["name"],
            &all[0]["version"],
            &all[0]["rejection"]
        ),
        (&CLUSTER.into(), &"a".into(), &version.into(), &WORDS.into()),
        "{nacks}"
    );
    assert_eq!(
        (&all[0]["clients"], &all[0]["some"][0]["node"]),
        (&1.into(), &"edge-1".into())
    );
}

fn clients_say(relay: &Relay, version: &str) {
    for (node, status, standing) in [("edge-1", "ERROR", "rejected"), ("edge-2", "SYNCED", "accepted")] {
        let one = json(&relay.admin(&format!("/clients/node={node}")));
        let of_type = &one["streams"][0]["types"][CLUSTER];
        assert_eq!(of_type["status"], status, "{one}");
        let resource = &of_type["resources"][0];
        assert_eq!(
            (&resource["name"], &resource["status"], &resource["version"]),
            (&"a".into(), &standing.into(), &version.into()),
            "{one}"
        );
        let rejected = standing == "rejected";
        assert_eq!(resource["rejection"].as_str(), rejected.then_some(WORDS), "{one}");
    }
    let resource = json(&relay.admin("/resources/a?type=cds"));
    for standing in ["accepted", "rejected"] {
        let clients = &resource["clients"][standing];
        assert_eq!(
            (&clients["count"], &clients["versions"][version]),
            (&1.into(), &1.into()),
            "{resource}"
        );
    }
}

fn csds_says(relay: &Relay) {
    let question = r#"{"node_matchers": [{"node_id": {"prefix": "edge-"}}]}"#;
    let all = json(&relay.post_json("/v3/discovery:client_status", question));
    for client in all["config"].as_array().unwrap() {
        let one = &client["generic_xds_configs"][0];
        let rejected = client["node"]["id"] == "edge-1";
        let expected = if rejected { "ERROR" } else { "SYNCED" };
        assert_eq!(
            (&one["name"], &one["config_status"]),
            (&"a".into(), &expected.into()),
            "{all}"
        );
        assert_eq!(
            one["error_state"]["details"].as_str(),
            rejected.then_some(WORDS),
            "{all}"
        );
    }
    assert_eq!(all["config"].as_array().unwrap().len(), 2, "{all}");
}

fn commands_say(relay: &Relay, version: &str) {
    let (code, out, _) = command(&["status", "--nacks", "-o", "json"], relay);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        [version, WORDS, "edge-1"].iter().all(|word| out.contains(word)),
        "{out}"
    );
    assert!(!out.contains("edge-2"), "{out}");
    let target = format!("cds/a@{version}");
    let (code, _, error) = command(&["wait", &target, "--timeout", "1s"], relay);
    assert_eq!(
        (code, error.contains("edge-1"), error.contains("edge-2")),
        (Some(1), true, false),
        "{error}"
    );
    let (code, out, error) = command(&["wait", &target, "--for", "50%"], relay);
    assert_eq!(
        (code, out.trim_end()),
        (Some(0), "accepted by 1 of 2 clients"),
        "{error}"
    );
}

/// Log, `/nacks`, `/clients`, `/resources`, CSDS, Istio's question, metrics, `status` and `wait` agree about who rejected what.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_say_the_same() {
    let mut plane = Plane::start().await;
    let config = format!(
        "upstream: {{xds_servers: [{{server_uri: '{}'}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\n\
         rules: [{{name: all}}, {{name: operators, identities: 'ip:127.*', dialects: csds}}]\n",
        plane.address
    );
    let relay = Relay::run("story", &config);
    let client = Client::connect(relay.address).await;
    let mut rejecting: Delta = client.open(&wants("edge-1")).await;
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&clusters("n1", &[("a", "1")], &[]));
    let mut accepting: Delta = client.open(&wants("edge-2")).await;
    answer(&mut rejecting, None).await;
    answer(&mut accepting, None).await;
    call.send(&clusters("n2", &[("a", "2")], &[]));
    let version = answer(&mut rejecting, Some(WORDS)).await;
    assert_eq!(answer(&mut accepting, None).await, version);

    let line = relay.line("a client rejected a response");
    let logged: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&logged["node"], &logged["reason"], &logged["response"]),
        (&"edge-1".into(), &WORDS.into(), &format!("a@{version}").into()),
        "{line}"
    );
    eventually("the other's acknowledgement", || {
        relay
            .admin("/metrics")
            .contains("distributary_acks_total{type=\"cds\"} 3\n")
            .then_some(())
    })
    .await;
    assert!(
        relay
            .admin("/metrics")
            .contains("distributary_nacks_total{type=\"cds\"} 1\n")
    );
    nacks_say(&relay, &version);
    clients_say(&relay, &version);
    csds_says(&relay);
    commands_say(&relay, &version);
    let expected = [
        ("edge-1".to_owned(), ConfigStatus::Error),
        ("edge-2".to_owned(), ConfigStatus::Synced),
    ];
    assert_eq!(syncz(&client).await, expected);
}
