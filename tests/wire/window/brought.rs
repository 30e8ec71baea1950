// SPDX-License-Identifier: Apache-2.0
//! Clients that come back with what is current.

use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::xds::Dialect;

use super::{Window, full, served};
use crate::rest::put;
use crate::support::{CDS, Relay, of_node, soon, wants};

/// Nothing is sent to a client that brings along what is current, and the type is in step; one that brings something else is sent it.
#[tokio::test]
async fn what_is_current_is_in_step() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    put(&relay, CDS, &["web"], 1);
    let _first = served(&relay, Dialect::Delta, CDS, "first", &["web"]).await;
    let seen = window.json(&format!("/resources?type={}", full(CDS))).await;
    let version = seen["resources"][full(CDS)][0]["version"].as_str().unwrap().to_owned();
    for (id, version, status) in [("back", &*version, "SYNCED"), ("late", "older", "STALE")] {
        let mut call = relay.connect().await.ads(Dialect::Delta).await;
        call.send(&DeltaDiscoveryRequest {
            initial_resource_versions: [("web".to_owned(), version.to_owned())].into(),
            ..of_node(id, "", wants(CDS, &["web"]))
        });
        soon(status, async {
            while window.listed(&format!("&node={id}")).await.is_empty() {}
            window.until(id, CDS, status).await;
        })
        .await;
    }
}
