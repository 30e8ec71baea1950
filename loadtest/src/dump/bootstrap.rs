// SPDX-License-Identifier: Apache-2.0
//! What a client was given, as a bootstrap with which an Envoy starts without a control plane. Owns what takes the place of each
//! reference: endpoints stand in their cluster, routes in their listener. Writes no file.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::refused::refused;
use crate::wire::kind::Kind;

/// Resources as JSON, by type and name.
pub(super) type Given = BTreeMap<(Kind, String), Value>;

/// A bootstrap, and what is not in it.
pub(super) struct Bootstrap {
    pub(super) config: Value,
    /// Each in a sentence.
    pub(super) left_out: Vec<String>,
    /// What an Envoy refuses of it, each in a sentence.
    pub(super) refused: Vec<String>,
}

/// Without it, an Envoy refuses listeners for itself.
const INTERNAL: &str = "type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener";

/// Where an Envoy would ask a control plane.
const SOURCES: [&str; 3] = ["ads", "api_config_source", "self"];

impl Bootstrap {
    pub(super) fn new(node: &Value, given: &Given) -> Self {
        let mut left_out = Vec::new();
        let mut all = |kind: Kind, inline: fn(&mut Map<String, Value>, &Given)| {
            let own = given.iter().filter(|((of, _), _)| *of == kind);
            let resources = own.filter_map(|((_, name), resource)| {
                let mut resource = resource.as_object()?.clone();
                resource.remove("@type");
                inline(&mut resource, given);
                let resource = Value::Object(resource);
                if let Some(place) = asks(&resource, "") {
                    left_out.push(format!(
                        "the {} entry `{name}` is not in it: at {place} it refers to a control plane, for what the client did not ask for",
                        kind.key()
                    ));
                    return None;
                }
                Some(resource)
            });
            resources.collect::<Vec<_>>()
        };
        let clusters = all(Kind::Cds, inline_endpoints);
        let listeners = all(Kind::Lds, inline_routes);
        let refused = refused(&listeners, &clusters);
        let is_internal = listeners
            .iter()
            .any(|listener| listener.get("internal_listener").is_some());
        let mut config = json!({ "node": node, "static_resources": { "listeners": listeners, "clusters": clusters } });
        if let Some(config) = config.as_object_mut().filter(|_| is_internal) {
            let extension =
                json!({ "name": "envoy.bootstrap.internal_listener", "typed_config": { "@type": INTERNAL } });
            config.insert("bootstrap_extensions".to_owned(), json!([extension]));
        }
        Self {
            config,
            left_out,
            refused,
        }
    }
}

/// Puts the endpoints of a cluster into it. One without endpoints has none: that is what the client was given.
fn inline_endpoints(cluster: &mut Map<String, Value>, given: &Given) {
    if cluster.get("type").and_then(Value::as_str) != Some("EDS") {
        return;
    }
    let config = cluster.remove("eds_cluster_config");
    let service = config.as_ref().and_then(|config| config.get("service_name")?.as_str());
    let service = service.filter(|name| !name.is_empty());
    let name = service.or_else(|| cluster.get("name")?.as_str()).unwrap_or_default();
    let mut endpoints = match given.get(&(Kind::Eds, name.to_owned())) {
        Some(Value::Object(endpoints)) => endpoints.clone(),
        Some(_) | None => Map::from_iter([("cluster_name".to_owned(), name.into())]),
    };
    endpoints.remove("@type");
    cluster.insert("type".to_owned(), "STATIC".into());
    cluster.insert("load_assignment".to_owned(), endpoints.into());
}

/// Puts routes where a listener names them.
fn inline_routes(object: &mut Map<String, Value>, given: &Given) {
    let name = object.get("rds").and_then(|rds| rds.get("route_config_name")?.as_str());
    let routes = name.and_then(|name| given.get(&(Kind::Rds, name.to_owned()))?.as_object());
    if let Some(mut routes) = routes.cloned() {
        routes.remove("@type");
        // A route may name a cluster that comes later, or never; only Envoys with static routes mind.
        routes.insert("validate_clusters".to_owned(), false.into());
        object.remove("rds");
        object.insert("route_config".to_owned(), routes.into());
    }
    object.values_mut().for_each(|value| inline_below(value, given));
}

