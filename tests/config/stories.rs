// SPDX-License-Identifier: Apache-2.0
//! The shipped stories: each means what its comments say.

use std::time::Duration;

use distributary::classes::{Locality, Node};
use distributary::config::{Config, Credentials, Endpoint, Flags, ListenerTls, Reach, Transport};
use distributary::proto::envoy::config::core::v3 as core;

use crate::{first, folder, top};

fn story(name: &str) -> Config {
    let file = folder().join(name);
    let config = Config::load(Some(&file), &Flags::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.warnings, [""; 0], "{name}");
    config
}

fn uris<'a>(config: &'a Config, list: &[usize]) -> Vec<&'a str> {
    list.iter()
        .map(|at| config.upstream.servers[*at].uri.as_str())
        .collect()
}

/// F-11, A95: what each story without classes is about, as far as its keys show it.
#[test]
fn what_the_stories_are_about() {
    let tls = |config: &Config| matches!(first(config).credentials, Credentials::Tls(_));
    let config = story("sidecar.yaml");
    assert!(config.listeners.len() == 2 && tls(&config));
    // Only who shows a certificate is let in.
    let outside = story("outside.yaml");
    let asks = |tls: &Option<ListenerTls>| tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    assert!(outside.listeners.len() == 1 && asks(&outside.listeners[0].tls));
    let servers = &story("quickstart.yaml").upstream.servers;
    assert!(servers.len() == 1 && servers[0].reach == Reach::Files(folder().join("quickstart")));
    let zone = story("zone-tier.yaml");
    assert!(zone.timers.linger == Duration::from_secs(120) && tls(&zone));
    let regional = story("regional-tier.yaml");
    let grpc = first(&regional);
    assert!(matches!(&grpc.credentials, Credentials::Tls(tls) if tls.identity.is_some()) && grpc.token.is_some());
    assert!(regional.limits.requests_per_second == 0 && regional.timers.linger > zone.timers.linger);
    let front = story("front.yaml");
    assert!(matches!(first(&front).endpoint, Endpoint::Unix(_)) && first(&front).transport == Transport::Sotw);
    let config = story("authorities.yaml");
    let authorities = &config.upstream.authorities;
    assert_eq!(authorities["platform.example.com"].servers, config.upstream.top);
    let payments = &authorities["payments.example.com"];
    assert_eq!(uris(&config, &payments.servers), ["https://xds.payments.example.com"]);
    assert!(payments.client_listener_resource_name_template.ends_with("/team/%s"));
    let config = story("fallback.yaml");
    assert!(top(&config).len() == 2 && config.upstream.authorities.is_empty());
    let config = story("endpoints.yaml");
    let endpoints = &config.upstream.authorities["endpoints.example.com"];
    let expected = ["https://endpoints-1.example.com", "https://endpoints-2.example.com"];
    assert_eq!(uris(&config, &endpoints.servers), expected);
    let features = &config.upstream.servers[endpoints.servers[0]].features;
    assert!(endpoints.reachability_only && features.resource_timer_is_transient_error);
}

/// A client's node with these fields.
fn client(id: &str, cluster: &str, region: &str, metadata: &[(&str, &str)]) -> Node {
    let metadata = metadata
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Node {
        id: id.into(),
        cluster: cluster.into(),
        locality: Locality {
            region: region.to_owned(),
            ..Locality::default()
        },
        metadata: metadata.collect(),
        ..Node::default()
    }
}

/// Returns the node id that a story's control plane gets for a client.
fn shown(config: &Config, client: &Node) -> String {
    let relay = core::Node {
        id: "relay".to_owned(),
        ..core::Node::default()
    };
    config.classes.class(client, &[]).presented().over(&relay).id
}

/// K-28: the id is the one for which the control plane sets its snapshot.
#[test]
fn in_front_of_go_control_plane() {
    let config = story("go-control-plane.yaml");
    assert_eq!(shown(&config, &client("a", "edge", "eu", &[])), "edge/eu");
}

/// K-28: Envoy Gateway selects the content by the cluster and stores it by the id, so each cluster has an id of its own.
#[test]
fn in_front_of_envoy_gateway() {
    let config = story("envoy-gateway.yaml");
    let ids = ["one/gateway", "two/gateway"].map(|cluster| shown(&config, &client("pod", cluster, "", &[])));
    assert_ne!(ids[0], ids[1]);
    let grpc = first(&config);
    assert!(matches!(&grpc.credentials, Credentials::Tls(tls) if tls.server_name.as_deref() == Some("envoy-gateway")));
}

/// K-03: Contour gives everybody the same, so its Envoys share a view.
#[test]
fn in_front_of_contour() {
    let config = story("contour.yaml");
    let ids = ["envoy-1", "envoy-2"].map(|id| shown(&config, &client(id, "projectcontour", "", &[])));
    assert_eq!(ids[0], ids[1]);
    let grpc = first(&config);
    assert!(matches!(&grpc.credentials, Credentials::Tls(tls) if tls.server_name.as_deref() == Some("contour")));
}

/// K-03, K-28: replicas of a gateway share a view, each program of proxyless gRPC has its own, and the relay has a token. The warnings are
/// those of which the file speaks.
#[test]
fn in_front_of_istiod_with_tokens() {
    let config = Config::load(Some(&folder().join("istio-tokens.yaml")), &Flags::default()).unwrap();
    assert!(
        config.warnings.iter().all(|one| one.contains("choose `")),
        "{:?}",
        config.warnings
    );
    assert!(first(&config).token.is_some());
    let ids = ["router~10.0.0.1~gw-1.edge~edge", "router~10.0.0.2~gw-2.edge~edge"].map(|id| {
        shown(
            &config,
            &client(id, "edge", "", &[("NAMESPACE", "edge"), ("LABELS.istio", "in")]),
        )
    });
    assert_eq!(ids[0], ids[1]);
    let program = "sidecar~10.0.0.3~program-1.edge~edge.svc.cluster.local";
    assert_eq!(
        shown(&config, &client(program, "", "", &[("GENERATOR", "grpc")])),
        program
    );
}

/// K-03, K-28: istiod wants ids of a form of its own. Replicas of a gateway share a view, each sidecar has its own, and there are
/// warnings about the certificates, and that nobody shows who it is, as the file says.
#[test]
fn in_front_of_istiod() {
    let config = Config::load(Some(&folder().join("istio.yaml")), &Flags::default()).unwrap();
    assert_eq!(config.warnings.len(), 4, "{:?}", config.warnings);
    let labels = [
        ("NAMESPACE", "edge"),
        ("LABELS.app", "gw"),
        ("LABELS.istio", "in"),
        ("ISTIO_VERSION", "1.31.0"),
    ];
    let ids = ["router~10.0.0.1~gw-1.edge~edge", "router~10.0.0.2~gw-2.edge~edge"]
        .map(|id| shown(&config, &client(id, "gw.edge", "eu", &labels)));
    assert_eq!(ids, ["router~0.0.0.0~gw.in.1.31.0.eu..edge~edge.svc.cluster.local"; 2]);
    let sidecar = "sidecar~10.0.0.3~web-1.shop~shop.svc.cluster.local";
    assert_eq!(
        shown(
            &config,
            &client(
                sidecar,
                "web.shop",
                "eu",
                &[("NAMESPACE", "shop"), ("SERVICE_ACCOUNT", "web")]
            )
        ),
        sidecar
    );
}
