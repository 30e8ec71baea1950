//! One record of several: each machine ran a share of one fleet against one server. Counts and histograms add up; what cannot be
//! added stays with the name of its share. Refuses records that do not belong together.

use anyhow::{bail, ensure};

use super::{
    Assertion, Base, Distribution, Machine, Note, Percentiles, Phase, Quantity, Record, Second, ServerCost, ToolCost,
    Unit, float, known_sum,
};
use crate::measure::shard::Share;

/// How much later than the first a share may begin, in milliseconds.
const LATE_MS_MAX: u64 = 1000;

/// A record, its share, and the name of its file.
struct Part {
    file: String,
    share: Share,
    record: Record,
}

impl Record {
    /// Adds up all shares of a run; each record has the name of its file.
    pub(crate) fn merged(records: Vec<(String, Self)>) -> anyhow::Result<Self> {
        let mut parts = Vec::new();
        for (file, record) in records {
            let Some(share) = record.share else {
                bail!("{file} is a whole run, or merged already: only runs with --shard can be added up");
            };
            parts.push(Part { file, share, record });
        }
        parts.sort_by_key(|part| part.share.shard);
        check(&parts)?;
        let Some(first) = parts.first() else {
            bail!("there is nothing to add up");
        };
        let mut whole = first.record.clone();
        whole.share = None;
        whole.setup = format!("{} (on {} machines)", whole.setup, parts.len());
        whole.command = std::env::args().collect();
        whole.machine = machine(&parts);
        whole.start_unix = parts
            .iter()
            .map(|part| part.record.start_unix)
            .min()
            .unwrap_or_default();
        whole.base = base(&parts);
        whole.phases = phases(&parts, whole.base)?;
        whole.length_ms = whole.phases.iter().map(Phase::end_ms).fold(whole.length_ms, f64::max);
        whole.notes = parts.iter().flat_map(Part::notes).collect();
        whole.note(
            "percentiles of a second",
            "those of the share in which they were highest",
        );
        let apart = whole.phases.iter().filter_map(|phase| apart(&parts, &phase.name));
        whole.notes.extend(apart.collect::<Vec<_>>());
        whole.assertions = parts.iter().flat_map(Part::assertions).collect();
        for part in parts.iter().skip(1) {
            add(&mut whole.counters, &part.record.counters);
            whole.breaches.extend(part.record.breaches.iter().cloned());
            whole.breached += part.record.breached;
        }
        Ok(whole)
    }

    fn note(&mut self, what: &str, value: &str) {
        self.notes.push(Note {
            phase: None,
            what: what.to_owned(),
            value: value.to_owned(),
        });
    }
}

/// Says by how much the shares did not begin a phase together: none waits for the others.
fn apart(parts: &[Part], phase: &str) -> Option<Note> {
    let begun = parts.iter().filter_map(|part| part.began_ms(phase));
    let begun = begun.fold((f64::INFINITY, 0.0_f64), |(first, last), at| {
        (first.min(at), last.max(at))
    });
    let apart_ms = begun.1 - begun.0;
    (apart_ms > float(LATE_MS_MAX)).then(|| Note {
        phase: Some(phase.to_owned()),
        what: "from the first share to begin this phase to the last".to_owned(),
        value: Quantity::new(apart_ms, Unit::Millis).to_string(),
    })
}

