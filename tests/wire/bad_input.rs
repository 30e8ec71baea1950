//! Bad input from clients: a clear error or a bound, and nobody else notices.

use std::collections::BTreeMap;

use distributary::cache::{Classes, Rule, Selector};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use distributary::proto::google::protobuf::{Struct, Value, value::Kind};
use distributary::wire::message;
use distributary::xds::{Dialect, TypeUrl};
use prost::Message;

use crate::support::client::{Call, Client, Ended};
use crate::support::messages::{Subscriber, node, sotw};
use crate::support::{CDS, EDS, Plan, Relay};

const BOTH: [Dialect; 2] = [Dialect::Sotw, Dialect::Delta];

const fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
        Dialect::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    }
}

/// A relay with a client that behaves, on whom nothing that others do may show.
struct World {
    relay: Relay,
    bystander: Subscriber,
    /// On whose connection the mischief happens.
    client: Client,
    version: u32,
}

impl World {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn with(plan: impl FnOnce(&mut Plan)) -> Self {
        let relay = Relay::with(plan);
        relay.put(CDS, &["bystander"], "0");
        let call = relay.connect().await.call(path(Dialect::Delta)).await;
        let mut bystander = Subscriber::new(call, Dialect::Delta, CDS);
        bystander.subscribe(&["bystander"]);
        assert_eq!(bystander.take().await.bodies, ["0"]);
        let client = relay.connect().await;
        Self {
            relay,
            bystander,
            client,
            version: 0,
        }
    }

    async fn call(&self, dialect: Dialect) -> Call {
        self.client.call(path(dialect)).await
    }

    async fn subscriber(&self, dialect: Dialect, type_url: &str) -> Subscriber {
        Subscriber::new(self.call(dialect).await, dialect, type_url)
    }

    /// The bystander and the connection are as they were, and nothing of anybody else is left.
    async fn is_unharmed(&mut self) {
        self.version += 1;
        let body = self.version.to_string();
        self.relay.put(CDS, &["bystander"], &body);
        assert_eq!(self.bystander.take().await.bodies, [body]);
        self.relay.settles_at(1).await;
        assert_eq!(self.relay.open().1, 2, "the connection goes on");
    }
}

fn sotw_request(type_url: &str, names: Vec<String>) -> DiscoveryRequest {
    DiscoveryRequest {
        node: Some(node()),
        type_url: type_url.to_owned(),
        resource_names: names,
        ..Default::default()
    }
}

fn delta_request(type_url: &str, names: Vec<String>) -> DeltaDiscoveryRequest {
    DeltaDiscoveryRequest {
        node: Some(node()),
        type_url: type_url.to_owned(),
        resource_names_subscribe: names,
        ..Default::default()
    }
}

fn encoded(dialect: Dialect, type_url: &str, names: Vec<String>) -> Vec<u8> {
    match dialect {
        Dialect::Sotw => sotw_request(type_url, names).encode_to_vec(),
        Dialect::Delta => delta_request(type_url, names).encode_to_vec(),
    }
}

async fn refused(world: &World, dialect: Dialect, request: &[u8], code: i32, word: &str) {
    let mut call = world.call(dialect).await;
    call.send_bytes(message(request));
    let Ended { code: got, message } = call.end().await;
    assert_eq!(got, code, "{dialect:?}: {message}");
    assert!(message.contains(word), "{dialect:?}: `{message}` does not say `{word}`");
}

#[tokio::test]
async fn garbage_and_truncated_protobuf() {
    let mut world = World::new().await;
    for dialect in BOTH {
        let good = encoded(dialect, CDS, vec!["a".repeat(300)]);
        refused(&world, dialect, &good[..good.len() - 1], 3, "protobuf").await;
        refused(&world, dialect, &[0xff; 64], 3, "protobuf").await;
        // The right wire format, but a name that is no text, and a node that is no node.
        refused(&world, dialect, &[0x1a, 1, 0xff], 3, "decoded").await;
        let node_field = if dialect == Dialect::Sotw { 0x12 } else { 0x0a };
        refused(&world, dialect, &[node_field, 2, 0x0a, 200], 3, "decoded").await;
    }
    world.is_unharmed().await;
}

