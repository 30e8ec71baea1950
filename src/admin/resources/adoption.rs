//! How fast the clients accepted the last change of a resource.
//!
//! Owns the curve. It follows from what the streams know anyway: nothing is noted for it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::inquiry::ClientResource;
use crate::xds::Standing;

/// The curve.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Adoption {
    /// How many clients accepted it within each of the times, and not within the one before; at last, those that took longer.
    within: [usize; TIMES.len() + 1],
    /// Those that came after the change.
    came_later: usize,
    /// Those that have not accepted it.
    missing: usize,
}

/// The times of the curve, in milliseconds.
const TIMES: [u64; 15] = [
    5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 3_600_000,
];

impl Adoption {
    /// Adds a client whose stream began at `began`, and which last accepted something of the type at `accepted`. If that was a later
    /// change of another resource, this one was accepted earlier than the curve says.
    pub(super) fn add(&mut self, began: Instant, accepted: Option<Instant>, resource: &ClientResource) {
        let Some(content) = &resource.resource else { return };
        let accepted = accepted.filter(|_| resource.standing == Standing::Accepted);
        self.note(content.received(), began, accepted);
    }

    fn note(&mut self, received: Instant, began: Instant, accepted: Option<Instant>) {
        match accepted {
            None => self.missing += 1,
            Some(_) if began > received => self.came_later += 1,
            Some(at) => {
                let waited = at.saturating_duration_since(received);
                let place = TIMES.partition_point(|time| Duration::from_millis(*time) < waited);
                if let Some(count) = self.within.get_mut(place) {
                    *count += 1;
                }
            }
        }
    }

    /// Returns how many clients had accepted it at most so many seconds after the relay received it.
    pub(super) fn json(&self) -> Value {
        let mut sum = 0;
        let curve = TIMES.iter().zip(self.within).map(|(time, count)| {
            sum += count;
            json!({ "seconds": Duration::from_millis(*time).as_secs_f64(), "clients": sum })
        });
        let curve: Vec<Value> = curve.collect();
        json!({
            "curve": curve,
            "took_longer": self.within.last(),
            "came_later": self.came_later,
            "not_accepted": self.missing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn the_curve_adds_up() {
        let received = clock::now();
        let after = |millis| received + Duration::from_millis(millis);
        let mut adoption = Adoption::default();
        for accepted in [
            Some(received),
            Some(after(5)),
            Some(after(6)),
            Some(after(3_600_001)),
            None,
        ] {
            adoption.note(received, received, accepted);
        }
        adoption.note(received, after(1), Some(after(2)));
        adoption.note(received, after(1), None);
        let json = adoption.json();
        assert_eq!(json["curve"][0], json!({ "seconds": 0.005, "clients": 2 }));
        assert_eq!(json["curve"][1], json!({ "seconds": 0.01, "clients": 3 }));
        assert_eq!(json["curve"][14], json!({ "seconds": 3600.0, "clients": 3 }));
        assert_eq!(
            (&json["took_longer"], &json["came_later"], &json["not_accepted"]),
            (&json!(1), &json!(1), &json!(2))
        );
    }
}
