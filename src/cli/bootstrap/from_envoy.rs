// SPDX-License-Identifier: Apache-2.0
//! The bootstrap that an Envoy has, with the relay in place of whom it asks. Owns which clusters these are, and what of them is replaced.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Map, Value, json};

use super::given::{Given, camel, elements, member, member_mut, set, text};
use super::{NODE_STAYS, Plan, envoy};
use crate::config::Endpoint;

/// What of a cluster says where its endpoints are, and how to speak to them.
const REPLACED: [&str; 12] = [
    "type",
    "cluster_type",
    "hosts",
    "load_assignment",
    "eds_cluster_config",
    "dns_lookup_family",
    "health_checks",
    "outlier_detection",
    "transport_socket",
    "transport_socket_matches",
    "tls_context",
    "upstream_bind_config",
];

/// A place that says whom an Envoy asks.
struct EnvoySource<'a> {
    /// Where it stands.
    place: String,
    api: &'a Value,
    /// The authorities that it is for; if empty, the names without one.
    authorities: Vec<&'a str>,
}

/// Returns all sources.
fn sources(whole: &Value) -> Vec<EnvoySource<'_>> {
    let mut all = Vec::new();
    let mut put = |place, api: Option<_>, authorities| {
        all.extend(api.map(|api| EnvoySource {
            place,
            api,
            authorities,
        }))
    };
    let dynamic = member(whole, "dynamic_resources").unwrap_or(&Value::Null);
    put(
        "dynamic_resources.ads_config".to_owned(),
        member(dynamic, "ads_config"),
        Vec::new(),
    );
    let api = |source| member(source, "api_config_source");
    for kind in ["lds_config", "cds_config"] {
        put(
            format!("dynamic_resources.{kind}"),
            member(dynamic, kind).and_then(api),
            Vec::new(),
        );
    }
    let default = member(whole, "default_config_source").into_iter();
    for (at, source) in elements(whole, "config_sources").chain(default).enumerate() {
        let names = elements(source, "authorities").filter_map(|authority| text(authority, "name"));
        put(format!("config_sources[{at}]"), api(source), names.collect());
    }
    all
}

impl EnvoySource<'_> {
    /// Returns the clusters that it asks, in their order.
    fn clusters(&self, given: &Given) -> anyhow::Result<Vec<&str>> {
        let mut names: Vec<&str> = elements(self.api, "cluster_names").filter_map(Value::as_str).collect();
        for service in elements(self.api, "grpc_services") {
            let Some(envoy) = member(service, "envoy_grpc") else {
                let what = format!("{}: google_grpc has no cluster to replace; use envoy_grpc", self.place);
                return Err(given.fault("oogle", &what));
            };
            names.extend(member(envoy, "cluster_name").and_then(Value::as_str));
        }
        Ok(names)
    }
}

/// Returns the cluster of this name.
fn cluster<'a>(given: &'a Given, name: &str) -> anyhow::Result<&'a Value> {
    let resources = member(&given.value, "static_resources").unwrap_or(&Value::Null);
    let found = elements(resources, "clusters").find(|cluster| text(cluster, "name") == Some(name));
    let what = || format!("the cluster `{name}` is asked, and not in static_resources.clusters");
    found.ok_or_else(|| given.fault(name, &what()))
}

/// Returns the names of all clusters that are asked.
pub(super) fn asked(given: &Given) -> anyhow::Result<BTreeSet<String>> {
    let mut asked = BTreeSet::new();
    for source in sources(&given.value) {
        for name in source.clusters(given)? {
            cluster(given, name)?;
            asked.insert(name.to_owned());
        }
    }
    let what = "neither dynamic_resources nor config_sources name a cluster to ask";
    match asked.is_empty() {
        true => Err(given.fault("dynamic", what)),
        false => Ok(asked),
    }
}

pub(super) fn adopted(plan: &Plan, given: &Given, notes: &mut impl Write) -> anyhow::Result<String> {
    let asked = asked(given)?;
    for source in sources(&given.value) {
        let services = elements(source.api, "grpc_services");
        for header in services.flat_map(|service| elements(service, "initial_metadata")) {
            let key = member(header, "key").and_then(Value::as_str).unwrap_or_default();
            writeln!(
                notes,
                "{}: the header {key} goes to the relay, which does not pass it on",
                source.place
            )?;
        }
    }
    let new = envoy::cluster(plan)?;
    let mut whole = given.value.clone();
    let resources = member_mut(&mut whole, "static_resources");
    let clusters = resources.and_then(|resources| member_mut(resources, "clusters")?.as_array_mut());
    for cluster in clusters.into_iter().flatten() {
        let name = text(cluster, "name").filter(|name| asked.contains(*name));
        let Some(name) = name.map(str::to_owned) else {
            continue;
        };
        let before = endpoints(cluster).join(", ");
        let mut secured = ["transport_socket", "tls_context"].iter();
        let had_tls = secured.any(|key| member(cluster, key).is_some());
        let Some(members) = cluster.as_object_mut() else {
            continue;
        };
        for key in REPLACED {
            let mut written = [key.to_owned(), camel(key)].into_iter();
            let went = written.any(|key| members.remove(&key).is_some());
            if went && key == "health_checks" {
                writeln!(notes, "cluster {name}: its health checks went")?;
            }
        }
        for key in REPLACED {
            let Some(mut value) = new.get(key).cloned() else {
                continue;
            };
            if key == "load_assignment" {
                set(&mut value, "cluster_name", json!(name));
            }
            members.insert(key.to_owned(), value);
        }
        let relays: Vec<_> = plan.relays.iter().map(ToString::to_string).collect();
        writeln!(notes, "cluster {name}: {} in place of {before}", relays.join(", "))?;
        let word = |tls: bool| if tls { "TLS" } else { "plaintext" };
        let (now, before) = (word(plan.tls.is_some()), word(had_tls));
        writeln!(notes, "cluster {name}: {now} in place of {before}")?;
    }
    others(&given.value, "", &asked, notes)?;
    writeln!(notes, "{NODE_STAYS}")?;
    given.printed(&whole)
}

