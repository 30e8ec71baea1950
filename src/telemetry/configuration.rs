//! The metrics of the configuration. Owns their meaning. Does not read it.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

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
    /// Notes that the last reading was good, and how many changed keys wait for a restart.
    pub fn good(&self, waiting: usize) {
        self.current.set(i64::from(waiting == 0));
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }
}
