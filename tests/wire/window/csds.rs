// SPDX-License-Identifier: Apache-2.0
//! CSDS, with the messages that its users send: grpcdebug, which asks nothing, and programs that ask about some nodes.

use std::time::Duration;

use distributary::proto::envoy::admin::v3::ClientResourceStatus;
use distributary::proto::envoy::service::status::v3::client_config::GenericXdsConfig;
use distributary::proto::envoy::service::status::v3::{
    ClientConfig, ClientStatusRequest, ClientStatusResponse, ConfigStatus,
};
use distributary::proto::envoy::r#type::matcher::v3::{
    NodeMatcher, RegexMatcher, StringMatcher, string_matcher::MatchPattern,
};
use distributary::xds::Dialect;
use serde_json::json;

use super::dump::publish;
use super::{Window, client, served};
use crate::access::govern;
use crate::rest::put;
use crate::support::client::{Call, Client};
use crate::support::polls::Poller;
use crate::support::{CDS, EDS, Relay};

const STREAM: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus";
const FETCH: &str = "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

fn about(pattern: MatchPattern, exclude_resource_contents: bool) -> ClientStatusRequest {
    let node_id = StringMatcher {
        match_pattern: Some(pattern),
        ..StringMatcher::default()
    };
    ClientStatusRequest {
        node_matchers: vec![NodeMatcher {
            node_id: Some(node_id),
            ..NodeMatcher::default()
        }],
        exclude_resource_contents,
        ..ClientStatusRequest::default()
    }
}

async fn ask(call: &mut Call, request: &ClientStatusRequest) -> Vec<ClientConfig> {
    call.send(request);
    call.next::<ClientStatusResponse>().await.unwrap().config
}

async fn over_admin(window: &Window) -> Client {
    Client::connect(window.0.socket().unwrap()).await
}

fn at<'a>(config: &'a ClientConfig, name: &str) -> &'a GenericXdsConfig {
    config.generic_xds_configs.iter().find(|one| one.name == name).unwrap()
}

/// A question without matchers has exactly one answer, the relay's own view; one with matchers has that of each client.
#[tokio::test]
async fn what_the_relay_has_and_what_clients_have() {
    let relay = Relay::start();
    put(&relay, CDS, &["a", "b"], 1);
    let window = Window::of(&relay);
    let _edge = served(&relay, Dialect::Delta, CDS, "edge-1", &["a", "c"]).await;
    window.until("edge-1", CDS, "SYNCED").await;
    let mut other = client(&relay, Dialect::Sotw, CDS, "other").await;
    other.subscribe(&["*"]);
    other.next().await.unwrap();
    other.nack("b: no such thing");

    let asking = over_admin(&window).await;
    let mut call = asking.call(STREAM).await;
    let own = ask(&mut call, &ClientStatusRequest::default()).await;
    assert_eq!(own.len(), 1, "grpcdebug needs exactly one");
    assert_eq!(own[0].node.as_ref().unwrap().id, "relay");
    let (a, c) = (at(&own[0], "a"), at(&own[0], "c"));
    assert_eq!(a.client_status(), ClientResourceStatus::Acked);
    assert_eq!(c.client_status(), ClientResourceStatus::Requested);
    assert!(a.xds_config.is_some() && !a.version_info.is_empty(), "{a:?}");
    assert!(a.last_updated.is_some(), "{a:?}");
    let again = ask(&mut call, &ClientStatusRequest::default()).await;
    assert_eq!(at(&again[0], "a").last_updated, a.last_updated, "nothing has changed");

    let found = loop {
        let found = ask(&mut call, &about(MatchPattern::Prefix("o".to_owned()), false)).await;
        if at(&found[0], "b").config_status() == ConfigStatus::Error {
            break found;
        }
    };
    assert_eq!(found.len(), 1);
    let (b, error) = (at(&found[0], "b"), at(&found[0], "b").error_state.clone().unwrap());
    assert_eq!(
        (&*error.details, &error.version_info),
        ("b: no such thing", &b.version_info)
    );
    assert!(error.failed_configuration.is_some() && b.xds_config.is_none(), "{b:?}");

    let bare = ask(&mut call, &about(MatchPattern::Contains("dge".to_owned()), true)).await;
    for (name, status) in [("a", ConfigStatus::Synced), ("c", ConfigStatus::NotSent)] {
        let one = at(&bare[0], name);
        assert_eq!((one.config_status(), one.xds_config.is_some()), (status, false));
    }
    let nobody = ask(&mut call, &about(MatchPattern::Exact("edge".to_owned()), false)).await;
    assert_eq!(nobody, []);
    let mut fetch = asking.unary(FETCH, &ClientStatusRequest::default()).await;
    assert_eq!(fetch.next::<ClientStatusResponse>().await.unwrap().config.len(), 1);
    let regex = |regex: &str| {
        let regex = regex.to_owned();
        about(MatchPattern::SafeRegex(RegexMatcher { regex }), true)
    };
    let named = async |text: &str| ask(&mut asking.call(STREAM).await, &regex(text)).await.len();
    // The whole id fits.
    assert_eq!((named("(edge|x)-[0-9]+").await, named("edge").await), (1, 0));
    for wrong in ["", "a(", "((a{99}){99}){99}"] {
        let mut wrong = asking.unary(FETCH, &regex(wrong)).await;
        wrong.end().await.assert(tonic::Code::InvalidArgument, false);
    }
}

