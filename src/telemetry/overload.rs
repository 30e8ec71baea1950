// SPDX-License-Identifier: Apache-2.0
//! The metrics of overload: how much of what is limited is in use, what the relay does about it, and for how long it did not run at all.
//!
//! Owns their names and what they mean. Decides nothing.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{Labels, register};

/// The metrics of overload.
#[derive(Clone, Debug)]
pub struct OverloadMetrics {
    /// Names that all client streams subscribe to.
    pub subscriptions: Gauge,
    pressures: Family<Labels<1>, Gauge>,
    actions: Family<Labels<1>, Gauge>,
    stalls: Counter,
    stalled_seconds: Counter<f64, AtomicU64>,
}

impl OverloadMetrics {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry) -> Self {
        Self {
            subscriptions: register(own, "subscriptions", "Names that client streams subscribe to", Gauge::default()),
            pressures: register(own, "overload_pressure", "Percent of a limited resource in use", Family::default()),
            actions: register(own, "overload_active", "Whether the relay does this against overload", Family::default()),
            stalls: register(own, "process_stalls", "Times that the process did not run for over a second", Counter::default()),
            stalled_seconds: register(own, "process_stalled_seconds", "Seconds that the process did not run in these times", Counter::default()),
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

    /// Sets how often the process did not run, and for how long altogether.
    pub fn stalled(&self, times: u64, stood: Duration) {
        self.stalls.inc_by(times.saturating_sub(self.stalls.get()));
        self.stalled_seconds
            .inc_by((stood.as_secs_f64() - self.stalled_seconds.get()).max(0.0));
    }
}
