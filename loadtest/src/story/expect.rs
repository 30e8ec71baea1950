// SPDX-License-Identifier: Apache-2.0
//! Compares what a phase must fulfil with what was measured. It only compares.

use std::time::Duration;

use anyhow::Context as _;

use super::contender::{Round, Spent};
use super::past::{Past, Rounds, Usage};
use super::phase::{Expect, Figure, Stalled};
use super::play::Play;
use crate::measure::record::{
    Claim, Distribution, Effort, Quantity, Recorder, Relation, ServerCost, Unit, Verdict, counter, float,
};
use crate::measure::sockets;

/// Records the costs of rounds as multiples of the floor's and of the calm relay's.
pub(super) fn ratios(recorder: &Recorder, rounds: &Rounds) {
    for (others, name) in [(&rounds.floor, "floor"), (&rounds.calm, "calm")] {
        if others.is_empty() {
            continue;
        }
        let pairs = || rounds.main.iter().zip(others);
        let cpu = pairs().map(|(main, other)| per_delivery(main) / per_delivery(other));
        recorder.ratio(&format!("processor time to {name}"), cpu.collect());
        let taken = pairs().map(|(main, other)| main.spent.taken.as_secs_f64() / other.spent.taken.as_secs_f64());
        recorder.ratio(&format!("time until all have it to {name}"), taken.collect());
        let bytes = pairs().map(|(main, other)| float(main.bytes) / float(other.bytes));
        recorder.ratio(&format!("bytes to {name}"), bytes.collect());
        let p99 =
            pairs().map(|(main, other)| float(main.propagation.at(0.99)) / float(other.propagation.at(0.99)).max(1.0));
        recorder.ratio(&format!("p99 to {name}"), p99.collect());
    }
}

/// How busy the tool was during the turns of the server under test. The turns of the floor and of the calm relay do not count.
fn effort(rounds: &Rounds) -> Option<Effort> {
    let spent = rounds.main.iter().map(|round| round.spent).chain(rounds.join);
    let sum = |of: fn(Spent) -> Duration| spent.clone().map(of).sum::<Duration>().as_secs_f64();
    let (tool, relay) = (sum(|spent| spent.tool), sum(|spent| spent.cpu));
    // Without a process that is watched, the server's time is not known.
    (relay > 0.0).then(|| Effort {
        share: tool / (tool + relay),
        load: tool / sum(|spent| spent.taken).max(f64::MIN_POSITIVE),
    })
}

fn per_delivery(round: &Round) -> f64 {
    round.spent.cpu.as_secs_f64() / float(round.deliveries.max(1))
}

/// Makes claims about a phase; `timed` ones are void if the tool took too much processor time.
struct Bar<'a> {
    recorder: &'a Recorder,
    past: &'a Past,
    failed: u32,
}

impl Bar<'_> {
    fn claim(&mut self, text: &str, measured: (f64, Unit), relation: Relation, bound: f64, timed: bool) {
        let claim = Claim {
            text,
            measured: Quantity::new(measured.0, measured.1),
            relation,
            bound,
            timed,
            effort: effort(&self.past.rounds),
            why: None,
        };
        if self.recorder.claim(&claim) == Verdict::Failed {
            self.failed += 1;
        }
    }

    fn below(&mut self, text: &str, measured: (f64, Unit), bound: Option<f64>, timed: bool) {
        if let Some(bound) = bound {
            self.claim(text, measured, Relation::AtMost, bound, timed);
        }
    }

    fn ratio(&mut self, name: &str, bound: Option<f64>, timed: bool) {
        if let Some(bound) = bound {
            let found = self.past.phase.ratios.iter().find(|ratio| ratio.what == name);
            let median = found.and_then(|ratio| ratio.quantile(0.5)).unwrap_or(f64::NAN);
            self.claim(
                &format!("{name}, median of rounds"),
                (median, Unit::Times),
                Relation::AtMost,
                bound,
                timed,
            );
        }
    }
}

/// Checks everything. What does not hold is recorded, and the scenario goes on.
pub(super) fn check(expect: &Expect, past: &Past, play: &Play<'_>) -> anyhow::Result<()> {
    let mut bar = Bar {
        recorder: play.recorder,
        past,
        failed: 0,
    };
    times(expect, past, &mut bar);
    if expect.delivered_once {
        let delivered = (float(past.phase.propagation.count()), Unit::Count);
        let text = "changes reach every client that wants them, once";
        bar.claim(text, delivered, Relation::Exactly, float(past.wanted), false);
    }
    reach(expect, past, &mut bar);
    costs(expect, past, play, &mut bar)?;
    for compared in &expect.compared {
        let other = play
            .past
            .iter()
            .find(|past| past.phase.name == compared.to)
            .context("no such phase")?;
        let ratio = figure(compared.what, past) / figure(compared.what, other);
        let text = format!("{} as a multiple of phase `{}`", compared.what.name(), compared.to);
        let timed = matches!(compared.what, Figure::P99);
        bar.below(&text, (ratio, Unit::Times), compared.at_most, timed);
        if let Some(bound) = compared.at_least {
            bar.claim(&text, (ratio, Unit::Times), Relation::AtLeast, bound, timed);
        }
    }
    Ok(())
}

