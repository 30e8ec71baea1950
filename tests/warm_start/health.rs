// SPDX-License-Identifier: Apache-2.0
//! Health reports of proxies: Istio's proxies send them on the stream on which they get their configuration.

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};

use crate::messages::{self, of_node, rejection};
use crate::plane::Plane;
use crate::stage::{CDS, Client, Delta, Relay, Sotw, clusters, directory, eventually};

const HEALTH: &str = "type.googleapis.com/istio.v1.HealthInformation";
const LINE: &str = "the client reports its health";

fn proxy(id: &str) -> Option<Node> {
    let id = id.to_owned();
    Some(Node { id, ..Node::default() })
}

/// A report of a healthy workload, and one of an unhealthy one.
fn reports(stream: &mut Delta) {
    for message in ["", "the application does not answer"] {
        stream.says(&DeltaDiscoveryRequest {
            type_url: HEALTH.to_owned(),
            error_detail: (!message.is_empty()).then(|| rejection(message)),
            ..Default::default()
        });
    }
}

/// the relay accepts health reports in both dialects without an answer, streams go on, and the control plane does not get
/// the reports. Each report is counted, and the log has one line for each node, however many reports and streams it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_of_health_end_here() {
    let mut plane = Plane::start().await;
    let relay = Relay::start(plane.address, &directory("health"));
    let client = Client::connect(relay.address).await;
    let wants = |id: &str| of_node(id, "", messages::wants(CDS, &[]));
    let mut one: Delta = client.open(&wants("one")).await;
    let mut call = plane.call().await;
    assert_eq!(call.delta().await.type_url, CDS);
    call.send(&clusters("n1", &[("a", "1")], &[]));
    assert_eq!(one.next().await.versions.len(), 1);
    let mut again: Delta = client.open(&wants("one")).await;
    assert_eq!(again.next().await.versions.len(), 1);
    // In SotW, and as the first request of the stream.
    let first = DiscoveryRequest {
        node: proxy("two"),
        type_url: HEALTH.to_owned(),
        ..Default::default()
    };
    let mut two: Sotw = client.open(&first).await;
    two.says(&DiscoveryRequest {
        type_url: CDS.to_owned(),
        ..Default::default()
    });
    assert_eq!(two.next().await.type_url, CDS);
    (0..3).for_each(|_| reports(&mut one));
    reports(&mut again);
    eventually("nine reports", || {
        let metrics = relay.admin("/metrics");
        metrics.contains("distributary_health_reports_total 9\n").then_some(())
    })
    .await;

    // Both streams go on, and the control plane was asked for nothing else.
    call.send(&clusters("n2", &[("a", "2")], &[]));
    for stream in [&mut one, &mut again] {
        let next = stream.whole().await;
        assert_eq!((next.type_url.as_str(), next.resources.len()), (CDS, 1));
    }
    assert_eq!(two.next().await.type_url, CDS);
    for nonce in ["n1", "n2"] {
        let request = call.delta().await;
        assert_eq!((&*request.type_url, &*request.response_nonce), (CDS, nonce));
    }
    assert!(plane.has_call().is_none(), "no stream for reports");

    // The line of a third node comes after all lines of the first two.
    let third = DeltaDiscoveryRequest {
        node: proxy("three"),
        type_url: HEALTH.to_owned(),
        ..Default::default()
    };
    let _three: Delta = client.open(&third).await;
    relay.line("\"node\":\"three\"");
    assert_eq!(relay.lines(LINE), 3);
}
