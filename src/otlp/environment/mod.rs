// SPDX-License-Identifier: Apache-2.0
//! What the standard `OTEL_` variables say.
//!
//! Owns their names, their defaults and the texts for bad values. Connects to nothing.

mod target;
#[cfg(test)]
mod tests;

use std::time::Duration;

use percent_encoding::percent_decode_str;
pub(super) use target::{CollectorTarget, Protocol};
use target::{METRICS, TRACES};

use crate::telemetry::{Sampler, VERSION};

/// What is exported, where to, and what it says of the relay.
#[derive(Debug)]
pub(super) struct Environment {
    /// Where metrics go, if anywhere.
    pub(super) metrics: Option<CollectorTarget>,
    /// How often.
    pub(super) interval: Duration,
    /// Where traces go, if anywhere.
    pub(super) traces: Option<CollectorTarget>,
    /// Which changes are traced.
    pub(super) sampler: Sampler,
    /// How traces are collected.
    pub(super) batches: Batches,
    /// What describes the relay.
    pub(super) attributes: Vec<(String, String)>,
    /// What is wrong with the variables.
    pub(super) warnings: Vec<String>,
}

/// The bounds of spans that are not exported yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batches {
    /// How often they are exported.
    pub(super) delay: Duration,
    /// How many are kept at most.
    pub(super) queue: usize,
    /// How many are in one export at most.
    pub(super) size: usize,
}

/// The standard defaults.
const SERVICE: &str = "distributary";
const INTERVAL: Duration = Duration::from_secs(60);
const BATCHES: Batches = Batches {
    delay: Duration::from_secs(5),
    queue: 2048,
    size: 512,
};
const BATCH_TIMEOUT: Duration = Duration::from_secs(30);
/// What a sampler of a part traces if the variable does not say how much.
const RATIO: f64 = 1.0;

impl Environment {
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut reading = Reading {
            variable: &variable,
            warnings: Vec::new(),
        };
        Self {
            metrics: reading.target(METRICS),
            interval: reading.milliseconds("OTEL_METRIC_EXPORT_INTERVAL").unwrap_or(INTERVAL),
            traces: reading.traces(),
            sampler: reading.sampler(),
            batches: reading.batches(),
            attributes: reading.attributes(),
            warnings: reading.warnings,
        }
    }
}

struct Reading<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    warnings: Vec<String>,
}

impl Reading<'_> {
    /// Returns a variable. An empty one counts as unset.
    fn get(&self, name: &str) -> Option<String> {
        let value = (self.variable)(name).map(|value| value.trim().to_owned());
        value.filter(|value| !value.is_empty())
    }

    fn warn(&mut self, name: &str, value: &str, instead: &str) {
        self.complain(format!("{name} is `{value}`; {instead}"));
    }

    /// Adds a warning. A variable for several signals is wrong only once.
    fn complain(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn milliseconds(&mut self, name: &str) -> Option<Duration> {
        let milliseconds = self.number(name, "write milliseconds, such as 10000; the default is used");
        milliseconds.map(Duration::from_millis)
    }

    fn count(&mut self, name: &str) -> Option<usize> {
        let count = self.number(name, "write a number of spans, such as 512; the default is used")?;
        usize::try_from(count).ok()
    }

    /// Returns a number above 0.
    fn number(&mut self, name: &str, instead: &str) -> Option<u64> {
        let value = self.get(name)?;
        let read = value.parse().ok().filter(|number| *number > 0);
        if read.is_none() {
            self.warn(name, &value, instead);
        }
        read
    }

    fn batches(&mut self) -> Batches {
        let queue = self.count("OTEL_BSP_MAX_QUEUE_SIZE").unwrap_or(BATCHES.queue);
        let size = self.count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").unwrap_or(BATCHES.size);
        Batches {
            delay: self.milliseconds("OTEL_BSP_SCHEDULE_DELAY").unwrap_or(BATCHES.delay),
            queue,
            size: size.min(queue),
        }
    }

    /// Two variables bound the time of an export of traces.
    fn traces(&mut self) -> Option<CollectorTarget> {
        let most = self.milliseconds("OTEL_BSP_EXPORT_TIMEOUT").unwrap_or(BATCH_TIMEOUT);
        let target = self.target(TRACES)?;
        let timeout = target.timeout.min(most);
        Some(CollectorTarget { timeout, ..target })
    }

    fn sampler(&mut self) -> Sampler {
        let Some(name) = self.get("OTEL_TRACES_SAMPLER") else {
            return Sampler::default();
        };
        let ratio = self.ratio("OTEL_TRACES_SAMPLER_ARG").unwrap_or(RATIO);
        Sampler::named(&name, ratio).unwrap_or_else(|| {
            let instead = "always_on, always_off, traceidratio and these with parentbased_ before them are known; one change a second \
                           is traced";
            self.warn("OTEL_TRACES_SAMPLER", &name, instead);
            Sampler::default()
        })
    }

    fn ratio(&mut self, name: &str) -> Option<f64> {
        let value = self.get(name)?;
        let read = value.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
        if read.is_none() {
            self.warn(name, &value, "write a number from 0 to 1; 1 is used");
        }
        read
    }

    fn attributes(&self) -> Vec<(String, String)> {
        let mut attributes = vec![
            ("service.name".to_owned(), SERVICE.to_owned()),
            ("service.version".to_owned(), VERSION.to_owned()),
        ];
        let given = self
            .get("OTEL_RESOURCE_ATTRIBUTES")
            .map(|text| pairs(&text))
            .unwrap_or_default();
        let name = self
            .get("OTEL_SERVICE_NAME")
            .map(|name| ("service.name".to_owned(), name));
        for (key, value) in given.into_iter().chain(name) {
            match attributes.iter_mut().find(|(of, _)| *of == key) {
                Some((_, of)) => *of = value,
                None => attributes.push((key, value)),
            }
        }
        attributes
    }
}

/// Returns `key=value` pairs with commas between them; values may be percent-encoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let decoded = |text: &str| percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
    pairs
        .map(|(key, value)| (key.trim().to_owned(), decoded(value)))
        .collect()
}