fn times(expect: &Expect, past: &Past, bar: &mut Bar<'_>) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    // Without a measurement a claim does not hold.
    let of = |times: &Distribution, micros: u64| match times.count() {
        0 => f64::NAN,
        _ => float(micros) / 1e3,
    };
    let propagation = &past.phase.propagation;
    let at = |quantile| (of(propagation, propagation.at(quantile)), Unit::Millis);
    let bound = |time: Option<crate::measure::quantities::Time>| time.map(|time| millis(time.0));
    bar.below("propagation, p50", at(0.5), bound(expect.p50_below), true);
    bar.below("propagation, p99", at(0.99), bound(expect.p99_below), true);
    let joins = &past.phase.join;
    let join = |quantile| of(joins, joins.at(quantile));
    bar.below(
        "join of a client, p99",
        (join(0.99), Unit::Millis),
        bound(expect.join_p99_below),
        true,
    );
    let longest = past.rounds.answers.as_ref().map_or(f64::NAN, |all| of(all, all.max()));
    let text = "longest answer of the admin address";
    bar.below(text, (longest, Unit::Millis), bound(expect.answers_below), true);
    let spread = (of(joins, joins.max()) / join(0.5), Unit::Times);
    bar.below("slowest join to the median", spread, expect.join_max_to_median, true);
    let waits = of(&past.phase.waits, past.phase.waits.max());
    let text = "longest wait of a client for which there is something, in rounds";
    bar.below(text, (waits, Unit::Count), expect.waits_at_most, false);
    bar.ratio("p99 to floor", expect.p99_to_floor, true);
    bar.ratio("p99 to calm", expect.p99_to_calm, true);
    bar.ratio("processor time to floor", expect.cpu_to_floor, false);
    let name = if past.rounds.main.is_empty() {
        "time to join"
    } else {
        "time until all have it to floor"
    };
    bar.ratio(name, expect.time_to_floor, true);
    if let Some((time, times)) = expect.p99_below_or_to_floor {
        let median = |rounds: &[Round]| {
            let mut all: Vec<_> = rounds.iter().map(|round| round.propagation.at(0.99)).collect();
            all.sort_unstable();
            all.get(all.len() / 2).map_or(f64::NAN, |micros| float(*micros) / 1e3)
        };
        let (main, floor) = (median(&past.rounds.main), median(&past.rounds.floor));
        let bound = millis(time.0).max(times * floor);
        let text = format!("p99 of a change, median of rounds; the floor's is {floor:.1} ms");
        bar.claim(&text, (main, Unit::Millis), Relation::AtMost, bound, true);
    }
}

/// Checks that no client is left behind.
fn reach(expect: &Expect, past: &Past, bar: &mut Bar<'_>) {
    let (Some(bound), Some(behind)) = (expect.reaches_all_within, past.rounds.behind) else {
        return;
    };
    let behind = (float(u64::try_from(behind).unwrap_or(u64::MAX)), Unit::Count);
    let text = "clients that lack a change that another one saw";
    bar.claim(text, behind, Relation::Exactly, 0.0, false);
    let times = &past.phase.propagation;
    if times.count() == 0 {
        bar.recorder.note("changes", "no client saw one after another client");
        return;
    }
    let slowest = (float(times.max()) / 1e3, Unit::Millis);
    let bound = bound.0.as_secs_f64() * 1e3;
    bar.claim("slowest change at a client", slowest, Relation::AtMost, bound, true);
}

/// Checks costs. Those of the relay's process or of the control plane are left out if this program did not start it.
fn costs(expect: &Expect, past: &Past, play: &Play<'_>, bar: &mut Bar<'_>) -> anyhow::Result<()> {
    traffic(expect, past, bar);
    if let Some(expected) = &expect.each_stalled {
        stalled(expected, past, play, bar)?;
    }
    let left_out = |what| bar.recorder.note("left out", what);
    if play.cast.main.process().is_some() {
        processor(expect, past, bar);
        memory(expect, past, play, bar)?;
    } else if expect.is_about_process() {
        left_out("processor time and memory: the process of the server is not known; see --pid");
    }
    if let (Some(streams), Some(fallback)) = (expect.fallback_streams, &play.cast.main.origin.fallback) {
        let measured = (float(fallback.counts.streams()), Unit::Count);
        let text = "streams at the second control plane";
        bar.claim(text, measured, Relation::Exactly, float(streams), false);
    }
    let Some(streams) = expect.upstream_streams else {
        return Ok(());
    };
    if play.cast.main.origin.control_plane.is_none() || play.arguments.direct {
        left_out("streams at the control plane: no relay has any at this program's");
        return Ok(());
    }
    let measured = (float(past.upstream_streams), Unit::Count);
    bar.claim(
        "streams at the control plane",
        measured,
        Relation::Exactly,
        float(streams),
        false,
    );
    Ok(())
}

