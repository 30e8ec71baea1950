//! Overload: how much of what is limited is in use, and what the relay does about it.
//!
//! Shows both, as the gauges of Envoy's overload manager do. Refuses nobody itself.

use crate::downstream::Shared;

/// Shows the present state. To be called about once a second.
pub(super) fn show(shared: &Shared) {
    let overload = &shared.metrics.overload;
    let [connections, streams, subscriptions] = shared.admission.used();
    let names = i64::try_from(subscriptions.used).unwrap_or(i64::MAX);
    overload.subscriptions.set(names);
    overload.pressure("reading", shared.budget.bytes(), shared.budget.bytes_max());
    for (resource, action, used) in [
        ("connections", "reject_connections", connections),
        ("streams", "reject_streams", streams),
        ("subscriptions", "hold_subscriptions", subscriptions),
    ] {
        overload.pressure(resource, used.used, used.max);
        overload.action(action, used.max > 0 && used.used >= used.max);
    }
}
