//! Log lines about responses that the relay rejected.
//!
//! Owns the rule that the same fault of a server makes one line a minute, however many views reject it and however often.
//! Knows nothing of the reasons.

use std::time::Instant;

use crate::telemetry::{LinePaces, UpstreamMetrics};

/// The rejected responses of one server.
#[derive(Debug, Default)]
pub(super) struct Refused(LinePaces);

impl Refused {
    /// Counts a rejected response, and logs it if a line is due.
    pub(super) fn note(&self, server: &str, metrics: &UpstreamMetrics, type_url: &str, fault: &str, now: Instant) {
        metrics.nacks.inc();
        if let Some(suppressed) = self.0.admit(&[type_url, fault], now) {
            tracing::warn!(
                server,
                r#type = type_url,
                reason = fault,
                suppressed,
                "response refused"
            );
        }
    }
}
