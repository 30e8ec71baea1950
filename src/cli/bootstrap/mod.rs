// SPDX-License-Identifier: Apache-2.0
//! `distributary bootstrap`: prints the bootstrap with which a client finds the relay. Owns both forms; starts nothing.

mod envoy;
mod from_envoy;
mod from_grpc;
mod given;
mod grpc;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use super::asked::Dialect;
use given::Given;

use crate::config::{Address, Authority, Config, Endpoint, Flags, Listener, host_name};
use crate::proto::envoy::config::core::v3::Node;

/// Print a bootstrap for clients of the relay
#[derive(Debug, Args)]
pub(super) struct BootstrapCommand {
    #[command(subcommand)]
    client: BootstrapClient,
}

#[derive(Debug, Subcommand)]
enum BootstrapClient {
    /// For Envoy, as YAML: `envoy -c FILE`
    Envoy {
        #[command(flatten)]
        common: Common,
        /// The dialect of the stream
        #[arg(long, value_enum, default_value_t = Dialect::Delta, conflicts_with = "from")]
        dialect: Dialect,
        /// The port of Envoy's own admin address on loopback
        #[arg(long, value_name = "PORT", default_value_t = 19000, conflicts_with = "from")]
        admin_port: u16,
    },
    /// For gRPC clients, as JSON: GRPC_XDS_BOOTSTRAP=FILE
    Grpc {
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Args)]
struct Common {
    /// Where clients reach the relay: host:port, http(s)://host:port or unix:/path; repeat in order of priority
    #[arg(long, value_name = "ADDRESS", required = true)]
    relay: Vec<String>,
    /// The bootstrap that the client has: it is printed with the relay in place of whom it asks, and what is replaced is said
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "node_id", "node_cluster"])]
    from: Option<PathBuf>,
    /// Print the relay's own configuration file: it asks whom the client has asked
    #[arg(long, requires = "from")]
    relay_config: bool,
    /// The relay's configuration file: gives the authorities, the listener name templates, and whether listeners use TLS
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// PEM file of the authorities that the client trusts for TLS, by its path on the client [default: the system's]
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
    /// PEM file of the client's certificate, by its path on the client
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<String>,
    /// PEM file of its key
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<String>,
    /// The client's id [default: the name of this host]
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// The client's cluster
    #[arg(long, value_name = "CLUSTER", default_value = "default")]
    node_cluster: String,
}

/// The content of both forms.
struct Plan {
    node_id: String,
    node_cluster: String,
    relays: Vec<Endpoint>,
    tls: Option<Trust>,
    authorities: BTreeMap<String, Authority>,
    client_template: Option<String>,
    server_template: Option<String>,
}

const UNIX_FOR_GO: &str = "warning: over a Unix socket the relay serves gRPC in Go; gRPC's C core (C++, Python, Ruby, PHP) and Java send \
     the socket's path as `:authority`, which HTTP/2 refuses: use a listener on loopback for those";

const NODE_STAYS: &str =
    "node: stays; the control plane sees the relay's own node instead, unless `classes` of the relay say otherwise";

/// The client's files for TLS.
struct Trust {
    authorities: Option<String>,
    /// The client's certificate and its key.
    identity: Option<(String, String)>,
}

impl BootstrapCommand {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        let text = match self.client {
            BootstrapClient::Envoy {
                common,
                dialect,
                admin_port,
            } => match common.given(true)? {
                None => envoy::text(&common.plan()?, dialect, admin_port)?,
                Some(given) if common.relay_config => from_envoy::relay_file(&common.plan()?, &given, notes)?,
                Some(given) => from_envoy::adopted(&common.plan()?, &given, notes)?,
            },
            BootstrapClient::Grpc { common } => {
                let (given, prints_relay, plan) = (common.given(false)?, common.relay_config, common.plan()?);
                if !prints_relay && plan.relays.iter().any(|relay| matches!(relay, Endpoint::Unix(_))) {
                    writeln!(notes, "{UNIX_FOR_GO}")?;
                }
                match given {
                    None => grpc::text(&plan)?,
                    Some(given) if prints_relay => from_grpc::relay_file(&plan, &given)?,
                    Some(given) => from_grpc::adopted(&plan, &given, notes)?,
                }
            }
        };
        out.write_all(text.as_bytes())?;
        Ok(())
    }
}

