// SPDX-License-Identifier: Apache-2.0
//! How many clients have accepted a content, and within which time.
//!
//! Owns the counts. Measures nothing: the time is that of the metrics, and there is none where it is not known.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::answers::AdoptionCounts;
use crate::classes::Class;
use crate::inquiry::{ClientResource, ClientStream};
use crate::telemetry::Adoptions;
use crate::xds::Standing;

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Adoption {
    counts: AdoptionCounts,
    /// When the contents arrived that the others have accepted, and for which class.
    there: BTreeSet<(Instant, Class)>,
}

impl Adoption {
    /// Adds a client.
    pub(super) fn add(&mut self, client: &ClientStream, resource: &ClientResource) {
        let Some(content) = &resource.resource else { return };
        if resource.standing == Standing::Accepted {
            self.note(content.received(), client.since, &client.node.class);
        } else {
            self.counts.not_accepted += 1;
            self.counts.rejected += usize::from(resource.standing.rejects());
        }
    }

    fn note(&mut self, arrived: Instant, began: Instant, class: &Class) {
        self.counts.accepted += 1;
        if began > arrived {
            self.counts.came_later += 1;
        } else if !self.there.contains(&(arrived, class.clone())) {
            self.there.insert((arrived, class.clone()));
        }
    }

    /// Returns the counts; and once all have accepted it, the time within which those had that were there, if it is known.
    pub(super) fn answer(&self, of_type: &Adoptions) -> AdoptionCounts {
        let times = self.there.iter().map(|(arrived, class)| of_type.time(*arrived, class));
        let times: Option<Vec<Duration>> = times.filter(|_| self.counts.not_accepted == 0).collect();
        let longest = times.and_then(|times| times.into_iter().max());
        AdoptionCounts {
            at_latest_seconds: longest.map(|longest| longest.as_secs_f64()),
            ..self.counts.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock;

    #[test]
    fn the_time_of_those_who_were_there() {
        let arrived = clock::now();
        let after = |millis| arrived + Duration::from_millis(millis);
        let (class, times) = (Class::default(), Adoptions::default());
        let mut adoption = Adoption::default();
        adoption.note(arrived, after(1), &class);
        times.accept(&(arrived..=arrived), true, &class, arrived, after(500));
        assert_eq!(adoption.answer(&times).at_latest_seconds, None);
        adoption.note(arrived, arrived, &class);
        adoption.note(arrived, arrived, &class);
        let all = json!({ "accepted": 3, "came_later": 1, "not_accepted": 0, "rejected": 0, "at_latest_seconds": 0.5 });
        assert_eq!(json!(adoption.answer(&times)), all);
        assert_eq!(adoption.answer(&Adoptions::default()).at_latest_seconds, None);
        adoption.counts.not_accepted += 1;
        assert_eq!(adoption.answer(&times).at_latest_seconds, None);
    }
}
