// SPDX-License-Identifier: Apache-2.0
//! Log lines about responses that the relay rejected.
//!
//! Owns the rule that the same fault of a server makes one line a minute, however many views reject it and however often.
//! Knows nothing of the reasons.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;

use crate::telemetry::{LinePaces, UpstreamMetrics};

/// The rejected responses of one server.
#[derive(Debug, Default)]
pub(super) struct Refused {
    paces: LinePaces,
    /// Why the last one of each type was rejected. Only types that the relay has asked for are here.
    last: Mutex<BTreeMap<String, String>>,
}

impl Refused {
    /// Counts a rejected response, and logs it if a line is due.
    pub(super) fn note(&self, server: &str, metrics: &UpstreamMetrics, type_url: &str, fault: &str, now: Instant) {
        metrics.nacks.inc();
        self.last.lock().insert(type_url.to_owned(), fault.to_owned());
        if let Some(suppressed) = self.paces.admit(&[type_url, fault], now) {
            tracing::warn!(
                server,
                r#type = type_url,
                reason = fault,
                suppressed,
                "response refused"
            );
        }
    }

    /// Returns why the last rejected response of each type was rejected.
    pub(super) fn last(&self) -> BTreeMap<String, String> {
        self.last.lock().clone()
    }
}
