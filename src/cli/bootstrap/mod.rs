//! `distributary bootstrap`: prints what a client needs to find the relay. It knows the two forms, and starts nothing.

mod envoy;
mod grpc;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};

use crate::config::{Authority, Config, Endpoint, Flags, host_name};

/// Print a bootstrap for clients of the relay
#[derive(Debug, Args)]
pub(super) struct Bootstrap {
    #[command(subcommand)]
    client: Client,
}

#[derive(Debug, Subcommand)]
enum Client {
    /// For Envoy, as YAML: `envoy -c FILE`
    Envoy {
        #[command(flatten)]
        common: Common,
        /// The form of the stream
        #[arg(long, value_enum, default_value_t = Dialect::Delta)]
        dialect: Dialect,
        /// The port of Envoy's own admin address on loopback
        #[arg(long, value_name = "PORT", default_value_t = 19000)]
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
    /// The relay's configuration, for its authorities and its names of listeners
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// PEM file of the authorities that an https relay is trusted by [default: the system's]
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
    /// The client's id [default: the name of this host]
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// The client's cluster
    #[arg(long, value_name = "CLUSTER", default_value = "")]
    node_cluster: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dialect {
    Sotw,
    Delta,
}

/// What both forms say.
struct Plan {
    node_id: String,
    node_cluster: String,
    relays: Vec<Endpoint>,
    /// TLS, with these authorities.
    tls: Option<Option<String>>,
    authorities: BTreeMap<String, Authority>,
    client_template: Option<String>,
    server_template: Option<String>,
}

impl Bootstrap {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let text = match self.client {
            Client::Envoy {
                common,
                dialect,
                admin_port,
            } => envoy::text(&common.plan()?, dialect, admin_port)?,
            Client::Grpc { common } => grpc::text(&common.plan()?)?,
        };
        out.write_all(text.as_bytes())?;
        Ok(())
    }
}

impl Common {
    fn plan(self) -> anyhow::Result<Plan> {
        let mut relays = Vec::new();
        let mut tls: Option<bool> = None;
        for text in &self.relay {
            let (endpoint, secure) = Endpoint::parse(text)
                .map_err(anyhow::Error::msg)
                .with_context(|| "--relay".to_owned())?;
            if *tls.get_or_insert(secure) != secure {
                bail!("--relay: `{text}` and the ones before it must all be https or none of them");
            }
            relays.push(endpoint);
        }
        let tls = tls.unwrap_or_default();
        if self.ca.is_some() && !tls {
            bail!("--ca has no use without TLS; write --relay https://host:port");
        }
        let upstream = match &self.config {
            Some(file) => Config::load(Some(file), &Flags::of_environment())?.upstream,
            None => crate::config::Upstream::default(),
        };
        Ok(Plan {
            node_id: self.node_id.unwrap_or_else(host_name),
            node_cluster: self.node_cluster,
            relays,
            tls: tls.then_some(self.ca),
            authorities: upstream.authorities,
            client_template: upstream.client_default_listener_resource_name_template,
            server_template: upstream.server_listener_resource_name_template,
        })
    }
}
