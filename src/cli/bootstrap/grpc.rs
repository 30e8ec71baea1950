//! The bootstrap of gRPC clients. Owns gRPC's names of fields.

use serde_json::{Map, Value, json};

use super::{Plan, Trust};
use crate::config::Endpoint;

pub(super) fn text(plan: &Plan) -> anyhow::Result<String> {
    let servers = servers(plan);
    let mut whole = Map::new();
    let mut put = |key: &str, value: Value| whole.insert(key.to_owned(), value);
    put("xds_servers", servers.clone());
    let mut node = Map::new();
    node.insert("id".to_owned(), json!(plan.node_id));
    if !plan.node_cluster.is_empty() {
        node.insert("cluster".to_owned(), json!(plan.node_cluster));
    }
    put("node", Value::Object(node));
    let mut authorities = Map::new();
    for (name, authority) in &plan.authorities {
        let mut entry = Map::new();
        let template = &authority.client_listener_resource_name_template;
        entry.insert("client_listener_resource_name_template".to_owned(), json!(template));
        entry.insert("xds_servers".to_owned(), servers.clone());
        if authority.reachability_only {
            entry.insert("fallback_on_reachability_only".to_owned(), json!(true));
        }
        authorities.insert(name.clone(), Value::Object(entry));
    }
    if !authorities.is_empty() {
        put("authorities", Value::Object(authorities));
    }
    if let Some(template) = &plan.client_template {
        put("client_default_listener_resource_name_template", json!(template));
    }
    if let Some(template) = &plan.server_template {
        put("server_listener_resource_name_template", json!(template));
    }
    let mut text = serde_json::to_string_pretty(&Value::Object(whole))?;
    text.push('\n');
    Ok(text)
}

pub(super) fn servers(plan: &Plan) -> Value {
    let creds = plan.tls.as_ref().map_or_else(|| json!({"type": "insecure"}), tls);
    plan.relays
        .iter()
        // Old clients speak v3 only to servers that have this feature.
        .map(|relay| json!({"server_uri": uri(relay), "channel_creds": [creds], "server_features": ["xds_v3"]}))
        .collect()
}

/// gRPC writes names without a file with a scheme of their own.
fn uri(relay: &Endpoint) -> String {
    let text = relay.to_string();
    match text.strip_prefix("unix:@") {
        Some(name) => format!("unix-abstract:{name}"),
        None => text,
    }
}

fn tls(trust: &Trust) -> Value {
    let mut config = Map::new();
    let mut put = |key: &str, file: &str| config.insert(key.to_owned(), json!(file));
    if let Some(file) = &trust.authorities {
        put("ca_certificate_file", file);
    }
    if let Some((certificate, key)) = &trust.identity {
        put("certificate_file", certificate);
        put("private_key_file", key);
    }
    if config.is_empty() {
        return json!({"type": "tls"});
    }
    json!({"type": "tls", "config": config})
}
