//! The record of a run: what was run, on which machine, the figures of each phase, and which assertions held. It is data, written
//! as JSON and read back for comparisons. Knows neither how figures are measured nor how they are shown.

mod distribution;
mod quantity;
mod recorder;
mod schedule;
mod state;
mod surroundings;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use distribution::Distribution;
pub(crate) use quantity::{Quantity, Unit};
pub(crate) use recorder::{Claim, Fleets, Live, Recorder};
pub(crate) use schedule::Schedule;
pub(crate) use surroundings::Machine;

/// One run. Times are in milliseconds, sizes in bytes, unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Of the form of this file; another number is another form.
    pub(crate) form: u32,
    pub(crate) scenario: String,
    /// What was simulated against what, in one sentence.
    pub(crate) setup: String,
    pub(crate) command: Vec<String>,
    /// Of the sources beside the program, if they are there and under version control.
    pub(crate) commit: Option<String>,
    pub(crate) machine: Machine,
    /// Seconds since 1970.
    pub(crate) start_unix: u64,
    pub(crate) length_ms: f64,
    /// The relay before the fleet came.
    pub(crate) base: Option<Base>,
    pub(crate) phases: Vec<Phase>,
    /// Of the whole run, by name.
    pub(crate) counters: BTreeMap<String, f64>,
    /// Things worth telling for which there is no plot.
    pub(crate) notes: Vec<Note>,
    pub(crate) assertions: Vec<Assertion>,
    pub(crate) breaches: Vec<Breach>,
    /// How many clients saw breaches; not all of them are told in full.
    pub(crate) breached: u64,
}

/// The form that this program writes and reads.
pub(crate) const FORM: u32 = 2;

/// The memory that is nobody's: what the relay had with these clients is subtracted from what it has with more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Base {
    pub(crate) clients: u64,
    pub(crate) resident_bytes: u64,
}

/// A part of a run with figures of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// Since the run began.
    pub(crate) start_ms: f64,
    pub(crate) length_ms: f64,
    /// Joined, when the phase ended.
    pub(crate) clients: u64,
    /// From when a change was due to its last byte at a client, per client and change. A change that was published late is
    /// counted from when it should have been: a stall of the tool or of the server is never left out.
    pub(crate) propagation: Distribution,
    /// From when a client was let in to its last resource.
    pub(crate) join: Distribution,
    pub(crate) series: Vec<Second>,
    pub(crate) counters: BTreeMap<String, f64>,
    pub(crate) relay: Option<RelayCost>,
    pub(crate) tool: ToolCost,
    pub(crate) figures: Figures,
    pub(crate) ratios: Vec<Ratio>,
}

/// What follows from the other figures of a phase, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// What each client beyond the first few adds to the relay's memory at the end.
    pub(crate) bytes_per_client: Option<f64>,
    /// The relay's processor time beyond that of an idle one, for each response that brought changes.
    pub(crate) cpu_micros_per_delivery: Option<f64>,
    /// The tool's part of all processor time, from 0 to 1.
    pub(crate) tool_share: Option<f64>,
}

/// What the relay spent in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RelayCost {
    pub(crate) cpu_ms: f64,
    /// What it would have spent idle in the same time, as far as it was watched idle before.
    pub(crate) idle_ms: f64,
    /// RssAnon at the end.
    pub(crate) resident_bytes: u64,
    /// The most that the kernel ever saw, shared pages included.
    pub(crate) peak_bytes: u64,
}

/// What this tool spent in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolCost {
    pub(crate) cpu_ms: f64,
    pub(crate) clients_ms: f64,
    pub(crate) control_plane_ms: f64,
}

/// One second of a phase; the last one of a phase may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Second {
    /// Its end, since the run began.
    pub(crate) at_ms: f64,
    pub(crate) span_ms: f64,
    pub(crate) deliveries: u64,
    /// Of the changes that arrived in it; nothing if none did.
    pub(crate) propagation_micros: Option<Percentiles>,
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    /// In percent of one processor.
    pub(crate) relay_cpu_percent: Option<f64>,
    pub(crate) tool_cpu_percent: f64,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) clients: u64,
    /// Deliveries that were to come at its end: of each change to each client that lacked it.
    pub(crate) owed: u64,
}

/// What most, nearly all and all were faster than.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

/// A figure as a multiple of the floor's, once for each round in which both were taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ratio {
    pub(crate) what: String,
    pub(crate) rounds: Vec<f64>,
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) phase: Option<String>,
    pub(crate) what: String,
    pub(crate) value: String,
}

