//! The plots of a record: times, bytes, processors, memory and clients over the run; the distribution of the times of each phase;
//! and growth with the fleet, if several sizes were measured.

use super::columns::number;
use super::grid::Grid;
use super::plot::{Band, Line, Plot, STYLES};
use super::scale::{Axis, Scale};
use crate::measure::record::{Distribution, Percentiles, Phase, Record, Second, float};

/// One line of a plot over time.
struct Series {
    name: &'static str,
    of: fn(&Moment<'_>) -> Option<f64>,
}

/// A second of a run.
struct Moment<'a> {
    record: &'a Record,
    second: &'a Second,
    /// Whether its phase has no other.
    only: bool,
}

/// One plot over time.
struct Chart {
    id: &'static str,
    title: &'static str,
    /// The label of the y axis, with the unit.
    label: &'static str,
    scale: Scale,
    series: &'static [Series],
}

const fn series(name: &'static str, of: fn(&Moment<'_>) -> Option<f64>) -> Series {
    Series { name, of }
}

const MIB: f64 = 1024.0 * 1024.0;

const OVER_TIME: [Chart; 8] = [
    Chart {
        id: "propagation",
        title: "From when a change was due to its last byte at a client",
        label: "propagation (ms)",
        scale: Scale::Log,
        series: &[
            series("p50", |at| percentile(at.second, |it| it.p50)),
            series("p90", |at| percentile(at.second, |it| it.p90)),
            series("p99", |at| percentile(at.second, |it| it.p99)),
            series("max", |at| percentile(at.second, |it| it.max)),
        ],
    },
    Chart {
        id: "bytes",
        title: "Bytes that clients read",
        label: "MiB per second",
        scale: Scale::Linear,
        series: &[series("bytes", |at| rate(at, float(at.second.bytes) / MIB))],
    },
    Chart {
        id: "messages",
        title: "Responses that clients read",
        label: "responses per second",
        scale: Scale::Linear,
        series: &[series("responses", |at| rate(at, float(at.second.messages)))],
    },
    Chart {
        id: "cpu",
        title: "Processor time",
        label: "% of one processor",
        scale: Scale::Linear,
        series: &[
            series("server", |at| part(at, at.second.server_cpu_percent?)),
            series("this tool", |at| part(at, at.second.tool_cpu_percent)),
        ],
    },
    Chart {
        id: "memory",
        title: "Memory of the server (RssAnon)",
        label: "MiB",
        scale: Scale::Linear,
        series: &[series("server", |at| Some(float(at.second.resident_bytes?) / MIB))],
    },
    Chart {
        id: "per-client",
        title: "Memory of the server per client beyond the first few",
        label: "KiB per client",
        scale: Scale::Linear,
        series: &[series("server", per_client)],
    },
    Chart {
        id: "owed",
        title: "Deliveries that were to come: of each change to each client that lacked it",
        label: "deliveries",
        scale: Scale::Linear,
        series: &[series("to come", |at| at.second.owed.map(float))],
    },
    Chart {
        id: "clients",
        title: "Clients",
        label: "clients",
        scale: Scale::Linear,
        series: &[
            series("joined", |at| Some(float(at.second.clients))),
            series("with a stream", |at| at.second.with_stream.map(float)),
        ],
    },
];

/// Returns all plots of a record that are not empty.
pub(super) fn plots(record: &Record) -> Vec<Plot> {
    let spreads = [
        spread(
            record,
            "spread",
            "How the times of changes are spread",
            &TIMES,
            |phase| &phase.propagation,
        ),
        spread(record, "joins", "How the times of joins are spread", &TIMES, |phase| {
            &phase.join
        }),
        spread(
            record,
            "waits",
            "How long clients waited for which there was something, in rounds of all clients",
            &ROUNDS,
            |phase| &phase.waits,
        ),
    ];
    let mut plots = over_time(record);
    let behind_the_first = plots.len().min(1);
    plots.splice(behind_the_first..behind_the_first, spreads);
    plots.retain(|plot| !plot.is_empty());
    plots
}

