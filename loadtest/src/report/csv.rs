//! The report for spreadsheets: one table of bare numbers, with a row for each phase and for each of its seconds. The headings
//! name the units; a cell without a value is empty.

use super::columns::{self, number};
use super::grid::Grid;
use crate::measure::record::{Percentiles, Phase, Record, Second, float};

/// Returns the whole report as CSV.
pub(crate) fn csv(record: &Record) -> String {
    let keys = columns::all().map(|column| column.key);
    let mut grid = Grid::new(["row", "phase", "at_ms"].into_iter().chain(keys).chain(["owed"]));
    for phase in &record.phases {
        let figures = columns::all().map(|column| column.number(phase));
        let owed = |second: Option<&Second>| second.and_then(|it| it.owed).map(|owed| owed.to_string());
        let figures = figures.chain([owed(phase.series.last()).unwrap_or_default()]);
        grid.rows.push(row("phase", phase, phase.start_ms, figures));
        for second in &phase.series {
            let figures = columns::all().map(|column| of_second(second, column.key).map(number).unwrap_or_default());
            let figures = figures.chain([owed(Some(second)).unwrap_or_default()]);
            grid.rows.push(row("second", phase, second.at_ms, figures));
        }
    }
    grid.csv()
}

fn row(kind: &str, phase: &Phase, at_ms: f64, figures: impl Iterator<Item = String>) -> Vec<String> {
    [kind.to_owned(), phase.name.clone(), number(at_ms)]
        .into_iter()
        .chain(figures)
        .collect()
}

/// Returns the value of one second for a column; none if a second has no such figure.
fn of_second(second: &Second, key: &str) -> Option<f64> {
    let percentile = |of: fn(&Percentiles) -> u64| second.propagation_micros.as_ref().map(of).map(float);
    match key {
        "length_ms" => Some(second.span_ms),
        "clients" => Some(float(second.clients)),
        "with_stream" => second.with_stream.map(float),
        "bytes" => Some(float(second.bytes)),
        "messages" => Some(float(second.messages)),
        "deliveries" => Some(float(second.deliveries)),
        "propagation_p50_us" => percentile(|it| it.p50),
        "propagation_p90_us" => percentile(|it| it.p90),
        "propagation_p99_us" => percentile(|it| it.p99),
        "propagation_max_us" => percentile(|it| it.max),
        "server_cpu_percent" => second.server_cpu_percent,
        "resident_bytes" => second.resident_bytes.map(float),
        "tool_cpu_percent" => Some(second.tool_cpu_percent),
        _ => None,
    }
}