/// The same as JSON; the names and values are those of the public API.
#[tokio::test]
async fn as_json() {
    let relay = Relay::start();
    put(&relay, EDS, &["e"], 1);
    let window = Window::of(&relay);
    let _edge = served(&relay, Dialect::Delta, EDS, "edge-1", &["e"]).await;
    window.until("edge-1", EDS, "SYNCED").await;
    let mut poller = Poller::connect(window.0.socket().unwrap()).await;
    let path = "/v3/discovery:client_status";
    let question = json!({"node_matchers": [{"node_id": {"exact": "edge-1"}}]}).to_string();
    let said = poller.post(path, &[], question.as_bytes()).await.json();
    let shown = &said["config"][0]["generic_xds_configs"][0];
    assert_eq!(
        json!([shown["type_url"], shown["config_status"]]),
        json!([EDS, "SYNCED"])
    );
    assert_eq!(shown["xds_config"]["cluster_name"], "e", "{said}");
    assert_eq!(said["config"][0]["node"]["cluster"], "edge", "{said}");
    let own = poller.post(path, &[], b"").await.json();
    assert_eq!(own["config"][0]["generic_xds_configs"][0]["client_status"], "ACKED");
    let wrong = poller.post(path, &[], b"{\"nodes\": []}").await;
    assert_eq!(wrong.status, 400);
    // Each client is compared with all matchers, and expressions are compiled first: neither is without a bound.
    let expression = json!({"node_id": {"safe_regex": {"regex": "edge-[0-9]"}}});
    let member = |value| json!({"node_metadatas": [{"path": [{"key": "a"}], "value": value}]});
    for (matchers, status) in [
        (vec![expression.clone(); 16], 200),
        (vec![expression.clone(); 17], 400),
        (vec![member(json!({"string_match": expression["node_id"]})); 17], 400),
        (vec![member(json!({"present_match": true})); 500], 200),
        (vec![member(json!({"present_match": true})); 501], 400),
    ] {
        let question = json!({"node_matchers": matchers}).to_string();
        let answer = poller.post(path, &[], question.as_bytes()).await;
        assert_eq!(answer.status, status, "{question}");
    }
}

/// No secret is in any answer, wherever the API hides it.
#[tokio::test]
async fn secrets_stay_secret() {
    let relay = Relay::start();
    let secret = json!({"@type": SDS, "name": "s", "tls_certificate": {
        "certificate_chain": {"inline_string": "SEEN"}, "private_key": {"inline_string": "HIDDEN"}}});
    let inline = json!({"@type": CDS, "name": "c", "transport_socket": {"name": "tls", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": {"tls_certificates": [{"private_key": {"inline_bytes": "SElEREVO"}}]}}}});
    publish(&relay, &[secret, inline]);
    let window = Window::of(&relay);
    let asking = over_admin(&window).await;
    let mut call = asking.unary(FETCH, &ClientStatusRequest::default()).await;
    let bytes = call.next_bytes().await.unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("SEEN") && has("[redacted]") && !has("HIDDEN"));
}

/// On a listener, who reads nothing of an answer loses it: its memory is needed for other answers.
#[tokio::test]
async fn an_answer_that_nobody_reads_ends() {
    let relay = Relay::with(|plan| plan.settings.timers.write_stall = Some(Duration::from_millis(300)));
    govern(&relay, "[{name: operators, dialects: csds}]");
    let names: Vec<String> = (0..2000).map(|n| format!("{n}-{}", "x".repeat(100))).collect();
    relay.put(CDS, &names.iter().map(String::as_str).collect::<Vec<_>>(), "1");
    let nothing = h2::client::Builder::new().initial_window_size(0).clone();
    let (client, _) = Client::with(&relay.address, &nothing).await;
    let mut call = client.unary(FETCH, &ClientStatusRequest::default()).await;
    let ended = call.end().await;
    assert!(ended.message.starts_with("reset: "), "{ended:?}");
    // Who reads gets all of it.
    let (client, _) = Client::with(&relay.address, &h2::client::Builder::new()).await;
    let mut call = client.unary(FETCH, &ClientStatusRequest::default()).await;
    assert_eq!(call.next::<ClientStatusResponse>().await.unwrap().config.len(), 1);
}

/// S-10: on a listener for clients only a rule that says so allows it, and only as long as it says so.
#[tokio::test]
async fn clients_may_not_ask_about_each_other() {
    let relay = Relay::start();
    let asked = async || {
        let mut call = relay.connect().await.call(STREAM).await;
        call.send(&ClientStatusRequest::default());
        call.next::<ClientStatusResponse>().await
    };
    asked().await.unwrap_err().assert(tonic::Code::PermissionDenied, false);
    for rules in [
        "[{name: all, identities: 'ip:127.*'}]",
        "[{name: some, identities: 'ip:127.*', dialects: [delta, sotw, rest]}]",
        "[{name: no, action: deny, dialects: csds}, {name: later, dialects: csds}]",
    ] {
        govern(&relay, rules);
        asked().await.unwrap_err().assert(tonic::Code::PermissionDenied, false);
    }
    govern(&relay, "[{name: operators, identities: 'ip:127.*', dialects: csds}]");
    let mut call = relay.connect().await.call(STREAM).await;
    for _ in 0..2 {
        assert_eq!(ask(&mut call, &ClientStatusRequest::default()).await.len(), 1);
    }
    govern(&relay, "[{name: all}]");
    call.send(&ClientStatusRequest::default());
    call.end().await.assert(tonic::Code::PermissionDenied, false);
    // The rule for questions gives no right to resources, and the other way round.
    govern(&relay, "[{name: operators, dialects: csds}]");
    let mut edge = client(&relay, Dialect::Delta, CDS, "edge-1").await;
    edge.subscribe(&["*"]);
    edge.next()
        .await
        .unwrap_err()
        .assert(tonic::Code::PermissionDenied, false);
}
