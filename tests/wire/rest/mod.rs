// SPDX-License-Identifier: Apache-2.0
//! Clients that poll, on real sockets: HTTP and JSON. The transcripts test what each poll is answered and when.

mod bad_input;
mod many;

use std::time::Duration;

use distributary::json::{Bounds, Schemas, Tree, Unknown};
use distributary::proto::google::protobuf::Any;
use distributary::xds::{TypeUrl, Update};
use serde_json::{Value, json};

use crate::support::client::{Call, Client, Half};
use crate::support::polls::{Poller, request};
use crate::support::{CDS, EDS, Plan, Relay, now, resource, until};

pub(crate) const CLUSTERS: &str = "/v3/discovery:clusters";
/// A hold time that no test reaches: the polls end for another reason.
const LONG: Duration = Duration::from_secs(600);

pub(crate) fn hold(hold: Duration) -> impl FnOnce(&mut Plan) {
    move |plan| plan.settings.timers.rest_poll = hold
}

/// A resource that is written as JSON.
pub(crate) fn any(json: &Value) -> Any {
    let tree = Tree::json(json.to_string().as_bytes(), Bounds::FILE).unwrap();
    Schemas::standard().resource(&tree, "", Unknown::Deny).unwrap().value
}

/// Puts clusters with this timeout in seconds, or endpoints of these names.
pub(crate) fn put(relay: &Relay, type_url: &str, names: &[&str], content: u32) {
    let kind = TypeUrl::new(type_url);
    let one = |name: &&str| {
        let json = if type_url == EDS {
            json!({"@type": EDS, "cluster_name": name, "policy": {"overprovisioning_factor": content}})
        } else {
            json!({"@type": CDS, "name": name, "connect_timeout": format!("{content}s")})
        };
        Update::Put(resource(&kind, name, &any(&json).value), None)
    };
    relay.publish(&kind, names.iter().map(one).collect());
}

/// Asks for cluster `a` over HTTP/2, with these headers.
pub(crate) async fn poll(client: &Client, more: &[(&str, &str)]) -> Call {
    let headers = [&[("content-type", "application/json")], more].concat();
    let half = Half::Unary(request("", &["a"]).into());
    client.request("POST", CLUSTERS, &headers, half).await.unwrap()
}

/// H-01, H-02: the path determines the type, and the answer is JSON. The transcripts test which content is new for which client.
#[tokio::test]
async fn a_poll_is_answered_with_what_is_new() {
    let relay = Relay::with(hold(LONG));
    put(&relay, CDS, &["a", "b"], 1);
    let mut poller = Poller::connect(relay.port()).await;
    let answer = poller.poll(CLUSTERS, &request("", &[])).await;
    let (version, names) = answer.says();
    assert_eq!(names, ["a", "b"]);
    let json = answer.json();
    assert_eq!((json["type_url"].as_str(), version.len()), (Some(CDS), 32));
    assert_eq!(json["resources"][0]["connect_timeout"], "1s");
    assert_eq!(json["control_plane"]["identifier"], "distributary/relay");
    answer.has("content-type: application/json");
    // The type in the body does not count.
    let other = json!({"node": {"id": "x"}, "type_url": EDS, "resourceNames": ["b"]}).to_string();
    assert_eq!(poller.poll(CLUSTERS, &other).await.says().1, ["b"]);
}

/// H-02, H-04: a client that has everything waits until its hold time is over, and is answered that nothing is new.
#[tokio::test]
async fn a_client_that_is_up_to_date() {
    let relay = Relay::with(hold(Duration::from_millis(100)));
    put(&relay, CDS, &["a"], 1);
    let mut poller = Poller::connect(relay.port()).await;
    let (version, _) = poller.poll(CLUSTERS, &request("", &[])).await.says();
    let asked = now();
    let answer = poller.poll(CLUSTERS, &request(&version, &[])).await;
    assert_eq!((answer.status, answer.body.len()), (304, 0));
    assert!(asked.elapsed() >= Duration::from_millis(100));
}

