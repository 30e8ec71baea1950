//! Partial answers to a wildcard that are the same for all clients at the same point.
//!
//! Owns when a client is like all others. Knows nothing of names that were requested.

use std::sync::Arc;

use super::compose::{Allowed, Composed, Step};
use super::covered::Ahead;
use super::subscription::Subscription;
use xds::{Answers, Batch, Dialect, Seen, State};

impl Subscription {
    /// Whether this client is like all others at the same point, so that one encoded answer serves all of them.
    pub(super) fn plain(&self, state: &State) -> bool {
        let asked = self.names.is_empty() && self.collections.is_empty();
        let alike = asked && self.owed.is_empty() && self.cold.refusals().is_empty() && !self.covered.is_owed();
        let private = self.wrapped() && !state.is_nameless() || self.tells_ttl(state);
        self.wildcard && alike && !private && !self.lists_all()
    }

    /// Composes the next response of a client that is like all others: the rest of the begun answer, or what is new in this
    /// state.
    pub(super) fn compose_shared(
        &mut self,
        rest: Option<&Ahead>,
        state: &Arc<State>,
        answers: &impl Answers,
        allowed: Allowed,
    ) -> Composed {
        self.dirty.clear();
        let (to, difference) = match rest {
            Some(rest) => (&rest.to, rest.difference.clone()),
            None if self.covered.is_at(state) && self.covered.seen().extra.is_none() && !self.first => {
                return Composed::Not(Step::Idle);
            }
            None => (state, answers.difference(self.covered.seen(), state)),
        };
        let additions = !difference.changed().is_empty();
        // K-19: SotW has no removals here. K-16: nothing is removed because the relay does not know it.
        let delta = self.dialect == Dialect::Delta;
        let gone = difference.removed().filter(|_| delta).cloned();
        let removals = gone.is_some() && to.certain();
        if allowed.busy && rest.is_none() {
            return Composed::Not(if additions {
                Step::Blocked
            } else if removals {
                Step::Removals
            } else {
                Step::Idle
            });
        }
        let going = removals && allowed.removals;
        let said = additions || going;
        // B-20, C-17: the first answer is owed even if it is empty, once that is certain.
        let empty = !said && self.first && to.complete();
        let part = said.then(|| difference.part(self.covered.seen(), to, going, answers.chunk()));
        match part.and_then(|part| part.left.as_ref()?.open()) {
            Some((seen, rest)) => {
                let rest = Ahead {
                    to: to.clone(),
                    difference: rest.clone(),
                    again: false,
                };
                self.covered.advance(seen.clone(), rest);
            }
            None => self.covered.arrive(Seen {
                state: Some(to.clone()),
                extra: gone.filter(|_| !going),
            }),
        }
        match part {
            Some(part) => Composed::Batch {
                batch: part.batch.clone(),
                since: part.since,
                set: None,
            },
            None if empty => Composed::Batch {
                batch: Arc::new(Batch::new(Vec::new(), Vec::new())),
                since: None,
                set: None,
            },
            None => Composed::Not(if removals { Step::Removals } else { Step::Idle }),
        }
    }
}