/// Returns the plots over time, including empty ones, so that their order is the same for every record.
pub(super) fn over_time(record: &Record) -> Vec<Plot> {
    OVER_TIME.iter().map(|chart| chart.plot(record)).collect()
}

impl Chart {
    fn plot(&self, record: &Record) -> Plot {
        let seconds = || record.phases.iter().flat_map(|phase| moments(record, phase));
        let line = |series: &Series| Line {
            name: series.name.to_owned(),
            points: seconds().map(|at| (at.second.at_ms / 1e3, (series.of)(&at))).collect(),
        };
        let mut lines: Vec<Line> = self.series.iter().map(line).collect();
        lines.retain(|line| line.points.iter().any(|(_, value)| value.is_some()));
        let values = lines
            .iter()
            .flat_map(|line| &line.points)
            .filter_map(|(_, value)| *value);
        let y = Axis::around(self.label, self.scale, values);
        let names = lines.iter().map(|line| format!("{}, {}", line.name, self.label));
        let mut figures = Grid::new(["time (s)".to_owned(), "phase".to_owned()].into_iter().chain(names));
        let phases = record
            .phases
            .iter()
            .flat_map(|phase| phase.series.iter().map(|_| phase.name.clone()));
        for (at, (Moment { second, .. }, phase)) in seconds().zip(phases).enumerate() {
            let values = lines.iter().map(|line| {
                let value = line.points.get(at).and_then(|(_, value)| *value);
                value.map(number).unwrap_or_default()
            });
            let row = [number(second.at_ms / 1e3), phase].into_iter().chain(values);
            figures.rows.push(row.collect());
        }
        Plot {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            about: format!(
                "{} over the time of the run in seconds. {}",
                self.label,
                highest(&lines)
            ),
            x: Axis::between("time since the run began (s)", 0.0, end(record)),
            y,
            lines,
            bands: bands(record),
            figures,
        }
    }
}

/// Returns the highest value of each line, in words.
fn highest(lines: &[Line]) -> String {
    let words = lines.iter().map(|line| {
        let values = line.points.iter().filter_map(|(_, value)| *value);
        format!("Highest of {}: {}.", line.name, number(values.fold(0.0, f64::max)))
    });
    words.collect::<Vec<_>>().join(" ")
}

fn bands(record: &Record) -> Vec<Band> {
    let band = |phase: &Phase| Band {
        name: phase.name.clone(),
        from: phase.start_ms / 1e3,
        to: (phase.start_ms + phase.length_ms) / 1e3,
    };
    record.phases.iter().map(band).collect()
}

fn end(record: &Record) -> f64 {
    bands(record)
        .iter()
        .fold(record.length_ms / 1e3, |end, band| end.max(band.to))
}

/// What a distribution is of. It is shown in thousands of what it counts.
pub(super) struct Measure {
    /// The plural, for one value of each.
    noun: &'static str,
    unit: &'static str,
}

/// Microseconds, shown as milliseconds.
pub(super) const TIMES: Measure = Measure {
    noun: "times",
    unit: "ms",
};
/// Thousandths of rounds.
pub(super) const ROUNDS: Measure = Measure {
    noun: "waits",
    unit: "rounds",
};

/// The quantiles of a distribution's plot, closer and closer to 1.
fn quantiles() -> impl Iterator<Item = f64> {
    (0..=60).map(|step| 1.0 - 10_f64.powf(-f64::from(step) / 12.0))
}

/// Whether there are enough times to show a distribution.
pub(super) fn is_spread(distribution: &Distribution) -> bool {
    distribution.count() >= 10
}