/// A-03, B-01.
#[tokio::test]
async fn requests_that_do_not_say_what_they_must() {
    let mut world = World::new().await;
    for dialect in BOTH {
        refused(
            &world,
            dialect,
            &encoded(dialect, "", Vec::new()),
            3,
            "type_url is empty",
        )
        .await;
    }
    let anonymous = DiscoveryRequest {
        node: None,
        ..sotw_request(CDS, Vec::new())
    }
    .encode_to_vec();
    refused(&world, Dialect::Sotw, &anonymous, 3, "node").await;
    let anonymous = DeltaDiscoveryRequest {
        node: None,
        ..delta_request(CDS, Vec::new())
    }
    .encode_to_vec();
    refused(&world, Dialect::Delta, &anonymous, 3, "node").await;
    for method in ["StreamClusters", "DeltaClusters"] {
        let mut call = world
            .client
            .call(&format!("/envoy.service.cluster.v3.ClusterDiscoveryService/{method}"))
            .await;
        let dialect = if method == "DeltaClusters" {
            Dialect::Delta
        } else {
            Dialect::Sotw
        };
        call.send_bytes(message(&encoded(dialect, EDS, Vec::new())));
        let ended = call.end().await;
        assert_eq!(ended.code, 3);
        assert!(
            ended.message.contains("ClusterLoadAssignment") && ended.message.contains("Cluster service"),
            "{}",
            ended.message
        );
    }
    world.is_unharmed().await;
}

/// `limits.request`: refused by its prefix, before anything is gathered.
#[tokio::test]
async fn a_request_of_17_mib() {
    let mut world = World::new().await;
    for dialect in BOTH {
        let mut call = world.call(dialect).await;
        call.send_bytes(vec![0, 1, 0x10, 0, 0]);
        let ended = call.end().await;
        assert_eq!(ended.code, 8);
        assert!(
            ended.message.contains("limits.request") && ended.message.contains("16777216"),
            "{}",
            ended.message
        );
        refused(
            &world,
            dialect,
            &encoded(dialect, CDS, vec!["x".repeat(17 << 20)]),
            8,
            "limits.request",
        )
        .await;
    }
    world.is_unharmed().await;
}

#[tokio::test]
async fn a_million_names() {
    let mut world = World::new().await;
    let names: Vec<String> = (0..1_000_000).map(|n| format!("n{n}")).collect();
    for dialect in BOTH {
        refused(
            &world,
            dialect,
            &encoded(dialect, EDS, names.clone()),
            8,
            "limits.names_per_stream",
        )
        .await;
        // Empty names cost least on the wire and most in memory.
        let empty: Vec<u8> = [0x1a, 0].repeat(8 << 20);
        refused(&world, dialect, &empty[..16 << 20], 8, "limits.names_per_stream").await;
    }
    // One request after the other is no way around.
    let mut call = world.call(Dialect::Delta).await;
    for part in names.chunks(150_000).take(2) {
        call.send(&delta_request(EDS, part.to_vec()));
    }
    let ended = call.end().await;
    assert!(
        ended.code == 8 && ended.message.contains("limits.names_per_stream"),
        "{ended:?}"
    );
    drop(call);
    world.is_unharmed().await;
    assert_eq!(world.relay.view().seats(), 2);
}

#[tokio::test]
async fn a_million_initial_versions() {
    let mut world = World::new().await;
    let initial_resource_versions: BTreeMap<_, _> = (0..1_000_000).map(|n| (format!("n{n}"), String::new())).collect();
    let request = DeltaDiscoveryRequest {
        initial_resource_versions,
        ..delta_request(CDS, vec!["*".to_owned()])
    };
    refused(
        &world,
        Dialect::Delta,
        &request.encode_to_vec(),
        8,
        "limits.names_per_stream",
    )
    .await;
    world.is_unharmed().await;
}

/// F-01: a name is any text but the empty one, and not too long.
#[tokio::test]
async fn strange_names() {
    let mut world = World::new().await;
    for dialect in BOTH {
        refused(
            &world,
            dialect,
            &encoded(dialect, EDS, vec!["x".repeat(1 << 20)]),
            8,
            "limits.name_bytes",
        )
        .await;
        refused(&world, dialect, &encoded(dialect, EDS, vec![String::new()]), 3, "empty").await;
        refused(
            &world,
            dialect,
            &encoded(dialect, &"t".repeat(1 << 20), Vec::new()),
            8,
            "limits.name_bytes",
        )
        .await;
        let strange = "\0*\u{202e}\n\"'%s\u{1F980}";
        let mut subscriber = world.subscriber(dialect, EDS).await;
        subscriber.subscribe(&[strange]);
        world.relay.put(EDS, &[strange], "found");
        assert_eq!(subscriber.take().await.bodies, ["found"]);
    }
    world.is_unharmed().await;
}

#[tokio::test]
async fn a_hundred_thousand_types() {
    let mut world = World::new().await;
    for dialect in BOTH {
        let mut call = world.call(dialect).await;
        for n in 0..100_000 {
            call.send_bytes(message(&encoded(
                dialect,
                &format!("type.googleapis.com/acme.T{n}"),
                vec!["a".to_owned()],
            )));
        }
        let ended = call.end().await;
        assert!(
            ended.code == 8 && ended.message.contains("limits.types_per_stream"),
            "{ended:?}"
        );
    }
    world.is_unharmed().await;
}

