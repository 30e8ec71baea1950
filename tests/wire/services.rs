// SPDX-License-Identifier: Apache-2.0
//! All services, both transports, both dialects.

use std::time::Duration;

use distributary::proto::envoy::service::discovery::v3::DiscoveryRequest;
use distributary::wire::message;
use distributary::xds::{Dialect, Reason, TypeUrl, Update};
use prost::Message as _;
use tonic::Code;

use crate::rest;
use crate::support::client::Half;
use crate::support::messages::{Subscriber, sotw};
use crate::support::polls::{self, Poller};
use crate::support::{ADS, CDS, EDS, Relay, says, until, wants_sotw};

/// The table of services as the xDS documents give it: service, resource type, methods by dialect.
#[rustfmt::skip]
const SERVICES: [(&str, &str, &str, &str, &str); 19] = [
    ("envoy.service.listener.v3.ListenerDiscoveryService", "envoy.config.listener.v3.Listener", "StreamListeners", "DeltaListeners", "FetchListeners"),
    ("envoy.service.route.v3.RouteDiscoveryService", "envoy.config.route.v3.RouteConfiguration", "StreamRoutes", "DeltaRoutes", "FetchRoutes"),
    ("envoy.service.route.v3.ScopedRoutesDiscoveryService", "envoy.config.route.v3.ScopedRouteConfiguration", "StreamScopedRoutes", "DeltaScopedRoutes", "FetchScopedRoutes"),
    ("envoy.service.route.v3.VirtualHostDiscoveryService", "envoy.config.route.v3.VirtualHost", "", "DeltaVirtualHosts", ""),
    ("envoy.service.cluster.v3.ClusterDiscoveryService", "envoy.config.cluster.v3.Cluster", "StreamClusters", "DeltaClusters", "FetchClusters"),
    ("envoy.service.endpoint.v3.EndpointDiscoveryService", "envoy.config.endpoint.v3.ClusterLoadAssignment", "StreamEndpoints", "DeltaEndpoints", "FetchEndpoints"),
    ("envoy.service.endpoint.v3.LocalityEndpointDiscoveryService", "envoy.config.endpoint.v3.LbEndpoint", "", "DeltaLocalityEndpoints", ""),
    ("envoy.service.secret.v3.SecretDiscoveryService", "envoy.extensions.transport_sockets.tls.v3.Secret", "StreamSecrets", "DeltaSecrets", "FetchSecrets"),
    ("envoy.service.runtime.v3.RuntimeDiscoveryService", "envoy.service.runtime.v3.Runtime", "StreamRuntime", "DeltaRuntime", "FetchRuntime"),
    ("envoy.service.extension.v3.ExtensionConfigDiscoveryService", "envoy.config.core.v3.TypedExtensionConfig", "StreamExtensionConfigs", "DeltaExtensionConfigs", "FetchExtensionConfigs"),
    ("ratelimit.service.ratelimit.v3.RateLimitConfigDiscoveryService", "ratelimit.config.ratelimit.v3.RateLimitConfig", "StreamRlsConfigs", "", "FetchRlsConfigs"),
    ("envoy.api.v2.ListenerDiscoveryService", "envoy.api.v2.Listener", "StreamListeners", "DeltaListeners", "FetchListeners"),
    ("envoy.api.v2.RouteDiscoveryService", "envoy.api.v2.RouteConfiguration", "StreamRoutes", "DeltaRoutes", "FetchRoutes"),
    ("envoy.api.v2.ScopedRoutesDiscoveryService", "envoy.api.v2.ScopedRouteConfiguration", "StreamScopedRoutes", "DeltaScopedRoutes", "FetchScopedRoutes"),
    ("envoy.api.v2.VirtualHostDiscoveryService", "envoy.api.v2.route.VirtualHost", "", "DeltaVirtualHosts", ""),
    ("envoy.api.v2.ClusterDiscoveryService", "envoy.api.v2.Cluster", "StreamClusters", "DeltaClusters", "FetchClusters"),
    ("envoy.api.v2.EndpointDiscoveryService", "envoy.api.v2.ClusterLoadAssignment", "StreamEndpoints", "DeltaEndpoints", "FetchEndpoints"),
    ("envoy.service.discovery.v2.SecretDiscoveryService", "envoy.api.v2.auth.Secret", "StreamSecrets", "DeltaSecrets", "FetchSecrets"),
    ("envoy.service.discovery.v2.RuntimeDiscoveryService", "envoy.service.discovery.v2.Runtime", "StreamRuntime", "DeltaRuntime", "FetchRuntime"),
];

const V2_ADS: &str = "envoy.service.discovery.v2.AggregatedDiscoveryService";

fn url(full_name: &str) -> String {
    format!("type.googleapis.com/{full_name}")
}

