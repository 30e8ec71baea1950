//! The beginning and the end of each hold, in the log and in the metrics.
//!
//! Owns the words. Holds nothing.

use std::sync::Arc;

use crate::cache::View;
use crate::telemetry::HoldMetrics;
use crate::xds::{HoldEnd, HoldEvent};

/// Notes a hold that has begun or ended in this view of this server.
pub(super) fn note(event: &HoldEvent, server: &str, view: &View, metrics: &Arc<HoldMetrics>) {
    let HoldEvent {
        type_url,
        reason,
        removals,
        name,
        ended,
    } = event;
    let class = view.class().to_string();
    let Some(end) = ended else {
        tracing::warn!(
            server, class, r#type = %type_url.word(), %reason, resources = removals, one = %name,
            "removed resources are still served; `distributary holds` shows them, and how to let them go"
        );
        return;
    };
    metrics.end(*reason, *end);
    let by = end.word();
    if *end == HoldEnd::Clock {
        tracing::warn!(
            server, class, r#type = %type_url.word(), %reason, resources = removals, one = %name, by,
            "the time of held removals is over; they are passed on unless something still refers to them"
        );
    } else {
        tracing::info!(
            server, class, r#type = %type_url.word(), %reason, resources = removals, one = %name, by,
            "removed resources are not held any more"
        );
    }
}
