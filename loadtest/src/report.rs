//! What a run found: the figures as a table for people and as JSON for programs. It only formats.

use std::fmt;
use std::time::Duration;

use crate::tally::Tally;

/// The figures of one run. Times are in milliseconds unless the name says otherwise; `None` is not measured here.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) setup: String,
    pub(crate) clients: u32,
    pub(crate) first_client_ms: Option<f64>,
    pub(crate) join_ms: Option<f64>,
    pub(crate) changes: u32,
    pub(crate) deliveries_expected: u64,
    pub(crate) deliveries: u64,
    /// Deliveries without a response of their own.
    pub(crate) coalesced: u64,
    pub(crate) latency_ms: Option<Latency>,
    pub(crate) removal_ms: Option<f64>,
    pub(crate) relay: Option<RelayFigures>,
    /// While changes were sent, in percent of one processor.
    pub(crate) clients_cpu_percent: f64,
    pub(crate) control_plane_cpu_percent: f64,
    /// The tool's part of all processor time while changes were sent.
    pub(crate) own_share_percent: f64,
    pub(crate) responses: u64,
    pub(crate) acknowledgements: u64,
    pub(crate) resources_received: u64,
    pub(crate) bytes_received: u64,
    pub(crate) repeated: u64,
    pub(crate) upstream_streams: u64,
    pub(crate) upstream_responses: u64,
    pub(crate) upstream_acknowledgements: u64,
    pub(crate) failures: Vec<String>,
}

/// From publishing to the last byte read, per client and change.
#[derive(Debug)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// What the relay cost.
#[derive(Debug, Default)]
pub(crate) struct RelayFigures {
    pub(crate) base_bytes: u64,
    pub(crate) idle_bytes: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) bytes_per_client: f64,
    pub(crate) join_cpu_ms: f64,
    pub(crate) idle_cpu_percent: f64,
    pub(crate) cpu_percent: f64,
    /// Processor time beyond the idle relay's while the changes went out.
    pub(crate) changes_cpu_ms: f64,
    /// That for each response with changes.
    pub(crate) cpu_micros_per_delivery: f64,
    /// From the relay's own counters: bodies that it encoded, and responses that it sent, for the changes.
    pub(crate) encoded_bodies: Option<f64>,
    pub(crate) encoded_bodies_join: Option<f64>,
    pub(crate) responses: Option<f64>,
}

impl Report {
    /// Takes over what the clients counted.
    pub(crate) fn count(&mut self, tally: &Tally) {
        self.responses = tally.responses;
        self.acknowledgements = tally.acknowledgements;
        self.resources_received = tally.resources;
        self.bytes_received = tally.bytes;
        self.repeated = tally.repeated;
        self.deliveries = tally.delivered;
        self.coalesced = tally.coalesced;
        #[expect(clippy::cast_precision_loss, reason = "figures for people")]
        if let Some(relay) = &mut self.relay {
            let responses = tally.delivered.saturating_sub(tally.coalesced).max(1);
            relay.cpu_micros_per_delivery = relay.changes_cpu_ms * 1e3 / responses as f64;
        }
        self.latency_ms = Latency::of(tally);
    }

    pub(crate) const fn held(&self) -> bool {
        self.failures.is_empty()
    }
}

impl Latency {
    /// That of the measured changes, if there were any.
    pub(crate) fn of(tally: &Tally) -> Option<Self> {
        let at = |quantile| micros_as_millis(tally.propagation.at(quantile));
        (tally.delivered > 0).then(|| Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: micros_as_millis(tally.propagation.max()),
        })
    }
}

/// Milliseconds with fractions.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn micros_as_millis(micros: u64) -> f64 {
    millis(Duration::from_micros(micros))
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.setup)?;
        if let (Some(first), Some(others)) = (self.first_client_ms, self.join_ms) {
            let count = self.clients.saturating_sub(1);
            writeln!(
                out,
                "  join      first client alone {first:.1} ms, the other {count} in {others:.0} ms"
            )?;
        }
        if self.deliveries_expected > 0 {
            writeln!(
                out,
                "  changes   {} of one resource each, {} of {} deliveries, {} of them along with others",
                self.changes, self.deliveries, self.deliveries_expected, self.coalesced
            )?;
        }
        if let Some(latency) = &self.latency_ms {
            writeln!(
                out,
                "  latency   p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
                latency.p50, latency.p90, latency.p99, latency.max
            )?;
        }
        if let Some(removal) = self.removal_ms {
            writeln!(out, "  removal   of one resource and its return: {removal:.0} ms")?;
        }
        if let Some(relay) = &self.relay {
            relay.fmt(out)?;
        }
        writeln!(
            out,
            "  processor clients {:.0} %, control plane {:.0} %; the tool's share of all {:.0} %",
            self.clients_cpu_percent, self.control_plane_cpu_percent, self.own_share_percent
        )?;
        writeln!(
            out,
            "  clients   {} responses, {} resources ({} repeated), {:.1} MiB, {} acknowledgements",
            self.responses,
            self.resources_received,
            self.repeated,
            mebibytes(self.bytes_received),
            self.acknowledgements
        )?;
        writeln!(
            out,
            "  upstream  {} streams, {} responses, {} acknowledgements",
            self.upstream_streams, self.upstream_responses, self.upstream_acknowledgements
        )?;
        for failure in &self.failures {
            writeln!(out, "  FAILED    {failure}")?;
        }
        let verdict = if self.held() {
            "every check held"
        } else {
            "something is wrong, see above"
        };
        writeln!(out, "{verdict}")
    }
}

impl fmt::Display for RelayFigures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "  memory    {:.1} KiB per client (RssAnon {:.1} MiB with one, {:.1} MiB with all; peak {:.1} MiB)",
            self.bytes_per_client / 1024.0,
            mebibytes(self.base_bytes),
            mebibytes(self.idle_bytes),
            mebibytes(self.peak_bytes)
        )?;
        writeln!(
            out,
            "  relay     {:.1} us processor time per delivered change; join {:.0} ms, idle {:.2} %, changes {:.1} %",
            self.cpu_micros_per_delivery, self.join_cpu_ms, self.idle_cpu_percent, self.cpu_percent
        )?;
        if let (Some(encoded), Some(responses)) = (self.encoded_bodies, self.responses) {
            writeln!(
                out,
                "  encoding  {encoded} bodies encoded for {responses} responses with changes; {} while the others joined",
                self.encoded_bodies_join.unwrap_or_default()
            )?;
        }
        Ok(())
    }
}
