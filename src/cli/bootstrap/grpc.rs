// SPDX-License-Identifier: Apache-2.0
//! The bootstrap of gRPC clients. Owns gRPC's names of fields.

use serde_json::{Map, Value, json};

use super::given::set;
use super::{Plan, Trust};
use crate::config::Endpoint;

pub(super) fn text(plan: &Plan) -> anyhow::Result<String> {
    let servers = servers(plan);
    let mut node = json!({"id": plan.node_id});
    if !plan.node_cluster.is_empty() {
        set(&mut node, "cluster", json!(plan.node_cluster));
    }
    let mut whole = json!({"xds_servers": servers, "node": node});
    let authorities = plan.authorities.iter().map(|(name, authority)| {
        let template = &authority.client_listener_resource_name_template;
        let mut entry = json!({"client_listener_resource_name_template": template, "xds_servers": servers});
        if authority.reachability_only {
            set(&mut entry, "fallback_on_reachability_only", json!(true));
        }
        (name.clone(), entry)
    });
    let authorities: Map<_, _> = authorities.collect();
    if !authorities.is_empty() {
        set(&mut whole, "authorities", authorities.into());
    }
    if let Some(template) = &plan.client_template {
        set(
            &mut whole,
            "client_default_listener_resource_name_template",
            json!(template),
        );
    }
    if let Some(template) = &plan.server_template {
        set(&mut whole, "server_listener_resource_name_template", json!(template));
    }
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
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
