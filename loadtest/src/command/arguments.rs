//! The command line: what to simulate, and against which server. It only holds the arguments; nothing here acts on them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::parser::ValueSource;
use clap::{FromArgMatches as _, Parser, Subcommand};
use distributary::cli::{Completions, Manual};

use crate::dump::given::{Audience, Dump};
use crate::fleet::identity::IdentityShape;
use crate::measure::quantities::{bytes, seconds};
use crate::measure::shard::MACHINES;
use crate::measure::shard::Sharing;
use crate::report::Outputs;
use crate::report::REPORT;
use crate::wire::kind::{Dialect, Kind};
use crate::wire::place::SERVER;
use crate::wire::place::{Place, Trust};

/// How many clients a story has without --clients.
pub(crate) const STORY_CLIENTS: u32 = 1000;

/// The heading of the flags that say what happens.
pub(crate) const FLEET: &str = "What is played";

/// Simulates a fleet of xDS clients, checks every response they get, and measures the server
#[derive(Clone, Debug, Parser)]
#[command(name = "distributary-load", version = distributary::telemetry::BUILD, args_conflicts_with_subcommands = false)]
#[command(max_term_width = 110, next_help_heading = FLEET)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// The scenario to play: the name of a built-in one, or a file. Flags override what the scenario says.
    /// Default: churn; for a control plane of your own, any-server.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
    /// How many clients; default: what the scenario says; in a story 1000, each with a connection of its own.
    #[arg(long, global = true, value_parser = clap::value_parser!(u32).range(1..=250_000))]
    pub(crate) clients: Option<u32>,
    /// How many resources the control plane has.
    #[arg(long, global = true, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) resources: u32,
    /// The size of one resource, such as `512B` or `1KiB`.
    #[arg(long, global = true, default_value = "1KiB", value_name = "SIZE", value_parser = bytes)]
    pub(crate) bytes: usize,
    /// How many changes are measured; each changes one resource.
    #[arg(long, global = true, default_value_t = 20)]
    pub(crate) changes: u32,
    /// How many changes a second, such as `2/s`; only for phases that have a `rate`.
    #[arg(long, global = true, default_value = "2/s", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: f64,
    /// The form of the protocol that the clients speak: delta or sotw (state of the world).
    #[arg(long, global = true, value_enum, hide_possible_values = true, default_value_t = Dialect::Delta)]
    pub(crate) dialect: Dialect,
    /// Which type of resources the clients of a story ask for, all of it or by name: cds, eds, lds, rds or vhds.
    #[arg(long, global = true, value_enum, hide_possible_values = true, default_value_t = Kind::Cds)]
    pub(crate) kind: Kind,
    /// The URL of the type `own`, which this program knows as little as any other software does.
    #[arg(long, global = true, value_name = "TYPE_URL")]
    pub(crate) own_type: Option<String>,
    /// How long everything takes from one tier of `chain` to the next, one way.
    #[arg(long, global = true, default_value = "0s", value_name = "TIME", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) delay: Duration,
    /// How many names each client asks for, if it asks by name.
    #[arg(long, global = true, default_value_t = 100)]
    pub(crate) names: u32,
    /// Start this program as the relay instead of the built-in one; it gets the arguments of `distributary serve`.
    #[arg(long, global = true, value_name = "PATH", conflicts_with_all = ["server", "direct"], help_heading = SERVER)]
    pub(crate) relay_bin: Option<PathBuf>,
    /// Test a server that already runs, `host:port` or `https://host:port`. With --control-plane, the server must use the
    /// built-in control plane at that address; without it, the server's own resources are learned as they come.
    #[arg(long, global = true, value_name = "PLACE", conflicts_with = "direct", help_heading = SERVER)]
    pub(crate) server: Option<Place>,
    /// Use your own control plane, `host:port` or `https://host:port`, instead of the built-in one. Its resources are learned as
    /// they come.
    #[arg(long, global = true, value_name = "PLACE", conflicts_with_all = ["server", "control_plane"], help_heading = SERVER)]
    pub(crate) upstream: Option<Place>,
    /// With --server: the number of its process on this machine, to read its processor time and memory.
    #[arg(long, global = true, value_name = "PID", requires = "server", help_heading = SERVER)]
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) trust: Trust,
    #[command(flatten)]
    pub(crate) identity: IdentityShape,
    /// With --server or --upstream: a name for clients that ask by name; repeat the flag for each name. Default: one client asks
    /// for everything, and the others use the names that it finds.
    #[arg(long, global = true, value_name = "NAME", help_heading = SERVER)]
    pub(crate) name: Vec<String>,
    /// Also run the floor: a bare server that only writes the same bytes. Shows the relay's figures as multiples of the floor's.
    #[arg(long, global = true, help_heading = SERVER)]
    pub(crate) floor: bool,
    /// The only form of the protocol that the built-in control plane speaks, delta or sotw; default: both.
    #[arg(long, global = true, value_enum, hide_possible_values = true, value_name = "DIALECT", help_heading = SERVER)]
    pub(crate) control_plane_dialect: Option<Dialect>,
    /// Connect the clients directly to the control plane, without a relay, for comparison.
    #[arg(long, global = true, help_heading = SERVER)]
    pub(crate) direct: bool,
    /// Where the built-in control plane listens; default: any free port of 127.0.0.1.
    #[arg(long, global = true, value_name = "ADDR", help_heading = SERVER)]
    pub(crate) control_plane: Option<SocketAddr>,
    /// How long each phase lasts in which nothing happens, such as `500ms` or `3m`; a bare number is seconds.
    #[arg(long, global = true, default_value = "3s", value_name = "TIME", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) idle: Duration,
    /// How long chaos lasts.
    #[arg(long, global = true, value_name = "TIME", value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,
    /// What decides about chaos; the same seed makes the same troubles at the same times. Default: a random one, which is printed.
    #[arg(long, global = true)]
    pub(crate) seed: Option<u64>,
    /// How long one step may take; after that the run fails.
    #[arg(long, global = true, default_value = "60s", value_name = "TIME", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) deadline: Duration,
    /// How many threads the clients share.
    #[arg(long, global = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = MACHINES)]
    pub(crate) threads: u32,
    #[command(flatten)]
    pub(crate) sharing: Sharing,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
    /// Show the figures of the run while it lasts at http://ADDR/metrics, for Prometheus.
    #[arg(long, global = true, value_name = "ADDR", conflicts_with = "compare", help_heading = REPORT)]
    pub(crate) prometheus: Option<SocketAddr>,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Plays the scenario in a file, or one that is built in.
    Run {
        /// `steady`, or `path/to/scenario.yaml`
        scenario: String,
    },
    /// Lists the built-in scenarios.
    List,
    /// Explains a key of scenarios: what it means, its form and its default; without a key, all of them.
    Explain {
        /// `p99_below`, or the end of its path, such as `names.count`
        #[arg(id = "explained", value_name = "KEY")]
        key: Option<String>,
    },
    /// Adds up the records of several machines that each ran a --shard, into one report.
    Merge {
        /// The records that --json wrote, one of each share
        #[arg(required = true, num_args = 2.., value_name = "FILE")]
        records: Vec<PathBuf>,
    },
    /// Writes what a client is given as a bootstrap with which an Envoy starts, and as files for a relay: `--server` is the control
    /// plane, `--node-id` and its like the client.
    Dump(Dump),
    Completions(Completions),
    Manual(Manual),
}

