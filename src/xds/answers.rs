//! Where differences, full states and remembered tables that many sessions share are kept.
//!
//! Owns the question. Refuses to say how much is kept: whatever is lost can be computed again.

use std::sync::Arc;

use super::{Batch, Choice, Chosen, Difference, Extra, Item, Name, Seen, State};

/// A store of what is the same for all sessions at the same point.
pub trait Answers {
    /// The difference between what a client holds and a state.
    fn difference(&self, seen: &Seen, to: &Arc<State>) -> Arc<Difference>;

    /// All resources of a state and of what a client holds besides, as one full state (B-16).
    fn full(&self, state: &Arc<State>, extra: Option<&Arc<Extra>>) -> Arc<Batch>;

    /// The one copy of a table that many clients bring along (C-12).
    fn remembered(&self, extra: Extra) -> Arc<Extra>;

    /// The one copy of a name that many clients send.
    fn name(&self, text: &str) -> Name;

    /// What a client sees of a state that says this of itself (TP2), where `before` is what it saw of an earlier one.
    fn chosen(&self, state: &Arc<State>, own: &Choice, before: Option<&Chosen>) -> Arc<Chosen>;

    /// How many bytes of resources a response should hold at the most where it can be split.
    fn chunk(&self) -> usize;
}

/// Shares nothing and computes everything anew.
#[derive(Clone, Copy, Debug)]
pub struct Unshared {
    /// Bytes of resources in one response.
    pub chunk: usize,
}

impl Answers for Unshared {
    fn difference(&self, seen: &Seen, to: &Arc<State>) -> Arc<Difference> {
        Arc::new(Difference::between(seen, to))
    }

    fn full(&self, state: &Arc<State>, extra: Option<&Arc<Extra>>) -> Arc<Batch> {
        Arc::new(full_state(state, extra))
    }

    fn remembered(&self, extra: Extra) -> Arc<Extra> {
        Arc::new(extra)
    }

    fn name(&self, text: &str) -> Name {
        Name::from(text)
    }

    fn chosen(&self, state: &Arc<State>, own: &Choice, before: Option<&Chosen>) -> Arc<Chosen> {
        Arc::new(state.seen_by(own, before))
    }

    fn chunk(&self) -> usize {
        self.chunk
    }
}

/// All resources of the state, and of the extra where it has their content.
#[must_use]
pub fn full_state(state: &State, extra: Option<&Arc<Extra>>) -> Batch {
    let held = extra
        .into_iter()
        .flat_map(|extra| extra.names().values().filter_map(|held| held.whole()));
    let items = state
        .resources()
        .chain(held)
        .map(|resource| Item::plain(resource.clone()))
        .collect();
    Batch::new(items, Vec::new())
}
