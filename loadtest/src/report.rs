//! The answers: what a record says, as a table, JSON, CSV and a page, live or of two runs side by side. Each of them only formats.

mod charts;
mod columns;
mod compare;
mod csv;
mod grid;
mod growth;
mod live;
mod page;
mod plot;
mod scale;
mod table;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use compare::Comparison;
pub(crate) use live::Progress;

use crate::record::{FORM, Record};
use crate::tally::Tally;

/// Where the answers go besides the terminal.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Outputs {
    /// Write the record of the run to this file: all that was measured, for programs and for `--compare`.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a row for each phase and each second to this file.
    #[arg(long, global = true, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page with plots to this file; it needs no other file and no network.
    #[arg(long, global = true, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Run nothing: show the records of two runs side by side (with `--html`, as a page too).
    #[arg(long, global = true, num_args = 2, value_names = ["A.json", "B.json"], conflicts_with_all = ["json", "csv"])]
    pub(crate) compare: Vec<PathBuf>,
}

impl Outputs {
    /// Tells what a run found, everywhere where it was asked for.
    pub(crate) fn tell(&self, record: &Record) -> anyhow::Result<()> {
        // First what would be lost if the terminal were gone.
        if let Some(file) = &self.json {
            write(file, &serde_json::to_string_pretty(record)?)?;
        }
        if let Some(file) = &self.csv {
            write(file, &csv::csv(record))?;
        }
        if let Some(file) = &self.html {
            write(file, &page::page(record))?;
        }
        write!(std::io::stdout().lock(), "\n{}", table::table(record)).context("cannot write the table")
    }

    /// Shows two runs side by side.
    pub(crate) fn compare(&self) -> anyhow::Result<()> {
        let records = self
            .compare
            .iter()
            .map(|file| read(file))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let [a, b] = records.as_slice() else {
            anyhow::bail!("--compare takes two records");
        };
        let comparison = Comparison::of(a, b);
        if let Some(file) = &self.html {
            write(file, &page::compared(&comparison))?;
        }
        write!(std::io::stdout().lock(), "{}", comparison.table()).context("cannot write the table")
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// A record that was written by `--json`.
fn read(file: &Path) -> anyhow::Result<Record> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let record: Record = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is no record of a run; such files are written by --json",
            file.display()
        )
    })?;
    anyhow::ensure!(
        record.form == FORM,
        "{} is of form {}, but this program reads form {FORM}: take both records with one version",
        file.display(),
        record.form
    );
    Ok(record)
}

#[allow(dead_code, reason = "the record has them too")]
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

#[allow(dead_code, reason = "the record has them too")]
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
