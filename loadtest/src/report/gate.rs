//! The gate between two runs: whether one figure of the second is more than a multiple of the first's, and in which ways the runs
//! are not alike. It only reads records.

use super::columns::{self, Column, name};
use super::compare::Comparison;
use super::grid::Grid;
use crate::measure::record::{Phase, Quantity, Record, Unit};

/// A limit on how much larger a figure may be in the second run.
pub(super) struct Gate {
    column: &'static Column,
    above: f64,
}

/// The figures of all phases that both runs have.
pub(super) struct Judged {
    pub(super) grid: Grid,
    pub(super) held: bool,
}

impl Gate {
    /// Creates a gate for the figure with this name.
    pub(super) fn new(metric: &str, above: f64) -> anyhow::Result<Self> {
        let column = columns::named(metric).map_err(|fault| anyhow::anyhow!("--metric {metric}: {fault}"))?;
        Ok(Self { column, above })
    }

    /// Judges each phase by itself. Fails if no phase has the figure in both runs.
    pub(super) fn judge(&self, comparison: &Comparison<'_>) -> anyhow::Result<Judged> {
        let metric = name(self.column);
        let mut judged = Judged {
            grid: Grid::new(["verdict", "phase", "figure", "A", "B", "B / A", "must be"]),
            held: true,
        };
        for [a, b] in comparison.pairs() {
            let of = |phase: &Phase| (self.column.of)(phase);
            let (Some(was), Some(is)) = (of(a), of(b)) else {
                continue;
            };
            // Something after nothing is more than any multiple.
            let times = if was > 0.0 {
                is / was
            } else if is > 0.0 {
                f64::INFINITY
            } else {
                1.0
            };
            let held = times <= self.above;
            judged.held &= held;
            let text = |value| Quantity::new(value, self.column.unit).to_string();
            judged.grid.rows.push(vec![
                if held { "held" } else { "FAILED" }.to_owned(),
                a.name.clone(),
                metric.clone(),
                text(was),
                text(is),
                Quantity::new(times, Unit::Times).to_string(),
                format!("≤ {}", Quantity::new(self.above, Unit::Times)),
            ]);
        }
        anyhow::ensure!(
            !judged.grid.rows.is_empty(),
            "--metric {metric}: no phase has this figure in both runs, so there is nothing to compare"
        );
        Ok(judged)
    }
}

/// Returns why the figures of two runs may differ for reasons other than the server.
pub(super) fn unlike(comparison: &Comparison<'_>) -> Vec<String> {
    let [a, b] = comparison.records;
    let mut found = Vec::new();
    let mut differ = |what: &str, of: fn(&Record) -> String| {
        let (was, is) = (of(a), of(b));
        if was != is {
            found.push(format!("the {what} differs: A has `{was}`, B has `{is}`"));
        }
    };
    differ("scenario", |record| record.scenario.clone());
    differ("setup", |record| record.setup.clone());
    differ("number of processors", |record| record.machine.cores.to_string());
    differ("processor", |record| record.machine.processor.clone());
    differ("kernel", |record| record.machine.kernel.clone());
    differ("list of phases", |record| {
        let names: Vec<_> = record.phases.iter().map(|phase| phase.name.as_str()).collect();
        names.join(", ")
    });
    for [a, b] in comparison.pairs() {
        if a.clients != b.clients {
            found.push(format!(
                "phase `{}` has {} clients in A and {} in B",
                a.name, a.clients, b.clients
            ));
        }
    }
    for (name, record) in [("A", a), ("B", b)] {
        if !record.held() {
            found.push(format!("not everything held in {name}"));
        }
    }
    found
}