#[tokio::test]
async fn a_mebibyte_of_node() {
    let mut world = World::new().await;
    let text = Value {
        kind: Some(Kind::StringValue("x".repeat(1 << 20))),
    };
    let metadata = Struct {
        fields: [("key".to_owned(), text)].into(),
    };
    let node = Some(Node {
        metadata: Some(metadata),
        ..node()
    });
    let request = DiscoveryRequest {
        node: node.clone(),
        ..sotw_request(CDS, Vec::new())
    };
    refused(&world, Dialect::Sotw, &request.encode_to_vec(), 8, "limits.node_bytes").await;
    let request = DeltaDiscoveryRequest {
        node,
        ..delta_request(CDS, Vec::new())
    };
    refused(&world, Dialect::Delta, &request.encode_to_vec(), 8, "limits.node_bytes").await;
    world.is_unharmed().await;
}

/// B-05, B-08, B-25, C-03: nonces that are not this stream's are neither ACK nor NACK, and what they subscribe counts.
#[tokio::test]
async fn foreign_nonces_and_acks_of_nothing() {
    let mut world = World::new().await;
    world.relay.put(EDS, &["a", "b"], "body");
    for dialect in BOTH {
        let mut other = world.subscriber(dialect, EDS).await;
        other.subscribe(&["a"]);
        let foreign = other.take().await;

        let mut subscriber = world.subscriber(dialect, EDS).await;
        subscriber.nonce.clone_from(&foreign.nonce);
        subscriber.version.clone_from(&foreign.version);
        // Before any response: it is the first request of a stream, whatever it says.
        subscriber.subscribe(&["a"]);
        assert_eq!(subscriber.take().await.bodies, ["body"], "{dialect:?}");
        subscriber.nonce.clone_from(&foreign.nonce);
        subscriber.nack("not mine");
        subscriber.subscribe(&["b"]);
        let got = subscriber.take().await;
        assert!(!got.bodies.is_empty(), "{dialect:?}");
        assert_eq!(got.nonce[..8], subscriber.nonce[..8]);
        assert_ne!(got.nonce[..8], foreign.nonce[..8], "prefixes differ between streams");
    }
    let mut ack = world.call(Dialect::Delta).await;
    let request = DeltaDiscoveryRequest {
        response_nonce: "00000000-1".to_owned(),
        ..delta_request(EDS, Vec::new())
    };
    ack.send(&request);
    assert!(ack.is_silent().await);
    drop(ack);
    world.is_unharmed().await;
    let nacks = world.relay.shared.metrics.of(&TypeUrl::new(EDS)).nacks.get();
    assert_eq!(nacks, 0, "a foreign nonce rejects nothing");
}

/// B-22, K-08: whoever rejects everything gets exactly one response for each distinct content.
#[tokio::test]
async fn nack_storms() {
    let mut world = World::new().await;
    for dialect in BOTH {
        world.relay.put(EDS, &["bad"], "0");
        let mut storm = world.subscriber(dialect, EDS).await;
        storm.subscribe(&["bad"]);
        for content in 1..=20 {
            let body = (content - 1).to_string();
            assert_eq!(storm.next().await.unwrap().bodies, [body], "{dialect:?}");
            for _ in 0..50 {
                storm.nack("never");
            }
            world.relay.put(EDS, &["bad"], &content.to_string());
        }
        assert_eq!(storm.next().await.unwrap().bodies, ["20"], "{dialect:?}");
        storm.nack("never");
        assert!(storm.call.is_silent().await, "{dialect:?}");
        drop(storm);
        world.is_unharmed().await;
    }
    let eds = world.relay.shared.metrics.of(&TypeUrl::new(EDS));
    assert_eq!(eds.responses.get(), 2 * 21);
}

/// B-15, K-21: flapping ends in the state that was asked for last, and leaves nothing behind.
#[tokio::test]
async fn flapping() {
    let mut world = World::new().await;
    world.relay.put(EDS, &["a"], "body");
    for dialect in BOTH {
        let mut flapping = world.subscriber(dialect, EDS).await;
        for _ in 0..300 {
            flapping.subscribe(&["a"]);
            flapping.unsubscribe(&["a"]);
        }
        flapping.subscribe(&["a"]);
        assert!(flapping.next().await.is_ok());
    }
    world.is_unharmed().await;
}