/// The first answer, an update, and the fields around the resources.
async fn subscribe_and_follow(relay: &Relay, path: &str, dialect: Dialect, full_name: &str, asked_type: &str) {
    let type_url = url(full_name);
    relay.put(&type_url, &["host/a"], "first");
    let call = relay.connect().await.call(path).await;
    assert_eq!(call.head.headers()["content-type"], "application/grpc", "{path}");
    let mut subscriber = Subscriber::new(call, dialect, asked_type);
    subscriber.subscribe(&["host/a"]);
    let got = subscriber.take().await;
    assert_eq!((&got.type_url, &got.bodies[..]), (&type_url, &["first".to_owned()][..]));
    assert!(!got.version.is_empty() && !got.nonce.is_empty(), "{path}");
    let nameless = path.contains("v2") && dialect == Dialect::Delta;
    let identifier = (!nameless).then_some("distributary/relay");
    assert_eq!(got.identifier.as_deref(), identifier, "{path}");
    relay.put(&type_url, &["host/a"], "second");
    let next = subscriber.take().await;
    assert_eq!(next.bodies, ["second"], "{path}");
    assert_ne!(next.nonce, got.nonce, "{path}");
}

/// A-T1, A-T2, A-01, A-03, A-14: every streaming method serves its type, named or not named in the request.
#[tokio::test]
async fn every_per_type_service_serves_its_type() {
    let relay = Relay::start();
    for (service, full_name, stream, delta, _) in SERVICES {
        for (method, dialect) in [(stream, Dialect::Sotw), (delta, Dialect::Delta)] {
            if !method.is_empty() {
                let path = format!("/{service}/{method}");
                subscribe_and_follow(&relay, &path, dialect, full_name, "").await;
                subscribe_and_follow(&relay, &path, dialect, full_name, &url(full_name)).await;
            }
        }
    }
    relay.settles_at(0).await;
}

/// aggregated streams of both transports carry any type, known or not.
#[tokio::test]
async fn aggregated_streams_carry_any_type() {
    let relay = Relay::start();
    for service in [ADS, V2_ADS] {
        for (method, dialect) in [("Stream", Dialect::Sotw), ("Delta", Dialect::Delta)] {
            let path = format!("/{service}/{method}AggregatedResources");
            for full_name in [
                "envoy.config.cluster.v3.Cluster",
                "envoy.api.v2.Cluster",
                "acme.Unknown",
            ] {
                subscribe_and_follow(&relay, &path, dialect, full_name, &url(full_name)).await;
            }
        }
    }
    relay.settles_at(0).await;
}

/// The unary methods answer once, with the first response of a stream; without names, with everything.
#[tokio::test]
async fn every_unary_method_answers_once() {
    let relay = Relay::start();
    for (service, full_name, _, _, fetch) in SERVICES.iter().filter(|service| !service.4.is_empty()) {
        relay.put(&url(full_name), &["a", "b"], "body");
        for (names, count) in [(&["a"][..], 1), (&[], 2)] {
            let path = format!("/{service}/{fetch}");
            let mut call = relay.connect().await.unary(&path, &wants_sotw("", names)).await;
            let got = sotw(call.next().await.unwrap());
            assert_eq!((got.type_url, got.bodies.len()), (url(full_name), count), "{service}");
            assert_eq!(call.end().await.code, 0, "{service}");
        }
    }
    relay.settles_at(0).await;
}

/// B-20, F-04, K-15: a unary call never invents an empty state. It waits until something is known, or for its deadline.
#[tokio::test]
async fn a_unary_call_waits_for_what_is_not_known_yet() {
    let relay = Relay::start();
    let path = "/envoy.service.endpoint.v3.EndpointDiscoveryService/FetchEndpoints";
    let client = relay.connect().await;

    let waits = || until(|| relay.view().demand().seats() == 2, || "nobody waits");
    let asked = wants_sotw("", &["late"]);
    let (mut late, ()) = tokio::join!(client.unary(path, &asked), async {
        waits().await;
        relay.put(EDS, &["late"], "here");
    });
    assert_eq!(sotw(late.next().await.unwrap()).bodies, ["here"]);
    assert_eq!(late.end().await.code, 0);
    relay.settles_at(0).await;

    // H-04: it is answered before its client gives up.
    let headers = [("content-type", "application/grpc"), ("grpc-timeout", "300m")];
    let half = Half::Unary(message(&wants_sotw("", &["never"]).encode_to_vec()));
    let mut never = client.request("POST", path, &headers, half).await.unwrap();
    says(&never.end().await, Code::Unavailable, "no upstream has answered");
    relay.settles_at(0).await;
}

