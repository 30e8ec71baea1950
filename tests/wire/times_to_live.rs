// SPDX-License-Identifier: Apache-2.0
//! Times to live, as they reach an Envoy that names no features.

use std::time::Duration;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Resource,
};
use distributary::xds::{Expiry, TypeUrl, Update, WRAPPER_URL};
use prost::Message as _;

use crate::support::{Relay, now, resource};

const RTDS: &str = "type.googleapis.com/envoy.service.runtime.v3.Runtime";

fn envoy() -> Option<Node> {
    Some(Node {
        id: "envoy".to_owned(),
        user_agent_name: "envoy".to_owned(),
        ..Node::default()
    })
}

/// The control plane sends or refreshes a resource that lives a minute, and one without end.
fn refresh(relay: &Relay, beat: u32) {
    let type_url = TypeUrl::new(RTDS);
    let at = now() + Duration::from_secs(60);
    let mortal = Update::Put(
        resource(&type_url, "fault", b"\x0a\x05fault"),
        Some(Expiry { at, beat }),
    );
    let other = Update::Put(resource(&type_url, "other", b"\x0a\x05other"), None);
    relay.publish(&type_url, vec![mortal, other]);
}

fn lives(resource: &Resource) -> bool {
    matches!(resource.ttl.as_ref().map(|ttl| ttl.seconds), Some(1..=60))
}

/// B-30, K-18: in SotW only what has a time to live is in the wrapper, with its name, and is sent again whole when it is
/// refreshed.
#[tokio::test]
async fn an_envoy_in_sotw() {
    let relay = Relay::start();
    refresh(&relay, 1);
    let client = relay.connect().await;
    let mut call = client.ads(xds::Dialect::Sotw).await;
    let request = DiscoveryRequest {
        node: envoy(),
        type_url: RTDS.to_owned(),
        resource_names: vec!["fault".to_owned(), "other".to_owned()],
        ..Default::default()
    };
    call.send(&request);
    let first: DiscoveryResponse = call.next().await.unwrap();
    let types: Vec<&str> = first.resources.iter().map(|any| any.type_url.as_str()).collect();
    assert_eq!(types, [WRAPPER_URL, RTDS]);
    let wrapper = Resource::decode(first.resources[0].value.clone()).unwrap();
    assert_eq!(wrapper.name, "fault");
    assert!(lives(&wrapper) && wrapper.resource.is_some());

    let accepted = DiscoveryRequest {
        node: None,
        version_info: first.version_info,
        response_nonce: first.nonce,
        ..request
    };
    call.send(&accepted);
    refresh(&relay, 2);
    let again: DiscoveryResponse = call.next().await.unwrap();
    assert_eq!(again.resources.len(), 1);
    let wrapper = Resource::decode(again.resources[0].value.clone()).unwrap();
    assert!(lives(&wrapper) && wrapper.resource.is_some());
}

/// K-17: in delta it is refreshed by a heartbeat.
#[tokio::test]
async fn an_envoy_in_delta() {
    let relay = Relay::start();
    refresh(&relay, 1);
    let client = relay.connect().await;
    let mut call = client.ads(xds::Dialect::Delta).await;
    call.send(&DeltaDiscoveryRequest {
        node: envoy(),
        type_url: RTDS.to_owned(),
        resource_names_subscribe: vec!["fault".to_owned(), "other".to_owned()],
        ..Default::default()
    });
    let first: DeltaDiscoveryResponse = call.next().await.unwrap();
    let mortal: Vec<&Resource> = first.resources.iter().filter(|one| lives(one)).collect();
    assert!(first.resources.len() == 2 && mortal.len() == 1 && mortal[0].name == "fault");
    let version = mortal[0].version.clone();

    call.send(&DeltaDiscoveryRequest {
        type_url: RTDS.to_owned(),
        response_nonce: first.nonce,
        ..Default::default()
    });
    refresh(&relay, 2);
    let again: DeltaDiscoveryResponse = call.next().await.unwrap();
    let [beat] = &*again.resources else { panic!("{again:?}") };
    assert!(lives(beat) && beat.resource.is_none() && beat.version == version);
}