/// H-02, K-15: if no upstream has answered, the response says so and when to retry.
#[tokio::test]
async fn nobody_has_answered() {
    let relay = Relay::with(hold(Duration::from_millis(50)));
    let mut poller = Poller::connect(relay.port()).await;
    let answer = poller.poll(CLUSTERS, &request("5", &[])).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    let json = answer.json();
    assert!(json["error"].as_str().unwrap().contains("no upstream has answered"));
    answer.has("retry-after: 1");
    put(&relay, CDS, &[], 0);
    let (version, names) = poller.poll(CLUSTERS, &request("5", &[])).await.says();
    assert_eq!((version.as_str(), names.len()), ("0".repeat(32).as_str(), 0));
}

/// Clients that poll for the same get the same bytes, which are written once.
#[tokio::test]
async fn replies_are_written_once() {
    let relay = Relay::with(hold(LONG));
    put(&relay, CDS, &["a", "b", "c"], 1);
    for _ in 0..5 {
        let mut poller = Poller::connect(relay.port()).await;
        assert_eq!(poller.poll(CLUSTERS, &request("", &[])).await.says().1.len(), 3);
        assert_eq!(poller.poll(CLUSTERS, &request("", &["b"])).await.says().1.len(), 1);
    }
    let [texts, replies] = relay.shared.library.written();
    assert_eq!((texts.computed, replies.computed, replies.asked), (3, 2, 10));
    put(&relay, CDS, &["b"], 2);
    let mut poller = Poller::connect(relay.port()).await;
    poller.poll(CLUSTERS, &request("", &[])).await;
    let [texts, replies] = relay.shared.library.written();
    // What changed is written, and nothing else.
    assert_eq!((texts.computed, replies.computed), (4, 3));
}

/// H-02, K-26: polls that wait when the relay stops are answered before it exits.
#[tokio::test]
async fn a_drain_answers_who_waits() {
    let relay = Relay::with(hold(LONG));
    put(&relay, CDS, &["a"], 1);
    let mut poller = Poller::connect(relay.port()).await;
    let (version, _) = poller.poll(CLUSTERS, &request("", &[])).await.says();
    let body = request(&version, &[]);
    poller.send(CLUSTERS, &[], body.as_bytes()).await;
    until(|| relay.view().demand().seats() == 2, || "nobody polls").await;
    relay.begin_drain(LONG);
    assert_eq!(poller.answer().await.status, 304);
    until(|| relay.open() == (0, 0), || "connections stay").await;
}

/// A client that goes away while it waits leaves nothing behind.
#[tokio::test]
async fn a_client_that_goes_away() {
    let relay = Relay::with(hold(LONG));
    let mut poller = Poller::connect(relay.port()).await;
    poller.send(CLUSTERS, &[], request("", &[]).as_bytes()).await;
    until(|| relay.view().demand().seats() == 2, || "nobody polls").await;
    drop(poller);
    relay.settles_at(0).await;
}

/// H-01: polls work over HTTP/2 too, beside gRPC on the same connection; v2 and v3 have their own paths.
#[tokio::test]
async fn over_http_2_and_of_the_second_version() {
    let relay = Relay::with(hold(LONG));
    put(&relay, CDS, &["a"], 1);
    let client = relay.connect().await;
    let headers = [("content-type", "application/json; charset=utf-8")];
    let half = Half::Unary(request("", &[]).into());
    let mut call = client.request("POST", CLUSTERS, &headers, half).await.unwrap();
    assert_eq!(call.head.status(), 200);
    let body = call.responses.data().await.unwrap().unwrap();
    let json: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(json["resources"][0]["name"], "a");

    let v2 = "type.googleapis.com/envoy.api.v2.Cluster";
    let kind = TypeUrl::new(v2);
    // Field 1 is the name, `a`, in v2 and v3.
    relay.publish(&kind, vec![Update::Put(resource(&kind, "a", b"\x0a\x01a"), None)]);
    let mut poller = Poller::connect(relay.port()).await;
    let answer = poller.poll("/v2/discovery:clusters", &request("", &[])).await;
    assert_eq!(answer.json()["type_url"], v2);
}