/// Something that must hold, and whether it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Assertion {
    pub(crate) phase: Option<String>,
    pub(crate) text: String,
    pub(crate) relation: Relation,
    /// Neither is there for what can only happen or not.
    pub(crate) bound: Option<Quantity>,
    pub(crate) measured: Option<Quantity>,
    pub(crate) verdict: Verdict,
    /// Why, if that is not plain from the figures.
    pub(crate) why: Option<String>,
}

/// How the measured value must stand to the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Relation {
    AtMost,
    AtLeast,
    Exactly,
}

/// What became of an assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Held,
    Failed,
    /// The tool itself took so much of the processors that a time says nothing of the server. It did not hold.
    Void,
}

/// What a server did wrong towards one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Breach {
    pub(crate) phase: Option<String>,
    pub(crate) client: u64,
    pub(crate) what: String,
    /// What was said on its stream before, oldest first, as far as it is kept.
    pub(crate) transcript: Vec<String>,
}

/// The tool's share of all processor time above which a bar of time is void.
pub(crate) const TOOL_SHARE_MAX: f64 = 0.6;

/// Names of counters that every fleet has.
pub(crate) mod counter {
    pub(crate) const RESPONSES: &str = "responses";
    pub(crate) const ACKNOWLEDGEMENTS: &str = "acknowledgements";
    pub(crate) const RESOURCES: &str = "resources";
    pub(crate) const BYTES: &str = "bytes";
    /// Resources that came although the client had that very content.
    pub(crate) const REPEATED: &str = "repeated";
    pub(crate) const DELIVERIES: &str = "deliveries";
    /// Deliveries without a response of their own.
    pub(crate) const COALESCED: &str = "coalesced";
    /// What the control plane counts.
    pub(crate) const UPSTREAM_STREAMS: &str = "upstream streams";
    pub(crate) const UPSTREAM_BYTES: &str = "upstream bytes";
}

impl Record {
    /// Whether all held: every assertion, and no client saw a breach.
    pub(crate) fn held(&self) -> bool {
        self.breached == 0 && self.breaches.is_empty() && self.assertions.iter().all(Assertion::held)
    }

    /// Whether it shows how figures grow with the fleet: its phases have fleets of several sizes that all get changes.
    pub(crate) fn grows(&self) -> bool {
        let mut sizes: Vec<_> = self.growth().map(|phase| phase.clients).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.len() >= GROWTH_SIZES_MIN
    }

    /// The phases in which something was propagated to somebody.
    pub(crate) fn growth(&self) -> impl Iterator<Item = &Phase> {
        self.phases
            .iter()
            .filter(|phase| phase.clients > 0 && phase.propagation.count() > 0)
    }
}

/// Fewer sizes are no growth.
const GROWTH_SIZES_MIN: usize = 3;

impl Phase {
    /// One in which nothing has happened yet.
    pub(crate) fn blank(name: &str, start_ms: f64, empty: &Distribution) -> Self {
        Self {
            name: name.to_owned(),
            start_ms,
            length_ms: 0.0,
            clients: 0,
            propagation: empty.clone(),
            join: empty.clone(),
            series: Vec::new(),
            counters: BTreeMap::new(),
            relay: None,
            tool: ToolCost::default(),
            figures: Figures::default(),
            ratios: Vec::new(),
        }
    }

    pub(crate) fn counter(&self, name: &str) -> f64 {
        self.counters.get(name).copied().unwrap_or_default()
    }

    /// The relay's processor time beyond that of an idle one.
    pub(crate) fn net_cpu_ms(&self) -> Option<f64> {
        self.relay.map(|relay| (relay.cpu_ms - relay.idle_ms).max(0.0))
    }

    /// What follows from its other figures, with what the relay had before.
    pub(crate) fn figures(&self, base: Option<Base>) -> Figures {
        let responses = self.counter(counter::DELIVERIES) - self.counter(counter::COALESCED);
        let all_cpu_ms = self.relay.map(|relay| relay.cpu_ms + self.tool.cpu_ms);
        let grown = base.zip(self.relay).and_then(|(base, relay)| {
            let clients = self.clients.checked_sub(base.clients).filter(|clients| *clients > 0)?;
            Some((float(relay.resident_bytes) - float(base.resident_bytes)) / float(clients))
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
    /// Below which this part of the rounds lies, between two rounds in proportion; a half is the figure that counts. Rounds are
    /// compared each for itself, because the machine's speed changes from round to round.
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
    /// Whether `measured` stands to `bound` as it must. What is no number does not.
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

/// A count as a figure for people.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}
