// SPDX-License-Identifier: Apache-2.0
//! E-24: what clients reject, from their streams to the control plane: through one relay, and through two.

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::config::core::v3::node::UserAgentVersionType;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryResponse};
use distributary::proto::google::rpc::Status;

use crate::messages::rejection;
use crate::plane::{Call, Plane, soon};
use crate::stage::{CDS, Client, Delta, Relay, clusters, eventually};

/// A request of an Envoy; the first one subscribes to all clusters.
fn says(nonce: &str, error: Option<&str>) -> DeltaDiscoveryRequest {
    let first = nonce.is_empty();
    let node = Node {
        id: "web".to_owned(),
        user_agent_name: "envoy".to_owned(),
        user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion("1.36.4".to_owned())),
        ..Node::default()
    };
    DeltaDiscoveryRequest {
        node: first.then_some(node),
        type_url: CDS.to_owned(),
        response_nonce: nonce.to_owned(),
        error_detail: error.map(rejection),
        ..DeltaDiscoveryRequest::default()
    }
}

fn relay_of(name: &str, server: &str, transport: &str) -> Relay {
    let text = format!(
        "upstream: {{xds_servers: [{{server_uri: '{server}', transport: {transport}}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\n\
         admin: {{address: '127.0.0.1:0'}}\n"
    );
    Relay::run(&format!("rejected-{name}-{transport}"), &text)
}

/// Sends these clusters in the call's dialect, with this version as the nonce.
fn send(call: &mut Call, version: &str) {
    let response = clusters(version, &[("a", version)], &[]);
    if call.path.ends_with("DeltaAggregatedResources") {
        return call.send(&response);
    }
    call.send(&DiscoveryResponse {
        type_url: CDS.to_owned(),
        version_info: version.to_owned(),
        nonce: version.to_owned(),
        resources: response.resources.into_iter().filter_map(|one| one.resource).collect(),
        ..DiscoveryResponse::default()
    });
}

/// The nonce of the next request, and its error.
async fn answer(call: &mut Call) -> (String, Option<Status>) {
    if call.path.ends_with("DeltaAggregatedResources") {
        let request = call.delta().await;
        return (request.response_nonce, request.error_detail);
    }
    let request = call.sotw().await;
    (request.response_nonce, request.error_detail)
}

/// Reads requests until one has an error.
async fn complaint(call: &mut Call) -> String {
    loop {
        if let (_, Some(error)) = answer(call).await {
            assert_eq!(error.code, 13);
            return error.message;
        }
    }
}

/// Two of three clients reject a cluster. Returns what the control plane is told; the next change arrives, and is acknowledged without
/// an error.
async fn told(relay: &Relay, plane: &mut Plane) -> String {
    let client = Client::connect(relay.address).await;
    let mut streams: Vec<Delta> = Vec::new();
    for _ in 0..3 {
        streams.push(client.open(&says("", None)).await);
    }
    let mut call = plane.call().await;
    answer(&mut call).await;
    send(&mut call, "1");
    let mut nonces = Vec::new();
    for stream in &mut streams {
        nonces.push(soon("a response", stream.message()).await.nonce);
    }
    for (at, (stream, nonce)) in streams.iter_mut().zip(&nonces).enumerate() {
        stream.says(&says(nonce, (at > 0).then_some("a: no such port")));
    }
    let message = complaint(&mut call).await;
    let nacks = relay.admin("/nacks").replace(' ', "");
    assert!(nacks.contains("\"reported\":\"20"), "{nacks}");
    send(&mut call, "2");
    assert_eq!(answer(&mut call).await, ("2".to_owned(), None));
    for stream in &mut streams {
        soon("the repaired cluster", stream.whole()).await;
    }
    eventually("that nobody rejects anything", || {
        let nacks = relay.admin("/nacks").replace(' ', "");
        nacks.contains("\"rejections\":[]").then_some(())
    })
    .await;
    message
}

/// One relay, in both dialects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_control_plane_is_told() {
    for transport in ["delta", "sotw"] {
        let mut plane = Plane::start().await;
        let relay = relay_of("one", &plane.address.to_string(), transport);
        let message = told(&relay, &mut plane).await;
        assert_eq!(
            message,
            "2 of 3 clients (envoy 1.36.4) reject cluster a: a: no such port"
        );
        let metrics = relay.admin("/metrics");
        let counted = format!(
            "distributary_rejections_reported_total{{server=\"{}\"}} 1",
            plane.address
        );
        assert!(metrics.contains(&counted), "{metrics}");
    }
}

/// A relay behind a relay: the upper one counts one rejection of the lower one, and passes it on once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_passes_it_on() {
    for transport in ["delta", "sotw"] {
        let mut plane = Plane::start().await;
        let upper = relay_of("upper", &plane.address.to_string(), transport);
        let lower = relay_of("lower", &upper.address.to_string(), transport);
        let message = told(&lower, &mut plane).await;
        let own = "2 of 3 clients (envoy 1.36.4) reject cluster a: a: no such port";
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            message,
            format!("1 of 1 client (distributary {version}) rejects clusters: {own}")
        );
        let metrics = upper.admin("/metrics");
        assert!(
            metrics.contains("distributary_nacks_total{type=\"cds\"} 1\n"),
            "{metrics}"
        );
    }
}
