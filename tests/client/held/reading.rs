// SPDX-License-Identifier: Apache-2.0
//! What refers to what, in resources of Envoy's API as people write them.

use bytes::Bytes;
use json::{Bounds, Schemas, Tree, Unknown};
use xds::Dialect;

use super::plane::cluster;
use super::stage::{Stage, USUAL};
use crate::{CDS, LDS, RDS, VHDS, ms, secs};

const SRDS: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
const MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// Encodes a resource of this type, whose fields are JSON.
pub(super) fn encoded(type_url: &str, fields: &str) -> Bytes {
    let json = format!(r#"{{"resources": [{{"@type": "{type_url}", {fields}}}]}}"#);
    let tree = Tree::json(json.as_bytes(), Bounds::FILE).unwrap();
    let response = Schemas::standard().response(&tree, Unknown::Deny).unwrap();
    let resource = response.resources.into_iter().next().unwrap().unwrap();
    resource.value.value
}

/// Abbreviations in the rows below, each before those that it has in itself.
const WORDS: &str = r#"
    $check = "typed_per_filter_config": {"f": {$authz}}
    $authz = "@type": "$filter.ext_authz.v3.ExtAuthzPerRoute", "check_settings": {$grpc}
    $log_http = {"name": "f", "typed_config": {"@type": "$log.grpc.v3.HttpGrpcAccessLogConfig", $common}}
    $log_tcp = {"name": "f", "typed_config": {"@type": "$log.grpc.v3.TcpGrpcAccessLogConfig", $common}}
    $otel = "name": "f", "typed_config": {"@type": "$log.open_telemetry.v3.OpenTelemetryAccessLogConfig"
    $common = "common_config": {"log_name": "l", $grpc}
    $listed = {"matcher_list": {"matchers": [{"predicate": {"single_predicate": {$input, "value_match": {"exact": "1.2.3.4"}}}, "on_match": {$on"target"}}}}]}, "on_no_match": {$on"other"}}}}
    $on = "action": {"name": "f", "typed_config": {"@type": "$udp.udp_proxy.v3.Route", "cluster": 
    $input = "input": {"name": "i", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3.SourceIPInput"}}
    $grpc = "grpc_service": {"envoy_grpc": {"cluster_name": "target"}}
    $uri = {"uri": "http://a/", $target, "timeout": "1s"}
    $weights = "weighted_clusters": {"clusters": [{"name": "other", "weight": 1}, {"name": "target", "weight": 1}]}
    $target = "cluster": "target"
    $other = "cluster": "other"
    $filter = type.googleapis.com/envoy.extensions.filters.http
    $log = type.googleapis.com/envoy.extensions.access_loggers
    $udp = type.googleapis.com/envoy.extensions.filters.udp
"#;

/// Ways to name the cluster `target`, or the route configuration `named`, which leads to it: the place, and the fields there.
const NAMERS: &str = r#"
    tcp: $target
    tcp: $weights
    default: $target
    inline: $target
    inline: $weights
    inline: $other, "request_mirror_policies": [{$target}]
    http: "route_config": {"name": "i", "request_mirror_policies": [{$target}]}
    http: "route_config": {"name": "i", "virtual_hosts": [{"name": "v", "domains": ["*"], "request_mirror_policies": [{$target}]}]}
    api: $target
    vhds: "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {$target}}]
    scope: $target
    http: "rds": {"config_source": {"ads": {}}, "route_config_name": "named"}
    http: "scoped_routes": {"name": "s", "scope_key_builder": {"fragments": [{"header_value_extractor": {"name": "h", "index": 0}}]}, "rds_config_source": {"ads": {}}, "scoped_route_configurations_list": {"scoped_route_configurations": [{"name": "one", "route_configuration_name": "named", "key": {"fragments": [{"string_key": "k"}]}}]}}
    srds: "route_configuration_name": "named", "key": {"fragments": [{"string_key": "k"}]}

    network redis_proxy.v3.RedisProxy: "settings": {"op_timeout": "1s"}, "prefix_routes": {"routes": [{"prefix": "a", $target}]}
    network redis_proxy.v3.RedisProxy: "settings": {"op_timeout": "1s"}, "prefix_routes": {"catch_all_route": {$target}}
    network redis_proxy.v3.RedisProxy: "settings": {"op_timeout": "1s"}, "prefix_routes": {"catch_all_route": {$other, "request_mirror_policy": [{$target}]}}
    network redis_proxy.v3.RedisProxy: "settings": {"op_timeout": "1s"}, "prefix_routes": {"catch_all_route": {$other, "read_command_policy": {$target}}}
    network redis_proxy.v3.RedisProxy: "settings": {"op_timeout": "1s"}, "external_auth_provider": {$grpc}
    thrift: $target
    thrift: $weights
    thrift: $other, "request_mirror_policies": [{$target}]
    network ext_authz.v3.ExtAuthz: $grpc
    network ext_proc.v3.NetworkExternalProcessor: $grpc
    network ratelimit.v3.RateLimit: "domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}], "rate_limit_service": {$grpc}

    udp: $target
    udp: "matcher": $listed
    udp: "matcher": {"matcher_tree": {$input, "exact_match_map": {"map": {"1": {$on"target"}}}}}}}
    udp: "matcher": {"matcher_tree": {$input, "prefix_match_map": {"map": {"1": {$on"target"}}}}}}}
    udp: "matcher": {"on_no_match": {$on"target"}}}}
    udp: "matcher": {"on_no_match": {"matcher": $listed}}

    filter ext_authz.v3.ExtAuthz: $grpc
    filter ext_authz.v3.ExtAuthz: "http_service": {"server_uri": $uri}
    filter ext_proc.v3.ExternalProcessor: $grpc
    filter ext_proc.v3.ExternalProcessor: "http_service": {"http_service": {"http_uri": $uri}}
    filter ratelimit.v3.RateLimit: "domain": "d", "rate_limit_service": {$grpc}
    entry: $check
    entry: "typed_per_filter_config": {"f": {"@type": "$filter.ext_authz.v3.ExtAuthzPerRoute", "check_settings": {"http_service": {"server_uri": $uri}}}}
    entry: "typed_per_filter_config": {"f": {"@type": "$filter.ext_proc.v3.ExtProcPerRoute", "overrides": {$grpc}}}
    entry: "typed_per_filter_config": {"f": {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": {$authz}}}
    rds: $check
    rds: "virtual_hosts": [{"name": "v", "domains": ["*"], $check}]
    action: "weighted_clusters": {"clusters": [{"name": "other", "weight": 1, $check}]}

    http: "route_config": {"name": "i"}, "access_log": [$log_http]
    http: "route_config": {"name": "i"}, "access_log": [{$otel, $common}}]
    http: "route_config": {"name": "i"}, "access_log": [{$otel, $grpc}}]
    http: "route_config": {"name": "i"}, "access_log": [{$otel, "http_service": {"http_uri": $uri}}}]
    lds: "access_log": [$log_tcp]
    tcp: $other, "access_log": [$log_tcp]
    network thrift_proxy.v3.ThriftProxy: "access_log": [$log_tcp]
    udp: $other, "access_log": [$log_tcp]
    udp: $other, "proxy_access_log": [$log_tcp]
    filter router.v3.Router: "upstream_log": [$log_http]
