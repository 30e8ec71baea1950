//! The gauges of overload: how much of what is limited is in use, and what the relay does about it.
//!
//! Owns their names and what they mean. Decides nothing.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{Labels, register};

/// The gauges of overload.
#[derive(Clone, Debug)]
pub struct OverloadMetrics {
    /// Names that all client streams subscribe to.
    pub subscriptions: Gauge,
    pressures: Family<Labels<1>, Gauge>,
    actions: Family<Labels<1>, Gauge>,
}

impl OverloadMetrics {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry) -> Self {
        Self {
            subscriptions: register(own, "subscriptions", "Names that client streams subscribe to", Gauge::default()),
            pressures: register(own, "overload_pressure", "Percent of a limited resource in use", Family::default()),
            actions: register(own, "overload_active", "Whether the relay does this against overload", Family::default()),
        }
    }

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
