//! What the wildcard has sent to the client, and what is still to be sent.
//!
//! Owns the progress of an answer of several responses: only what was sent counts as held. Knows nothing of names that were
//! requested, and of the form of responses.

use std::sync::Arc;

use super::subscription::Subscription;
use xds::{Answers, Baselines, Dialect, Difference, Held, Name, Resource, Seen, State};

/// What the client holds of the resources that the wildcard covers.
#[derive(Debug, Default)]
pub(super) struct Covered {
    seen: Seen,
    /// What the client is owed of the wildcard, if anything. Most clients are owed nothing, and then nothing is allocated.
    way: Option<Box<Way>>,
}

/// What the client is owed of the wildcard although the state has not changed.
#[derive(Debug)]
enum Way {
    /// C-11: all resources, whether or not the client holds them.
    Again,
    /// The rest of an answer of which a part was sent.
    ///
    /// The relay finishes that answer although the state moves on: otherwise names that change all the time would hold up the
    /// names behind them.
    Begun(Ahead),
}

/// What the relay must send to bring the client to a state.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    /// The state that the client is brought to.
    pub(super) to: Arc<State>,
    pub(super) difference: Arc<Difference>,
    /// C-11: whether the relay sends it even if the client was sent it before.
    pub(super) again: bool,
}

impl Covered {
    /// Returns what was sent.
    pub(super) const fn seen(&self) -> &Seen {
        &self.seen
    }

    pub(super) fn held(&self, name: &Name) -> Held {
        self.seen.held(name)
    }

    /// Returns the rest of the answer that has begun.
    pub(super) fn rest(&self) -> Option<&Ahead> {
        match self.way.as_deref()? {
            Way::Again => None,
            Way::Begun(rest) => Some(rest),
        }
    }

    /// C-11: returns whether the client is owed all resources, or the rest of them, whether or not it holds them.
    pub(super) fn is_owed(&self) -> bool {
        self.way.is_some() && self.rest().is_none_or(|rest| rest.again)
    }

    /// C-11: a client that subscribes to the wildcard again may have forgotten what it was sent, so everything is sent again; the
    /// rest of an answer that has begun becomes part of that.
    pub(super) fn repeat(&mut self) {
        self.way = Some(Box::new(Way::Again));
    }

    /// Returns whether the begun answer leaves out this name. SotW has no other removal for it (K-19).
    pub(super) fn leaves_out(&self, name: &Name) -> bool {
        let removed = self.rest().and_then(|rest| rest.difference.removed());
        removed.is_some_and(|extra| extra.names().contains_key(name))
    }

    /// Returns the names that the client holds and that the begun answer leaves out.
    pub(super) fn left_out(&self) -> impl Iterator<Item = &Name> {
        let removed = self.rest().and_then(|rest| rest.difference.removed());
        removed.into_iter().flat_map(|extra| extra.names().keys())
    }

    /// Returns whether this is the state that the client was brought to.
    pub(super) fn is_at(&self, state: &State) -> bool {
        self.seen.state.as_ref().is_some_and(|seen| seen.id() == state.id())
    }

    /// Returns what must be sent to bring the client to this state.
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

    /// A part of an answer was sent: what the client holds now, and the rest.
    pub(super) fn advance(&mut self, seen: Seen, rest: Ahead) {
        self.seen = seen;
        self.way = Some(Box::new(Way::Begun(rest)));
    }

    /// The whole answer was sent, or there is none: what the client holds now.
    pub(super) fn arrive(&mut self, seen: Seen) {
        self.seen = seen;
        self.way = None;
    }

    /// Resources of a state were sent outside the wildcard's own answer.
    pub(super) fn bring(&mut self, resources: &[Arc<Resource>], state: &State) {
        self.seen = self.seen.brought(resources, state);
    }

    /// The client was sent something about single names outside the wildcard's own answer.
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

    /// Drops all bodies.
    pub(super) fn lighten(&mut self, baselines: &mut Baselines) {
        let Seen { state, extra } = &mut self.seen;
        *state = state.as_ref().map(|state| baselines.state(state));
        *extra = extra.as_ref().map(|extra| baselines.extra(extra));
    }
}

impl Subscription {
    /// Ends the wildcard's begun answer, because the client is about to be sent something newer than the rest of it.
    pub(super) fn cut_off(&mut self) {
        if self.dialect == Dialect::Sotw {
            let gone = self.covered.left_out().map(|name| (name.clone(), Held::Nothing));
            let gone = gone.collect();
            self.covered.note(gone);
        }
        let owed = self.covered.cut_off();
        self.owed.extend(owed);
    }

    /// The client was sent something about names that the wildcard covers.
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
    use xds::TypeUrl;

    /// C-11: a repetition is owed until it begins; if it is cut off, the rest of it is owed.
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
