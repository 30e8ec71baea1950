// SPDX-License-Identifier: Apache-2.0
//! Clients that come back with what is current.

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::xds::Dialect;

use super::{Window, client, full};
use crate::rest::put;
use crate::support::{CDS, PATIENCE, Relay, now};

/// Nothing is sent to a client that brings along what is current, and the type is in step; one that brings something else is sent it.
#[tokio::test]
async fn what_is_current_is_in_step() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    put(&relay, CDS, &["web"], 1);
    let mut first = client(&relay, Dialect::Delta, CDS, "first").await;
    first.subscribe(&["web"]);
    first.take().await;
    let seen = window.json(&format!("/resources?type={}", full(CDS))).await;
    let version = seen["resources"][full(CDS)][0]["version"].as_str().unwrap().to_owned();
    for (id, version, status) in [("back", &*version, "SYNCED"), ("late", "older", "STALE")] {
        let mut call = relay.connect().await.ads(Dialect::Delta).await;
        call.send(&DeltaDiscoveryRequest {
            node: Some(Node {
                id: id.to_owned(),
                ..Node::default()
            }),
            type_url: CDS.to_owned(),
            resource_names_subscribe: vec!["web".to_owned()],
            initial_resource_versions: [("web".to_owned(), version.to_owned())].into(),
            ..Default::default()
        });
        let begun = now();
        loop {
            let seen = window.listed(&format!("&node={id}")).await;
            if seen.iter().any(|one| one["types"][full(CDS)]["status"] == status) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{id}: {seen:?}");
        }
    }
}
