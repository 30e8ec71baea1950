//! The log of what clients reject.
//!
//! Owns one line for each rejection, and that a storm of them does not drown the log. Refuses to act on them (K-07).

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::xds::{Node, TypeUrl};

/// Writes about rejections, at most [`LINES_MAX`] lines in a second.
#[derive(Debug, Default)]
pub(super) struct Nacks(Mutex<Second>);

#[derive(Debug, Default)]
struct Second {
    begun: Option<Instant>,
    lines: u32,
    suppressed: u64,
}

const LINES_MAX: u32 = 20;
/// Clients write whole lists of faults.
const MESSAGE_CHARS_MAX: usize = 1000;

impl Nacks {
    /// A client has rejected a response.
    pub(super) fn log(&self, node: &Node, type_url: &TypeUrl, nonce: &str, message: &str, now: Instant) {
        let Some(suppressed) = self.admit(now) else { return };
        let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
        let nonce: String = nonce.chars().take(40).collect();
        tracing::warn!(node = %node.id, r#type = %type_url, nonce, suppressed, "a client rejected a response: {message}");
    }

    /// Whether there may be a line now; then how many there were not since the last one.
    fn admit(&self, now: Instant) -> Option<u64> {
        let mut second = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over = second
            .begun
            .is_none_or(|begun| now.saturating_duration_since(begun) >= Duration::from_secs(1));
        if over {
            second.begun = Some(now);
            second.lines = 0;
        }
        if second.lines >= LINES_MAX {
            second.suppressed += 1;
            return None;
        }
        second.lines += 1;
        Some(std::mem::take(&mut second.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_is_counted_instead_of_written() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let nacks = Nacks::default();
        let lines = (0..1000).filter(|_| nacks.admit(start).is_some()).count();
        assert_eq!(lines, LINES_MAX as usize);
        assert_eq!(
            nacks.admit(start + Duration::from_secs(1)),
            Some(1000 - u64::from(LINES_MAX))
        );
        assert_eq!(nacks.admit(start + Duration::from_secs(1)), Some(0));
    }
}