/// B-24, L-8: a client that never acknowledges has one response, and then the latest state.
#[tokio::test]
async fn a_client_that_never_acknowledges() {
    let mut world = World::new().await;
    for dialect in BOTH {
        world.relay.put(EDS, &["a"], "first");
        let mut lazy = world.subscriber(dialect, EDS).await;
        lazy.subscribe(&["a"]);
        assert_eq!(lazy.next().await.unwrap().bodies, ["first"]);
        for version in 0..50 {
            world.relay.put(EDS, &["a"], &version.to_string());
        }
        assert!(lazy.call.is_silent().await, "{dialect:?}");
        lazy.ack();
        assert_eq!(lazy.take().await.bodies, ["49"], "{dialect:?}");
    }
    world.is_unharmed().await;
}

/// B-01: the node of the first request counts.
#[tokio::test]
async fn a_node_that_changes() {
    let mut world = World::with(by_cluster).await;
    let mut call = world.call(Dialect::Sotw).await;
    world.relay.put(EDS, &["a"], "of the default class");
    let first = Node {
        cluster: "one".to_owned(),
        ..node()
    };
    call.send(&DiscoveryRequest {
        node: Some(first),
        ..sotw_request(EDS, vec!["a".to_owned()])
    });
    assert!(call.is_silent().await, "another class than that of the empty cluster");
    let views = world.relay.shared.scopes.all().len();
    for n in 0..100 {
        let changed = Node {
            cluster: format!("other{n}"),
            ..node()
        };
        call.send(&DiscoveryRequest {
            node: Some(changed),
            ..sotw_request(EDS, vec!["a".to_owned()])
        });
    }
    assert!(call.is_silent().await);
    assert_eq!(world.relay.shared.scopes.all().len(), views);
    drop(call);
    let mut call = world.call(Dialect::Sotw).await;
    call.send(&sotw_request(EDS, vec!["a".to_owned()]));
    assert_eq!(sotw(call.next().await.unwrap()).bodies, ["of the default class"]);
    drop(call);
    world.is_unharmed().await;
}

fn by_cluster(plan: &mut Plan) {
    plan.classes = Classes::new(vec![Rule {
        key: vec![Selector::Cluster],
        ..Rule::default()
    }]);
    plan.views = 8;
    plan.names_per_view = 1000;
}

/// `limits.views`, `limits.names_per_view`: values that clients invent end at a bound that says its name.
#[tokio::test]
async fn invented_clusters_and_names() {
    let mut world = World::with(by_cluster).await;
    let mut calls = Vec::new();
    let mut refusals = 0;
    for n in 0..20 {
        let invented = Node {
            cluster: format!("invented{n}"),
            ..node()
        };
        let mut call = world.call(Dialect::Sotw).await;
        call.send(&DiscoveryRequest {
            node: Some(invented),
            ..sotw_request(EDS, vec!["a".to_owned()])
        });
        match tokio::time::timeout(std::time::Duration::from_millis(100), call.next_bytes()).await {
            Ok(ended) => {
                let ended = ended.unwrap_err();
                assert!(
                    ended.code == 8 && ended.message.contains("limits.views of 8"),
                    "{ended:?}"
                );
                refusals += 1;
            }
            Err(_) => calls.push(call),
        }
    }
    assert!(world.relay.shared.scopes.all().len() <= 8);
    assert!(refusals >= 12, "{refusals} of 20 refused");
    drop(calls);

    let mut call = world.call(Dialect::Delta).await;
    for part in 0..20 {
        let names = (0..100).map(|n| format!("{part}-{n}")).collect();
        call.send(&delta_request(EDS, names));
    }
    let ended = call.end().await;
    assert!(
        ended.code == 8 && ended.message.contains("limits.names_per_view of 1000"),
        "{ended:?}"
    );
    drop(call);
    world.is_unharmed().await;
}

/// `limits.streams_per_connection`: more wait on the client's side, and a client that does not wait is refused.
#[tokio::test]
async fn ten_thousand_streams_on_one_connection() {
    let mut world = World::with(|plan| plan.settings.limits.streams_per_connection = 500).await;
    let mut calls = Vec::new();
    for _ in 0..500 {
        let mut call = world.call(Dialect::Delta).await;
        call.send(&delta_request(CDS, vec!["bystander".to_owned()]));
        calls.push(call);
    }
    let more = world.client.clone();
    let more = crate::support::spawn(async move {
        for _ in 0..9_500 {
            drop(more.call(path(Dialect::Delta)).await);
        }
    });
    for call in &mut calls {
        assert!(call.next_bytes().await.is_ok());
    }
    assert_eq!(world.relay.open().0, 501);
    assert!(!more.is_finished());
    drop(calls);
    tokio::time::timeout(crate::support::PATIENCE * 2, more)
        .await
        .unwrap()
        .unwrap();
    world.is_unharmed().await;
}
