// SPDX-License-Identifier: Apache-2.0
//! What refers to what, in resources of Envoy's API as people write them.

use std::time::Duration;

use bytes::Bytes;
use json::{Bounds, Schemas, Tree, Unknown};
use xds::Dialect;

use super::plane::cluster;
use super::stage::{Stage, USUAL};
use crate::{CDS, LDS, RDS, VHDS, ms};

const SRDS: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
const MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const PROXY: &str = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";

/// Encodes a resource of this type, whose fields are JSON.
pub(super) fn encoded(type_url: &str, fields: &str) -> Bytes {
    let json = format!(r#"{{"resources": [{{"@type": "{type_url}", {fields}}}]}}"#);
    let tree = Tree::json(json.as_bytes(), Bounds::FILE).unwrap();
    let response = Schemas::standard().response(&tree, Unknown::Deny).unwrap();
    let resource = response.resources.into_iter().next().unwrap().unwrap();
    resource.value.value
}

const ADS: &str = r#""config_source": {"ads": {}}"#;

fn manager(fields: &str) -> String {
    format!(r#"{{"name": "f", "typed_config": {{"@type": "{MANAGER}", "stat_prefix": "s", {fields}}}}}"#)
}

fn proxy(fields: &str) -> String {
    format!(r#"{{"name": "f", "typed_config": {{"@type": "{PROXY}", "stat_prefix": "s", {fields}}}}}"#)
}

fn listener(filter: &str) -> String {
    format!(r#""name": "x", "filter_chains": [{{"filters": [{filter}]}}]"#)
}

fn routes(action: &str) -> String {
    format!(
        r#""virtual_hosts": [{{"name": "v", "domains": ["*"], "routes": [{{"match": {{"prefix": "/"}}, "route": {{{action}}}}}]}}]"#
    )
}

fn inline(action: &str) -> String {
    format!(r#""route_config": {{"name": "i", {}}}"#, routes(action))
}

/// Listeners that name the cluster `target`.
fn listeners() -> Vec<(&'static str, String)> {
    vec![
        (LDS, listener(&proxy(r#""cluster": "target""#))),
        (
            LDS,
            listener(&proxy(
                r#""weighted_clusters": {"clusters": [{"name": "other", "weight": 1}, {"name": "target", "weight": 1}]}"#,
            )),
        ),
        (
            LDS,
            format!(
                r#""name": "x", "default_filter_chain": {{"filters": [{}]}}"#,
                proxy(r#""cluster": "target""#)
            ),
        ),
        (LDS, listener(&manager(&inline(r#""cluster": "target""#)))),
        (
            LDS,
            listener(&manager(&inline(
                r#""weighted_clusters": {"clusters": [{"name": "target", "weight": 1}]}"#,
            ))),
        ),
        (
            LDS,
            listener(&manager(&inline(
                r#""cluster": "other", "request_mirror_policies": [{"cluster": "target"}]"#,
            ))),
        ),
        (
            LDS,
            listener(&manager(
                r#""route_config": {"name": "i", "request_mirror_policies": [{"cluster": "target"}]}"#,
            )),
        ),
        (
            LDS,
            listener(&manager(
                r#""route_config": {"name": "i", "virtual_hosts": [{"name": "v", "domains": ["*"], "request_mirror_policies": [{"cluster": "target"}]}]}"#,
            )),
        ),
    ]
}

/// What else names it.
fn others() -> Vec<(&'static str, String)> {
    vec![
        (
            LDS,
            format!(
                r#""name": "x", "api_listener": {{"api_listener": {{"@type": "{MANAGER}", "stat_prefix": "s", {}}}}}"#,
                inline(r#""cluster": "target""#)
            ),
        ),
        (
            VHDS,
            r#""name": "x", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "target"}}]"#
                .to_owned(),
        ),
        (
            SRDS,
            format!(
                r#""name": "x", "key": {{"fragments": [{{"string_key": "k"}}]}}, "route_configuration": {{"name": "i", {}}}"#,
                routes(r#""cluster": "target""#)
            ),
        ),
    ]
}

/// What names the route configuration `named`, which leads to the cluster.
fn namers() -> Vec<(&'static str, String)> {
    vec![
        (
            LDS,
            listener(&manager(&format!(r#""rds": {{{ADS}, "route_config_name": "named"}}"#))),
        ),
        (
            LDS,
            listener(&manager(
                r#""scoped_routes": {"name": "s", "scope_key_builder": {"fragments": [{"header_value_extractor": {"name": "h", "index": 0}}]},
                    "rds_config_source": {"ads": {}}, "scoped_route_configurations_list": {"scoped_route_configurations": [
                    {"name": "one", "route_configuration_name": "named", "key": {"fragments": [{"string_key": "k"}]}}]}}"#,
            )),
        ),
        (
            SRDS,
            r#""name": "x", "route_configuration_name": "named", "key": {"fragments": [{"string_key": "k"}]}"#
                .to_owned(),
        ),
    ]
}

const NETWORK: &str = "type.googleapis.com/envoy.extensions.filters.network";
const HTTP: &str = "type.googleapis.com/envoy.extensions.filters.http";
const LOGS: &str = "type.googleapis.com/envoy.extensions.access_loggers";
const GRPC: &str = r#""grpc_service": {"envoy_grpc": {"cluster_name": "target"}}"#;
const URI: &str = r#"{"uri": "http://a/", "cluster": "target", "timeout": "1s"}"#;

/// A typed configuration with these fields.
fn typed(of: &str, message: &str, fields: &str) -> String {
    format!(r#"{{"name": "f", "typed_config": {{"@type": "{of}.{message}", {fields}}}}}"#)
}

fn network(message: &str, fields: &str) -> String {
    listener(&typed(NETWORK, message, &format!(r#""stat_prefix": "s", {fields}"#)))
}

fn http(message: &str, fields: &str) -> String {
    let filter = typed(HTTP, message, fields);
    listener(&manager(&format!(
        r#""route_config": {{"name": "i"}}, "http_filters": [{filter}]"#
    )))
}

/// Network filters that name it.
fn network_filters() -> Vec<(&'static str, String)> {
    let redis = |fields: &str| {
        let settings = r#""settings": {"op_timeout": "1s"}"#;
        network("redis_proxy.v3.RedisProxy", &format!("{settings}, {fields}"))
    };
    let thrift = |action: &str| {
        let route = format!(r#"{{"match": {{"method_name": ""}}, "route": {{{action}}}}}"#);
        let fields = format!(r#""route_config": {{"name": "t", "routes": [{route}]}}"#);
        network("thrift_proxy.v3.ThriftProxy", &fields)
    };
    let all = [
        redis(r#""prefix_routes": {"routes": [{"prefix": "a", "cluster": "target"}]}"#),
        redis(r#""prefix_routes": {"catch_all_route": {"cluster": "target"}}"#),
        redis(
            r#""prefix_routes": {"catch_all_route": {"cluster": "other", "request_mirror_policy": [{"cluster": "target"}]}}"#,
        ),
        redis(
            r#""prefix_routes": {"catch_all_route": {"cluster": "other", "read_command_policy": {"cluster": "target"}}}"#,
        ),
        redis(&format!(r#""external_auth_provider": {{{GRPC}}}"#)),
        thrift(r#""cluster": "target""#),
        thrift(r#""weighted_clusters": {"clusters": [{"name": "target", "weight": 1}]}"#),
        thrift(r#""cluster": "other", "request_mirror_policies": [{"cluster": "target"}]"#),
        network("ext_authz.v3.ExtAuthz", GRPC),
        network("ext_proc.v3.NetworkExternalProcessor", GRPC),
        network(
            "ratelimit.v3.RateLimit",
            &format!(
                r#""domain": "d", "descriptors": [{{"entries": [{{"key": "k", "value": "v"}}]}}], "rate_limit_service": {{{GRPC}}}"#
            ),
        ),
    ];
    all.into_iter().map(|fields| (LDS, fields)).collect()
}

/// A listener of UDP, whose proxy has these fields.
fn udp(fields: &str) -> String {
    let filter = typed(
        "type.googleapis.com/envoy.extensions.filters.udp",
        "udp_proxy.v3.UdpProxyConfig",
        &format!(r#""stat_prefix": "s", {fields}"#),
    );
    format!(r#""name": "x", "listener_filters": [{filter}]"#)
}

/// UDP proxies that name it.
fn udp_proxies() -> Vec<(&'static str, String)> {
    let route = |cluster: &str| {
        let of = "type.googleapis.com/envoy.extensions.filters.udp";
        let action = typed(of, "udp_proxy.v3.Route", &format!(r#""cluster": "{cluster}""#));
        format!(r#"{{"action": {action}}}"#)
    };
    let (target, other) = (route("target"), route("other"));
    let input = r#""input": {"name": "i", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3.SourceIPInput"}}"#;
    let listed = format!(
        r#"{{"matcher_list": {{"matchers": [{{"predicate": {{"single_predicate": {{{input}, "value_match": {{"exact": "1.2.3.4"}}}}}}, "on_match": {target}}}]}}, "on_no_match": {other}}}"#
    );
    let mapped = |map: &str| format!(r#"{{"matcher_tree": {{{input}, "{map}": {{"map": {{"1": {target}}}}}}}}}"#);
    let nested = format!(r#"{{"on_no_match": {{"matcher": {listed}}}}}"#);
    let matchers = [
        listed,
        mapped("exact_match_map"),
        mapped("prefix_match_map"),
        format!(r#"{{"on_no_match": {target}}}"#),
        nested,
    ];
    let mut all = vec![(LDS, udp(r#""cluster": "target""#))];
    all.extend(matchers.map(|matcher| (LDS, udp(&format!(r#""matcher": {matcher}"#)))));
    all
}

/// HTTP filters that name it, and what overrides them.
fn http_filters() -> Vec<(&'static str, String)> {
    let overridden = |message: &str, fields: &str| {
        let config = format!(r#"{{"@type": "{HTTP}.{message}", {fields}}}"#);
        format!(r#""typed_per_filter_config": {{"f": {config}}}"#)
    };
    let check = overridden(
        "ext_authz.v3.ExtAuthzPerRoute",
        &format!(r#""check_settings": {{{GRPC}}}"#),
    );
    let by_http = overridden(
        "ext_authz.v3.ExtAuthzPerRoute",
        &format!(r#""check_settings": {{"http_service": {{"server_uri": {URI}}}}}"#),
    );
    let process = overridden("ext_proc.v3.ExtProcPerRoute", &format!(r#""overrides": {{{GRPC}}}"#));
    let wrapped = format!(
        r#""typed_per_filter_config": {{"f": {{"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": {{"@type": "{HTTP}.ext_authz.v3.ExtAuthzPerRoute", "check_settings": {{{GRPC}}}}}}}}}"#
    );
    let of_route = |entry: &str| {
        format!(
            r#""name": "x", "virtual_hosts": [{{"name": "v", "domains": ["*"], "routes": [{{"match": {{"prefix": "/"}}, "route": {{"cluster": "other"}}, {entry}}}]}}]"#
        )
    };
    let of_host = format!(r#""name": "x", "virtual_hosts": [{{"name": "v", "domains": ["*"], {check}}}]"#);
    let of_weight = format!(
        r#""name": "x", {}"#,
        routes(&format!(
            r#""weighted_clusters": {{"clusters": [{{"name": "other", "weight": 1, {check}}}]}}"#
        ))
    );
    vec![
        (LDS, http("ext_authz.v3.ExtAuthz", GRPC)),
        (
            LDS,
            http(
                "ext_authz.v3.ExtAuthz",
                &format!(r#""http_service": {{"server_uri": {URI}}}"#),
            ),
        ),
        (LDS, http("ext_proc.v3.ExternalProcessor", GRPC)),
        (
            LDS,
            http(
                "ext_proc.v3.ExternalProcessor",
                &format!(r#""http_service": {{"http_service": {{"http_uri": {URI}}}}}"#),
            ),
        ),
        (
            LDS,
            http(
                "ratelimit.v3.RateLimit",
                &format!(r#""domain": "d", "rate_limit_service": {{{GRPC}}}"#),
            ),
        ),
        (RDS, of_route(&check)),
        (RDS, of_route(&by_http)),
        (RDS, of_route(&process)),
        (RDS, of_route(&wrapped)),
        (RDS, format!(r#""name": "x", {check}"#)),
        (RDS, of_host),
        (RDS, of_weight),
    ]
}

/// Access logs that name it.
fn access_logs() -> Vec<(&'static str, String)> {
    let common = format!(r#""common_config": {{"log_name": "l", {GRPC}}}"#);
    let of_http = typed(LOGS, "grpc.v3.HttpGrpcAccessLogConfig", &common);
    let of_tcp = typed(LOGS, "grpc.v3.TcpGrpcAccessLogConfig", &common);
    let telemetry = |fields: &str| typed(LOGS, "open_telemetry.v3.OpenTelemetryAccessLogConfig", fields);
    let logs = |log: &str| format!(r#""access_log": [{log}]"#);
    let managed = |log: &str| listener(&manager(&format!(r#""route_config": {{"name": "i"}}, {}"#, logs(log))));
    let all = [
        managed(&of_http),
        managed(&telemetry(&common)),
        managed(&telemetry(GRPC)),
        managed(&telemetry(&format!(r#""http_service": {{"http_uri": {URI}}}"#))),
        format!(r#""name": "x", {}"#, logs(&of_tcp)),
        listener(&proxy(&format!(r#""cluster": "other", {}"#, logs(&of_tcp)))),
        network("thrift_proxy.v3.ThriftProxy", &logs(&of_tcp)),
        udp(&format!(r#""cluster": "other", {}"#, logs(&of_tcp))),
        udp(&format!(r#""cluster": "other", "proxy_access_log": [{of_tcp}]"#)),
        http("router.v3.Router", &format!(r#""upstream_log": [{of_http}]"#)),
    ];
    all.into_iter().map(|fields| (LDS, fields)).collect()
}

/// What names it in a way that is not read: configurations that are wrapped, of somebody else, or of another kind than their place
/// asks for.
#[test]
fn what_is_not_read() {
    let wrapped = format!(
        r#"{{"name": "f", "typed_config": {{"@type": "type.googleapis.com/xds.type.v3.TypedStruct", "type_url": "{PROXY}", "value": {{"cluster": "target"}}}}}}"#
    );
    let cases = [
        (LDS, listener(&wrapped)),
        (LDS, http("gcp_authn.v3.GcpAuthnFilterConfig", r#""cluster": "target""#)),
        (LDS, listener(&typed(HTTP, "ext_authz.v3.ExtAuthz", GRPC))),
        (
            RDS,
            format!(r#""name": "x", {}"#, routes(r#""cluster_header": "target""#)),
        ),
    ];
    for (kind, fields) in cases {
        let mut stage = Stage::new(Dialect::Delta, USUAL, &[(CDS, "*"), (LDS, "*"), (RDS, "x")]);
        stage.put(CDS, "target", cluster("target"));
        stage.put(CDS, "other", cluster("other"));
        stage.put(kind, "x", encoded(kind, &fields));
        stage.wanted.insert("x".to_owned());
        stage.pass(Duration::from_secs(20));
        assert_eq!(stage.served(kind), "x", "{fields}");
        stage.remove(CDS, "target");
        stage.pass(ms(200));
        assert_eq!(stage.served(CDS), "other", "{fields}");
    }
}

/// D-09: each way in which a resource of Envoy's API can name a cluster or a route configuration holds it. The numbers of the fields
/// are those of the API.
#[test]
fn each_way_to_name_something() {
    let filters = [network_filters(), udp_proxies(), http_filters(), access_logs()].concat();
    let cases = [listeners(), others(), namers(), filters].concat();
    for (kind, fields) in cases {
        let wants = [
            (CDS, "*"),
            (LDS, "*"),
            (SRDS, "*"),
            (VHDS, "x"),
            (RDS, "named"),
            (RDS, "x"),
        ];
        let mut stage = Stage::new(Dialect::Delta, USUAL, &wants);
        stage.wanted.insert("x".to_owned());
        for name in ["target", "other"] {
            stage.put(CDS, name, cluster(name));
        }
        let route = format!(r#""name": "named", {}"#, routes(r#""cluster": "target""#));
        stage.put(RDS, "named", encoded(RDS, &route));
        stage.put(kind, "x", encoded(kind, &fields));
        stage.pass(Duration::from_secs(20));
        assert!(stage.served(kind).split(' ').any(|name| name == "x"), "{fields}");
        stage.remove(CDS, "target");
        stage.pass(ms(200));
        assert!(stage.why(CDS, "target").starts_with("referenced by "), "{fields}");
        if fields.contains("named") {
            stage.remove(RDS, "named");
            stage.pass(ms(200));
            assert!(stage.why(RDS, "named").starts_with("referenced by "), "{fields}");
        }
        stage.remove(kind, "x");
        stage.pass(ms(200));
        assert_eq!(
            (stage.served(CDS).as_str(), stage.why(RDS, "named").as_str()),
            ("other", ""),
            "{fields}"
        );
    }
}

/// Of many routes, what each refers to is read once; a later removal costs little. The figures are printed.
#[test]
fn many_routes() {
    const ROUTES: usize = 3000;
    const GONE: usize = 1000;
    let names: Vec<String> = (0..ROUTES).map(|n| format!("r{n}")).collect();
    let mut wants = vec![(CDS, "*")];
    wants.extend(names.iter().map(|name| (RDS, name.as_str())));
    let mut stage = Stage::new(Dialect::Delta, USUAL, &wants);
    stage.wanted.extend(names.iter().cloned());
    let padding = "p".repeat(1800);
    for (n, name) in names.iter().enumerate() {
        let (one, other) = (n % GONE, (n + 1) % GONE);
        let domain = format!("{padding}{n}");
        let fields = format!(
            r#""name": "{name}", "virtual_hosts": [{{"name": "v", "domains": ["{domain}"], "routes": [
                {{"match": {{"prefix": "/a"}}, "route": {{"cluster": "c{one}"}}}}, {{"match": {{"prefix": "/"}}, "route": {{"cluster": "c{other}"}}}}]}}]"#
        );
        stage.put(RDS, name, encoded(RDS, &fields));
    }
    for n in 0..GONE {
        stage.put(CDS, &format!("c{n}"), cluster(&format!("c{n}")));
    }
    stage.pass(Duration::from_secs(20));
    for n in 1..GONE {
        stage.remove(CDS, &format!("c{n}"));
    }
    stage.pass(ms(99));
    stage.spent = Duration::ZERO;
    stage.pass(ms(2));
    let took = std::mem::take(&mut stage.spent);
    assert_eq!(
        stage.holds.iter().map(|hold| hold.removals.len()).sum::<usize>(),
        GONE - 1
    );
    stage.remove(CDS, "c0");
    stage.pass(ms(99));
    stage.spent = Duration::ZERO;
    stage.pass(ms(2));
    let next = stage.spent;
    assert_eq!(stage.why(CDS, "c0"), "referenced by rds r0");
    println!("{GONE} removals among {ROUTES} routes are decided in {took:?}, one more in {next:?}");
    // On a busy machine, in a test profile.
    assert!(
        took < Duration::from_secs(5) && next < Duration::from_secs(1),
        "{took:?}, {next:?}"
    );
}
