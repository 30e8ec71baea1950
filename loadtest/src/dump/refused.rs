//! What an Envoy refuses in a bootstrap although a control plane gives it: listeners of gRPC clients, addresses that are there twice, and
//! names in the place of IP addresses. Owns the sentences that say so. Changes nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

/// Returns a sentence for each entry that Envoy refuses.
pub(super) fn refused(listeners: &[Value], clusters: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut addresses: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for listener in listeners {
        let name = name(listener);
        match listener.get("address").map(Value::to_string) {
            None if listener.get("internal_listener").is_none() => {
                found.push(sentence(
                    "lds",
                    name,
                    "it has no `address`, as the listeners of gRPC clients",
                ));
            }
            Some(address) if !has_any_port(listener) => addresses.entry(address).or_default().push(name),
            None | Some(_) => {}
        }
    }
    for names in addresses.values() {
        let [first, second, others @ ..] = names.as_slice() else {
            continue;
        };
        let others = match others.len() {
            0 => String::new(),
            more => format!(", and so have {more} more"),
        };
        found.push(sentence(
            "lds",
            second,
            &format!("it has the address of `{first}`{others}"),
        ));
    }
    for cluster in clusters.iter().filter(|cluster| is(cluster, "type", "STATIC")) {
        if let Some(host) = host_name(cluster) {
            let why = format!(
                "its endpoint `{host}` is no IP address; Envoy looks names up in clusters of the type STRICT_DNS only"
            );
            found.push(sentence("cds", name(cluster), &why));
        }
    }
    found
}

fn sentence(key: &str, name: &str, why: &str) -> String {
    format!("an Envoy will refuse bootstrap.json because of the {key} entry `{name}`: {why}")
}

fn name(resource: &Value) -> &str {
    resource.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn is(resource: &Value, key: &str, value: &str) -> bool {
    resource.get(key).and_then(Value::as_str) == Some(value)
}

/// Whether the system chooses the port.
fn has_any_port(listener: &Value) -> bool {
    let port = listener.pointer("/address/socket_address/port_value");
    listener.pointer("/address/socket_address").is_some() && port.is_none_or(|port| *port == 0)
}

/// Returns an endpoint that is a name.
fn host_name(value: &Value) -> Option<&str> {
    match value {
        Value::Object(object) => {
            let address = object
                .get("socket_address")
                .and_then(|socket| socket.get("address")?.as_str());
            let host = address.filter(|address| address.parse::<IpAddr>().is_err());
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

    /// Each of these was refused by Envoy 1.40 for this reason, and the last ones were accepted.
    #[test]
    fn what_envoy_refuses() {
        let at = |port: u16| json!({ "socket_address": { "address": "127.0.0.1", "port_value": port } });
        let listeners = [
            json!({ "name": "grpc", "api_listener": {} }),
            json!({ "name": "a", "address": at(80) }),
            json!({ "name": "b", "address": at(80) }),
            json!({ "name": "b2", "address": at(80) }),
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
        assert_eq!(
            found,
            [
                "lds entry `grpc`: it has no `address`, as the listeners of gRPC clients",
                "lds entry `b`: it has the address of `a`, and so have 1 more",
                "cds entry `named`: its endpoint `host.example` is no IP address; Envoy looks names up in clusters of the type STRICT_DNS \
                 only",
            ]
        );
    }
}