"#;

/// What names it in a way that is not read: configurations that are wrapped, of somebody else, or of another kind than their place
/// asks for.
const UNREAD: &str = r#"
    lds: "filter_chains": [{"filters": [{"name": "f", "typed_config": {"@type": "type.googleapis.com/xds.type.v3.TypedStruct", "type_url": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "value": {$target}}}]}]
    filter gcp_authn.v3.GcpAuthnFilterConfig: $target
    lds: "filter_chains": [{"filters": [{"name": "f", "typed_config": {"@type": "$filter.ext_authz.v3.ExtAuthz", $grpc}}]}]
    action: "cluster_header": "target"
"#;

fn listener(of: &str, fields: &str) -> String {
    let config =
        format!(r#"{{"@type": "type.googleapis.com/envoy.extensions.filters.{of}", "stat_prefix": "s", {fields}}}"#);
    format!(r#""filter_chains": [{{"filters": [{{"name": "f", "typed_config": {config}}}]}}]"#)
}

fn routes(action: &str) -> String {
    format!(
        r#""virtual_hosts": [{{"name": "v", "domains": ["*"], "routes": [{{"match": {{"prefix": "/"}}, "route": {{{action}}}}}]}}]"#
    )
}

/// The type of a row's resource, and its fields.
fn read(row: &str) -> (&'static str, String) {
    let (place, fields) = row.trim().split_once(": ").unwrap();
    let words = WORDS.lines().filter_map(|line| line.trim().split_once(" = "));
    let fields = words.fold(fields.to_owned(), |text, (word, full)| text.replace(word, full));
    let (place, message) = place.split_once(' ').unwrap_or((place, ""));
    let manager = |fields: &str| listener("network.http_connection_manager.v3.HttpConnectionManager", fields);
    let inline = format!(r#""route_config": {{"name": "i", {}}}"#, routes(&fields));
    let (kind, fields) = match place {
        "lds" => (LDS, fields),
        "rds" => (RDS, fields),
        "vhds" => (VHDS, fields),
        "srds" => (SRDS, fields),
        "tcp" => (LDS, listener("network.tcp_proxy.v3.TcpProxy", &fields)),
        "default" => {
            let chains = listener("network.tcp_proxy.v3.TcpProxy", &fields);
            let chain = chains.replace("\"filter_chains\": [", "\"default_filter_chain\": ");
            (LDS, chain.strip_suffix(']').unwrap().to_owned())
        }
        "http" => (LDS, manager(&fields)),
        "inline" => (LDS, manager(&inline)),
        "api" => (
            LDS,
            format!(r#""api_listener": {{"api_listener": {{"@type": "{MANAGER}", "stat_prefix": "s", {inline}}}}}"#),
        ),
        "scope" => (
            SRDS,
            format!(
                r#""key": {{"fragments": [{{"string_key": "k"}}]}}, "route_configuration": {{"name": "i", {}}}"#,
                routes(&fields)
            ),
        ),
        "action" => (RDS, routes(&fields)),
        "entry" => (
            RDS,
            routes(r#""cluster": "other""#).replace("}}]}]", &format!("}}, {fields}}}]}}]")),
        ),
        "network" => (LDS, listener(&format!("network.{message}"), &fields)),
        "thrift" => {
            let route = format!(r#"{{"match": {{"method_name": ""}}, "route": {{{fields}}}}}"#);
            let fields = format!(r#""route_config": {{"name": "t", "routes": [{route}]}}"#);
            (LDS, listener("network.thrift_proxy.v3.ThriftProxy", &fields))
        }
        "filter" => {
            let filter = format!(
                r#"{{"name": "f", "typed_config": {{"@type": "type.googleapis.com/envoy.extensions.filters.http.{message}", {fields}}}}}"#
            );
            let fields = format!(r#""route_config": {{"name": "i"}}, "http_filters": [{filter}]"#);
            (LDS, manager(&fields))
        }
        "udp" => {
            let chains = listener("udp.udp_proxy.v3.UdpProxyConfig", &fields);
            let filters = chains.replace("\"filter_chains\": [{\"filters\": ", "\"listener_filters\": ");
            (LDS, filters.strip_suffix("}]").unwrap().to_owned())
        }
        other => unreachable!("{other} is no place"),
    };
    (kind, format!(r#""name": "x", {fields}"#))
}

#[test]
fn what_is_not_read() {
    for row in UNREAD.lines().filter(|row| !row.trim().is_empty()) {
        let (kind, fields) = read(row);
        let mut stage = Stage::new(Dialect::Delta, USUAL, &[(CDS, "*"), (LDS, "*"), (RDS, "x")]);
        stage.put(CDS, "target", cluster("target"));
        stage.put(CDS, "other", cluster("other"));
        stage.put(kind, "x", encoded(kind, &fields));
        stage.wanted.insert("x".to_owned());
        assert_eq!(stage.after(secs(20)).served(kind), "x", "{row}");
        stage.remove(CDS, "target");
        assert_eq!(stage.after(ms(200)).served(CDS), "other", "{row}");
    }
}

/// D-09: each way in which a resource of Envoy's API can name a cluster or a route configuration holds it. The numbers of the fields
/// are those of the API.
#[test]
fn each_way_to_name_something() {
    for row in NAMERS.lines().filter(|row| !row.trim().is_empty()) {
        let (kind, fields) = read(row);
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
        stage.pass(secs(20));
        assert!(stage.served(kind).split(' ').any(|name| name == "x"), "{row}");
        stage.remove(CDS, "target");
        stage.pass(ms(200));
        assert!(stage.why(CDS, "target").starts_with("referenced by "), "{row}");
        if fields.contains("named") {
            stage.remove(RDS, "named");
            stage.pass(ms(200));
            assert!(stage.why(RDS, "named").starts_with("referenced by "), "{row}");
        }
        stage.remove(kind, "x");
        assert_eq!(stage.after(ms(200)).served(CDS), "other", "{row}");
        assert_eq!(stage.why(RDS, "named"), "", "{row}");
    }
}
