// SPDX-License-Identifier: Apache-2.0
//! The bootstrap of Envoy. Owns Envoy's names of fields.

use std::fmt::Write;
use std::net::IpAddr;

use anyhow::bail;
use serde_json::Value;

use super::{Dialect, Plan, Trust};
use crate::config::Endpoint;
use crate::json::{Bounds, Tree};

/// Which relay an Envoy asks, and how soon it connects again. Without the second it waits for up to 30 s after a relay has come back.
const SERVICE: &str =
    "{ cluster_name: distributary, retry_policy: { retry_back_off: { base_interval: 0.1s, max_interval: 16s } } }";
/// Without health checks Envoy never turns to the next relay of a list. They begin at once: by default, an unused cluster is checked once
/// a minute.
const HEALTH_CHECKS: &str = "      health_checks:
        - tcp_health_check: {}
          timeout: 2s
          interval: 5s
          no_traffic_interval: 5s
          unhealthy_threshold: 2
          healthy_threshold: 1
";

pub(super) fn text(plan: &Plan, dialect: Dialect, admin_port: u16) -> anyhow::Result<String> {
    let kind = match dialect {
        Dialect::Sotw => "GRPC",
        Dialect::Delta => "DELTA_GRPC",
    };
    let id = quoted(&plan.node_id)?;
    // Envoy does not start without a node cluster.
    let cluster = match plan.node_cluster.as_str() {
        "" => quoted("default")?,
        given => quoted(given)?,
    };
    let mut text = format!(
        "\
# For Envoy behind Distributary: envoy -c FILE
node:
  id: {id}
  cluster: {cluster}
admin:
  address:
    socket_address: {{ address: 127.0.0.1, port_value: {admin_port} }}
dynamic_resources:
  ads_config:
    api_type: {kind}
    transport_api_version: V3
    set_node_on_first_message_only: true
    grpc_services:
      - envoy_grpc: {SERVICE}
  cds_config: {{ resource_api_version: V3, ads: {{}} }}
  lds_config: {{ resource_api_version: V3, ads: {{}} }}
"
    );
    if !plan.authorities.is_empty() {
        text += &federation(plan, kind)?;
    }
    text += &cluster_of(plan)?;
    Ok(text)
}

/// Returns the sources for xdstp names. Envoy supports them since 1.36, behind a runtime guard.
fn federation(plan: &Plan, kind: &str) -> anyhow::Result<String> {
    let names = plan
        .authorities
        .keys()
        .map(|name| Ok(format!("{{ name: {} }}", quoted(name)?)));
    let names = names.collect::<anyhow::Result<Vec<_>>>()?.join(", ");
    Ok(format!(
        "\
config_sources:
  - authorities: [{names}]
    resource_api_version: V3
    api_config_source:
      api_type: AGGREGATED_{kind}
      transport_api_version: V3
      set_node_on_first_message_only: true
      grpc_services:
        - envoy_grpc: {SERVICE}
layered_runtime:
  layers:
    - name: distributary
      static_layer:
        envoy.reloadable_features.xdstp_based_config_singleton_subscriptions: true
    - name: admin
      admin_layer: {{}}
"
    ))
}

/// Returns the cluster of the relays.
pub(super) fn cluster(plan: &Plan) -> anyhow::Result<Value> {
    let tree = Tree::yaml(cluster_of(plan)?.as_bytes(), Bounds::FILE)?;
    let whole: Value = serde_json::from_str(&tree.to_json())?;
    let cluster = whole.pointer("/static_resources/clusters/0");
    Ok(cluster.cloned().unwrap_or_default())
}

fn cluster_of(plan: &Plan) -> anyhow::Result<String> {
    let discovery = discovery(&plan.relays)?;
    let mut text = format!(
        "\
static_resources:
  clusters:
    - name: distributary
{discovery}      connect_timeout: 5s
      upstream_connection_options:
        tcp_keepalive: {{ keepalive_time: 30, keepalive_interval: 10, keepalive_probes: 3 }}
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config:
            http2_protocol_options:
              connection_keepalive: {{ interval: 30s, timeout: 10s }}
      load_assignment:
        cluster_name: distributary
        endpoints:
"
    );
    for (priority, relay) in plan.relays.iter().enumerate() {
        let address = match relay {
            Endpoint::Tcp { host, port } => {
                format!("socket_address: {{ address: {}, port_value: {port} }}", quoted(host)?)
            }
            Endpoint::Unix(path) => format!("pipe: {{ path: {} }}", quoted(&path.to_string_lossy())?),
        };
        write!(
            text,
            "          - priority: {priority}\n            lb_endpoints:\n              - endpoint: {{ address: {{ {address} }} }}\n"
        )?;
    }
    if plan.relays.len() > 1 {
        text += HEALTH_CHECKS;
    }
    if let Some(trust) = &plan.tls {
        text += &tls(&plan.relays, trust)?;
    }
    Ok(text)
}

/// Returns how the addresses are found. Envoy resolves host names only for one type of cluster, and accepts Unix sockets only for the
/// other. By default it uses the IPv6 addresses of a name alone, if it has any.
fn discovery(relays: &[Endpoint]) -> anyhow::Result<&'static str> {
    let named = |relay: &Endpoint| matches!(relay, Endpoint::Tcp { host, .. } if host.parse::<IpAddr>().is_err());
    let local = |relay: &Endpoint| matches!(relay, Endpoint::Unix(_));
    match (relays.iter().any(named), relays.iter().any(local)) {
        (true, true) => bail!("--relay: Envoy cannot mix host names and unix: in one cluster; write IP addresses"),
        (true, false) => Ok("      type: STRICT_DNS\n      dns_lookup_family: ALL\n"),
        (false, _) => Ok("      type: STATIC\n"),
    }
}

/// Returns the TLS settings. Envoy expects the same name in the certificates of all endpoints of a cluster.
fn tls(relays: &[Endpoint], trust: &Trust) -> anyhow::Result<String> {
    let mut hosts = Vec::new();
    for relay in relays {
        match relay {
            Endpoint::Tcp { host, .. } => hosts.push(host),
            Endpoint::Unix(_) => bail!("--relay: a unix: address cannot have TLS; write https://host:port"),
        }
    }
    hosts.dedup();
    let [name] = hosts[..] else {
        bail!("--relay: with TLS, Envoy expects the same host name for all relays; give them one name in DNS");
    };
    let trusted = match &trust.authorities {
        Some(file) => format!("trusted_ca: {{ filename: {} }}", quoted(file)?),
        None => "system_root_certs: {}".to_owned(),
    };
    let shown = match &trust.identity {
        Some((certificate, key)) => format!(
            "
            tls_certificates:
              - certificate_chain: {{ filename: {} }}
                private_key: {{ filename: {} }}",
            quoted(certificate)?,
            quoted(key)?
        ),
        None => String::new(),
    };
    let kind = if name.parse::<IpAddr>().is_ok() {
        "IP_ADDRESS"
    } else {
        "DNS"
    };
    let name = quoted(name)?;
    Ok(format!(
        "      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
          sni: {name}
          common_tls_context:
            alpn_protocols: [h2]{shown}
            validation_context:
              {trusted}
              match_typed_subject_alt_names:
                - {{ san_type: {kind}, matcher: {{ exact: {name} }} }}
"
    ))
}

/// Returns the text as a JSON string, which is also valid YAML.
fn quoted(text: &str) -> anyhow::Result<String> {
    Ok(serde_json::to_string(text)?)
}