impl Common {
    /// Returns the bootstrap that the client has.
    fn given(&self, yaml: bool) -> anyhow::Result<Option<Given>> {
        let given = self.from.as_deref().map(|path| Given::read(path, yaml));
        given.transpose()
    }

    fn plan(self) -> anyhow::Result<Plan> {
        let config = self.config.as_deref();
        let config = config.map(|file| Config::load(Some(file), &Flags::of_environment()));
        let config = config.transpose()?;
        let listeners = config.as_ref().map_or(&[][..], |config| &config.listeners);
        let mut relays = Vec::new();
        let mut tls: Option<bool> = None;
        for text in &self.relay {
            let parsed = Endpoint::parse(text).map_err(anyhow::Error::msg);
            let (endpoint, scheme) = parsed.context("--relay")?;
            let behind = behind(&endpoint, listeners);
            let secure = scheme.unwrap_or_else(|| behind.iter().any(|listener| listener.tls.is_some()));
            if *tls.get_or_insert(secure) != secure {
                bail!("--relay: `{text}` and the addresses before it must either all use https or none of them");
            }
            let asks = |listener: &&Listener| listener.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
            if secure && self.cert.is_none() && behind.iter().any(asks) {
                bail!("--relay: `{text}` asks clients for a certificate (client_ca); add --cert and --key");
            }
            relays.push(endpoint);
        }
        let secure = tls.unwrap_or_default();
        for (flag, given) in [("--ca", &self.ca), ("--cert", &self.cert)] {
            if given.is_some() && !secure {
                bail!("{flag} has no effect without TLS; write --relay https://host:port");
            }
        }
        let trust = Trust {
            authorities: self.ca,
            identity: self.cert.zip(self.key),
        };
        let upstream = config.map(|config| config.upstream).unwrap_or_default();
        Ok(Plan {
            node_id: self.node_id.unwrap_or_else(host_name),
            node_cluster: self.node_cluster,
            relays,
            tls: secure.then_some(trust),
            authorities: upstream.authorities,
            client_template: upstream.client_default_listener_resource_name_template,
            server_template: upstream.server_listener_resource_name_template,
        })
    }
}

/// Returns the node of a bootstrap of Envoy or gRPC as a control plane sees it, with the name that the client's software adds. `whole`:
/// whom it asks matters, too, and is checked as it is for `--from`.
pub(super) fn node_in(path: &Path, whole: bool) -> anyhow::Result<Node> {
    let given = Given::read(path, true)?;
    let of_envoy = ["dynamic_resources", "static_resources", "config_sources"];
    let of_envoy = of_envoy.iter().any(|key| given::member(&given.value, key).is_some());
    match (whole, of_envoy) {
        (false, _) => {}
        (true, true) => drop(from_envoy::asked(&given)?),
        (true, false) => from_grpc::checked(&given)?,
    }
    let mut node = given.node()?;
    if node.id.is_empty() {
        return Err(given.fault("node", "node.id is missing; control planes refuse a node without an id"));
    }
    if node.user_agent_name.is_empty() {
        let of_grpc = given.value.get("xds_servers").is_some();
        node.user_agent_name = if of_grpc { "gRPC Go" } else { "envoy" }.to_owned();
    }
    Ok(node)
}

/// Returns the listeners that the address may reach: those with the same port, or all, because a port may be mapped.
fn behind<'a>(relay: &Endpoint, listeners: &'a [Listener]) -> Vec<&'a Listener> {
    let Endpoint::Tcp { port, .. } = relay else {
        return Vec::new();
    };
    let bound = |listener: &&Listener| match &listener.address {
        Address::Socket(address) => Some(address.port()),
        Address::Unix(_) => None,
    };
    let all = || listeners.iter().filter(|listener| bound(listener).is_some());
    let same: Vec<_> = all().filter(|listener| bound(listener) == Some(*port)).collect();
    if same.is_empty() { all().collect() } else { same }
}
