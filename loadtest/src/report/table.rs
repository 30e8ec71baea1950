// SPDX-License-Identifier: Apache-2.0
//! The report on a terminal: what was run, the figures of each phase, and which assertions held.

use std::fmt::Write as _;

use distributary::clock::date_and_time;

use super::columns::{self, Column};
use super::grid::Grid;
use crate::measure::record::{Assertion, Quantity, Ratio, Record, Unit, float};

/// Returns the whole report as text.
pub(crate) fn table(record: &Record) -> String {
    let mut out = format!("{}: {}\n{}\n", record.scenario, record.setup, surroundings(record));
    for (what, columns) in GROUPS {
        let grid = phases(record, columns).without_empty_columns();
        if grid.headings.len() > 1 {
            let _ = write!(out, "\n{what}\n{}", indented(&grid.to_string()));
        }
    }
    for (title, lines) in [
        ("ratios to the floor", ratios(record)),
        ("counted", counters(record)),
        ("besides", notes(record)),
    ] {
        if !lines.rows.is_empty() {
            let _ = write!(out, "\n{title}\n{}", indented(&without_headings(&lines)));
        }
    }
    let verdicts = verdicts(record);
    if !verdicts.rows.is_empty() {
        let _ = write!(out, "\nassertions\n{}", indented(&verdicts.to_string()));
    }
    out.push_str(&breaches(record));
    let _ = writeln!(out, "\n{}", conclusion(record));
    out
}

/// Returns only what did not hold.
pub(super) fn failures(record: &Record) -> String {
    let mut verdicts = verdicts(record);
    verdicts
        .rows
        .retain(|row| row.first().is_none_or(|word| word != "held"));
    let verdicts = if verdicts.rows.is_empty() {
        String::new()
    } else {
        verdicts.to_string()
    };
    format!("{verdicts}{}{}\n", breaches(record), conclusion(record))
}

/// The tables of figures, each with its title.
pub(super) const GROUPS: [(&str, &[Column]); 3] = [
    ("phases", &columns::EXTENT),
    (
        "times: from when a change was due to its last byte; joins: from letting in to the last resource",
        &columns::TIMES,
    ),
    (
        "costs: per change as processor time beyond that of an idle server",
        &columns::COSTS,
    ),
];

/// A row for each phase.
pub(super) fn phases(record: &Record, columns: &[Column]) -> Grid {
    let titles = columns.iter().map(|column| column.title);
    let mut grid = Grid::new(std::iter::once("phase").chain(titles));
    for phase in &record.phases {
        let cells = columns.iter().map(|column| column.text(phase));
        grid.rows
            .push(std::iter::once(phase.name.clone()).chain(cells).collect());
    }
    grid
}

/// Commit, machine, time.
pub(super) fn surroundings(record: &Record) -> String {
    let machine = &record.machine;
    let memory = Quantity::new(float(machine.memory_bytes), Unit::Bytes);
    let length = Quantity::new(record.length_ms, Unit::Millis);
    let commit = record.commit.as_deref().unwrap_or("commit unknown");
    format!(
        "{commit}; {} cores, {}, {memory}, Linux {}; {}, {length}",
        machine.cores,
        machine.processor,
        machine.kernel,
        date_and_time(record.start_unix)
    )
}

/// A row for each assertion.
pub(super) fn verdicts(record: &Record) -> Grid {
    let mut grid = Grid::new(["verdict", "phase", "what", "must be", "is", "why"]);
    for assertion in &record.assertions {
        let (bound, measured) = amounts(assertion);
        grid.rows.push(vec![
            assertion.verdict.word().to_owned(),
            assertion.phase.clone().unwrap_or_else(|| "whole run".to_owned()),
            assertion.text.clone(),
            bound,
            measured,
            assertion.why.clone().unwrap_or_default(),
        ]);
    }
    grid.without_empty_columns()
}

