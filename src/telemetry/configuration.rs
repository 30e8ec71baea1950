// SPDX-License-Identifier: Apache-2.0
//! The metrics of the configuration. Owns their names and meaning. Does not read it.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{WordCounters, register};

/// The metrics of the configuration.
#[derive(Debug)]
pub struct ConfigurationMetrics {
    /// Whether the configuration as last read is good and in effect as a whole.
    pub current: Gauge,
    /// Changed keys that wait for a restart.
    pub waiting: Gauge,
    /// Times that it was read again and has changed.
    pub changed: Counter,
    /// Times that it was read again and was the same.
    pub unchanged: Counter,
    /// Times that it was read again and was bad.
    pub bad: Counter,
}

impl ConfigurationMetrics {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry) -> Self {
        let reloads = WordCounters::new("result", "changed unchanged bad").register(own, "reloads", "Readings of the configuration while the relay runs");
        Self {
            current: register(own, "configuration_current", "Whether the configuration as last read is good and in effect as a whole", Gauge::default()),
            waiting: register(own, "configuration_waiting", "Changed keys of the configuration that wait for a restart", Gauge::default()),
            changed: reloads.of("changed"),
            unchanged: reloads.of("unchanged"),
            bad: reloads.of("bad"),
        }
    }

    /// Notes that the last reading was good, and how many changed keys wait for a restart.
    pub fn good(&self, waiting: usize) {
        self.current.set(i64::from(waiting == 0));
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }
}