/// Fails unless these are all shares of one run.
fn check(parts: &[Part]) -> anyhow::Result<()> {
    for pair in parts.windows(2) {
        let [a, b] = pair else { continue };
        let named = format!(
            "{} (share {}) and {} (share {})",
            a.file, a.share.shard, b.file, b.share.shard
        );
        ensure!(
            a.share.shard.of() == b.share.shard.of(),
            "{named} are of different runs: one has more shares than the other"
        );
        ensure!(
            a.share.shard != b.share.shard,
            "{named} overlap: they ran the same clients; give each share once"
        );
        let same = |of: fn(&Record) -> String| of(&a.record) == of(&b.record);
        ensure!(
            same(|record| record.scenario.clone()) && same(|record| record.setup.clone()),
            "{named} are of different runs: run the same scenario with the same flags on all machines"
        );
    }
    if let Some(first) = parts.first() {
        let all = first.share.shard.all();
        let missing: Vec<String> = all
            .filter(|shard| !parts.iter().any(|part| part.share.shard == *shard))
            .map(|shard| shard.to_string())
            .collect();
        ensure!(
            missing.is_empty(),
            "share {} is missing: add its record",
            missing.join(", ")
        );
    }
    let early = parts.iter().min_by_key(|part| part.share.began_unix_ms);
    let late = parts.iter().max_by_key(|part| part.share.began_unix_ms);
    if let (Some(early), Some(late)) = (early, late) {
        let apart = late.share.began_unix_ms - early.share.began_unix_ms;
        ensure!(
            apart <= LATE_MS_MAX,
            "{} (share {}) began {apart} ms after {} (share {}): they did not load the server together; \
             choose a later --start-at, and see that the clocks of the machines agree",
            late.file,
            late.share.shard,
            early.file,
            early.share.shard
        );
    }
    Ok(())
}

impl Part {
    /// Returns when a phase began, counted from the first phase.
    fn start_ms(&self, phase: &Phase) -> f64 {
        phase.start_ms - self.record.phases.first().map_or(0.0, |first| first.start_ms)
    }

    /// Returns when the phase of this name began, in milliseconds since 1970.
    fn began_ms(&self, name: &str) -> Option<f64> {
        let phase = self.record.phases.iter().find(|phase| phase.name == name)?;
        Some(float(self.share.began_unix_ms) + self.start_ms(phase))
    }

    fn assertions(&self) -> impl Iterator<Item = Assertion> {
        self.record.assertions.iter().map(|assertion| Assertion {
            text: format!("{} (share {})", assertion.text, self.share.shard),
            ..assertion.clone()
        })
    }

    fn notes(&self) -> impl Iterator<Item = Note> {
        self.record.notes.iter().map(|note| Note {
            what: format!("{} (share {})", note.what, self.share.shard),
            ..note.clone()
        })
    }
}

impl Phase {
    fn end_ms(&self) -> f64 {
        self.start_ms + self.length_ms
    }
}

/// Adds up the phases of the same name, in the order in which any share has them.
fn phases(parts: &[Part], base: Option<Base>) -> anyhow::Result<Vec<Phase>> {
    let mut names: Vec<&str> = Vec::new();
    for phase in parts.iter().flat_map(|part| &part.record.phases) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    let empty = Distribution::new()?;
    let mut phases = Vec::new();
    for name in names {
        let found = parts.iter().filter_map(|part| {
            let phase = part.record.phases.iter().find(|phase| phase.name == name)?;
            Some((part.start_ms(phase), phase))
        });
        let found: Vec<_> = found.collect();
        let start_ms = found.iter().map(|(start, _)| *start).fold(f64::INFINITY, f64::min);
        let end_ms = found
            .iter()
            .map(|(start, phase)| start + phase.length_ms)
            .fold(0.0, f64::max);
        let mut sum = Phase::blank(name, start_ms, &empty);
        sum.length_ms = end_ms - start_ms;
        for (start, phase) in &found {
            sum.clients += phase.clients;
            sum.with_stream = known_sum(sum.with_stream, phase.with_stream);
            let longest = [sum.longest_without_stream_ms, phase.longest_without_stream_ms];
            sum.longest_without_stream_ms = longest.into_iter().flatten().reduce(f64::max);
            sum.propagation.add(&phase.propagation)?;
            sum.join.add(&phase.join)?;
            sum.waits.add(&phase.waits)?;
            add(&mut sum.counters, &phase.counters);
            sum.server = server(sum.server, phase.server);
            sum.tool = tool(sum.tool, phase.tool);
            add_seconds(&mut sum.series, &phase.series, start - phase.start_ms);
        }
        sum.figures = sum.figures(base);
        phases.push(sum);
    }
    Ok(phases)
}

type Counters = std::collections::BTreeMap<String, f64>;

fn add(sum: &mut Counters, more: &Counters) {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_default() += amount;
    }
}

