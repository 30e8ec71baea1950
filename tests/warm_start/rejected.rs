// SPDX-License-Identifier: Apache-2.0
//! E-24: what clients reject, from their streams to the control plane: through two relays.

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::config::core::v3::node::UserAgentVersionType;
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;

use crate::messages::rejection;
use crate::plane::{Call, Plane, soon};
use crate::stage::{ANYWHERE, CDS, Client, Delta, Relay, clusters, until};

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

fn relay_of(name: &str, server: &str, transport: &str, story: &str) -> Relay {
    let upstream = format!("upstream: {{xds_servers: [{{server_uri: '{server}', transport: {transport}}}]}}\n");
    Relay::run(&format!("rejected-{name}-{story}"), &format!("{upstream}{ANYWHERE}"))
}

/// The next request with an error.
async fn complaint(call: &mut Call) -> String {
    loop {
        if let Some(error) = call.delta().await.error_detail {
            assert_eq!(error.code, 13);
            return error.message;
        }
    }
}

/// Two of three clients reject a cluster: their relay says so once to the relay above, which counts one rejection and passes it on. The
/// next change arrives, and is acknowledged without an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_passes_it_on() {
    for transport in ["delta", "sotw"] {
        let mut plane = Plane::start().await;
        let upper = relay_of("upper", &plane.address.to_string(), "delta", transport);
        let lower = relay_of("lower", &upper.address.to_string(), transport, transport);
        let client = Client::connect(lower.address).await;
        let mut streams: Vec<Delta> = Vec::new();
        for _ in 0..3 {
            streams.push(client.open(&says("", None)).await);
        }
        let mut call = plane.call().await;
        call.delta().await;
        call.send(&clusters("1", &[("a", "1")], &[]));
        for (at, stream) in streams.iter_mut().enumerate() {
            let nonce = soon("a response", stream.message()).await.nonce;
            stream.says(&says(&nonce, (at > 0).then_some("a: no such port")));
        }
        let own = "2 of 3 clients (envoy 1.36.4) reject cluster a: a: no such port";
        let version = env!("CARGO_PKG_VERSION");
        let above = format!("1 of 1 client (distributary {version}) rejects clusters: {own}");
        assert_eq!(complaint(&mut call).await, above);
        let nacks = |relay: &Relay| relay.admin("/nacks").replace(' ', "");
        assert!(nacks(&lower).contains("\"reported\":\"20"), "{}", nacks(&lower));
        #[rustfmt::skip]
        let counts = [
            (&upper, "distributary_nacks_total{type=\"cds\"} ".to_owned()),
            (&lower, format!("distributary_rejections_reported_total{{server=\"{}\"}} ", upper.address)),
        ];
        for (relay, count) in counts {
            assert_eq!(relay.number(&count), 1.0, "{count}");
        }
        call.send(&clusters("2", &[("a", "2")], &[]));
        let answer = call.delta().await;
        assert_eq!((answer.response_nonce.as_str(), answer.error_detail), ("2", None));
        for stream in &mut streams {
            soon("the repaired cluster", stream.whole()).await;
        }
        until("that nobody rejects anything", || {
            nacks(&lower).contains("\"rejections\":[]")
        })
        .await;
    }
}
