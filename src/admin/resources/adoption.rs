//! How many clients have accepted a content, and when all of them had at the latest.
//!
//! Owns the bound. It follows from what the streams know anyway: nothing is noted for it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::inquiry::ClientResource;
use crate::xds::Standing;

/// The clients that want a content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Adoption {
    /// Those that have accepted it.
    accepted: usize,
    /// Those of them that came after the change.
    came_later: usize,
    /// Those that have not accepted it.
    missing: usize,
    /// How long after the change the others had accepted it at the latest.
    latest: Option<Duration>,
}

impl Adoption {
    /// Adds a client whose stream began at `began`, and which last accepted something of the type at `accepted`. It accepted this
    /// content then, or earlier: a later change of another resource hides an earlier time.
    pub(super) fn add(&mut self, began: Instant, accepted: Option<Instant>, resource: &ClientResource) {
        let Some(content) = &resource.resource else { return };
        let accepted = accepted.filter(|_| resource.standing == Standing::Accepted);
        self.note(content.received(), began, accepted);
    }

    fn note(&mut self, received: Instant, began: Instant, accepted: Option<Instant>) {
        let Some(at) = accepted else {
            self.missing += 1;
            return;
        };
        self.accepted += 1;
        if began > received {
            self.came_later += 1;
        } else {
            self.latest = self.latest.max(Some(at.saturating_duration_since(received)));
        }
    }

    /// Returns the counts, and the bound once nobody is missing.
    pub(super) fn json(&self) -> Value {
        let latest = self.latest.filter(|_| self.missing == 0);
        json!({
            "accepted": self.accepted,
            "came_later": self.came_later,
            "not_accepted": self.missing,
            "at_latest_seconds": latest.map(|latest| latest.as_secs_f64()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn the_last_client_counts() {
        let received = clock::now();
        let after = |millis| received + Duration::from_millis(millis);
        let mut adoption = Adoption::default();
        for accepted in [after(5), after(250), after(6)] {
            adoption.note(received, received, Some(accepted));
        }
        adoption.note(received, after(1), Some(after(2000)));
        let mut expected = json!({ "accepted": 4, "came_later": 1, "not_accepted": 0, "at_latest_seconds": 0.25 });
        assert_eq!(adoption.json(), expected);
        adoption.note(received, received, None);
        expected["not_accepted"] = 1.into();
        expected["at_latest_seconds"] = Value::Null;
        assert_eq!(adoption.json(), expected);
        let mut newcomers = Adoption::default();
        newcomers.note(received, after(1), Some(after(2)));
        assert_eq!(newcomers.json()["at_latest_seconds"], Value::Null);
    }
}