/// Returns what the servers of all shares cost; most runs have one, on one machine.
fn server(sum: Option<ServerCost>, more: Option<ServerCost>) -> Option<ServerCost> {
    let (Some(a), Some(b)) = (sum, more) else {
        return sum.or(more);
    };
    Some(ServerCost {
        cpu_ms: a.cpu_ms + b.cpu_ms,
        idle_ms: a.idle_ms + b.idle_ms,
        resident_bytes: a.resident_bytes + b.resident_bytes,
        peak_bytes: a.peak_bytes + b.peak_bytes,
    })
}

fn tool(a: ToolCost, b: ToolCost) -> ToolCost {
    ToolCost {
        cpu_ms: a.cpu_ms + b.cpu_ms,
        clients_ms: a.clients_ms + b.clients_ms,
        control_plane_ms: a.control_plane_ms + b.control_plane_ms,
    }
}

/// Adds each second to that of the same number. A share whose phase is over keeps its clients.
fn add_seconds(sum: &mut Vec<Second>, more: &[Second], shift_ms: f64) {
    let kept = |last: Option<&Second>| Second {
        clients: last.map_or(0, |last| last.clients),
        with_stream: last.and_then(|last| last.with_stream),
        ..Second::default()
    };
    let (before, after) = (kept(sum.last()), kept(more.last()));
    for at in 0..sum.len().max(more.len()) {
        let (Some(second), gone) = (more.get(at), sum.get_mut(at)) else {
            if let Some(second) = sum.get_mut(at) {
                second.clients += after.clients;
                second.with_stream = known_sum(second.with_stream, after.with_stream);
            }
            continue;
        };
        let shifted = Second {
            at_ms: second.at_ms + shift_ms,
            ..second.clone()
        };
        match gone {
            Some(total) => *total = both(total, &shifted),
            None => sum.push(both(&before, &shifted)),
        }
    }
}

fn both(a: &Second, b: &Second) -> Second {
    let optional = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b).or(a).or(b);
    let highest = |a: Percentiles, b: Percentiles| Percentiles {
        p50: a.p50.max(b.p50),
        p90: a.p90.max(b.p90),
        p99: a.p99.max(b.p99),
        max: a.max.max(b.max),
    };
    let times = (a.propagation_micros, b.propagation_micros);
    Second {
        at_ms: a.at_ms.max(b.at_ms),
        span_ms: a.span_ms.max(b.span_ms),
        deliveries: a.deliveries + b.deliveries,
        propagation_micros: times.0.zip(times.1).map(|(a, b)| highest(a, b)).or(times.0).or(times.1),
        bytes: a.bytes + b.bytes,
        messages: a.messages + b.messages,
        server_cpu_percent: optional(a.server_cpu_percent, b.server_cpu_percent),
        tool_cpu_percent: a.tool_cpu_percent + b.tool_cpu_percent,
        resident_bytes: a
            .resident_bytes
            .zip(b.resident_bytes)
            .map(|(a, b)| a + b)
            .or(a.resident_bytes)
            .or(b.resident_bytes),
        clients: a.clients + b.clients,
        with_stream: known_sum(a.with_stream, b.with_stream),
        owed: known_sum(a.owed, b.owed),
    }
}

/// Returns all machines as one.
fn machine(parts: &[Part]) -> Machine {
    let all = || parts.iter().map(|part| &part.record.machine);
    let words = |of: fn(&Machine) -> &str| {
        let mut words: Vec<&str> = all().map(of).collect();
        words.dedup();
        words.join(" and ")
    };
    Machine {
        cores: all().map(|machine| machine.cores).sum(),
        memory_bytes: all().map(|machine| machine.memory_bytes).sum(),
        processor: words(|machine| &machine.processor),
        kernel: words(|machine| &machine.kernel),
    }
}

/// Returns the memory of the servers with their first few clients, of the shares that have one.
fn base(parts: &[Part]) -> Option<Base> {
    let bases: Vec<Base> = parts.iter().filter_map(|part| part.record.base).collect();
    (!bases.is_empty()).then(|| Base {
        clients: bases.iter().map(|base| base.clients).sum(),
        resident_bytes: bases.iter().map(|base| base.resident_bytes).sum(),
    })
}
