//! Two runs side by side: their figures phase by phase, with the second as a multiple of the first. It does not judge: the reader decides which difference matters, or a gate.

use std::fmt::Write as _;

use super::columns::Column;
use super::grid::Grid;
use super::table;
use crate::measure::record::{Phase, Quantity, Record, Unit};

/// Two records and which of their phases belong together.
pub(crate) struct Comparison<'a> {
    pub(super) records: [&'a Record; 2],
    /// Pairs by name, in order; a phase that only one record has is alone.
    phases: Vec<[Option<&'a Phase>; 2]>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn of(a: &'a Record, b: &'a Record) -> Self {
        // If several phases have one name, the first of A belongs to the first of B.
        let mut rest: Vec<&Phase> = b.phases.iter().collect();
        let mut phases = Vec::new();
        for phase in &a.phases {
            let other = rest.iter().position(|other| other.name == phase.name);
            phases.push([Some(phase), other.map(|at| rest.remove(at))]);
        }
        phases.extend(rest.into_iter().map(|phase| [None, Some(phase)]));
        Self {
            records: [a, b],
            phases,
        }
    }

    /// Returns the phases that both runs have.
    pub(super) fn pairs(&self) -> impl Iterator<Item = [&'a Phase; 2]> + '_ {
        self.phases.iter().filter_map(|[a, b]| Some([(*a)?, (*b)?]))
    }

    /// Returns the comparison as text.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        for (name, record) in ["A", "B"].into_iter().zip(self.records) {
            let _ = writeln!(out, "{name}  {}: {}", record.scenario, record.setup);
            let _ = writeln!(out, "   {}", table::surroundings(record));
            let _ = writeln!(out, "   {}", table::conclusion(record));
        }
        for (what, grid) in self.grids() {
            let _ = writeln!(out, "\n{what}");
            for line in grid.to_string().lines() {
                let _ = writeln!(out, "  {line}");
            }
        }
        out
    }

    /// Returns the figures: a table for each phase, and one for the counters.
    fn grids(&self) -> Vec<(String, Grid)> {
        let phases = self.phases.iter().map(|pair| {
            let name = pair.iter().flatten().next().map_or("", |phase| phase.name.as_str());
            (format!("phase: {name}"), figures(pair))
        });
        let mut grids: Vec<(String, Grid)> = phases.collect();
        grids.push(("counted".to_owned(), self.counters()));
        grids.retain(|(_, grid)| !grid.rows.is_empty());
        grids
    }

    fn counters(&self) -> Grid {
        let [a, b] = self.records;
        let mut names: Vec<&String> = a.counters.keys().chain(b.counters.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let mut grid = Grid::new(HEADINGS);
        for name in names {
            let amounts = self.records.map(|record| record.counters.get(name).copied());
            let unit = if name.ends_with("bytes") {
                Unit::Bytes
            } else {
                Unit::Count
            };
            grid.rows.push(row(name, amounts, unit));
        }
        grid
    }
}

const HEADINGS: [&str; 4] = ["figure", "A", "B", "B / A"];

fn figures(pair: &[Option<&Phase>; 2]) -> Grid {
    let mut grid = Grid::new(HEADINGS);
    for (_, columns) in table::GROUPS {
        for Column { title, unit, of, .. } in columns {
            let amounts = pair.map(|phase| phase.and_then(of));
            if amounts.iter().any(Option::is_some) {
                grid.rows.push(row(title, amounts, *unit));
            }
        }
    }
    grid
}

fn row(what: &str, amounts: [Option<f64>; 2], unit: Unit) -> Vec<String> {
    let text = |amount: Option<f64>| amount.map_or_else(|| "-".to_owned(), |it| Quantity::new(it, unit).to_string());
    let times = match amounts {
        [Some(a), Some(b)] if a.abs() > 0.0 => Quantity::new(b / a, Unit::Times).to_string(),
        _ => String::new(),
    };
    let [a, b] = amounts.map(text);
    vec![what.to_owned(), a, b, times]
}
