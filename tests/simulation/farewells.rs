//! When a control plane's removals arrived at the relay, and what directs traffic (D-03).
//!
//! Owns how long a removal must wait. Knows nothing of how the relay does that.

use std::collections::BTreeMap;
use std::time::Instant;

use xds::{Changes, Cut, Known, Reason, Slot, Update};

use super::body::Type;
use super::upstream::{ORDER_GATE, REMOVAL_QUIET};

/// What one server said of clusters and routes.
#[derive(Default)]
pub(crate) struct Farewells {
    /// When the removal of each cluster arrived, from the wildcard (`true`) or from what was asked for by name; `None` if it does
    /// not wait any more. Those stay until the cluster comes back.
    gone: BTreeMap<(bool, String), Option<Instant>>,
    /// When the last listener or route arrived.
    stirred: Option<Instant>,
}

impl Farewells {
    /// Notes what the server has said now, before the relay holds anything back.
    pub(crate) fn note(&mut self, changes: &[Changes], cut: &Cut, now: Instant) {
        // A removal that has waited long enough does not wait again for what comes now.
        let stirred = self.stirred;
        for gone in self.gone.values_mut() {
            gone.take_if(|gone| now >= due(*gone, stirred));
        }
        for change in changes {
            let slot = cut.slot(&change.type_url);
            let said = change.updates.iter();
            match Type::of(change.type_url.url()) {
                Some(Type::Lds | Type::Rds) => {
                    let news = |update: &Update| matches!(update, Update::Put(..) | Update::Absent(_, Reason::Said));
                    self.stirred = said.clone().any(news).then_some(now).or(self.stirred);
                }
                Some(Type::Cds) => {
                    for update in said {
                        let name = update.name();
                        let key = (change.wildcard, name.as_str().to_owned());
                        let half = slot.and_then(|slot| match change.wildcard {
                            true => slot.wildcard.as_deref(),
                            false => Some(&slot.named),
                        });
                        let known = half.and_then(|half| half.known(name));
                        // What would end soon by itself does not wait.
                        let mut halves = slot.into_iter().flat_map(Slot::halves);
                        let ends = halves.any(|half| half.expiry(name).is_some_and(|it| it.at <= now + ORDER_GATE));
                        match update {
                            Update::Absent(_, Reason::Said) if !ends && matches!(known, Some(Known::Present(_))) => {
                                self.gone.entry(key).or_insert(Some(now));
                            }
                            Update::Put(..)
                            | Update::Absent(..)
                            | Update::Forget(_)
                            | Update::Whole(_)
                            | Update::Error(..) => drop(self.gone.remove(&key)),
                        }
                    }
                }
                Some(Type::Eds | Type::Leds | Type::Sds | Type::Odd) | None => {}
            }
        }
    }

    /// Whether the removal of a cluster has arrived and must still wait: from the wildcard, or, if `named`, from what was asked for
    /// by name.
    pub(crate) fn waits(&self, cluster: &str, named: bool, now: Instant) -> bool {
        let halves = [true].into_iter().chain(named.then_some(false));
        let mut gone = halves.filter_map(|half| *self.gone.get(&(half, cluster.to_owned()))?);
        gone.any(|gone| now < due(gone, self.stirred))
    }
}

/// When a removal has waited long enough that arrived at this moment.
fn due(gone: Instant, stirred: Option<Instant>) -> Instant {
    let since = stirred.map_or(gone, |stirred| stirred.max(gone));
    (since + REMOVAL_QUIET).min(gone + ORDER_GATE)
}
