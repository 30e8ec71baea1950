// SPDX-License-Identifier: Apache-2.0
//! The bootstrap that a gRPC client has, with the relay in place of whom it asks. Owns what is replaced and what goes along.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Map, Value, json};

use super::given::{Given, elements, set, text};
use super::{NODE_STAYS, Plan, grpc};
use crate::config::{Bootstrap, Config, Flags};

/// What the relay's own file takes of a bootstrap, and of an entry of `xds_servers`.
const FOR_RELAY: [&str; 4] = [
    "xds_servers",
    "authorities",
    "client_default_listener_resource_name_template",
    "server_listener_resource_name_template",
];
const OF_SERVER: [&str; 4] = ["server_uri", "channel_creds", "call_creds", "server_features"];

/// Checks the file as the relay would read it: its errors have lines.
pub(super) fn checked(given: &Given) -> anyhow::Result<()> {
    let flags = Flags {
        bootstrap: Some(Bootstrap::File(given.path().to_owned())),
        ..Flags::default()
    };
    Config::load(None, &flags)?;
    Ok(())
}

pub(super) fn adopted(plan: &Plan, given: &Given, notes: &mut impl Write) -> anyhow::Result<String> {
    checked(given)?;
    let mut whole = given.value.clone();
    if let Some(servers) = whole.get_mut("xds_servers") {
        *servers = replaced(plan, given, "xds_servers", servers, notes)?;
    }
    let authorities = whole.get_mut("authorities").and_then(Value::as_object_mut);
    for (name, authority) in authorities.into_iter().flatten() {
        if let Some(servers) = authority.get_mut("xds_servers") {
            let place = format!("authorities.{name}.xds_servers");
            *servers = replaced(plan, given, &place, servers, notes)?;
        }
    }
    if whole.get("node").is_some() {
        writeln!(notes, "{NODE_STAYS}")?;
    }
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
}

/// Returns the relays in place of these servers. What the entries say of the client itself goes along.
fn replaced(plan: &Plan, given: &Given, place: &str, servers: &Value, notes: &mut impl Write) -> anyhow::Result<Value> {
    let old = servers.as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(first) = old.first() else {
        return Ok(servers.clone());
    };
    let mut features = BTreeSet::new();
    for server in old {
        features.extend(elements(server, "server_features").filter_map(Value::as_str));
    }
    if first.get("call_creds").is_some() && plan.tls.is_none() {
        let what = format!("{place}: call_creds are sent over TLS only; write --relay https://host:port");
        return Err(given.fault("call_creds", &what));
    }
    let uris = |servers: &[Value]| {
        let uris: Vec<_> = servers.iter().filter_map(|server| text(server, "server_uri")).collect();
        uris.join(", ")
    };
    let mut new = Vec::new();
    for relay in grpc::servers(plan).as_array().into_iter().flatten() {
        let mut server = first.clone();
        for key in ["server_uri", "channel_creds"] {
            set(&mut server, key, relay.get(key).cloned().unwrap_or_default());
        }
        if !features.is_empty() {
            let features = features.iter().map(|&feature| json!(feature)).collect();
            set(&mut server, "server_features", features);
        }
        new.push(server);
    }
    writeln!(notes, "{place}: {} in place of {}", uris(&new), uris(old))?;
    let creds = |server: Option<&Value>| {
        let first = server.and_then(|server| elements(server, "channel_creds").next());
        first.and_then(|creds| text(creds, "type")).unwrap_or("none").to_owned()
    };
    let (now, before) = (creds(new.first()), creds(old.first()));
    writeln!(notes, "{place}: channel_creds {now} in place of {before}")?;
    if first.get("call_creds").is_some() {
        writeln!(
            notes,
            "{place}: call_creds go to the relay, which does not pass them on"
        )?;
    }
    for feature in features.iter().filter(|feature| **feature != "xds_v3") {
        writeln!(
            notes,
            "{place}: {feature} stays, and the relay needs it as well (--relay-config)"
        )?;
    }
    Ok(new.into())
}

/// Returns the file of a relay that asks in place of the client.
pub(super) fn relay_file(plan: &Plan, given: &Given) -> anyhow::Result<String> {
    checked(given)?;
    let pick = |of: &Value, keys: &[&str]| -> Value {
        let kept = keys
            .iter()
            .filter_map(|&key| Some((key.to_owned(), of.get(key)?.clone())));
        Value::Object(kept.collect::<Map<_, _>>())
    };
    let mut upstream = pick(&given.value, &FOR_RELAY);
    let clean = |servers: &mut Value| {
        for server in servers.as_array_mut().into_iter().flatten() {
            *server = pick(server, &OF_SERVER);
            let known = |creds: &Value| matches!(text(creds, "type"), Some("tls" | "insecure"));
            if let Some(creds) = server.get_mut("channel_creds").and_then(Value::as_array_mut) {
                creds.retain(known);
            }
        }
    };
    upstream.get_mut("xds_servers").into_iter().for_each(clean);
    let authorities = upstream.get_mut("authorities").and_then(Value::as_object_mut);
    let lists = authorities
        .into_iter()
        .flatten()
        .filter_map(|(_, authority)| authority.get_mut("xds_servers"));
    lists.for_each(clean);
    given.relay_file(plan, &upstream)
}
