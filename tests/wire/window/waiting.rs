// SPDX-License-Identifier: Apache-2.0
//! `distributary wait` against relays whose clients answer late, reject, or are not there.

use distributary::proto::envoy::config::cluster::v3::{Cluster, cluster::EdsClusterConfig};
use distributary::xds::{Dialect, TypeUrl, Update};
use prost::Message as _;
use serde_json::Value;

use super::{Window, client, command};
use crate::rest::put;
use crate::support::{CDS, Relay, config, resource};

/// Runs `distributary wait` while the relays go on.
async fn wait(windows: &[&Window], arguments: &[&str]) -> (Option<i32>, String, String) {
    command(&[&["wait"], arguments].concat(), windows).await
}

/// Two relays: the command returns once the clients of both have accepted it, and says who has not if that takes too long.
#[tokio::test]
async fn over_two_relays() {
    let (one, two) = (Relay::start(), Relay::start());
    let (at_one, at_two) = (Window::of(&one), Window::of(&two));
    let both = [&at_one, &at_two];
    let waits_in_vain = async |what: &[&str], words: &str| {
        let (code, _, said) = wait(&both, &[what, &["--timeout", "0"]].concat()).await;
        assert!(code == Some(1) && said.contains(words), "{said}");
    };
    waits_in_vain(&["cds/web"], "no client asks for it, and no client was given it").await;

    put(&one, CDS, &["web"], 1);
    put(&two, CDS, &["web"], 1);
    let mut edge = client(&one, Dialect::Delta, CDS, "edge-1").await;
    let mut other = client(&two, Dialect::Sotw, CDS, "other-2").await;
    for one in [&mut edge, &mut other] {
        one.subscribe(&["*"]);
        one.next().await.unwrap();
    }
    edge.ack();
    at_one.until("edge-1", CDS, "SYNCED").await;
    waits_in_vain(&["cds/web"], "accepted by 0 of 1 clients; not by: other-2").await;

    let done = |accepted: &str| (Some(0), format!("accepted by {accepted} clients\n"), String::new());
    assert_eq!(wait(&both, &["clusters/web", "--for", "50%"]).await, done("1 of 2"));
    assert_eq!(wait(&both, &["cds/web", "--node", "edge-*"]).await, done("1 of 1"));

    let waits = wait(&both, &["cds/web", "--timeout", "20s"]);
    let answers = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        other.ack();
    };
    let (waited, ()) = tokio::join!(waits, answers);
    assert_eq!(waited, done("2 of 2"));

    let version = at_one.json("/resources/web?type=cds").await["contents"][0]["version"].clone();
    let this = format!("cds/web@{}", version.as_str().unwrap());
    assert_eq!(wait(&both, &[&this]).await, done("2 of 2"));
    let another = format!("cds/web@{}", "0".repeat(32));
    waits_in_vain(&[&another], "it has another version").await;
}

/// Two classes that have different contents under one name: they are waited for together or apart, and their views have digests.
#[tokio::test]
async fn by_class() {
    let relay = Relay::with(|plan| {
        plan.protocol.classes = config("classes: [{key: [id]}]\n").classes;
    });
    let window = Window::of(&relay);
    let type_url = TypeUrl::new(CDS);
    let mut versions = Vec::new();
    let mut clients = Vec::new();
    for id in ["edge-1", "edge-2"] {
        let mut one = client(&relay, Dialect::Delta, CDS, id).await;
        one.subscribe(&["*"]);
        window.until(id, CDS, "NOT_SENT").await;
        let views = relay.shared.scopes.all();
        let view = views.iter().find(|view| *view.class().key == [id]).unwrap();
        let body = Cluster {
            name: "web".to_owned(),
            eds_cluster_config: Some(EdsClusterConfig {
                service_name: id.to_owned(),
            }),
            ..Cluster::default()
        };
        let body = resource(&type_url, "web", &body.encode_to_vec());
        versions.push(body.version().to_string());
        Relay::publish_in(view, &type_url, vec![Update::Put(body, None)]);
        one.take().await;
        window.until(id, CDS, "SYNCED").await;
        clients.push(one);
    }
    let listed = window.listed("&class=id=edge-1").await;
    assert_eq!((listed.len(), &listed[0]["node"]["id"]), (1, &"edge-1".into()));
    let views = window.json("/views").await;
    for (id, version) in ["id=edge-1", "id=edge-2"].iter().zip(&versions) {
        let mut all = views["views"].as_array().unwrap().iter();
        let view = all.find(|view| view["class"] == *id).unwrap();
        let half = &view["types"][super::full(CDS)]["wildcard"];
        let digest = (&half["digest"], &half["resources"]);
        assert_eq!(digest, (&version.as_str().into(), &1.into()), "{views}");
        let reading = (&view["reading"], &view["server"]);
        assert_eq!(reading, (&1.into(), &Value::Null), "{views}");
    }
    let some = window.json("/views?limit=1").await;
    let told = (some["views"].as_array().unwrap().len(), &some["left_out"]);
    let left_out = views["views"].as_array().unwrap().len() - 1;
    assert_eq!(told, (1, &left_out.into()), "{some}");

    let done = |accepted: &str| (Some(0), format!("accepted by {accepted} clients\n"), String::new());
    let windows = [&window];
    assert_eq!(wait(&windows, &["cds/web"]).await, done("2 of 2"));
    let first = format!("cds/web@{}", versions[0]);
    assert_eq!(wait(&windows, &[&first, "--class", "id=edge-1"]).await, done("1 of 1"));
    let half = wait(&windows, &[&first, "--class", "id=*", "--for", "50%"]).await;
    assert_eq!(half, done("1 of 2"));
    for class in ["id=edge-2", "id=*"] {
        let (code, _, said) = wait(&windows, &[&first, "--class", class, "--timeout", "0"]).await;
        assert!(code == Some(1) && said.contains("accepted by "), "{class}: {said}");
    }
}
