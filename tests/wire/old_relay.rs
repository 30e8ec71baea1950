// SPDX-License-Identifier: Apache-2.0
//! A relay of the version before as a client: what it sends that this version does not.

use std::collections::HashMap;

use distributary::classes::RELAYS;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use distributary::proto::google::protobuf::{ListValue, Struct, Value, value::Kind};
use distributary::wire::message;
use prost::Message;

use crate::support::client::Call;
use crate::support::messages::{Got, delta, node, sotw};
use crate::support::{CDS, Relay};

/// The locators of both kinds of requests, as the other relay knows them.
#[derive(Clone, PartialEq, Message)]
struct Locators {
    #[prost(message, repeated, tag = "7")]
    sotw: Vec<Locator>,
    #[prost(message, repeated, tag = "8")]
    delta: Vec<Locator>,
}

#[derive(Clone, PartialEq, Message)]
struct Locator {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(map = "string, string", tag = "2")]
    dynamic_parameters: HashMap<String, String>,
}

/// The same name for clients in two environments.
fn locators(name: &str) -> Vec<Locator> {
    let locator = |environment: &str| Locator {
        name: name.to_owned(),
        dynamic_parameters: [("env".to_owned(), environment.to_owned())].into(),
    };
    vec![locator("prod"), locator("test")]
}

/// The node of the other relay, which takes all variants of a name, and serves clients of its own.
fn other_relay() -> Node {
    let name = Value {
        kind: Some(Kind::StringValue("relay-0".to_owned())),
    };
    let list = Kind::ListValue(ListValue { values: vec![name] });
    let fields = [(RELAYS.to_owned(), Value { kind: Some(list) })].into();
    Node {
        metadata: Some(Struct { fields }),
        client_features: vec![
            "distributary.all-variants".to_owned(),
            "xds.config.resource-in-sotw".to_owned(),
        ],
        ..node()
    }
}

/// Sends a request with locators, which follow what else is in it.
fn send(call: &mut Call, request: &impl Message, locators: &Locators) {
    let mut bytes = request.encode_to_vec();
    bytes.extend(locators.encode_to_vec());
    call.send_bytes(message(&bytes));
}

/// F-16, TP2: an old relay is served as any other client. A locator counts as its name, whatever parameters it has and however many
/// there are, and the feature of taking all variants of a name changes nothing.
#[tokio::test]
async fn a_relay_of_the_version_before_is_served() {
    let relay = Relay::start();
    relay.put(CDS, &["a"], "first");
    relay.put(CDS, &["b"], "second");
    let client = relay.connect().await;

    let mut call = client.ads(xds::Dialect::Delta).await;
    let request = DeltaDiscoveryRequest {
        node: Some(other_relay()),
        type_url: CDS.to_owned(),
        resource_names_subscribe: vec!["b".to_owned()],
        ..Default::default()
    };
    let located = Locators {
        delta: locators("a"),
        ..Default::default()
    };
    send(&mut call, &request, &located);
    let heard = delta(call.next::<DeltaDiscoveryResponse>().await.unwrap());
    assert_eq!(heard.bodies, ["first", "second"]);
    // None of what it is sent is a variant.
    let acknowledged = DeltaDiscoveryRequest {
        type_url: CDS.to_owned(),
        response_nonce: heard.nonce,
        ..Default::default()
    };
    call.send(&acknowledged);
    relay.put(CDS, &["a"], "third");
    let heard = delta(call.next::<DeltaDiscoveryResponse>().await.unwrap());
    assert_eq!((heard.bodies, heard.removed), (vec!["third".to_owned()], Vec::new()));

    let mut call = client.ads(xds::Dialect::Sotw).await;
    let request = DiscoveryRequest {
        node: Some(other_relay()),
        type_url: CDS.to_owned(),
        ..Default::default()
    };
    let located = Locators {
        sotw: locators("a"),
        ..Default::default()
    };
    send(&mut call, &request, &located);
    let Got {
        bodies, version, nonce, ..
    } = sotw(call.next::<DiscoveryResponse>().await.unwrap());
    assert_eq!(bodies, ["third"]);
    let acknowledged = DiscoveryRequest {
        version_info: version,
        response_nonce: nonce,
        type_url: CDS.to_owned(),
        ..Default::default()
    };
    send(&mut call, &acknowledged, &located);
    assert!(call.is_silent().await, "the same locators ask for nothing new");
    relay.put(CDS, &["a"], "fourth");
    let heard = sotw(call.next::<DiscoveryResponse>().await.unwrap());
    assert_eq!(heard.bodies, ["fourth"]);
}
