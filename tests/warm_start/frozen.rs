//! K-27: a relay whose process is stopped for longer than its timers, while its control plane and its clients go on.

use std::time::Duration;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

use crate::plane::{Call, Plane};
use crate::stage::{CDS, Client, Delta, EDS, Relay, Sotw, cluster, clusters, node, now};
use crate::state_of_the_world;

/// Longer than a timer may be late, and than all timers of [`relay`].
const FROZEN: Duration = Duration::from_millis(2500);
/// Several rounds, because the result may depend on which thread of the relay runs first.
const ROUNDS: usize = 3;

fn relay(name: &str, plane: &Plane) -> Relay {
    let text = format!(
        "upstream: {{xds_servers: [{{server_uri: '{}'}}]}}\nlisteners: [{{address: '127.0.0.1:0'}}]\nadmin: {{address: '127.0.0.1:0'}}\n\
         timers: {{does_not_exist: 1s, unanswered: 1s, keepalive: 1s, write_stall: 1s, order_gate: 1s}}\n",
        plane.address
    );
    Relay::run(name, &text)
}

fn endpoints(request: &DeltaDiscoveryRequest) -> DeltaDiscoveryResponse {
    let mut response = clusters(&format!("n{}", request.resource_names_subscribe.join(" ")), &[], &[]);
    response.type_url = EDS.to_owned();
    for name in &request.resource_names_subscribe {
        let mut resource = cluster(name, "1");
        if let Some(any) = &mut resource.resource {
            any.type_url = EDS.to_owned();
        }
        response.resources.push(resource);
    }
    response
}

fn wants(name: &str) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(Node { ..node() }),
        type_url: EDS.to_owned(),
        resource_names_subscribe: vec![name.to_owned()],
        ..Default::default()
    }
}

/// The next request that asks for something.
async fn question(call: &mut Call) -> DeltaDiscoveryRequest {
    loop {
        let request = call.delta().await;
        if request.response_nonce.is_empty() {
            return request;
        }
    }
}

/// Stops the relay's process until `meanwhile` has run, and for at least `FROZEN`.
async fn frozen(relay: &Relay, meanwhile: impl FnOnce()) {
    let begun = now();
    relay.signal("-STOP");
    meanwhile();
    // Real time must pass here.
    tokio::time::sleep_until((begun + FROZEN).into()).await;
    relay.signal("-CONT");
}

/// E-08, G-18: the relay reads the responses that came meanwhile before anything counts as missing or unanswered; no stream ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_meanwhile_is_heard() {
    let mut plane = Plane::start().await;
    let relay = relay("frozen", &plane);
    let client = Client::connect(relay.address).await;
    let mut call: Option<Call> = None;
    for round in 0..ROUNDS {
        let name = format!("e{round}");
        // A stream without a first response would end if the relay counted its request as unanswered.
        let mut fresh: Delta = client.open(&wants(&name)).await;
        let call = match &mut call {
            Some(call) => call,
            none => none.insert(plane.call().await),
        };
        let asked = question(call).await;
        assert_eq!(asked.resource_names_subscribe, [name.as_str()]);
        frozen(&relay, || call.send(&endpoints(&asked))).await;
        let got = fresh.first().await;
        assert_eq!((got.versions.len(), got.removed.len()), (1, 0), "round {round}");
        assert!(got.versions.contains_key(&name));
    }
    assert!(relay.admin("/metrics").contains("distributary_unanswered_total 0"));
    relay.line("the process did not run");
}

/// C-16: a wildcard does not count as complete while the relay has not read the rest of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_state_has_what_was_said_meanwhile() {
    for round in 0..ROUNDS {
        let mut plane = Plane::start().await;
        let relay = relay(&format!("frozen-{round}"), &plane);
        let client = Client::connect(relay.address).await;
        let mut sotw: Sotw = client.open(&state_of_the_world("")).await;
        let mut call = plane.call().await;
        let asked = call.delta().await;
        assert_eq!(asked.type_url, CDS);
        call.send(&clusters("n1", &[("a", "1")], &[]));
        assert_eq!(call.delta().await.response_nonce, "n1");
        frozen(&relay, || call.send(&clusters("n2", &[("b", "1")], &[]))).await;
        assert_eq!(sotw.next().await.resources.len(), 2, "round {round}");
    }
}
