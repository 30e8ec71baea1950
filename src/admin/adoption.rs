//! How many clients have accepted a content, and by when.
//!
//! Owns the counts and the bound. Does not know when a client accepted just this content: a stream keeps the time of its last
//! acknowledgement of a type, which may be later.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::inquiry::ClientResource;
use crate::xds::Standing;

/// The counts and the bound.
#[derive(Debug, Default)]
pub(super) struct Adoption {
    /// The clients that have accepted it.
    accepted: usize,
    /// Those of them whose streams began after it arrived.
    came_later: usize,
    /// The other clients that want it.
    not_accepted: usize,
    /// Those of them that have rejected it.
    rejected: usize,
    /// How long after its arrival the last of the clients that were there had accepted it, at the latest.
    at_latest: Option<Duration>,
}

impl Adoption {
    /// Adds a client whose stream began at `began`, and which last accepted something of the type at `accepted`.
    pub(super) fn add(&mut self, began: Instant, accepted: Option<Instant>, resource: &ClientResource) {
        let Some(content) = &resource.resource else { return };
        if resource.standing == Standing::Accepted {
            // A client that has acknowledged nothing said in its first request that it holds the content.
            self.note(content.received(), began, accepted.unwrap_or(began));
        } else {
            self.not_accepted += 1;
            self.rejected += usize::from(resource.standing == Standing::Rejected);
        }
    }

    fn note(&mut self, arrived: Instant, began: Instant, accepted: Instant) {
        self.accepted += 1;
        if began > arrived {
            self.came_later += 1;
        } else {
            let waited = accepted.saturating_duration_since(arrived);
            self.at_latest = self.at_latest.max(Some(waited));
        }
    }

    /// Returns the counts, and the bound once every client has accepted the content.
    pub(super) fn json(&self) -> Value {
        let bound = self.at_latest.filter(|_| self.not_accepted == 0);
        json!({
            "accepted": self.accepted,
            "came_later": self.came_later,
            "not_accepted": self.not_accepted,
            "rejected": self.rejected,
            "at_latest_seconds": bound.map(|bound| bound.as_secs_f64()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn the_last_of_those_who_were_there_counts() {
        let arrived = clock::now();
        let after = |millis| arrived + Duration::from_millis(millis);
        let mut adoption = Adoption::default();
        adoption.note(arrived, after(1), after(9000));
        assert_eq!(adoption.json()["at_latest_seconds"], Value::Null);
        adoption.note(arrived, arrived, after(500));
        adoption.note(arrived, arrived, after(250));
        let all = json!({ "accepted": 3, "came_later": 1, "not_accepted": 0, "rejected": 0, "at_latest_seconds": 0.5 });
        assert_eq!(adoption.json(), all);
        adoption.not_accepted += 1;
        assert_eq!(adoption.json()["at_latest_seconds"], Value::Null);
    }
}
