// SPDX-License-Identifier: Apache-2.0
//! gRPC clients of a relay whose control plane is gone: they have other servers, and turn to them if they are told in time.

use std::time::Duration;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use tonic::Code;

use crate::first_run;
use crate::messages::wants;
use crate::stage::{CDS, Client, Delta, EDS, Relay, directory, eventually, node, now};

fn asks(type_url: &str, name: &str, agent: &str) -> DeltaDiscoveryRequest {
    let node = Node {
        user_agent_name: agent.to_owned(),
        ..node()
    };
    DeltaDiscoveryRequest {
        node: Some(node),
        ..wants(type_url, &[name])
    }
}

/// G-18: a stream that asks for anything unknown ends without a response, although the relay knows some of it; one that asks for
/// what is known is answered. Where nothing at all is known, the stream ends within a second. Envoys are answered and keep their
/// streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_turns_to_its_next_server() {
    const GRPC: &str = "gRPC Go";
    let dir = directory("lost");
    let mut address = None;
    first_run(&mut address, &dir).await;
    let relay = Relay::start(address.unwrap(), &dir);
    let client = Client::connect(relay.address).await;
    let mut envoy: Delta = client.open(&asks(CDS, "a", "envoy")).await;
    assert!(envoy.next().await.versions.contains_key("a"));
    let state = || {
        relay
            .admin("/clusters")
            .contains("::state::unreachable\n")
            .then_some(())
    };
    eventually("the relay has noticed", state).await;

    let mut partly: Delta = client.open(&asks(CDS, "a", GRPC)).await;
    partly.says(&asks(EDS, "x", GRPC));
    let (code, message) = partly.ends_unanswered().await;
    assert_eq!(code, Code::Unavailable, "{message}");
    assert!(message.starts_with("no upstream is left to ask for "), "{message}");
    assert!(message.contains("; control plane "), "{message}");

    let mut wholly: Delta = client.open(&asks(CDS, "a", GRPC)).await;
    assert!(wholly.next().await.versions.contains_key("a"));

    let began = now();
    let mut lost: Delta = client.open(&asks(EDS, "x", GRPC)).await;
    assert_eq!(lost.ends_unanswered().await.0, Code::Unavailable);
    let waited = began.elapsed();
    assert!(
        // With anything known it would be eight seconds.
        waited > Duration::from_millis(900) && waited < Duration::from_secs(8),
        "{waited:?}"
    );

    // F-13: the same servers are asked for a name under an authority that is not configured.
    let name = "xdstp://nobody/envoy.config.endpoint.v3.ClusterLoadAssignment/x";
    let mut elsewhere: Delta = client.open(&asks(EDS, name, GRPC)).await;
    let (code, message) = elsewhere.ends_unanswered().await;
    assert_eq!(code, Code::Unavailable);
    assert!(message.contains("; control plane "), "{message}");

    envoy.says(&asks(EDS, "x", "envoy"));
    let mut another: Delta = client.open(&asks(CDS, "b", "envoy")).await;
    assert!(another.next().await.versions.contains_key("b"));
    assert!(envoy.is_silent().await && another.is_silent().await && wholly.is_silent().await);
    let metrics = relay.admin("/metrics");
    assert!(metrics.contains("distributary_unanswered_total 3\n"), "{metrics}");
}