fn inline_below(value: &mut Value, given: &Given) {
    match value {
        Value::Object(object) => inline_routes(object, given),
        Value::Array(items) => items.iter_mut().for_each(|item| inline_below(item, given)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns where a resource still refers to a control plane.
fn asks(value: &Value, place: &str) -> Option<String> {
    match value {
        Value::Object(object) => object.iter().find_map(|(key, value)| {
            let here = format!("{place}/{key}");
            match SOURCES.contains(&key.as_str()) && value.is_object() {
                true => Some(here),
                false => asks(value, &here),
            }
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| asks(item, &format!("{place}/{at}"))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(resources: &[(Kind, &str, Value)]) -> Given {
        let each = resources.iter().cloned();
        each.map(|(kind, name, value)| ((kind, name.to_owned()), value))
            .collect()
    }

    #[test]
    fn endpoints_and_routes_stand_where_they_are_named() {
        let source = json!({ "ads": {}, "resource_api_version": "V3" });
        let rds = json!({ "rds": { "route_config_name": "r", "config_source": source } });
        let given = given(&[
            (
                Kind::Cds,
                "a",
                json!({ "@type": "t", "name": "a", "type": "EDS", "eds_cluster_config": { "service_name": "s", "eds_config": source } }),
            ),
            (
                Kind::Cds,
                "b",
                json!({ "name": "b", "type": "EDS", "eds_cluster_config": { "eds_config": source } }),
            ),
            (Kind::Cds, "c", json!({ "name": "c", "type": "STRICT_DNS" })),
            (
                Kind::Eds,
                "s",
                json!({ "@type": "t", "cluster_name": "s", "endpoints": [1] }),
            ),
            (
                Kind::Lds,
                "l",
                json!({ "name": "l", "filter_chains": [{ "filters": [{ "typed_config": rds }] }] }),
            ),
            (Kind::Rds, "r", json!({ "@type": "t", "name": "r" })),
        ]);
        let made = Bootstrap::new(&json!({ "id": "edge-0" }), &given);
        assert_eq!(made.left_out, [""; 0]);
        let route = json!({ "route_config": { "name": "r", "validate_clusters": false } });
        assert_eq!(
            made.config,
            json!({
                "node": { "id": "edge-0" },
                "static_resources": {
                    "listeners": [{ "name": "l", "filter_chains": [{ "filters": [{ "typed_config": route }] }] }],
                    "clusters": [
                        { "name": "a", "type": "STATIC", "load_assignment": { "cluster_name": "s", "endpoints": [1] } },
                        { "name": "b", "type": "STATIC", "load_assignment": { "cluster_name": "b" } },
                        { "name": "c", "type": "STRICT_DNS" },
                    ],
                },
            })
        );
    }

    /// Listeners that an Envoy has for itself need an extension.
    #[test]
    fn listeners_for_the_envoy_itself() {
        let given = given(&[(Kind::Lds, "l", json!({ "name": "l", "internal_listener": {} }))]);
        let made = Bootstrap::new(&Value::Null, &given);
        assert_eq!(
            made.config["bootstrap_extensions"][0]["typed_config"]["@type"],
            INTERNAL
        );
    }

    #[test]
    fn what_still_asks_a_control_plane_is_left_out_and_told() {
        let secret = json!({ "sds": [{ "name": "s", "sds_config": { "ads": {} } }] });
        let given = given(&[
            (Kind::Cds, "a", json!({ "name": "a", "type": "STATIC" })),
            (Kind::Lds, "tls", json!({ "name": "tls", "transport_socket": secret })),
            (
                Kind::Lds,
                "lost",
                json!({ "rds": { "route_config_name": "r", "config_source": { "ads": {} } } }),
            ),
        ]);
        let made = Bootstrap::new(&Value::Null, &given);
        assert!(made.config.get("bootstrap_extensions").is_none());
        assert_eq!(made.config["static_resources"]["listeners"], json!([]));
        assert_eq!(made.config["static_resources"]["clusters"].as_array().unwrap().len(), 1);
        assert!(
            made.left_out[0].contains("`lost` is not in it: at /rds/config_source/ads it refers"),
            "{:?}",
            made.left_out
        );
        assert!(
            made.left_out[1].contains("`tls` is not in it: at /transport_socket/sds/0/sds_config/ads"),
            "{:?}",
            made.left_out
        );
    }
}
