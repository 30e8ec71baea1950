// SPDX-License-Identifier: Apache-2.0
//! `/config_dump`: messages of Envoy's API, whatever is asked for, and readers that do not read.

use std::sync::Arc;

use distributary::json::{Bounds, Schemas, Tree, Unknown};
use distributary::xds::{Resource, TypeUrl, Update};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Window;
use crate::rest::{any, put};
use crate::support::{CDS, EDS, Relay, resource};

const TYPES: &str = "type.googleapis.com/";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

/// Publishes resources that are written as JSON.
pub(super) fn publish(relay: &Relay, contents: &[Value]) {
    for json in contents {
        let any = any(json);
        let kind = TypeUrl::new(&any.type_url);
        let name = json["name"].as_str().unwrap();
        relay.publish(&kind, vec![Update::Put(resource(&kind, name, &any.value), None)]);
    }
}

fn full(name: &str) -> String {
    format!("{TYPES}{name}")
}

/// A relay with one content of each kind.
fn with_everything() -> Relay {
    let relay = Relay::start();
    put(&relay, CDS, &["a", "b"], 1);
    put(&relay, EDS, &["e"], 1);
    let listener = full("envoy.config.listener.v3.Listener");
    let route = full("envoy.config.route.v3.RouteConfiguration");
    let scope = full("envoy.config.route.v3.ScopedRouteConfiguration");
    let extension = full("envoy.config.core.v3.TypedExtensionConfig");
    let host = full("envoy.config.route.v3.VirtualHost");
    let all = [
        json!({"@type": listener, "name": "l", "stat_prefix": "x"}),
        json!({"@type": route, "name": "r"}),
        json!({"@type": scope, "name": "s", "route_configuration_name": "r"}),
        json!({"@type": extension, "name": "x", "typed_config": {"@type": full("google.protobuf.Struct"), "value": {}}}),
        json!({"@type": host, "name": "r/h", "domains": ["*"]}),
        json!({"@type": SDS, "name": "k", "tls_certificate": {"private_key": {"inline_string": "HIDDEN"}}}),
    ];
    publish(&relay, &all);
    relay.put(&full("acme.Unknown"), &["u"], "1");
    relay
}

fn types(dump: &Value) -> Vec<&str> {
    let configs = dump["configs"].as_array().unwrap().iter();
    let names = configs.map(|config| config["@type"].as_str().unwrap().rsplit('.').next().unwrap());
    names.collect()
}

/// Whatever is asked for, the answer is a message of Envoy's API.
#[tokio::test]
async fn every_form_is_envoys() {
    let relay = with_everything();
    let window = Window::of(&relay);
    let all = window.json("/config_dump?include_eds").await;
    let tree = Tree::json(all.to_string().as_bytes(), Bounds::FILE).unwrap();
    let message = Schemas::standard().encode("envoy.admin.v3.ConfigDump", &tree, "", Unknown::Deny);
    assert!(message.is_ok(), "{message:?} {all}");
    let expected = [
        "BootstrapConfigDump",
        "ClustersConfigDump",
        "EcdsConfigDump",
        "EndpointsConfigDump",
        "ListenersConfigDump",
        "ScopedRoutesConfigDump",
        "RoutesConfigDump",
        "SecretsConfigDump",
        "ClientConfig",
    ];
    assert_eq!(types(&all), expected);
    let clusters = all["configs"][1]["dynamic_active_clusters"].as_array().unwrap();
    assert_eq!((clusters.len(), &clusters[1]["cluster"]["name"]), (2, &json!("b")));
    assert_eq!(
        (&clusters[0]["client_status"], &clusters[0]["cluster"]["@type"]),
        (&json!("ACKED"), &json!(CDS))
    );
    let listener = &all["configs"][4]["dynamic_listeners"][0]["active_state"];
    assert_eq!(listener["listener"]["name"], "l");
    let others = all["configs"][8]["generic_xds_configs"].as_array().unwrap();
    let named = others
        .iter()
        .map(|one| json!([one["name"], one["xds_config"].is_object()]));
    assert_eq!(named.collect::<Value>(), json!([["r/h", true], ["u", false]]), "{all}");
    assert!(all.to_string().contains("[redacted]") && !all.to_string().contains("HIDDEN"));
    // Endpoints are left out.
    assert_eq!(types(&window.json("/config_dump").await).len(), 8);
}

#[tokio::test]
async fn some_of_it() {
    let relay = with_everything();
    let window = Window::of(&relay);
    let some = async |query: &str| window.json(&format!("/config_dump?{query}")).await;
    let one = some("resource=dynamic_active_clusters&name_regex=b").await;
    assert_eq!(types(&one), ["DynamicCluster"]);
    assert_eq!(one["configs"][0]["cluster"]["name"], "b");
    let masked = some("resource=dynamic_endpoint_configs&mask=endpoint_config.cluster_name").await;
    let expected = json!([{"@type": full("envoy.admin.v3.EndpointsConfigDump.DynamicEndpointConfig"),
        "endpoint_config": {"@type": EDS, "cluster_name": "e"}}]);
    assert_eq!(masked["configs"], expected);
    let masked = some("mask=bootstrap.admin,dynamic_listeners.name").await;
    assert_eq!(types(&masked), ["BootstrapConfigDump", "ListenersConfigDump"]);
    assert_eq!(masked["configs"][1]["dynamic_listeners"], json!([{"name": "l"}]));
    let named = some("name_regex=(l|r)").await;
    let expected = ["BootstrapConfigDump", "ListenersConfigDump", "RoutesConfigDump"];
    assert_eq!(types(&named), expected);
    assert_eq!(some("resource=static_clusters").await, json!({"configs": []}));
    for (query, code, word) in [
        ("resource=clusters", 404, "write resource= and one of dynamic_"),
        ("mask=a..b", 400, "mask: write names of fields"),
        ("name_regex=(", 400, "name_regex: `(` is not a regular expression"),
        ("name_regex=((a%7B99%7D)%7B99%7D)%7B99%7D", 400, "size limit"),
        ("resources=x", 400, "write /config_dump, with any of"),
    ] {
        let (status, text) = window.get(&format!("/config_dump?{query}")).await;
        assert!(status == code && text.contains(word), "{query}: {status} {text}");
    }
}

/// A reader that does not read keeps some contents and no more, and nobody else waits for it.
#[tokio::test]
async fn a_slow_reader_keeps_little() {
    const COUNT: usize = 4000;
    let relay = Relay::start();
    let kind = TypeUrl::new(CDS);
    let body = any(&json!({"@type": CDS, "name": "c", "alt_stat_name": "x".repeat(8 << 10)})).value;
    let names: Vec<String> = (0..COUNT).map(|number| format!("c{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let contents: Vec<Arc<Resource>> = names.iter().map(|name| resource(&kind, name, &body)).collect();
    let kept: Vec<_> = contents.iter().map(Arc::downgrade).collect();
    relay.publish(&kind, contents.into_iter().map(|one| Update::Put(one, None)).collect());

    let window = Window::of(&relay);
    let mut stream = TcpStream::connect(window.0.socket().unwrap()).await.unwrap();
    stream.write_all(b"GET /config_dump HTTP/1.0\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 4096]).await.unwrap();
    assert_eq!(window.get("/live").await.0, 200);
    put(&relay, CDS, &names, 2);
    let alive = || kept.iter().filter(|one| one.strong_count() > 0).count();
    assert!(alive() < 100, "{} contents are kept", alive());
    // It goes on with what is there now.
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("\"connect_timeout\":\"2s\"") && rest.ends_with("]}\n]}\n"));
}