/// Returns the plot of the distributions, with a line for each phase.
fn spread(record: &Record, id: &str, title: &str, measure: &Measure, of: fn(&Phase) -> &Distribution) -> Plot {
    let phases: Vec<&Phase> = record.phases.iter().filter(|phase| is_spread(of(phase))).collect();
    let all = phases.len();
    // If there are more phases than lines can be told apart, some are left out, but never the last.
    let left = (0..all).filter(|at| all <= STYLES || (at + 1) * STYLES / all > at * STYLES / all);
    let named: Vec<(String, &Distribution)> = left
        .filter_map(|at| phases.get(at))
        .map(|phase| (phase.name.clone(), of(phase)))
        .collect();
    match all {
        _ if all > STYLES => {
            let title = format!("{title}, {STYLES} of {all} phases");
            of_distributions(id, &title, measure, &named)
        }
        _ => of_distributions(id, title, measure, &named),
    }
}

/// Returns the plot of the distributions, with a line for each of `named`.
pub(super) fn of_distributions(id: &str, title: &str, measure: &Measure, named: &[(String, &Distribution)]) -> Plot {
    let Measure { noun, unit } = measure;
    let shown = |thousandths: u64| float(thousandths) / 1e3;
    let lines: Vec<Line> = named
        .iter()
        .map(|(name, distribution)| Line {
            name: format!("{name} ({} {noun})", distribution.count()),
            // Beyond the last recorded value a line would only repeat it.
            points: quantiles()
                .take_while(|part| (1.0 - part) * float(distribution.count()) >= 0.5)
                .map(|part| (part, Some(shown(distribution.at(part)))))
                .collect(),
        })
        .collect();
    let quantiles_shown = ["p50", "p90", "p99", "p99.9", "max"].map(|name| format!("{name} ({unit})"));
    let first = std::iter::once("phase".to_owned());
    let mut figures = Grid::new(first.chain(quantiles_shown).chain([(*noun).to_owned()]));
    for (name, distribution) in named {
        let quantiles = [0.5, 0.9, 0.99, 0.999, 1.0].map(|part| number(shown(distribution.at(part))));
        let cells = quantiles.into_iter().chain([distribution.count().to_string()]);
        figures.rows.push(std::iter::once(name.clone()).chain(cells).collect());
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let y = Axis::around(
        &format!("{noun} ({unit})"),
        Scale::Log,
        points().filter_map(|(_, value)| *value),
    );
    let x = Axis::around(
        "part that took no longer (%)",
        Scale::Nines,
        points().map(|(part, _)| *part),
    );
    Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        about: format!(
            "The {noun} ({unit}) below which each part lies, from half to nearly all. {}",
            highest(&lines)
        ),
        x,
        y,
        lines,
        bands: Vec::new(),
        figures,
    }
}

fn percentile(second: &Second, of: fn(&Percentiles) -> u64) -> Option<f64> {
    second
        .propagation_micros
        .as_ref()
        .map(of)
        .map(|micros| float(micros) / 1e3)
}

fn moments<'a>(record: &'a Record, phase: &'a Phase) -> impl Iterator<Item = Moment<'a>> {
    let only = phase.series.len() == 1;
    phase.series.iter().map(move |second| Moment { record, second, only })
}

/// Returns a value that is measured per time. The short end of a phase has none. A phase that is as short as that counts as if it had been
/// longer: otherwise it would tower above all others.
fn part(at: &Moment<'_>, value: f64) -> Option<f64> {
    let share = at.second.span_ms / SPAN_MS_LEAST;
    (at.only || share >= 1.0).then_some(value * share.min(1.0))
}

const SPAN_MS_LEAST: f64 = 200.0;

fn rate(at: &Moment<'_>, amount: f64) -> Option<f64> {
    part(at, amount * 1e3 / at.second.span_ms)
}

fn per_client(at: &Moment<'_>) -> Option<f64> {
    let Moment { record, second, .. } = at;
    let base = record.base?;
    let clients = second
        .clients
        .checked_sub(base.clients)
        .filter(|clients| *clients > 0)?;
    Some((float(second.resident_bytes?) - float(base.resident_bytes)) / 1024.0 / float(clients))
}
