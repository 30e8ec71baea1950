// SPDX-License-Identifier: Apache-2.0
//! A number with its unit, and its readable form.

use std::fmt;

use serde::Serialize;

/// A measured or allowed amount.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Quantity {
    pub(crate) value: f64,
    pub(crate) unit: Unit,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Count,
    Bytes,
    Millis,
    Micros,
    Percent,
    /// A multiple, mostly of the floor.
    Times,
}

impl Quantity {
    pub(crate) const fn new(value: f64, unit: Unit) -> Self {
        Self { value, unit }
    }

    /// Returns the number and its unit, scaled to a readable size.
    fn scaled(self) -> (f64, &'static str) {
        const KIB: f64 = 1024.0;
        let Self { value, unit } = self;
        match unit {
            Unit::Count => (value, ""),
            Unit::Bytes if value.abs() >= KIB * KIB * KIB => (value / KIB / KIB / KIB, " GiB"),
            Unit::Bytes if value.abs() >= KIB * KIB => (value / KIB / KIB, " MiB"),
            Unit::Bytes if value.abs() >= KIB => (value / KIB, " KiB"),
            Unit::Bytes => (value, " B"),
            Unit::Micros if value.abs() >= 1e3 => Self::new(value / 1e3, Unit::Millis).scaled(),
            Unit::Micros => (value, " µs"),
            Unit::Millis if value.abs() >= 1e3 => (value / 1e3, " s"),
            Unit::Millis => (value, " ms"),
            Unit::Percent => (value, " %"),
            Unit::Times => (value, " ×"),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = self.scaled();
        // Three significant digits, or all digits before the point: more are noise. Units that cannot be divided have no
        // fraction.
        let whole = value.fract().abs() < f64::EPSILON && matches!(unit, "" | " B");
        let digits = match value.abs() {
            none if whole || none < f64::MIN_POSITIVE => 0,
            large if large >= 100.0 => 0,
            large if large >= 10.0 => 1,
            _ => 2,
        };
        out.pad(&format!("{value:.digits$}{unit}"))
    }
}
