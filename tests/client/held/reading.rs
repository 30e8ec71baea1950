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
fn encoded(type_url: &str, fields: &str) -> Bytes {
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

/// D-09: each way in which a resource of Envoy's API can name a cluster or a route configuration holds it. The numbers of the fields
/// are those of the API.
#[test]
fn each_way_to_name_something() {
    let cases = [listeners(), others(), namers()].concat();
    for (kind, fields) in cases {
        let wants = [(CDS, "*"), (LDS, "*"), (SRDS, "*"), (VHDS, "x"), (RDS, "named")];
        let mut stage = Stage::new(Dialect::Delta, USUAL, &wants);
        for name in ["target", "other"] {
            stage.put(CDS, name, cluster(name));
        }
        let route = format!(r#""name": "named", {}"#, routes(r#""cluster": "target""#));
        stage.put(RDS, "named", encoded(RDS, &route));
        stage.put(kind, "x", encoded(kind, &fields));
        stage.pass(Duration::from_secs(20));
        assert_eq!(stage.served(kind), "x", "{fields}");
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
    const ROUTES: usize = 10_000;
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