/// The flags that were given and that override a scenario.
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
    /// Whether --kind was given; only stories use it.
    pub(crate) kind: bool,
    pub(crate) idle: Option<Duration>,
    pub(crate) seconds: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
}

impl Arguments {
    /// Returns all arguments, and those that were given explicitly.
    pub(crate) fn given() -> (Self, Overrides) {
        let matches = crate::command::pages::command().get_matches();
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
            seconds: arguments.seconds,
            deadline: Some(arguments.deadline).filter(|_| explicit("deadline")),
        };
        (arguments, overrides)
    }

    /// The name or the file of the scenario to play.
    pub(crate) fn scenario(&self) -> &str {
        match &self.command {
            Some(Command::Run { scenario }) => scenario,
            Some(_) | None => {
                let usual = if self.is_foreign() { "any-server" } else { "churn" };
                self.scenario.as_deref().unwrap_or(usual)
            }
        }
    }

    /// Returns which control plane `dump` asks, and as which client.
    pub(crate) fn audience(&self) -> anyhow::Result<Audience<'_>> {
        let place = self.server.as_ref();
        Ok(Audience {
            place: place.context("--server is needed: the control plane that is asked")?,
            trust: &self.trust,
            identity: &self.identity,
            dialect: self.dialect,
            patience: self.deadline,
        })
    }

    /// Whether the resources come from a control plane that is not part of this program.
    pub(crate) const fn is_foreign(&self) -> bool {
        self.upstream.is_some() || (self.server.is_some() && self.control_plane.is_none())
    }

    /// How many clients a story has; in a chain, how many at each of the two relays.
    pub(crate) fn clients(&self) -> u32 {
        self.clients.unwrap_or(STORY_CLIENTS)
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    match number.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        Ok(_) | Err(_) => Err("expected a positive number of changes a second, such as 2/s".to_owned()),
    }
}
