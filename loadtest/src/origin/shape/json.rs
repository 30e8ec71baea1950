//! The same bodies as JSON, for clients that poll; and a canonical form of JSON, so that two texts with the same meaning are
//! equal. Shares no code with the relay, so that both cannot be wrong in the same way.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Body, MANAGER, TCP_PORT, endpoint_address};
use crate::wire::kind::Kind;

impl Body<'_> {
    /// Returns the same content as the encoded body.
    pub(crate) fn json(&self) -> Value {
        let (name, padding) = (self.name, String::from_utf8_lossy(&self.padding()).into_owned());
        let mut value = match self.kind {
            Kind::Cds if self.refers.is_empty() => json!({ "name": name, "alt_stat_name": padding }),
            Kind::Cds => json!({
                "name": name, "type": "EDS", "eds_cluster_config": { "eds_config": ads() }, "alt_stat_name": padding,
            }),
            Kind::Eds => {
                let endpoint = |at| {
                    let address = address(&endpoint_address(self.seed.wrapping_add(at)), TCP_PORT);
                    json!({ "endpoint": { "address": address } })
                };
                let endpoints: Vec<_> = (0..self.endpoints()).map(endpoint).collect();
                json!({
                    "cluster_name": name,
                    "endpoints": [{ "locality": { "sub_zone": padding }, "lb_endpoints": endpoints }],
                })
            }
            Kind::Lds => {
                let route = self.refers.first().map_or("none", String::as_str);
                let manager = json!({
                    "@type": MANAGER, "stat_prefix": padding,
                    "rds": { "config_source": ads(), "route_config_name": route },
                });
                json!({
                    "name": name, "address": address("127.0.0.1", 10_000),
                    "filter_chains": [{ "filters": [{ "name": "http", "typed_config": manager }] }],
                })
            }
            Kind::Rds => json!({
                "name": name,
                "virtual_hosts": [{ "name": padding, "domains": ["*"], "routes": self.routes() }],
            }),
            Kind::Vhds => json!({ "name": name, "domains": [padding], "routes": self.routes() }),
            // Nobody polls for these.
            Kind::Sds | Kind::Rtds | Kind::Ecds | Kind::Own => Value::Null,
            Kind::IstioAddress | Kind::IstioWorkload | Kind::IstioAuthorization => Value::Null,
            Kind::CdsV2 | Kind::EdsV2 | Kind::LdsV2 | Kind::RdsV2 => Value::Null,
        };
        if let Some(object) = value.as_object_mut() {
            object.insert("@type".to_owned(), self.kind.type_url().into());
        }
        value
    }

    fn routes(&self) -> Vec<Value> {
        let route =
            |cluster: &String| json!({ "match": { "prefix": format!("/{cluster}") }, "route": { "cluster": cluster } });
        self.refers.iter().map(route).collect()
    }
}

fn ads() -> Value {
    json!({ "ads": {}, "resource_api_version": "V3" })
}

fn address(ip: &str, port: u64) -> Value {
    json!({ "socket_address": { "address": ip, "port_value": port } })
}

/// Returns the canonical form of a value: keys are sorted and in the form of the `.proto` file, whichever of the two forms they
/// came in.
pub(crate) fn canonical(value: &Value) -> Vec<u8> {
    sorted(value).to_string().into_bytes()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.iter().map(|(key, value)| (snake(key), sorted(value))).collect();
            fields.into_iter().collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// `portValue` is `port_value`.
fn snake(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 2);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_text_are_one() {
        let one: Value = serde_json::from_str(r#"{"portValue": 1, "address": {"b": [{}], "a": "X"}}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"address": {"a": "X", "b": [{}]}, "port_value": 1}"#).unwrap();
        assert_eq!(canonical(&one), canonical(&other));
        let third: Value = serde_json::from_str(r#"{"address": {"a": "Y", "b": [{}]}, "port_value": 1}"#).unwrap();
        assert_ne!(canonical(&one), canonical(&third));
    }

    /// The relay's own descriptors decode the encoded bodies to the same JSON.
    #[test]
    fn it_says_what_the_encoded_body_says() {
        let schemas = distributary::json::Schemas::standard();
        let refers = ["cluster-0000001".to_owned()];
        for kind in [Kind::Cds, Kind::Eds, Kind::Lds, Kind::Rds] {
            for bytes in [10, 700, 5000] {
                let body = Body {
                    kind,
                    name: "own",
                    refers: &refers,
                    seed: 7,
                    bytes,
                };
                let text = schemas
                    .resource_json(kind.type_url(), &body.encode(), distributary::json::Secrets::Show)
                    .unwrap()
                    .text;
                let read: Value = serde_json::from_slice(&text).unwrap();
                assert_eq!(canonical(&read), canonical(&body.json()), "{kind:?}");
            }
        }
    }
}
