// SPDX-License-Identifier: Apache-2.0
//! A histogram of durations or of other amounts, with three digits of precision; of durations, up to ten minutes. It is written
//! in HdrHistogram's interchange format (V2, compressed, base64), which other tools read too.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use serde::{Serialize, ser};

use super::Percentiles;

/// Times in microseconds, or thousandths of something else.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distribution(Histogram<u64>);

/// Longer times count as this.
const MICROS_MAX: u64 = 600_000_000;
const DIGITS: u8 = 3;

/// The written form: figures for readers of the file, and the histogram for programs.
#[derive(Serialize)]
struct Written {
    count: u64,
    mean_us: f64,
    p50_us: u64,
    p90_us: u64,
    p99_us: u64,
    p999_us: u64,
    max_us: u64,
    hdr_v2: String,
}

impl Distribution {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self(Histogram::new_with_bounds(1, MICROS_MAX, DIGITS)?))
    }

    pub(crate) fn record(&mut self, taken: Duration) {
        self.0
            .saturating_record(u64::try_from(taken.as_micros()).unwrap_or(MICROS_MAX));
    }

    /// Records what is no time.
    pub(crate) fn record_thousandths(&mut self, thousandths: u64) {
        self.0.saturating_record(thousandths);
    }

    pub(crate) fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    /// Returns what was added since `earlier`, which is an earlier state of this one.
    pub(crate) fn since(&self, earlier: &Self) -> anyhow::Result<Self> {
        let mut rest = self.clone();
        rest.0.subtract(&earlier.0)?;
        Ok(rest)
    }

    pub(crate) fn reset(&mut self) {
        self.0.reset();
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns a quantile in microseconds; 0 if nothing was recorded.
    pub(crate) fn at(&self, quantile: f64) -> u64 {
        // The upper end of a bucket may be above every recorded value.
        self.0.value_at_quantile(quantile).min(self.max())
    }

    pub(crate) fn max(&self) -> u64 {
        self.0.max()
    }

    pub(crate) fn percentiles(&self) -> Option<Percentiles> {
        (self.count() > 0).then(|| Percentiles {
            p50: self.at(0.5),
            p90: self.at(0.9),
            p99: self.at(0.99),
            max: self.max(),
        })
    }

    fn written(&self) -> Result<Written, String> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .map_err(|error| error.to_string())?;
        Ok(Written {
            count: self.count(),
            mean_us: self.0.mean(),
            p50_us: self.at(0.5),
            p90_us: self.at(0.9),
            p99_us: self.at(0.99),
            p999_us: self.at(0.999),
            max_us: self.max(),
            hdr_v2: BASE64.encode(bytes),
        })
    }
}

impl Serialize for Distribution {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written().map_err(ser::Error::custom)?.serialize(serializer)
    }
}
