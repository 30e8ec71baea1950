//! The command line: what to simulate and against what. It only says what was asked for; nothing here acts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::report::Outputs;

/// Simulates a fleet of xDS clients, checks every response they get, and measures the server.
///
/// Without arguments: a built-in control plane, a relay in front of it, 300 clients and some changes.
#[derive(Clone, Debug, Parser)]
#[command(name = "distributary-load", version)]
pub(crate) struct Arguments {
    /// What happens; all but `churn` speak delta, through relays of their own.
    #[arg(long, value_enum, default_value_t = Scenario::Churn)]
    pub(crate) scenario: Scenario,
    /// How many clients, each with a connection of its own; default: 300 for `churn`, else 1000.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    clients: Option<u32>,
    /// How many resources the control plane has.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) resources: u32,
    /// The size of one resource.
    #[arg(long, default_value_t = 1024)]
    pub(crate) bytes: usize,
    /// How many changes of one resource each are measured.
    #[arg(long, default_value_t = 20)]
    pub(crate) changes: u32,
    /// How many changes a second, such as `2/s`.
    #[arg(long, default_value = "2/s", value_parser = rate)]
    pub(crate) rate: f64,
    /// What the clients speak.
    #[arg(long, value_enum, default_value_t = Dialect::Delta)]
    pub(crate) dialect: Dialect,
    /// What the clients ask for: all clusters, or endpoints by name.
    #[arg(long, value_enum, default_value_t = Kind::Cds)]
    pub(crate) kind: Kind,
    /// How many names each client asks for where it asks by name.
    #[arg(long, default_value_t = 100)]
    pub(crate) names: u32,
    /// Start this program as the relay instead of the built-in one; it gets the arguments of `distributary serve`.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["server", "direct"])]
    pub(crate) relay_bin: Option<PathBuf>,
    /// Use a server that already runs; its upstream must be the address given by --control-plane.
    #[arg(long, value_name = "ADDR", requires = "control_plane", conflicts_with = "direct")]
    pub(crate) server: Option<SocketAddr>,
    /// Connect the clients to the control plane itself, for comparison.
    #[arg(long)]
    pub(crate) direct: bool,
    /// Where the built-in control plane listens; default: any free port of 127.0.0.1.
    #[arg(long, value_name = "ADDR")]
    pub(crate) control_plane: Option<SocketAddr>,
    /// How long, in seconds, the idle relay is watched before the changes begin.
    #[arg(long, default_value = "3", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) idle: Duration,
    /// How long, in seconds, any one step may take before the run fails.
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) deadline: Duration,
    /// How many threads the clients share.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// What happens to the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Clients join, resources change, one goes and returns.
    Churn,
    /// Two control planes of which the first fails and returns, twice, with names of an authority and of old style.
    Failover,
    /// A relay above a relay, and each of them restarted.
    Chain,
    /// A relay killed while its control plane is away.
    WarmStart,
}

impl Scenario {
    /// Its name on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Churn => "churn",
            Self::Failover => "failover",
            Self::Chain => "chain",
            Self::WarmStart => "warm-start",
        }
    }
}

impl Arguments {
    /// How many clients there are; of a chain, at either relay.
    pub(crate) const fn clients(&self) -> u32 {
        match (self.clients, self.scenario) {
            (Some(clients), _) => clients,
            (None, Scenario::Churn) => 300,
            (None, Scenario::Failover | Scenario::Chain | Scenario::WarmStart) => 1000,
        }
    }
}

/// The two forms of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// Incremental.
    Delta,
    /// State of the world.
    Sotw,
}

/// What the clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// All clusters, by wildcard.
    Cds,
    /// Endpoints, by name.
    Eds,
}

impl Dialect {
    /// The gRPC method of the aggregated service.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Delta => "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
            Self::Sotw => "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Sotw => "SotW",
        }
    }
}

impl Kind {
    pub(crate) const fn type_url(self) -> &'static str {
        match self {
            Self::Cds => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Eds => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
        }
    }

    /// Whether clients ask for everything.
    pub(crate) const fn wildcard(self) -> bool {
        matches!(self, Self::Cds)
    }

    /// B-16: whether what a SotW answer lacks is gone.
    pub(crate) const fn full_state(self) -> bool {
        matches!(self, Self::Cds)
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    match number.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        Ok(_) | Err(_) => Err("expected a positive number of changes a second, such as 2/s".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    number
        .parse::<f64>()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds, such as 3 or 0.5".to_owned())
}
