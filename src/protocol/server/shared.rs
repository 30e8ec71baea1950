//! Partial answers to a wildcard that are the same for all who are at the same point.
//!
//! Owns when a client is like all others. Refuses to know names that were asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::compose::{Allowed, Composed, Step};
use super::subscription::{Before, Glance, Subscription};
use crate::xds::{Answers, Batch, Dialect, Seen, State};

impl Subscription {
    /// Whether this client is like all others at the same point, so that one encoded answer serves them all.
    pub(super) fn plain(&self, state: &State) -> bool {
        let asked = self.names.is_empty() && self.globs.is_empty();
        let alike = asked && self.owed.is_empty() && self.rare().refusals.is_empty() && !self.again;
        // C-23: in SotW a variant that is not for everybody says so around its body.
        let chosen = self.dialect == Dialect::Sotw && self.features.wrapper && state.is_chosen();
        let private = chosen
            || self.wrapped() && !state.is_nameless()
            || self.reads_ttl() && !(state.expiries().is_empty() && self.rare().beats.is_empty());
        self.wildcard && alike && !private
    }

    pub(super) fn compose_shared(&mut self, state: &Arc<State>, answers: &impl Answers, allowed: Allowed) -> Composed {
        if self.glanced().next().is_some() || matches!(self.dirty, Glance::All) {
            self.dirty = Glance::Names(BTreeSet::new());
        }
        let same = self.seen.state.as_ref().is_some_and(|seen| seen.id() == state.id());
        if same && self.seen.extra.is_none() && !self.first {
            return Composed::Not(Step::Idle);
        }
        let difference = answers.difference(&self.seen, state);
        let additions = !difference.changed().is_empty();
        // K-19: in SotW nothing says that such a resource is gone. K-16: nothing is taken away out of ignorance.
        let delta = self.dialect == Dialect::Delta;
        let gone = difference.removed().filter(|_| delta).cloned();
        let removals = gone.is_some() && state.certain();
        if allowed.asked_only {
            return Composed::Not(if additions {
                Step::Blocked
            } else if removals {
                Step::Removals
            } else {
                Step::Idle
            });
        }
        let going = removals && allowed.removals;
        let chunk = answers.chunk();
        let batch = match (additions, going) {
            (true, true) => Some(difference.both(chunk)),
            (true, false) => Some(difference.additions(chunk)),
            (false, true) => Some(difference.removals(chunk)),
            // B-20, C-17: the first answer is owed even if there is nothing, once that is certain.
            (false, false) if self.first && state.complete() => {
                Some(Arc::new(Batch::new(Vec::new(), Vec::new(), chunk)))
            }
            (false, false) => None,
        };
        let seen = Seen {
            state: Some(state.clone()),
            extra: gone.filter(|_| !going),
        };
        let before = Before {
            seen: std::mem::replace(&mut self.seen, seen),
            ..Before::default()
        };
        match batch {
            Some(batch) => Composed::Batch {
                batch,
                before,
                since: difference.oldest(),
                set: None,
            },
            None => Composed::Not(if removals { Step::Removals } else { Step::Idle }),
        }
    }
}
