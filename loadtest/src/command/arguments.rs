// SPDX-License-Identifier: Apache-2.0
//! The command line: what to simulate, and against which server. It only holds the arguments; nothing here acts on them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, Subcommand};
use distributary::cli::{Completions, Manual};

use crate::dump::given::Dump;
use crate::report::{Outputs, REPORT};
use crate::wire::place::{Place, SERVER, Trust};

/// Simulates a fleet of xDS clients, checks every response they get, and measures the server
#[derive(Clone, Debug, Parser)]
#[command(name = "distributary-load", version = distributary::telemetry::BUILD, max_term_width = 110)]
pub(crate) struct Program {
    /// Without one: `run`.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Plays the scenario in a file, or one that is built in.
    Run(Box<Arguments>),
    /// Lists the built-in scenarios.
    List,
    /// Explains a key of scenarios: what it means, its form and its default; without a key, all of them.
    Explain {
        /// `p99_below`, or the end of its path, such as `names.count`
        key: Option<String>,
    },
    /// Writes what a client is given as a bootstrap with which an Envoy starts, and as files for a relay.
    Dump(Box<Dump>),
    Completions(Completions),
    Manual(Manual),
}

/// The arguments of `run`.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// The name of a built-in scenario, a file, or FILE#NAME for one of several in a file; default: churn; for a control plane of
    /// your own, any-server.
    scenario: Option<String>,
    /// Set a key of the scenario, such as clients.count=500, `phases[].do.change.times=3` or floor=true: wherever it stands, or
    /// wherever it can if it stands nowhere; repeat for more.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<Setting>,
    /// Start this program as the relay instead of the built-in one; it gets the arguments of `distributary serve`.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["server", "direct"], help_heading = SERVER)]
    pub(crate) relay_bin: Option<PathBuf>,
    /// Test a server that already runs, `host:port` or `https://host:port`. With --control-plane, the server must use the
    /// built-in control plane at that address; without it, the server's own resources are learned as they come.
    #[arg(long, value_name = "PLACE", conflicts_with = "direct", help_heading = SERVER)]
    pub(crate) server: Option<Place>,
    /// Use your own control plane, `host:port` or `https://host:port`, instead of the built-in one. Its resources are learned as
    /// they come.
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["server", "control_plane"], help_heading = SERVER)]
    pub(crate) upstream: Option<Place>,
    /// With --server: the number of its process on this machine, to read its processor time and memory.
    #[arg(long, value_name = "PID", requires = "server", help_heading = SERVER)]
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) trust: Trust,
    /// With --server or --upstream: a name for clients that ask by name; repeat the flag for each name. Default: one client asks
    /// for everything, and the others use the names that it finds.
    #[arg(long, value_name = "NAME", help_heading = SERVER)]
    pub(crate) name: Vec<String>,
    /// Connect the clients directly to the control plane, without a relay, for comparison.
    #[arg(long, help_heading = SERVER)]
    pub(crate) direct: bool,
    /// Where the built-in control plane listens; default: any free port of 127.0.0.1.
    #[arg(long, value_name = "ADDR", help_heading = SERVER)]
    pub(crate) control_plane: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
    /// Show the figures of the run while it lasts at http://ADDR/metrics, for Prometheus.
    #[arg(long, value_name = "ADDR", help_heading = REPORT)]
    pub(crate) prometheus: Option<SocketAddr>,
}

/// A key of a scenario and its value, as in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) path: String,
    pub(crate) value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, value) = text.split_once('=').unwrap_or((text, ""));
        if path.is_empty() || value.trim().is_empty() {
            return Err("write a key and its value, such as clients.count=500".to_owned());
        }
        let [path, value] = [path, value].map(str::to_owned);
        Ok(Self { path, value })
    }
}

impl Arguments {
    /// The name or the file of the scenario to play.
    pub(crate) fn scenario(&self) -> &str {
        let usual = if self.is_foreign() { "any-server" } else { "churn" };
        self.scenario.as_deref().unwrap_or(usual)
    }

    /// Whether the resources come from a control plane that is not part of this program.
    pub(crate) const fn is_foreign(&self) -> bool {
        self.upstream.is_some() || (self.server.is_some() && self.control_plane.is_none())
    }
}
