// SPDX-License-Identifier: Apache-2.0
//! The record of a run: what was run, on which machine, the figures of each phase, and which assertions held. It is data, written
//! as JSON. Knows neither how figures are measured nor how they are shown.

mod distribution;
mod quantity;
mod recorder;
mod schedule;
mod state;
mod surroundings;

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) use distribution::Distribution;
pub(crate) use quantity::{Quantity, Unit};
pub(crate) use recorder::{Claim, Effort, Fleets, Live, Recorder};
pub(crate) use schedule::Schedule;
pub(crate) use surroundings::Machine;

/// One run. Times are in milliseconds, sizes in bytes, unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Record {
    /// The version of the file format.
    pub(crate) form: u32,
    pub(crate) scenario: String,
    /// What was simulated, and against which server, in one sentence.
    pub(crate) setup: String,
    pub(crate) command: Vec<String>,
    /// The commit of the sources beside the program, if they are there and under version control.
    pub(crate) commit: Option<String>,
    pub(crate) machine: Machine,
    /// Seconds since 1970.
    pub(crate) start_unix: u64,
    pub(crate) length_ms: f64,
    /// The server before the fleet came.
    pub(crate) base: Option<Base>,
    pub(crate) phases: Vec<Phase>,
    /// Counters of the whole run, by name.
    pub(crate) counters: BTreeMap<String, f64>,
    /// Facts without a plot.
    pub(crate) notes: Vec<Note>,
    pub(crate) assertions: Vec<Assertion>,
    pub(crate) breaches: Vec<Breach>,
    /// How many clients saw breaches; not all breaches are kept in full.
    pub(crate) breached: u64,
}

/// The version of the file format.
pub(crate) const FORM: u32 = 5;

/// The server's memory with the first few clients. It is subtracted from the memory with more clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Base {
    pub(crate) clients: u64,
    pub(crate) resident_bytes: u64,
}

/// A part of a run with figures of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// Since the run began.
    pub(crate) start_ms: f64,
    pub(crate) length_ms: f64,
    /// How many clients had joined when the phase ended.
    pub(crate) clients: u64,
    /// How many clients had a stream then; none if none uses streams.
    pub(crate) with_stream: Option<u64>,
    /// The longest time that a client was without a stream that it had; none if none uses streams.
    pub(crate) longest_without_stream_ms: Option<f64>,
    /// From when a change was due to its last byte at a client, for each client and change. A change that was published late
    /// counts from when it was due, so a stall of the tool or of the server is never left out.
    pub(crate) propagation: Distribution,
    /// From when a client was let in to its last resource.
    pub(crate) join: Distribution,
    /// How long clients waited for a response, in thousandths of a round. A round is as many responses as there are clients. Only
    /// clients for which there was something all the time count, and only those that ask for everything.
    pub(crate) waits: Distribution,
    pub(crate) series: Vec<Second>,
    pub(crate) counters: BTreeMap<String, f64>,
    pub(crate) server: Option<ServerCost>,
    pub(crate) tool: ToolCost,
    pub(crate) figures: Figures,
    pub(crate) ratios: Vec<Ratio>,
}

/// Figures that are computed from others of a phase, if these are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// How much each client beyond the first few adds to the server's memory, at the end of the phase.
    pub(crate) bytes_per_client: Option<f64>,
    /// The server's processor time beyond that of an idle one, for each response that brought changes.
    pub(crate) cpu_micros_per_delivery: Option<f64>,
    /// The tool's part of all processor time, from 0 to 1.
    pub(crate) tool_share: Option<f64>,
}

/// What the server spent in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ServerCost {
    pub(crate) cpu_ms: f64,
    /// The time that it would have spent idle in the same period, if it was watched idle before.
    pub(crate) idle_ms: f64,
    /// RssAnon at the end.
    pub(crate) resident_bytes: u64,
    /// The peak of resident memory, including shared pages.
    pub(crate) peak_bytes: u64,
}

/// What this tool spent in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ToolCost {
    pub(crate) cpu_ms: f64,
    pub(crate) clients_ms: f64,
    pub(crate) control_plane_ms: f64,
}

/// One second of a phase; the last one of a phase may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Second {
    /// Its end, since the run began.
    pub(crate) at_ms: f64,
    pub(crate) span_ms: f64,
    pub(crate) deliveries: u64,
    /// Of the changes that arrived in this second; none if there were none.
    pub(crate) propagation_micros: Option<Percentiles>,
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    /// In percent of one processor.
    pub(crate) server_cpu_percent: Option<f64>,
    pub(crate) tool_cpu_percent: f64,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) clients: u64,
    /// How many clients had a stream at its end; none if none uses streams.
    pub(crate) with_stream: Option<u64>,
    /// Deliveries still to come at its end: of each change to each client that lacked it. Not known of a control plane that is not
    /// this program's.
    pub(crate) owed: Option<u64>,
}

/// Percentiles and the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

/// A figure as a multiple of the floor's, once for each round in which both were taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub(crate) what: String,
    pub(crate) rounds: Vec<f64>,
}

/// A fact for the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Note {
    pub(crate) phase: Option<String>,
    pub(crate) what: String,
    pub(crate) value: String,
}

/// Something that must hold, and whether it did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Assertion {
    pub(crate) phase: Option<String>,
    pub(crate) text: String,
    pub(crate) relation: Relation,
    /// Both are none for what can only happen or not.
    pub(crate) bound: Option<Quantity>,
    pub(crate) measured: Option<Quantity>,
    pub(crate) verdict: Verdict,
    /// The reason, if the figures do not show it.
    pub(crate) why: Option<String>,
}

