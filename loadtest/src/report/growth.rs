//! How figures grow with the fleet: one plot for each figure, over the number of clients.

use std::collections::BTreeMap;

use super::columns::{self, Column, number};
use super::grid::Grid;
use super::plot::{Line, Plot};
use super::scale::{Axis, Scale};
use crate::measure::record::{Phase, Record, Unit, counter, float};

/// Figures that are shown in one plot.
struct Chart {
    id: &'static str,
    title: &'static str,
    scale: Scale,
    /// Keys of columns; all have the same unit.
    keys: &'static [&'static str],
}

const CHARTS: [Chart; 5] = [
    Chart {
        id: "growth-propagation",
        title: "Propagation of a change, by the size of the fleet",
        scale: Scale::Log,
        keys: &[
            "propagation_p50_us",
            "propagation_p90_us",
            "propagation_p99_us",
            "propagation_max_us",
        ],
    },
    Chart {
        id: "growth-join",
        title: "Time to join, by the size of the fleet",
        scale: Scale::Log,
        keys: &["join_p50_us", "join_p99_us"],
    },
    Chart {
        id: "growth-cpu",
        title: "Processor time of the server per delivered change, by the size of the fleet",
        scale: Scale::Linear,
        keys: &["cpu_us_per_delivery"],
    },
    Chart {
        id: "growth-memory",
        title: "Memory of the server per client, by the size of the fleet",
        scale: Scale::Linear,
        keys: &["bytes_per_client"],
    },
    Chart {
        id: "growth-resident",
        title: "Memory of the server, by the size of the fleet",
        scale: Scale::Log,
        keys: &["resident_bytes"],
    },
];

/// Returns the plots of growth; none if the fleet has one size.
pub(super) fn plots(record: &Record) -> Vec<Plot> {
    if !record.grows() {
        return Vec::new();
    }
    let sizes = sizes(record);
    let mut plots: Vec<Plot> = CHARTS.iter().map(|chart| chart.plot(&sizes)).collect();
    for (name, label) in [
        (counter::UPSTREAM_STREAMS, "streams"),
        (counter::UPSTREAM_BYTES, "bytes"),
    ] {
        plots.push(upstream(&sizes, name, label));
    }
    plots.retain(|plot| !plot.is_empty());
    plots
}

/// The phases by size of the fleet, for sizes at which it was sent changes, in order. A phase in which the fleet grows counts for
/// the size at its end.
type Sizes<'a> = BTreeMap<u64, Vec<&'a Phase>>;

fn sizes(record: &Record) -> Sizes<'_> {
    let mut sizes = Sizes::new();
    for phase in record.phases.iter().filter(|phase| phase.clients > 0) {
        sizes.entry(phase.clients).or_default().push(phase);
    }
    sizes.retain(|_, phases| phases.iter().any(|phase| phase.propagation.count() > 0));
    sizes
}

impl Chart {
    fn plot(&self, sizes: &Sizes<'_>) -> Plot {
        let shown: Vec<&Column> = columns::all()
            .filter(|column| self.keys.contains(&column.key))
            .collect();
        let (unit, divisor) = match shown.first().map(|column| column.unit) {
            Some(Unit::Bytes) if self.keys == ["resident_bytes"] => ("MiB", 1024.0 * 1024.0),
            Some(Unit::Bytes) => ("KiB", 1024.0),
            Some(Unit::Micros) if self.scale == Scale::Log => ("ms", 1e3),
            Some(_) | None => ("µs", 1.0),
        };
        let line = |column: &&Column| {
            // The last measurement of a size counts, because it has settled by then.
            let of = |phases: &Vec<&Phase>| phases.iter().rev().find_map(|phase| (column.of)(phase));
            Line {
                name: column.title.to_owned(),
                points: sizes
                    .iter()
                    .map(|(clients, phases)| (float(*clients), of(phases).map(|value| value / divisor)))
                    .collect(),
            }
        };
        over_clients(self.id, self.title, unit, self.scale, shown.iter().map(line).collect())
    }
}

/// The load of the control plane.
fn upstream(sizes: &Sizes<'_>, name: &str, label: &str) -> Plot {
    let points = sizes.iter().map(|(clients, phases)| {
        let sum = phases.iter().map(|phase| phase.counter(name)).sum::<f64>();
        (float(*clients), Some(sum).filter(|sum| *sum > 0.0))
    });
    let line = Line {
        name: name.to_owned(),
        points: points.collect(),
    };
    let id = format!("growth-upstream-{label}");
    let title = format!("At the control plane ({label}), by the size of the fleet");
    over_clients(&id, &title, label, Scale::Linear, vec![line])
}

fn over_clients(id: &str, title: &str, unit: &str, scale: Scale, lines: Vec<Line>) -> Plot {
    let names = lines.iter().map(|line| format!("{} ({unit})", line.name));
    let mut figures = Grid::new(std::iter::once("clients".to_owned()).chain(names));
    let clients: Vec<f64> = lines
        .first()
        .into_iter()
        .flat_map(|line| &line.points)
        .map(|(x, _)| *x)
        .collect();
    for (at, clients) in clients.iter().enumerate() {
        let values = lines.iter().map(|line| {
            let value = line.points.get(at).and_then(|(_, value)| *value);
            value.map(number).unwrap_or_default()
        });
        figures
            .rows
            .push(std::iter::once(number(*clients)).chain(values).collect());
    }
    let values = lines
        .iter()
        .flat_map(|line| &line.points)
        .filter_map(|(_, value)| *value);
    let y = Axis::around(unit, scale, values);
    Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        about: format!("{title}, in {unit}, over the number of clients, each decade as long as the next."),
        x: Axis::around("clients", Scale::Log, clients.iter().copied()),
        y,
        lines,
        bands: Vec::new(),
        figures,
    }
}
