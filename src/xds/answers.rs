//! The store for values that many sessions share: differences, full states and remembered tables.
//!
//! Owns the interface. Does not say how much is kept: a lost value can be computed again.

use std::sync::Arc;

use super::{Batch, Class, Difference, Extra, Item, Name, Objection, Permitted, Rights, Seen, State};

/// Shares values that are the same for all sessions at the same point.
pub trait Answers {
    /// Returns the difference between what a client holds and a state.
    fn difference(&self, seen: &Seen, to: &Arc<State>) -> Arc<Difference>;

    /// Returns all resources of a state, and those that the client holds in addition, as one full state (B-16).
    fn full(&self, state: &Arc<State>, extra: Option<&Arc<Extra>>) -> Arc<Batch>;

    /// Returns the shared copy of a table that many clients bring along (C-12).
    fn remembered(&self, extra: Extra) -> Arc<Extra>;

    /// Returns the shared copy of a name that many clients send.
    fn name(&self, text: &str) -> Name;

    /// Returns what a client with these rights sees of a state. `before` is what it saw of an earlier state.
    fn permitted(&self, state: &Arc<State>, rights: &Arc<Rights>, before: Option<&Permitted>) -> Arc<Permitted>;

    /// Returns the shared copy of a class that many clients are in.
    fn class(&self, class: Class) -> Arc<Class>;

    /// Returns the shared copy of rights that many clients have.
    fn rights(&self, rights: Rights) -> Arc<Rights>;

    /// Returns the shared copy of the words with which many clients reject something.
    fn objection(&self, objection: Objection) -> Arc<Objection>;

    /// How many bytes of resources a response should hold at most, where it can be split.
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

    fn permitted(&self, state: &Arc<State>, rights: &Arc<Rights>, before: Option<&Permitted>) -> Arc<Permitted> {
        Arc::new(state.seen_by(rights, before))
    }

    fn class(&self, class: Class) -> Arc<Class> {
        Arc::new(class)
    }

    fn rights(&self, rights: Rights) -> Arc<Rights> {
        Arc::new(rights)
    }

    fn objection(&self, objection: Objection) -> Arc<Objection> {
        Arc::new(objection)
    }

    fn chunk(&self) -> usize {
        self.chunk
    }
}

/// Returns all resources of the state, and those of `extra` whose content can be sent again.
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