/// The relation that the measured value must have to the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Relation {
    AtMost,
    AtLeast,
    Exactly,
}

/// The result of an assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Held,
    Failed,
    /// The tool itself took so much processor time that a time says nothing about the server. Counts as not held.
    Void,
}

/// What a server did wrong towards one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Breach {
    pub(crate) phase: Option<String>,
    pub(crate) client: u64,
    pub(crate) what: String,
    /// The messages before it that were kept, oldest first.
    pub(crate) transcript: Vec<String>,
}

/// The tool's share of all processor time above which an assertion about time is void, unless the tool was idle all the same: below
/// this part of one processor.
const TOOL_SHARE_MAX: f64 = 0.6;
const TOOL_LOAD_LEAST: f64 = 0.05;

/// The names of counters that every fleet has.
pub(crate) mod counter {
    pub(crate) const RESPONSES: &str = "responses";
    pub(crate) const ACKNOWLEDGEMENTS: &str = "acknowledgements";
    pub(crate) const RESOURCES: &str = "resources";
    pub(crate) const BYTES: &str = "bytes";
    /// Resources that came although the client already had this content.
    pub(crate) const REPEATED: &str = "repeated";
    pub(crate) const DELIVERIES: &str = "deliveries";
    /// Deliveries without a response of their own.
    pub(crate) const COALESCED: &str = "coalesced";
    /// What the control plane counts.
    pub(crate) const UPSTREAM_STREAMS: &str = "upstream streams";
    pub(crate) const UPSTREAM_BYTES: &str = "upstream bytes";
}

impl Record {
    /// Whether every assertion held and no client saw a breach.
    pub(crate) fn held(&self) -> bool {
        self.breached == 0 && self.breaches.is_empty() && self.assertions.iter().all(Assertion::held)
    }
}

impl Phase {
    /// Creates an empty phase.
    pub(crate) fn blank(name: &str, start_ms: f64, empty: &Distribution) -> Self {
        Self {
            name: name.to_owned(),
            start_ms,
            length_ms: 0.0,
            clients: 0,
            with_stream: None,
            longest_without_stream_ms: None,
            propagation: empty.clone(),
            join: empty.clone(),
            waits: empty.clone(),
            series: Vec::new(),
            counters: BTreeMap::new(),
            server: None,
            tool: ToolCost::default(),
            figures: Figures::default(),
            ratios: Vec::new(),
        }
    }

    pub(crate) fn counter(&self, name: &str) -> f64 {
        self.counters.get(name).copied().unwrap_or_default()
    }

    /// Returns the server's processor time beyond that of an idle one.
    pub(crate) fn net_cpu_ms(&self) -> Option<f64> {
        self.server.map(|server| (server.cpu_ms - server.idle_ms).max(0.0))
    }

    /// Returns the figures that are computed from others; `base` is the server's memory with the first few clients.
    pub(crate) fn figures(&self, base: Option<Base>) -> Figures {
        let responses = self.counter(counter::DELIVERIES) - self.counter(counter::COALESCED);
        let all_cpu_ms = self.server.map(|server| server.cpu_ms + self.tool.cpu_ms);
        let grown = base.zip(self.server).and_then(|(base, server)| {
            let clients = self.clients.checked_sub(base.clients).filter(|clients| *clients > 0)?;
            Some((float(server.resident_bytes) - float(base.resident_bytes)) / float(clients))
        });
        Figures {
            bytes_per_client: grown,
            cpu_micros_per_delivery: self
                .net_cpu_ms()
                .filter(|_| responses > 0.0)
                .map(|cpu_ms| cpu_ms * 1e3 / responses),
            tool_share: all_cpu_ms.filter(|all| *all > 0.0).map(|all| self.tool.cpu_ms / all),
        }
    }

    /// In percent of one processor.
    pub(crate) fn percent(&self, cpu_ms: f64) -> f64 {
        100.0 * cpu_ms / self.length_ms.max(f64::MIN_POSITIVE)
    }
}

impl Ratio {
    /// Returns a quantile of the rounds, interpolated between two; the median is the figure that counts. Each round is compared
    /// by itself, because the machine's speed changes from round to round.
    pub(crate) fn quantile(&self, part: f64) -> Option<f64> {
        let mut rounds = self.rounds.clone();
        rounds.sort_unstable_by(f64::total_cmp);
        let place = part.clamp(0.0, 1.0) * float(u64::try_from(rounds.len().checked_sub(1)?).ok()?);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the length"
        )]
        let below = place.floor() as usize;
        let low = rounds.get(below)?;
        let high = rounds.get(below + 1).unwrap_or(low);
        Some(low + (high - low) * place.fract())
    }
}

impl Assertion {
    pub(crate) const fn held(&self) -> bool {
        matches!(self.verdict, Verdict::Held)
    }
}

impl Relation {
    /// Whether `measured` has this relation to `bound`; NaN never has.
    pub(crate) fn holds(self, measured: f64, bound: f64) -> bool {
        match self {
            Self::AtMost => measured <= bound,
            Self::AtLeast => measured >= bound,
            Self::Exactly => (measured - bound).abs() < f64::EPSILON,
        }
    }

    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Self::AtMost => "≤",
            Self::AtLeast => "≥",
            Self::Exactly => "=",
        }
    }
}

impl Verdict {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Failed => "FAILED",
            Self::Void => "VOID",
        }
    }
}

/// Converts a count for readable figures.
#[expect(clippy::cast_precision_loss, reason = "readable figures need no full precision")]
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}

/// Adds what is known of two counts.
const fn known_sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (None, known) | (known, None) => known,
    }
}
