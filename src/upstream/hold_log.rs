//! What happens to holds, in the log, in the metrics, and among the last changes of the view.
//!
//! Owns the words. Holds nothing.

use std::time::Instant;

use crate::cache::View;
use crate::telemetry::HoldMetrics;
use crate::xds::{HoldChange, HoldEnd, HoldEvent, HoldReason};

/// Notes what has happened to a hold in this view of this server.
pub(super) fn note(event: &HoldEvent, server: &str, view: &View, metrics: &HoldMetrics, now: Instant) {
    metrics.count(event);
    if matches!(event.change, HoldChange::Ended(_)) {
        view.guarded().note_ended(event.clone(), now);
    }
    let HoldEvent {
        type_url,
        reason,
        judgement,
        removals,
        name,
        ..
    } = event;
    let (class, r#type) = (view.class().to_string(), type_url.word());
    let judgement = judgement.map(tracing::field::display);
    match (event.change, reason) {
        (HoldChange::Begun, HoldReason::Mass) => tracing::warn!(
            server, class, r#type, %reason, judgement, resources = removals, one = %name,
            "much was lost at once: removed resources are still served; `distributary holds` shows them, and how to let them go"
        ),
        (HoldChange::Joined, HoldReason::Mass) => tracing::warn!(
            server, class, r#type, %reason, judgement, resources = removals, one = %name,
            "more was lost: these removed resources are still served as well"
        ),
        (HoldChange::Begun | HoldChange::Joined, HoldReason::Referenced) => tracing::info!(
            server, class, r#type, %reason, resources = removals, one = %name,
            "removed resources are still served, because served resources refer to them; `distributary holds` shows them"
        ),
        (HoldChange::Begun | HoldChange::Joined, HoldReason::Unready) => tracing::info!(
            server, class, r#type, %reason, resources = removals, one = %name,
            "changed resources wait, because another source does not have what they lead to; `distributary holds` shows them"
        ),
        (HoldChange::Ended(end @ HoldEnd::Clock), HoldReason::Unready) => tracing::warn!(
            server, class, r#type, %reason, resources = removals, one = %name, by = end.word(),
            "changed resources have waited long enough for another source; they are served, although it does not have what they lead to"
        ),
        (HoldChange::Ended(end), HoldReason::Unready) => tracing::info!(
            server, class, r#type, %reason, resources = removals, one = %name, by = end.word(),
            "changed resources do not wait for another source any more"
        ),
        (HoldChange::Ended(end @ HoldEnd::Clock), HoldReason::Mass) => tracing::warn!(
            server, class, r#type, %reason, judgement, resources = removals, one = %name, by = end.word(),
            "the time of held removals is over; they are passed on unless something else holds them"
        ),
        (HoldChange::Ended(end), _) => tracing::info!(
            server, class, r#type, %reason, judgement, resources = removals, one = %name, by = end.word(),
            "removed resources are not held any more for this reason"
        ),
    }
}
