//! The gauges of overload: how much of what is limited is in use, and what the relay does about it.
//!
//! Owns what they mean; `families` owns their names. Decides nothing.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// The gauges of overload.
#[derive(Clone, Debug, Default)]
pub struct OverloadMetrics {
    /// Names that all client streams subscribe to.
    pub subscriptions: Gauge,
    pub(super) pressures: Family<[(&'static str, String); 1], Gauge>,
    pub(super) actions: Family<[(&'static str, String); 1], Gauge>,
}

impl OverloadMetrics {
    /// Sets how much of a limited resource is in use. A resource without a limit, which is 0, is not shown.
    pub fn pressure(&self, resource: &'static str, used: usize, max: usize) {
        let labels = [("resource", resource.to_owned())];
        let Some(percent) = used.saturating_mul(100).checked_div(max) else {
            self.pressures.remove(&labels);
            return;
        };
        let gauge = self.pressures.get_or_create(&labels);
        gauge.set(i64::try_from(percent).unwrap_or(i64::MAX));
    }

    /// Sets whether the relay does this against overload.
    pub fn action(&self, action: &'static str, active: bool) {
        let gauge = self.actions.get_or_create(&[("action", action.to_owned())]);
        gauge.set(i64::from(active));
    }
}