fn processor(expect: &Expect, past: &Past, bar: &mut Bar<'_>) {
    let cpu = past
        .phase
        .server
        .map_or(f64::NAN, |server| past.phase.percent(server.cpu_ms));
    let text = "the server's part of one processor";
    bar.below(text, (cpu, Unit::Percent), expect.relay_cpu_percent_below, false);
}

fn memory(expect: &Expect, past: &Past, play: &Play<'_>, bar: &mut Bar<'_>) -> anyhow::Result<()> {
    let size = |size: Option<crate::measure::quantities::Size>| size.map(|size| float(size.0));
    let bytes = |of: fn(ServerCost) -> u64| (past.phase.server.map_or(f64::NAN, |it| float(of(it))), Unit::Bytes);
    let resident = bytes(|relay| relay.resident_bytes);
    bar.below("resident memory", resident, size(expect.memory_below), false);
    let peak = bytes(|relay| relay.peak_bytes);
    bar.below("peak memory", peak, size(expect.peak_below), false);
    let per_client = past.phase.figures.bytes_per_client.unwrap_or(f64::NAN);
    let bound = size(expect.memory_per_client_below);
    bar.below("memory per client", (per_client, Unit::Bytes), bound, false);
    if let Some(grown) = &expect.memory_grows_at_most {
        let before = play
            .past
            .iter()
            .find(|past| past.phase.name == grown.since)
            .context("no such phase")?;
        let before = float(before.phase.server.unwrap_or_default().resident_bytes);
        let added = (resident.0 - before) / float(past.phase.clients.max(1));
        let text = format!("memory per client beyond that of phase `{}`", grown.since);
        bar.claim(
            &text,
            (added, Unit::Bytes),
            Relation::AtMost,
            float(grown.per_client.0),
            false,
        );
    }
    Ok(())
}

/// Checks messages, resources and bytes.
fn traffic(expect: &Expect, past: &Past, bar: &mut Bar<'_>) {
    let counted = |name| past.phase.counter(name);
    let sent = (counted(counter::RESPONSES), Unit::Count);
    bar.below("messages to clients", sent, expect.messages_at_most.map(float), false);
    let resources = (counted(counter::RESOURCES), Unit::Count);
    bar.below(
        "resources to clients",
        resources,
        expect.resources_at_most.map(float),
        false,
    );
    bar.below(
        "bytes to clients",
        (counted(counter::BYTES), Unit::Bytes),
        expect.bytes_at_most.map(|bytes| float(bytes.0)),
        false,
    );
}

/// Checks the cost of each client that misbehaves.
fn stalled(expected: &Stalled, past: &Past, play: &Play<'_>, bar: &mut Bar<'_>) -> anyhow::Result<()> {
    let plan = &play.cast.main.plan;
    let clients = f64::from(plan.unsteady().max(1));
    let before = play.past.iter().find(|it| it.phase.name == expected.since);
    let before = before.context("no such phase")?;
    let resident = |past: &Past| float(past.phase.server.unwrap_or_default().resident_bytes);
    let calm = past.calm_bytes.zip(before.calm_bytes);
    let calm = calm.map_or(0.0, |(now, then)| float(now) - float(then));
    let added = (resident(past) - resident(before) - calm.max(0.0)) / clients;
    if play.cast.main.process().is_some() {
        let text = format!("memory per stalled client beyond that of phase `{}`", expected.since);
        let bound = float(expected.process.0);
        bar.claim(&text, (added, Unit::Bytes), Relation::AtMost, bound, false);
    }
    let kernel = sockets::bytes_at(plan.target.server.port())?;
    let most = kernel.last().map_or(f64::NAN, |bytes| float(*bytes));
    let text = "memory of the kernel for the connection that has most";
    bar.claim(
        text,
        (most, Unit::Bytes),
        Relation::AtMost,
        float(expected.kernel.0),
        false,
    );
    Ok(())
}

fn figure(what: Figure, past: &Past) -> f64 {
    let away = |of: fn(Usage) -> f64| past.rounds.away.map_or(f64::NAN, of);
    match what {
        Figure::Cpu => past.phase.net_cpu_ms().unwrap_or(f64::NAN),
        Figure::Bytes => past.phase.counter(counter::BYTES),
        Figure::CpuPerChange => match past.rounds.main.len() {
            0 => past.phase.net_cpu_ms().unwrap_or(f64::NAN) / f64::from(past.changes.max(1)),
            _ => {
                let mut all: Vec<_> = past
                    .rounds
                    .main
                    .iter()
                    .map(|round| round.spent.cpu.as_secs_f64())
                    .collect();
                all.sort_unstable_by(f64::total_cmp);
                all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
            }
        },
        Figure::P99 => float(past.phase.propagation.at(0.99)),
        Figure::UpstreamBytes => float(past.upstream_bytes),
        Figure::UpstreamStreams => float(past.upstream_streams),
        Figure::MemoryAway => away(|usage| usage.resident_bytes),
        Figure::DescriptorsAway => away(|usage| usage.descriptors),
        Figure::TasksAway => away(|usage| usage.tasks),
    }
}
