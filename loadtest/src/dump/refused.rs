// SPDX-License-Identifier: Apache-2.0
//! What an Envoy refuses in a bootstrap although a control plane gives it: listeners of gRPC clients, addresses that are there twice, and
//! names in the place of IP addresses. Owns the sentences that say so. Changes nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

/// Returns a sentence for each entry that Envoy refuses.
pub(super) fn refused(listeners: &[Value], clusters: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for listener in listeners {
        let name = text(listener, "/name");
        let Some(address) = listener.get("address") else {
            if listener.get("internal_listener").is_none() {
                found.push(sentence(
                    "lds",
                    name,
                    "it has no `address`, as the listeners of gRPC clients",
                ));
            }
            continue;
        };
        // The system chooses another port for each.
        let any_port = address
            .get("socket_address")
            .is_some_and(|socket| socket.get("port_value").is_none_or(|port| *port == 0));
        if any_port {
            continue;
        }
        if let Some(first) = taken.get(&address.to_string()) {
            found.push(sentence("lds", name, &format!("it has the address of `{first}`")));
        } else {
            taken.insert(address.to_string(), name);
        }
    }
    for cluster in clusters.iter().filter(|cluster| text(cluster, "/type") == "STATIC") {
        if let Some(host) = host_name(cluster) {
            let why = format!(
                "its endpoint `{host}` is no IP address; Envoy looks names up in clusters of the type STRICT_DNS only"
            );
            found.push(sentence("cds", text(cluster, "/name"), &why));
        }
    }
    found
}

fn sentence(key: &str, name: &str, why: &str) -> String {
    format!("an Envoy will refuse bootstrap.json because of the {key} entry `{name}`: {why}")
}

fn text<'a>(resource: &'a Value, at: &str) -> &'a str {
    resource.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an endpoint that is a name.
fn host_name(value: &Value) -> Option<&str> {
    match value {
        Value::Object(object) => {
            let host = value.pointer("/socket_address/address").and_then(Value::as_str);
            let host = host.filter(|host| host.parse::<IpAddr>().is_err());
            host.or_else(|| object.values().find_map(host_name))
        }
        Value::Array(items) => items.iter().find_map(host_name),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each of these was refused by Envoy 1.40 for this reason, and the others were accepted.
    #[test]
    fn what_envoy_refuses() {
        let at = |port: u16| json!({ "socket_address": { "address": "127.0.0.1", "port_value": port } });
        let listeners = [
            json!({ "name": "grpc", "api_listener": {} }),
            json!({ "name": "a", "address": at(80) }),
            json!({ "name": "b", "address": at(80) }),
            json!({ "name": "c", "address": at(0) }),
            json!({ "name": "d", "address": at(0) }),
            json!({ "name": "e", "internal_listener": {} }),
        ];
        let endpoint = |host: &str| json!({ "endpoints": [{ "address": { "socket_address": { "address": host } } }] });
        let clusters = [
            json!({ "name": "named", "type": "STATIC", "load_assignment": endpoint("host.example") }),
            json!({ "name": "dns", "type": "STRICT_DNS", "load_assignment": endpoint("host.example") }),
            json!({ "name": "v6", "type": "STATIC", "load_assignment": endpoint("::1") }),
        ];
        let found = refused(&listeners, &clusters);
        let because = |text: &str| text.split_once("because of the ").unwrap().1.to_owned();
        let found: Vec<String> = found.iter().map(|text| because(text)).collect();
        let expected = [
            "lds entry `grpc`: it has no `address`, as the listeners of gRPC clients",
            "lds entry `b`: it has the address of `a`",
            "cds entry `named`: its endpoint `host.example` is no IP address; Envoy looks names up in clusters of the type STRICT_DNS only",
        ];
        assert_eq!(found, expected);
    }
}
