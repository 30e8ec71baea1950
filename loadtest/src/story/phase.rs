// SPDX-License-Identifier: Apache-2.0
//! A phase of a scenario as written in YAML: what happens, its time limit, and what must hold.

use serde::Deserialize;

use super::outside::Exec;
use crate::measure::quantities::{Size, Time};
use crate::wire::kind::Kind;

/// A part of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PhaseShape {
    pub(crate) name: String,
    #[serde(rename = "do")]
    pub(crate) act: Act,
    /// What the relay's admin address is asked meanwhile.
    #[serde(default)]
    pub(crate) ask: Vec<Ask>,
    /// The phase fails if it takes longer.
    #[serde(default)]
    pub(crate) limit: Option<Time>,
    #[serde(default)]
    pub(crate) expect: Expect,
}

/// A question to the relay's admin address.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The path, with its query.
    pub(crate) path: String,
    /// How often a second; a question waits for the answer to the one before.
    pub(crate) rate: f64,
}

/// What happens in a phase.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Act {
    /// Lets clients in up to a number, and waits until they have everything.
    Join(Join),
    Rest(Time),
    /// Watches the idle relay: its processor time is subtracted from later phases.
    Idle(Time),
    Change(Change),
    /// Runs a command that changes something at a control plane that is not this program's.
    Exec(Exec),
    /// Removes so many resources, waits until no client has them, and brings them back.
    Remove(Remove),
    /// Some clients ask for one more resource, each time another.
    Want(Want),
    Restart(Part),
    /// Ends a relay without a word to its clients, and starts it again.
    Kill(Part),
    Stop(Part),
    Start(Part),
    /// One client in so many leaves and comes back.
    Reconnect(Reconnect),
    /// Kills control plane, relay and clients, and cuts connections, at random.
    Chaos(Chaos),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Join {
    /// All clients if none.
    pub(crate) clients: Option<u32>,
    /// The time over which they are let in evenly.
    #[serde(default)]
    pub(crate) over: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    Relay,
    RelayAbove,
    ControlPlane,
    Fallback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Want {
    pub(crate) kind: Kind,
    pub(crate) one_in: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remove {
    pub(crate) kind: Kind,
    pub(crate) count: u32,
    /// Whether only control planes know it that start later; then they do not come back.
    #[serde(default)]
    pub(crate) unseen: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reconnect {
    pub(crate) one_in: u32,
    pub(crate) pause: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chaos {
    /// For how long.
    pub(crate) time: Time,
    /// What decides about it; the same seed makes the same troubles at the same times.
    pub(crate) seed: Option<u64>,
}

/// Changes of resources.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) pattern: Pattern,
    /// How often.
    pub(crate) times: u32,
    /// Changes a second. Without it, each change waits until all clients have the one before, and takes turns with the floor.
    pub(crate) rate: Option<f64>,
    /// The new size of the resources.
    pub(crate) bytes: Option<Size>,
    /// Whether only control planes know it that start later.
    #[serde(default)]
    pub(crate) unseen: bool,
    /// Whether it reaches only one client in so many for now, because the others are at another control plane.
    pub(crate) one_in: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pattern {
    One,
    /// This one, again and again.
    Only(u32),
    /// So many at once, neighbours.
    Burst(u32),
    /// So many at a time, until all were.
    Rolling(u32),
    Full,
    /// So many go back to their former content.
    Rollback(u32),
}

/// What must hold of a phase. Everything is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    pub(crate) p50_below: Option<Time>,
    pub(crate) p99_below: Option<Time>,
    pub(crate) join_p99_below: Option<Time>,
    /// The longest answer of the relay's admin address.
    pub(crate) answers_below: Option<Time>,
    /// The slowest client's join, as a multiple of the median.
    pub(crate) join_max_to_median: Option<f64>,
    /// How many rounds a client waits for a response as long as there is something for it. A round is as many responses as there
    /// are clients.
    pub(crate) waits_at_most: Option<f64>,
    pub(crate) p99_to_floor: Option<f64>,
    pub(crate) cpu_to_floor: Option<f64>,
    /// The time until all clients have it.
    pub(crate) time_to_floor: Option<f64>,
    /// The larger of this time and this multiple of the floor's p99.
    pub(crate) p99_below_or_to_floor: Option<(Time, f64)>,
    pub(crate) p99_to_calm: Option<f64>,
    pub(crate) memory_below: Option<Size>,
    pub(crate) peak_below: Option<Size>,
    pub(crate) memory_per_client_below: Option<Size>,
    /// The memory per client beyond that at the end of another phase.
    pub(crate) memory_grows_at_most: Option<Grown>,
    /// For each client that misbehaves.
    pub(crate) each_stalled: Option<Stalled>,
    pub(crate) relay_cpu_percent_below: Option<f64>,
    pub(crate) messages_at_most: Option<u64>,
    pub(crate) resources_at_most: Option<u64>,
    pub(crate) bytes_at_most: Option<Size>,
    pub(crate) upstream_streams: Option<u64>,
    /// At the second control plane.
    pub(crate) fallback_streams: Option<u64>,
    /// Every change reached every client that wants it, once; for steady clients only.
    #[serde(default)]
    pub(crate) delivered_once: bool,
    /// No client lacks a change for longer that another one, which held the same, has seen.
    pub(crate) reaches_all_within: Option<Time>,
    #[serde(default)]
    pub(crate) compared: Vec<Compared>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grown {
    pub(crate) since: String,
    pub(crate) per_client: Size,
}

/// The allowed cost of each client that misbehaves: the growth of the relay's memory since the end of another phase, less the
/// growth of the calm relay; and the kernel's memory for the largest connection.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stalled {
    pub(crate) since: String,
    pub(crate) process: Size,
    pub(crate) kernel: Size,
}

/// A figure of this phase as a multiple of that of another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compared {
    pub(crate) what: Figure,
    pub(crate) to: String,
    pub(crate) at_most: Option<f64>,
    pub(crate) at_least: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Figure {
    Bytes,
    /// Of the relay, in the whole phase.
    Cpu,
    CpuPerChange,
    P99,
    UpstreamBytes,
    UpstreamStreams,
    /// What the relay took while all clients were away.
    MemoryAway,
    DescriptorsAway,
    TasksAway,
}

impl Figure {
    /// Returns the name that the report uses.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Cpu => "processor time",
            Self::CpuPerChange => "processor time of a change",
            Self::P99 => "p99",
            Self::UpstreamBytes => "bytes at the control plane",
            Self::UpstreamStreams => "streams at the control plane",
            Self::MemoryAway => "memory while everybody is away",
            Self::DescriptorsAway => "descriptors while everybody is away",
            Self::TasksAway => "tasks while everybody is away",
        }
    }
}

impl Act {
    /// Whether this needs a control plane of this program.
    pub(crate) const fn needs_control_plane(&self) -> bool {
        match self {
            Self::Change(_) | Self::Remove(_) | Self::Want(_) | Self::Stop(_) | Self::Start(_) | Self::Chaos(_) => true,
            Self::Restart(_) | Self::Kill(_) => false,
            Self::Join(_) | Self::Rest(_) | Self::Idle(_) | Self::Reconnect(_) | Self::Exec(_) => false,
        }
    }
}