/// Names what else asks the replaced clusters: the relay answers for resources only.
fn others(value: &Value, path: &str, asked: &BTreeSet<String>, notes: &mut impl Write) -> anyhow::Result<()> {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if ["load_stats_config", "loadStatsConfig", "hds_config", "hdsConfig"].contains(&key.as_str()) {
                    let text = member.to_string();
                    if let Some(name) = asked.iter().find(|name| text.contains(&format!("\"{name}\""))) {
                        writeln!(
                            notes,
                            "{path}{key}: asks the cluster {name}, and the relay refuses load reports and health checks; give it a cluster of its own"
                        )?;
                    }
                    continue;
                }
                others(member, &format!("{path}{key}."), asked, notes)?;
            }
        }
        Value::Array(items) => {
            for item in items {
                others(item, path, asked, notes)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// Returns the addresses of a cluster by priority, as the relay writes them.
fn endpoints(cluster: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let assignment = member(cluster, "load_assignment").unwrap_or(&Value::Null);
    for group in elements(assignment, "endpoints") {
        let priority = member(group, "priority").and_then(Value::as_u64).unwrap_or_default();
        for endpoint in elements(group, "lb_endpoints") {
            let address = member(endpoint, "endpoint").and_then(|endpoint| member(endpoint, "address"));
            found.extend(address.and_then(written).map(|address| (priority, address)));
        }
    }
    found.sort_by_key(|(priority, _)| *priority);
    found.into_iter().map(|(_, address)| address).collect()
}

fn written(address: &Value) -> Option<String> {
    if let Some(path) = member(address, "pipe").and_then(|pipe| text(pipe, "path")) {
        return Some(format!("unix:{path}"));
    }
    let socket = member(address, "socket_address")?;
    let (host, port) = (
        text(socket, "address")?.to_owned(),
        member(socket, "port_value")?.as_u64()?,
    );
    let port = u16::try_from(port).ok()?;
    Some(Endpoint::Tcp { host, port }.to_string())
}

/// Returns the file of a relay that asks in place of the Envoy.
pub(super) fn relay_file(plan: &Plan, given: &Given, notes: &mut impl Write) -> anyhow::Result<String> {
    asked(given)?;
    let (mut top, mut authorities) = (Vec::new(), Map::new());
    for source in sources(&given.value) {
        let mut servers = Vec::new();
        for name in source.clusters(given)? {
            servers.extend(servers_of(given, name, notes)?);
        }
        for authority in &source.authorities {
            authorities.insert((*authority).to_owned(), json!({"xds_servers": servers}));
        }
        if source.authorities.is_empty() && top.is_empty() {
            top = servers;
        }
    }
    let mut upstream = json!({"xds_servers": top});
    if !authorities.is_empty() {
        set(&mut upstream, "authorities", authorities.into());
    }
    given.relay_file(plan, &upstream)
}

/// Returns the servers that a cluster stands for.
fn servers_of(given: &Given, name: &str, notes: &mut impl Write) -> anyhow::Result<Vec<Value>> {
    let cluster = cluster(given, name)?;
    let socket = member(cluster, "transport_socket").and_then(|socket| member(socket, "typed_config"));
    let creds = match socket {
        Some(context) => json!({"type": "tls", "config": tls(context, name, notes)?}),
        None => json!({"type": "insecure"}),
    };
    let addresses = endpoints(cluster);
    if addresses.is_empty() {
        let what = format!("the cluster `{name}` has no endpoints in load_assignment");
        return Err(given.fault(name, &what));
    }
    let server = |address: String| json!({"server_uri": address, "channel_creds": [creds]});
    Ok(addresses.into_iter().map(server).collect())
}

/// Returns gRPC's form of an UpstreamTlsContext, as far as it names files.
fn tls(context: &Value, name: &str, notes: &mut impl Write) -> anyhow::Result<Value> {
    let mut config = Map::new();
    let common = member(context, "common_tls_context").unwrap_or(&Value::Null);
    let combined =
        member(common, "combined_validation_context").and_then(|both| member(both, "default_validation_context"));
    let trusted = member(common, "validation_context")
        .or(combined)
        .and_then(|one| member(one, "trusted_ca"));
    let mut put = |key: &str, file: Option<&Value>| {
        let file = file.and_then(|file| member(file, "filename"));
        config.extend(file.map(|file| (key.to_owned(), file.clone())));
    };
    put("ca_certificate_file", trusted);
    let shown = elements(common, "tls_certificates").next().unwrap_or(&Value::Null);
    put("certificate_file", member(shown, "certificate_chain"));
    put("private_key_file", member(shown, "private_key"));
    if let Some(sni) = text(context, "sni").filter(|sni| !sni.is_empty()) {
        config.insert("server_name".to_owned(), json!(sni));
    }
    let secrets = [
        "tls_certificate_sds_secret_configs",
        "validation_context_sds_secret_config",
        "tls_certificate_provider_instance",
        "combined_validation_context",
    ];
    if secrets.iter().any(|key| member(common, key).is_some()) {
        writeln!(
            notes,
            "cluster {name}: some of its TLS settings come from secrets; name the relay's files in channel_creds"
        )?;
    }
    Ok(config.into())
}
