//! The command line: what to simulate and against what. It only says what was asked for; nothing here acts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::kind::{Dialect, Kind};
use crate::place::{Place, Trust};
use crate::report::Outputs;

/// Simulates a fleet of xDS clients, checks every response they get, and measures the server.
///
/// Without arguments: a built-in control plane, a relay in front of it, 300 clients and some changes.
#[derive(Clone, Debug, Parser)]
#[command(name = "distributary-load", version, args_conflicts_with_subcommands = false)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// What happens: a scenario that is built in, or a file with one. Flags override what it says.
    #[arg(long, global = true, value_name = "NAME", default_value = "churn")]
    pub(crate) scenario: String,
    /// How many clients; default: as many as the scenario says, in a story 1000, each with a connection of its own.
    #[arg(long, global = true, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) clients: Option<u32>,
    /// How many resources the control plane has.
    #[arg(long, global = true, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) resources: u32,
    /// The size of one resource.
    #[arg(long, global = true, default_value_t = 1024)]
    pub(crate) bytes: usize,
    /// How many changes of one resource each are measured.
    #[arg(long, global = true, default_value_t = 20)]
    pub(crate) changes: u32,
    /// How many changes a second, such as `2/s`, in phases that have a `rate`.
    #[arg(long, global = true, default_value = "2/s", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: f64,
    /// What the clients speak.
    #[arg(long, global = true, value_enum, default_value_t = Dialect::Delta)]
    pub(crate) dialect: Dialect,
    /// What the clients of a story ask for: everything of a type, or names of it.
    #[arg(long, global = true, value_enum, default_value_t = Kind::Cds)]
    pub(crate) kind: Kind,
    /// How many names each client asks for where it asks by name.
    #[arg(long, global = true, default_value_t = 100)]
    pub(crate) names: u32,
    /// Start this program as the relay instead of the built-in one; it gets the arguments of `distributary serve`.
    #[arg(long, global = true, value_name = "PATH", conflicts_with_all = ["server", "direct"])]
    pub(crate) relay_bin: Option<PathBuf>,
    /// Use a server that already runs, `host:port` or `https://host:port`; with --control-plane its upstream is there, without it is
    /// what it is.
    #[arg(long, global = true, value_name = "PLACE", conflicts_with = "direct")]
    pub(crate) server: Option<Place>,
    /// A control plane of your own, `host:port` or `https://host:port`, in the place of the built-in one: what its resources are is
    /// learned as they come.
    #[arg(long, global = true, value_name = "PLACE", conflicts_with_all = ["server", "control_plane"])]
    pub(crate) upstream: Option<Place>,
    #[command(flatten)]
    pub(crate) trust: Trust,
    /// With --server or --upstream: what clients ask for that ask by name, as often as there are names; default: what a client
    /// finds that asks for everything.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// Run a bare server of the same bytes beside the relay, so that figures are multiples of what the sockets cost.
    #[arg(long, global = true)]
    pub(crate) floor: bool,
    /// The only form of the protocol that the built-in control plane knows; default: both.
    #[arg(long, global = true, value_enum, value_name = "DIALECT")]
    pub(crate) control_plane_dialect: Option<Dialect>,
    /// Connect the clients to the control plane itself, for comparison.
    #[arg(long, global = true)]
    pub(crate) direct: bool,
    /// Where the built-in control plane listens; default: any free port of 127.0.0.1.
    #[arg(long, global = true, value_name = "ADDR")]
    pub(crate) control_plane: Option<SocketAddr>,
    /// How long, in seconds, phases last in which nothing is to happen.
    #[arg(long, global = true, default_value = "3", value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) idle: Duration,
    /// How long, in seconds, any one step may take before the run fails.
    #[arg(long, global = true, default_value = "60", value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) deadline: Duration,
    /// How many threads the clients share.
    #[arg(long, global = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Plays the scenario in a file, or one that is built in.
    Run {
        /// `steady`, or `path/to/scenario.yaml`
        scenario: String,
    },
}

/// Which flags were given, as far as they override a scenario.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) clients: Option<u32>,
    pub(crate) resources: Option<u32>,
    pub(crate) bytes: Option<usize>,
    pub(crate) changes: Option<u32>,
    pub(crate) rate: Option<f64>,
    pub(crate) names: Option<u32>,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) control_plane_dialect: Option<Dialect>,
    pub(crate) floor: bool,
    /// Only stories ask for what is said here.
    pub(crate) kind: bool,
    pub(crate) idle: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
}

impl Arguments {
    /// What was asked for, and which of it explicitly.
    pub(crate) fn given() -> (Self, Overrides) {
        let matches = Self::command().get_matches();
        let explicit = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let arguments = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        let overrides = Overrides {
            clients: arguments.clients,
            resources: Some(arguments.resources).filter(|_| explicit("resources")),
            bytes: Some(arguments.bytes).filter(|_| explicit("bytes")),
            changes: Some(arguments.changes).filter(|_| explicit("changes")),
            rate: Some(arguments.rate).filter(|_| explicit("rate")),
            names: Some(arguments.names).filter(|_| explicit("names")),
            dialect: Some(arguments.dialect).filter(|_| explicit("dialect")),
            control_plane_dialect: arguments.control_plane_dialect,
            floor: arguments.floor,
            kind: explicit("kind"),
            idle: Some(arguments.idle).filter(|_| explicit("idle")),
            deadline: Some(arguments.deadline).filter(|_| explicit("deadline")),
        };
        (arguments, overrides)
    }

    /// The scenario that was asked for.
    pub(crate) fn scenario(&self) -> &str {
        match &self.command {
            Some(Command::Run { scenario }) => scenario,
            None => &self.scenario,
        }
    }

    /// Whether what there is comes from a control plane that is not this program's.
    pub(crate) const fn is_foreign(&self) -> bool {
        self.upstream.is_some() || (self.server.is_some() && self.control_plane.is_none())
    }

    /// How many clients a story has; of a chain, at either relay.
    pub(crate) fn clients(&self) -> u32 {
        self.clients.unwrap_or(1000)
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
