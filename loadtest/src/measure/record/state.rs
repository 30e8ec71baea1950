// SPDX-License-Identifier: Apache-2.0
//! The state of a recorder: the record so far, the current phase, and how far each source was read. Time is an argument.

use std::time::{Duration, Instant};

use super::{Distribution, Effort, Fleets, Percentiles, Phase, Record, Second, ServerCost, counter, float, known_sum};
use crate::measure::process::Meter;
use crate::measure::tally::{Feed, Tally};

/// Returns the state of the fleets.
pub(super) type Count = Box<dyn Fn() -> Fleets + Send>;

/// The record so far and the state of its sources.
pub(super) struct State {
    pub(super) record: Record,
    pub(super) began: Instant,
    pub(super) open: Option<Open>,
    pub(super) feeds: Vec<(Feed, Count)>,
    pub(super) server: Option<Meter>,
    pub(super) own: Meter,
    pub(super) ticked: Instant,
    /// What came since the last tick.
    pub(super) fresh: Tally,
    /// The part of one processor that the idle server uses.
    pub(super) idle: f64,
    pub(super) empty: Distribution,
}

/// The current phase.
pub(super) struct Open {
    pub(super) phase: Phase,
    pub(super) began: Instant,
}

/// A shorter end of a longer phase, in which nothing arrived, gives no point of a plot.
pub(super) const SECOND_LEAST: Duration = Duration::from_millis(200);

impl State {
    pub(super) fn phase(&self) -> Option<String> {
        self.open.as_ref().map(|open| open.phase.name.clone())
    }

    pub(super) fn joins(&self) -> Option<Percentiles> {
        self.open.as_ref()?.phase.join.percentiles()
    }

    pub(super) fn blank(&self, name: &str, now: Instant) -> Phase {
        let start_ms = millis(now.saturating_duration_since(self.began));
        Phase::blank(name, start_ms, &self.empty)
    }

    /// Fetches what is new, and adds it to the current phase.
    pub(super) fn tick(&mut self, now: Instant) -> anyhow::Result<Second> {
        let span = now.saturating_duration_since(self.ticked);
        self.ticked = now;
        self.fresh.reset();
        let mut fleets = Fleets::default();
        for (feed, count) in &self.feeds {
            feed.take(&mut self.fresh)?;
            let counted = count();
            fleets.clients += counted.clients;
            fleets.with_stream = known_sum(fleets.with_stream, counted.with_stream);
            fleets.owed = known_sum(fleets.owed, counted.owed);
        }
        let percent = |cpu: Duration| 100.0 * cpu.as_secs_f64() / span.as_secs_f64().max(f64::MIN_POSITIVE);
        let [tool, clients, control_plane] = self.own.spent(["", "clients", "control-plane"])?;
        let server = self.server.as_mut().and_then(|server| spent(server).ok());
        let second = Second {
            at_ms: millis(now.saturating_duration_since(self.began)),
            span_ms: millis(span),
            deliveries: self.fresh.delivered,
            propagation_micros: self.fresh.propagation.percentiles(),
            bytes: self.fresh.bytes,
            messages: self.fresh.responses,
            server_cpu_percent: server.map(|(cpu, _)| percent(cpu)),
            tool_cpu_percent: percent(tool),
            resident_bytes: server.map(|(_, cost)| cost.resident_bytes),
            clients: fleets.clients,
            with_stream: fleets.with_stream,
            owed: fleets.owed,
        };
        for (name, amount) in counted(&self.fresh) {
            self.count(name, float(amount));
        }
        for (loss, amount) in std::mem::take(&mut self.fresh.losses) {
            self.count(&loss.counter(), float(amount));
        }
        let Some(Open { phase, .. }) = &mut self.open else {
            return Ok(second);
        };
        phase.clients = fleets.clients;
        phase.with_stream = fleets.with_stream;
        phase.propagation.add(&self.fresh.propagation)?;
        phase.join.add(&self.fresh.join)?;
        phase.waits.add(&self.fresh.waits)?;
        phase.tool.cpu_ms += millis(tool);
        phase.tool.clients_ms += millis(clients);
        phase.tool.control_plane_ms += millis(control_plane);
        if let Some((cpu, cost)) = server {
            let before = phase.server.map_or(0.0, |server| server.cpu_ms);
            let cpu_ms = before + millis(cpu);
            phase.server = Some(ServerCost { cpu_ms, ..cost });
        }
        // A phase that is shorter has a point all the same.
        if span >= SECOND_LEAST || second.deliveries > 0 || phase.series.is_empty() && !span.is_zero() {
            phase.series.push(second.clone());
        }
        Ok(second)
    }

    pub(super) fn count(&mut self, name: &str, amount: f64) {
        let phase = self.open.as_mut().map(|open| &mut open.phase.counters);
        for counters in phase.into_iter().chain([&mut self.record.counters]) {
            *counters.entry(name.to_owned()).or_default() += amount;
        }
    }

    /// Returns how busy the tool was in the current phase up to the last tick, if the server's processor time is known.
    pub(super) fn effort(&self) -> Option<Effort> {
        let Open { phase, began } = self.open.as_ref()?;
        let passed_ms = millis(self.ticked.saturating_duration_since(*began));
        Some(Effort {
            share: phase.figures(None).tool_share?,
            load: phase.tool.cpu_ms / passed_ms.max(f64::MIN_POSITIVE),
        })
    }

    pub(super) fn closed(&self, now: Instant) -> Option<Phase> {
        let open = self.open.as_ref()?;
        let mut phase = open.phase.clone();
        phase.length_ms = millis(now.saturating_duration_since(open.began));
        if let Some(server) = &mut phase.server {
            server.idle_ms = self.idle * phase.length_ms;
        }
        phase.figures = phase.figures(self.record.base);
        Some(phase)
    }

    pub(super) fn end(&mut self, now: Instant) -> anyhow::Result<()> {
        self.tick(now)?;
        self.record.phases.extend(self.closed(now));
        self.open = None;
        Ok(())
    }
}

/// Returns what a running server spent since the last reading, and its memory.
fn spent(server: &mut Meter) -> anyhow::Result<(Duration, ServerCost)> {
    let [cpu] = server.spent([""])?;
    let cost = ServerCost {
        resident_bytes: server.process().resident_bytes()?,
        peak_bytes: server.process().peak_bytes()?,
        ..ServerCost::default()
    };
    Ok((cpu, cost))
}

const fn counted(tally: &Tally) -> [(&'static str, u64); 7] {
    [
        (counter::RESPONSES, tally.responses),
        (counter::ACKNOWLEDGEMENTS, tally.acknowledgements),
        (counter::RESOURCES, tally.resources),
        (counter::BYTES, tally.bytes),
        (counter::REPEATED, tally.repeated),
        (counter::DELIVERIES, tally.delivered),
        (counter::COALESCED, tally.coalesced),
    ]
}

pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
