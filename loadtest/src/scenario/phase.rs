//! A phase of a scenario as written in YAML: what happens, its time limit, and what must hold.

use serde::Deserialize;

use super::quantities::{Size, Time};
use crate::kind::Kind;

/// A part of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PhaseShape {
    pub(crate) name: String,
    #[serde(rename = "do")]
    pub(crate) act: Act,
    /// It fails if it is not over by then.
    #[serde(default)]
    pub(crate) limit: Option<Time>,
    #[serde(default)]
    pub(crate) expect: Expect,
    /// One size of a fleet that grows, until p99 for each client is so many times the least before.
    #[serde(skip)]
    pub(crate) knee: Option<f64>,
}

/// What happens in a phase.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Act {
    /// Lets clients in, until there are so many, and waits until they have everything.
    Join(Join),
    Rest(Time),
    /// Watches the idle relay: what it spends is subtracted from then on.
    Idle(Time),
    Change(Change),
    /// Doubles the fleet, and changes something at each size.
    Grow(Grow),
    /// Takes so many resources away, waits until nobody has them, and brings them back.
    Remove(Remove),
    Restart(Part),
    Stop(Part),
    Start(Part),
    /// One client in so many leaves and comes back.
    Reconnect(Reconnect),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Join {
    /// None for all.
    pub(crate) clients: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grow {
    pub(crate) from: u32,
    pub(crate) change: Change,
    /// It grows no further once p99 for each client is so many times the least before.
    pub(crate) knee: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    Relay,
    ControlPlane,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remove {
    pub(crate) kind: Kind,
    pub(crate) count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reconnect {
    pub(crate) one_in: u32,
    pub(crate) pause: Time,
}

/// Changes of resources.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) pattern: Pattern,
    /// How often.
    pub(crate) times: u32,
    /// How many times a second; without it each waits until the one before is everywhere, and takes turns with the floor.
    pub(crate) rate: Option<f64>,
    /// The size that they have from then on.
    pub(crate) bytes: Option<Size>,
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
    /// So many go back to what they were before.
    Rollback(u32),
}

/// What must hold of a phase. Everything is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    pub(crate) p50_below: Option<Time>,
    pub(crate) p99_below: Option<Time>,
    pub(crate) join_p99_below: Option<Time>,
    /// The slowest client, as a multiple of the median.
    pub(crate) join_max_to_median: Option<f64>,
    pub(crate) p99_to_floor: Option<f64>,
    pub(crate) cpu_to_floor: Option<f64>,
    /// Until everybody has it.
    pub(crate) time_to_floor: Option<f64>,
    /// This or its multiple of the floor's, whichever is more.
    pub(crate) p99_below_or_to_floor: Option<(Time, f64)>,
    pub(crate) p99_to_calm: Option<f64>,
    pub(crate) memory_below: Option<Size>,
    pub(crate) peak_below: Option<Size>,
    pub(crate) memory_per_client_below: Option<Size>,
    /// Beyond what it was at the end of another phase, for each client.
    pub(crate) memory_grows_at_most: Option<Grown>,
    /// For each client that misbehaves.
    pub(crate) each_stalled: Option<Stalled>,
    pub(crate) relay_cpu_percent_below: Option<f64>,
    pub(crate) messages_at_most: Option<u64>,
    pub(crate) resources_at_most: Option<u64>,
    pub(crate) bytes_at_most: Option<Size>,
    pub(crate) upstream_streams: Option<u64>,
    /// Every change is with every client that wants it, once; where all of them are steady.
    #[serde(default)]
    pub(crate) delivered_once: bool,
    #[serde(default)]
    pub(crate) compared: Vec<Compared>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grown {
    pub(crate) since: String,
    pub(crate) per_client: Size,
}

/// What clients that misbehave may cost: the relay's memory beyond what it was at the end of another phase, and beyond what that
/// of a relay without them has grown; and the kernel's, for the connection that has most.
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
}

impl Figure {
    /// What the table calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Cpu => "processor time",
            Self::CpuPerChange => "processor time of a change",
            Self::P99 => "p99",
            Self::UpstreamBytes => "bytes at the control plane",
            Self::UpstreamStreams => "streams at the control plane",
        }
    }
}

impl Act {
    /// Whether only a control plane of this program can do it.
    pub(crate) const fn needs_control_plane(&self) -> bool {
        match self {
            Self::Change(_)
            | Self::Grow(_)
            | Self::Remove(_)
            | Self::Stop(_)
            | Self::Start(_)
            | Self::Restart(Part::ControlPlane) => true,
            Self::Join(_) | Self::Rest(_) | Self::Idle(_) | Self::Restart(Part::Relay) | Self::Reconnect(_) => false,
        }
    }
}
