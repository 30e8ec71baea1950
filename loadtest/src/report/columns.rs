// SPDX-License-Identifier: Apache-2.0
//! The figures of a phase, each defined once: its name, its unit, and where it comes from. The tables show them.

use crate::measure::record::{Distribution, Phase, Quantity, Unit, counter, float};

/// One figure that a phase may have.
#[derive(Debug)]
pub(super) struct Column {
    /// The heading in tables.
    pub(super) title: &'static str,
    pub(super) unit: Unit,
    pub(super) of: fn(&Phase) -> Option<f64>,
}

impl Column {
    pub(super) fn quantity(&self, phase: &Phase) -> Option<Quantity> {
        Some(Quantity::new((self.of)(phase)?, self.unit))
    }

    /// Returns the readable figure; empty if there is none.
    pub(super) fn text(&self, phase: &Phase) -> String {
        self.quantity(phase)
            .map(|quantity| quantity.to_string())
            .unwrap_or_default()
    }
}

const fn column(title: &'static str, unit: Unit, of: fn(&Phase) -> Option<f64>) -> Column {
    Column { title, unit, of }
}

/// What happened in a phase.
pub(super) const EXTENT: [Column; 6] = [
    column("length", Unit::Millis, |phase| Some(phase.length_ms)),
    column("clients", Unit::Count, |phase| Some(float(phase.clients))),
    column("with a stream", Unit::Count, |phase| phase.with_stream.map(float)),
    column("longest without", Unit::Millis, |phase| phase.longest_without_stream_ms),
    column("bytes", Unit::Bytes, |phase| said(phase, counter::BYTES)),
    column("messages", Unit::Count, |phase| said(phase, counter::RESPONSES)),
];

/// The times of a phase.
pub(super) const TIMES: [Column; 8] = [
    column("deliveries", Unit::Count, |phase| some(phase.propagation.count())),
    column("p50", Unit::Micros, |phase| at(&phase.propagation, 0.5)),
    column("p90", Unit::Micros, |phase| at(&phase.propagation, 0.9)),
    column("p99", Unit::Micros, |phase| at(&phase.propagation, 0.99)),
    column("max", Unit::Micros, |phase| at(&phase.propagation, 1.0)),
    column("joins", Unit::Count, |phase| some(phase.join.count())),
    column("join p50", Unit::Micros, |phase| at(&phase.join, 0.5)),
    column("join p99", Unit::Micros, |phase| at(&phase.join, 0.99)),
];

/// The costs of a phase.
pub(super) const COSTS: [Column; 7] = [
    column("server CPU", Unit::Percent, |phase| {
        Some(phase.percent(phase.server?.cpu_ms))
    }),
    column("less idle", Unit::Millis, Phase::net_cpu_ms),
    column("per change", Unit::Micros, |phase| {
        phase.figures.cpu_micros_per_delivery
    }),
    column("resident", Unit::Bytes, |phase| {
        Some(float(phase.server?.resident_bytes))
    }),
    column("per client", Unit::Bytes, |phase| phase.figures.bytes_per_client),
    column("tool CPU", Unit::Percent, |phase| {
        Some(phase.percent(phase.tool.cpu_ms))
    }),
    column("tool's share", Unit::Percent, |phase| {
        Some(phase.figures.tool_share? * 100.0)
    }),
];

/// Returns a quantile; none if nothing was recorded.
fn at(distribution: &Distribution, quantile: f64) -> Option<f64> {
    (distribution.count() > 0).then(|| float(distribution.at(quantile)))
}

fn some(count: u64) -> Option<f64> {
    (count > 0).then(|| float(count))
}

fn said(phase: &Phase, name: &str) -> Option<f64> {
    Some(phase.counter(name)).filter(|count| *count > 0.0)
}