/// Returns the bound and the measured value.
fn amounts(assertion: &Assertion) -> (String, String) {
    let sign = assertion.relation.sign();
    let bound = assertion.bound.map(|bound| format!("{sign} {bound}"));
    let measured = match (assertion.measured, assertion.bound) {
        (Some(measured), _) => measured.to_string(),
        (None, Some(_)) => "not measured".to_owned(),
        (None, None) => String::new(),
    };
    (bound.unwrap_or_default(), measured)
}

/// A row for each figure that is a multiple of the floor's.
pub(super) fn ratios(record: &Record) -> Grid {
    let mut grid = Grid::new(["phase", "figure", "median", "middle half", "rounds"]);
    for phase in &record.phases {
        for ratio in &phase.ratios {
            let text = |part| times(ratio, part);
            grid.rows.push(vec![
                phase.name.clone(),
                ratio.what.clone(),
                text(0.5),
                format!("{} to {}", text(0.25), text(0.75)),
                format!("{} rounds", ratio.rounds.len()),
            ]);
        }
    }
    grid
}

fn times(ratio: &Ratio, part: f64) -> String {
    ratio.quantile(part).map_or_else(
        || "none".to_owned(),
        |times| Quantity::new(times, Unit::Times).to_string(),
    )
}

/// A row for each counter of the run.
pub(super) fn counters(record: &Record) -> Grid {
    let mut grid = Grid::new(["what", "in the whole run"]);
    for (name, amount) in &record.counters {
        let unit = if name.ends_with("bytes") {
            Unit::Bytes
        } else {
            Unit::Count
        };
        grid.rows
            .push(vec![name.clone(), Quantity::new(*amount, unit).to_string()]);
    }
    grid
}

/// A row for each note.
pub(super) fn notes(record: &Record) -> Grid {
    let mut grid = Grid::new(["what", "value", "phase"]);
    for note in &record.notes {
        let phase = note.phase.clone().unwrap_or_default();
        grid.rows.push(vec![note.what.clone(), note.value.clone(), phase]);
    }
    grid.without_empty_columns()
}

fn breaches(record: &Record) -> String {
    let mut out = String::new();
    for breach in &record.breaches {
        let phase = breach.phase.as_deref().unwrap_or("no phase");
        let _ = writeln!(out, "\nclient {} ({phase}): {}", breach.client, breach.what);
        for line in &breach.transcript {
            let _ = writeln!(out, "    {line}");
        }
    }
    let told = u64::try_from(record.breaches.len()).unwrap_or(u64::MAX);
    if record.breached > told {
        let _ = writeln!(out, "and {} more", record.breached - told);
    }
    out
}

/// Returns the conclusion in one sentence.
pub(super) fn conclusion(record: &Record) -> String {
    let not_held = record.assertions.iter().filter(|it| !it.held()).count();
    let all = record.assertions.len();
    let verdict = match (not_held, record.breached) {
        (0, 0) if all == 0 => "nothing was asserted; no client saw a breach of the protocol".to_owned(),
        (0, 0) => format!("{all} of {all} assertions held; no client saw a breach of the protocol"),
        (failed, 0) => format!("{failed} of {all} assertions did not hold"),
        (failed, breached) => {
            format!("{failed} of {all} assertions did not hold; breaches of the protocol: {breached}")
        }
    };
    verdict + &longest_without_stream(record).unwrap_or_default()
}

/// Says for how long a client was without a stream, if any was.
fn longest_without_stream(record: &Record) -> Option<String> {
    let phases = record.phases.iter();
    let longest = phases.filter_map(|phase| Some((phase.longest_without_stream_ms?, phase)));
    let (longest, phase) = longest.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let time = Quantity::new(longest, Unit::Millis);
    (longest > 0.0).then(|| format!("; a client was without a stream for {time}, in phase `{}`", phase.name))
}

/// Returns a grid without its headings, for rows that explain themselves.
fn without_headings(grid: &Grid) -> String {
    let text = grid.to_string();
    text.split_once('\n').map_or("", |(_, rows)| rows).to_owned()
}

pub(super) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
