//! The shipped stories: each means what its comments say.

use std::time::Duration;

use distributary::config::{Config, Credentials, Endpoint, Flags, Source, Transport};

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

#[test]
fn sidecar() {
    let config = story("sidecar.yaml");
    assert_eq!(config.listeners.len(), 2);
    assert!(matches!(first(&config).credentials, Credentials::Tls(_)));
}

#[test]
fn quick_start() {
    let config = story("quickstart.yaml");
    let [server] = &config.upstream.servers[..] else {
        panic!("one source")
    };
    assert_eq!(server.source, Source::Files("config/quickstart".into()));
}

#[test]
fn zone_tier() {
    let config = story("zone-tier.yaml");
    assert_eq!(config.timers.linger, Duration::from_secs(120));
    assert!(matches!(first(&config).credentials, Credentials::Tls(_)));
}

#[test]
fn regional_tier() {
    let config = story("regional-tier.yaml");
    let grpc = first(&config);
    assert!(matches!(&grpc.credentials, Credentials::Tls(tls) if tls.identity.is_some()));
    assert!(grpc.token.is_some());
    assert_eq!(config.limits.requests_per_second, 0);
    assert!(config.timers.linger > story("zone-tier.yaml").timers.linger);
}

#[test]
fn front_of_a_control_plane() {
    let config = story("front.yaml");
    let grpc = first(&config);
    assert!(matches!(grpc.endpoint, Endpoint::Unix(_)));
    assert_eq!(grpc.transport, Transport::Sotw);
}

/// F-11: who answers for which authority.
#[test]
fn two_authorities() {
    let config = story("authorities.yaml");
    let authorities = &config.upstream.authorities;
    assert_eq!(authorities["platform.example.com"].servers, config.upstream.top);
    let payments = &authorities["payments.example.com"];
    assert_eq!(uris(&config, &payments.servers), ["https://xds.payments.example.com"]);
    assert!(payments.client_listener_resource_name_template.ends_with("/team/%s"));
}

#[test]
fn a_second_control_plane() {
    let config = story("fallback.yaml");
    assert_eq!(top(&config).len(), 2);
    assert!(config.upstream.authorities.is_empty());
}

/// A95: endpoints under an authority of their own.
#[test]
fn endpoints_on_their_own() {
    let config = story("endpoints.yaml");
    let endpoints = &config.upstream.authorities["endpoints.example.com"];
    assert!(endpoints.reachability_only);
    assert_eq!(
        uris(&config, &endpoints.servers),
        ["https://endpoints-1.example.com", "https://endpoints-2.example.com"]
    );
    assert!(
        config.upstream.servers[endpoints.servers[0]]
            .features
            .resource_timer_is_transient_error
    );
}