/// H-06: a unary call and a poll of the same names give the same: what exists of them, once all of it is known, in one response.
#[tokio::test]
async fn a_unary_call_gives_what_a_poll_gives() {
    let relay = Relay::with(|plan| {
        plan.settings.timers.rest_poll = Duration::from_millis(300);
        plan.protocol.timers.unanswered = Duration::from_millis(300);
    });
    let clusters = "/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters";
    let endpoints = "/envoy.service.endpoint.v3.EndpointDiscoveryService/FetchEndpoints";
    rest::put(&relay, EDS, &["a", "b"], 1);
    let gone = Update::Absent("ghost".into(), Reason::Said);
    relay.publish(&TypeUrl::new(EDS), vec![gone]);
    let client = relay.connect().await;
    let fetch = async |path: &str, names: &[&str]| {
        let asked = DiscoveryRequest {
            version_info: "1".to_owned(),
            ..wants_sotw("", names)
        };
        let mut call = client.unary(path, &asked).await;
        let got = call.next().await.map(sotw).map_err(|ended| ended.code)?;
        assert_eq!(call.end().await.code, 0);
        Ok::<_, i32>((got.version, got.bodies.len()))
    };
    let poll = async |path: &str, names: &[&str]| {
        let mut poller = Poller::connect(relay.port()).await;
        let answer = poller.poll(path, &polls::request("1", names)).await;
        match answer.status {
            200 => {
                let (version, found) = answer.says();
                Ok((version, found.len()))
            }
            status => Err(status),
        }
    };
    for (names, count) in [
        (&["a"][..], 1),
        (&["a", "ghost"], 1),
        (&["ghost"], 0),
        (&["b", ""], 1),
        // K-15: the resources that exist, once the rest has timed out without an answer.
        (&["a", "unknown"], 1),
    ] {
        let fetched = fetch(endpoints, names).await.unwrap();
        assert_eq!(fetched.1, count, "{names:?}");
        assert_eq!(Ok(fetched), poll("/v3/discovery:endpoints", names).await, "{names:?}");
    }
    assert_eq!(fetch(endpoints, &["unknown"]).await, Err(14));
    assert_eq!(poll("/v3/discovery:endpoints", &["unknown"]).await, Err(503));
    // B-16: clients take what is missing in a full state for gone, so it is never incomplete.
    rest::put(&relay, CDS, &["a"], 1);
    let polled = poll(rest::CLUSTERS, &["a"]).await.map_err(|_| 0);
    assert_eq!(fetch(clusters, &["a"]).await, polled);
    relay.settles_at(0).await;
}

/// the response to a unary call has all resources, however many there are.
#[tokio::test]
async fn a_unary_call_is_one_response() {
    let relay = Relay::start();
    let names: Vec<String> = (0..2000).map(|at| format!("n{at:04}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    relay.put(EDS, &all, &"x".repeat(2000));
    let path = "/envoy.service.endpoint.v3.EndpointDiscoveryService/FetchEndpoints";
    let mut call = relay.connect().await.unary(path, &wants_sotw("", &all)).await;
    assert_eq!(sotw(call.next().await.unwrap()).bodies.len(), names.len());
    assert_eq!(call.end().await.code, 0);
}

/// without the v2 transport its methods are not served, and v3 is not affected.
#[tokio::test]
async fn the_v2_transport_can_be_switched_off() {
    let relay = Relay::with(|plan| plan.settings.transport_v2 = false);
    let client = relay.connect().await;
    let mut call = client
        .call("/envoy.api.v2.ClusterDiscoveryService/StreamClusters")
        .await;
    says(&call.end().await, Code::Unimplemented, "transport_v2");
    let path = "/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters";
    subscribe_and_follow(&relay, path, Dialect::Sotw, "envoy.config.cluster.v3.Cluster", CDS).await;
}

/// D-07: one connection carries many streams with the same node.
#[tokio::test]
async fn many_streams_on_one_connection_do_not_disturb_each_other() {
    let relay = Relay::start();
    relay.put(CDS, &["a"], "first");
    let client = relay.connect().await;
    let mut subscribers = Vec::new();
    for _ in 0..100 {
        let mut subscriber = client.subscriber(Dialect::Delta, CDS).await;
        subscriber.subscribe(&["*"]);
        assert_eq!(subscriber.take().await.bodies, ["first"]);
        subscribers.push(subscriber);
    }
    // One end, one reset: the others go on.
    subscribers[0].call.close_half();
    assert_eq!(subscribers[0].call.end().await.code, 0);
    subscribers[1].call.requests.send_reset(h2::Reason::CANCEL);
    relay.put(CDS, &["a"], "second");
    for subscriber in &mut subscribers[2..] {
        assert_eq!(subscriber.take().await.bodies, ["second"]);
    }
    relay.settles_at(98).await;
    let encoded = relay.shared.metrics.of(&TypeUrl::new(CDS)).encoded_bodies.get();
    assert_eq!(encoded, 2, "a body is encoded once for all");
}
