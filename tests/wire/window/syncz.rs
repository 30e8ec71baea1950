// SPDX-License-Identifier: Apache-2.0
//! Istio's question, with the messages that `istioctl proxy-status --xds-address` sends.

use distributary::proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use distributary::proto::envoy::service::status::v3::{ClientConfig, ConfigStatus};
use distributary::xds::Dialect;
use prost::Message as _;

use super::{Window, client, served};
use crate::access::govern;
use crate::rest::put;
use crate::support::client::Call;
use crate::support::{CDS, EDS, Relay, node_of, says};

const SYNCZ: &str = "istio.io/debug/syncz";

/// The first request has a nonce that no server gave: the time.
async fn ask(relay: &Relay) -> Call {
    let mut call = relay.connect().await.ads(Dialect::Sotw).await;
    call.send(&DiscoveryRequest {
        node: Some(node_of("debug~0.0.0.0~istioctl~cluster.local", "")),
        type_url: SYNCZ.to_owned(),
        response_nonce: "2026-11-21 10:00:00.000000000 +0000 UTC".to_owned(),
        ..DiscoveryRequest::default()
    });
    call
}

#[tokio::test]
async fn the_fleet_is_listed_for_whom_a_rule_allows() {
    let relay = Relay::start();
    let end = ask(&relay).await.end().await;
    says(&end, tonic::Code::PermissionDenied, "the relay has no rules, ");
    let rules = "[{name: all}, {name: operators, identities: 'ip:127.*', dialects: csds}]";
    govern(&relay, rules);
    put(&relay, CDS, &["a"], 1);
    put(&relay, EDS, &["a"], 1);
    let window = Window::of(&relay);
    let _synced = served(&relay, Dialect::Delta, CDS, "edge-1", &["*"]).await;
    let mut rejecting = client(&relay, Dialect::Sotw, EDS, "edge-2").await;
    rejecting.subscribe(&["a"]);
    rejecting.next().await.unwrap();
    rejecting.nack("no");
    window.until("edge-1", CDS, "SYNCED").await;
    window.until("edge-2", EDS, "ERROR").await;

    let mut call = ask(&relay).await;
    for answered in 1..3 {
        let said = call.next::<DiscoveryResponse>().await.unwrap();
        assert_eq!((said.type_url.as_str(), said.nonce), (SYNCZ, answered.to_string()));
        let clients = said.resources.iter().map(|any| {
            assert_eq!(any.type_url, "type.googleapis.com/envoy.service.status.v3.ClientConfig");
            let client = ClientConfig::decode(any.value.clone()).unwrap();
            let types = client.generic_xds_configs.iter();
            let types = types.map(|one| (one.type_url.clone(), one.config_status()));
            (client.node.unwrap().id, types.collect::<Vec<_>>())
        });
        let mut clients: Vec<_> = clients.collect();
        clients.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let expected = [
            ("edge-1".to_owned(), vec![(CDS.to_owned(), ConfigStatus::Synced)]),
            ("edge-2".to_owned(), vec![(EDS.to_owned(), ConfigStatus::Error)]),
        ];
        assert_eq!(clients, expected, "who asks is no client itself");
        // An acknowledgement is no question; a request with another nonce is.
        let nonces: &[&str] = if answered == 1 { &["1", ""] } else { &["2"] };
        for nonce in nonces {
            call.send(&DiscoveryRequest {
                type_url: SYNCZ.to_owned(),
                response_nonce: (*nonce).to_owned(),
                ..DiscoveryRequest::default()
            });
        }
    }
    assert!(call.is_silent().await);
}
