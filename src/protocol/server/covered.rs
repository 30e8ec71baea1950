//! What the wildcard has left the client with, and what it is being brought to.
//!
//! Owns how far an answer of several responses has come: only what was sent is held. Refuses to know names that were asked for, and
//! how anything is said.

use std::sync::Arc;

use super::subscription::Subscription;
use crate::xds::{Answers, Baselines, Difference, Held, Name, Resource, Seen, State};

/// What is held of what the wildcard covers.
#[derive(Debug, Default)]
pub(super) struct Covered {
    seen: Seen,
    /// The answer that has begun and is not sent as a whole. Most have none, and so no box.
    way: Option<Box<Way>>,
}

/// What the client is owed of the wildcard although the state has not changed.
#[derive(Debug)]
enum Way {
    /// C-11: everything, whether the client holds it or not.
    Again,
    /// The rest of an answer of which a part was sent.
    ///
    /// The relay finishes that answer although the state moves on: otherwise names that change all the time would keep back the names
    /// behind them.
    Begun(Ahead),
}

/// What the relay says to bring the client to a state.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    /// What the client is brought to.
    pub(super) to: Arc<State>,
    pub(super) difference: Arc<Difference>,
    /// C-11: whether the relay says it although the client was sent it before.
    pub(super) again: bool,
}

impl Covered {
    /// What was sent.
    pub(super) const fn seen(&self) -> &Seen {
        &self.seen
    }

    pub(super) fn held(&self, name: &Name) -> Held {
        self.seen.held(name)
    }

    /// What is still to be said of the answer that has begun.
    pub(super) fn rest(&self) -> Option<&Ahead> {
        match self.way.as_deref()? {
            Way::Again => None,
            Way::Begun(rest) => Some(rest),
        }
    }

    /// C-11: whether the client is owed everything, or the rest of everything, whether it holds it or not.
    pub(super) fn is_owed(&self) -> bool {
        self.way.is_some() && self.rest().is_none_or(|rest| rest.again)
    }

    /// C-11: a client that subscribes to the wildcard again may have forgotten what it was sent. What was still to come is said once.
    pub(super) fn repeat(&mut self) {
        self.way = Some(Box::new(Way::Again));
    }

    /// The names that the client holds and that the answer which has begun leaves out. SotW says nothing else about them (K-19).
    pub(super) fn left_out(&self) -> impl Iterator<Item = &Name> {
        let removed = self.rest().and_then(|rest| rest.difference.removed());
        removed.into_iter().flat_map(|extra| extra.names().keys())
    }

    /// Whether this state is what the client was brought to.
    pub(super) fn is_at(&self, state: &State) -> bool {
        self.seen.state.as_ref().is_some_and(|seen| seen.id() == state.id())
    }

    /// What is to be said to bring the client to this state.
    pub(super) fn ahead(&self, state: &Arc<State>, answers: &impl Answers) -> Ahead {
        let again = self.is_owed();
        Ahead {
            to: state.clone(),
            difference: if again {
                Arc::new(Difference::again(&self.seen, state))
            } else {
                answers.difference(&self.seen, state)
            },
            again,
        }
    }

    /// A part of an answer was sent: what is held now, and the rest.
    pub(super) fn advance(&mut self, seen: Seen, rest: Ahead) {
        self.seen = seen;
        self.way = Some(Box::new(Way::Begun(rest)));
    }

    /// The whole answer was sent, or there is none: what is held now.
    pub(super) fn arrive(&mut self, seen: Seen) {
        self.seen = seen;
        self.way = None;
    }

    /// Some of a state was sent besides.
    pub(super) fn bring(&mut self, resources: &[Arc<Resource>], state: &State) {
        self.seen = self.seen.brought(resources, state);
    }

    /// The client was told something of single names besides.
    pub(super) fn note(&mut self, told: Vec<(Name, Held)>) {
        self.seen.note(told);
    }

    /// Ends the answer that has begun. Returns the names that it still owes.
    pub(super) fn cut_off(&mut self) -> Vec<Name> {
        match self.way.take_if(|way| matches!(**way, Way::Begun(_))).map(|way| *way) {
            Some(Way::Begun(Ahead {
                difference,
                again: true,
                ..
            })) => difference
                .changed()
                .iter()
                .map(|resource| resource.name().clone())
                .collect(),
            Some(Way::Begun(_) | Way::Again) | None => Vec::new(),
        }
    }

    /// Keeps no bodies.
    pub(super) fn lighten(&mut self, baselines: &Baselines) {
        let Seen { state, extra } = &mut self.seen;
        *state = state.as_ref().map(|state| baselines.state(state));
        *extra = extra.as_ref().map(|extra| baselines.extra(extra));
    }
}

impl Subscription {
    /// Ends the wildcard's answer that has begun: the client is about to be told something newer than what is left of it.
    pub(super) fn cut_off(&mut self) {
        let owed = self.covered.cut_off();
        self.owed.extend(owed);
    }

    /// The client was told something of names that the wildcard covers.
    pub(super) fn note_covered(&mut self, told: Vec<(Name, Held)>) {
        if !told.is_empty() {
            self.cut_off();
            self.covered.note(told);
        }
    }

    /// The client was sent resources that the wildcard covers, but not as part of the wildcard's own answer.
    pub(super) fn bring_covered(&mut self, resources: &[Arc<Resource>], state: &State) {
        if !resources.is_empty() {
            self.cut_off();
            self.covered.bring(resources, state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xds::TypeUrl;

    /// C-11: what is to be said again is owed until it has begun, and what is left of it when it is cut off.
    #[test]
    fn an_answer_that_has_begun() {
        let state = Arc::new(State::new(TypeUrl::new("t")));
        let ahead = |again| Ahead {
            to: state.clone(),
            difference: Arc::new(Difference::nothing()),
            again,
        };
        let mut covered = Covered::default();
        assert!(covered.rest().is_none() && !covered.is_owed() && !covered.is_at(&state));
        covered.repeat();
        assert!(covered.is_owed() && covered.rest().is_none() && covered.cut_off().is_empty() && covered.is_owed());
        covered.advance(Seen::default(), ahead(true));
        assert!(covered.is_owed() && covered.rest().is_some());
        covered.advance(Seen::default(), ahead(false));
        assert!(!covered.is_owed() && covered.cut_off().is_empty() && covered.rest().is_none());
        let seen = Seen {
            state: Some(state.clone()),
            extra: None,
        };
        covered.arrive(seen);
        assert!(covered.is_at(&state) && covered.left_out().next().is_none());
    }
}
