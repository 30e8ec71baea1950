//! Log lines about responses that the relay rejected.
//!
//! Owns the rule that the same fault of a server makes one line a minute, however many views reject it and however often.
//! Knows nothing of the reasons.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::line_pace::LinePace;
use crate::telemetry::UpstreamMetrics;

/// The rejected responses of one server.
#[derive(Debug, Default)]
pub(super) struct Refused(Mutex<BTreeMap<u64, LinePace>>);

/// How many pairs of type and reason have lines of their own; all others share one.
const LINES_MAX: usize = 256;
const OTHERS: u64 = 0;

impl Refused {
    /// Counts a rejected response, and logs it if a line is due.
    pub(super) fn note(&self, server: &str, metrics: &UpstreamMetrics, type_url: &str, fault: &str, now: Instant) {
        metrics.nacks.inc();
        if let Some(suppressed) = self.admit(type_url, fault, now) {
            tracing::warn!(
                server,
                r#type = type_url,
                reason = fault,
                suppressed,
                "response refused"
            );
        }
    }

    /// If a line may be written now, returns how many were suppressed since the last one.
    fn admit(&self, type_url: &str, fault: &str, now: Instant) -> Option<u64> {
        let key = xxh3_64(type_url.as_bytes()).wrapping_mul(31) ^ xxh3_64(fault.as_bytes());
        let mut lines = self.0.lock();
        if lines.len() >= LINES_MAX && !lines.contains_key(&key) {
            lines.retain(|_, line| !line.is_due(now));
        }
        let full = lines.len() >= LINES_MAX && !lines.contains_key(&key);
        let key = if full { OTHERS } else { key };
        lines.entry(key).or_default().admit(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        Instant::now()
    }

    /// E-22: the next line says how many lines were suppressed.
    #[test]
    fn one_line_a_minute() {
        let (refused, start) = (Refused::default(), start());
        assert_eq!(refused.admit("cds", "a is bad", start), Some(0));
        for at in 1..60 {
            assert_eq!(refused.admit("cds", "a is bad", start + Duration::from_secs(at)), None);
        }
        assert_eq!(refused.admit("cds", "b is bad", start), Some(0));
        assert_eq!(refused.admit("eds", "a is bad", start), Some(0));
        assert_eq!(refused.admit("cds", "a is bad", start + MINUTE), Some(59));
        assert_eq!(refused.admit("cds", "a is bad", start + MINUTE * 2), Some(0));
    }

    /// However many different faults there are, lines and memory are bounded.
    #[test]
    fn a_new_fault_each_time() {
        let (refused, start) = (Refused::default(), start());
        for minute in 0..3 {
            let now = start + MINUTE * minute;
            let written = (0..10_000).filter(|fault| refused.admit("cds", &format!("{minute} {fault}"), now).is_some());
            assert!(written.count() <= LINES_MAX + 1);
            assert!(refused.0.lock().len() <= LINES_MAX + 1);
        }
    }
}
