// SPDX-License-Identifier: Apache-2.0
//! The store for values that many sessions share: differences, full states and remembered tables.
//!
//! Owns the interface. Does not say how much is kept: a lost value can be computed again.

use std::sync::Arc;

use super::{Batch, Difference, Item, Name, Objection, Permitted, Rights, Said, Sensitive, State};
use classes::Class;

/// Shares values that are the same for all sessions at the same point.
pub trait Answers {
    /// Returns the difference between what a client was sent and a state. It begins with the names after `cursor`, which is the same
    /// for all clients that were sent this.
    fn difference(&self, from: Option<&Arc<State>>, cursor: Option<&Name>, to: &Arc<State>) -> Arc<Difference>;

    /// Returns all resources of a state as one full state (B-16).
    fn full(&self, state: &Arc<State>) -> Arc<Batch>;

    /// Returns the shared copy of what many clients bring along (C-12).
    fn remembered(&self, state: State) -> Arc<State>;

    /// Returns the same names without any version: what a client holds of them is unknown (C-11).
    fn doubted(&self, state: &Arc<State>) -> Arc<State>;

    /// Returns the shared copy of a name that many clients send.
    fn name(&self, text: &str) -> Name;

    /// Returns what a client with these rights sees of a state. `before` is what it saw of an earlier state.
    fn permitted(&self, state: &Arc<State>, rights: &Arc<Rights>, before: Option<&Permitted>) -> Arc<Permitted>;

    /// Returns the shared copy of a class that many clients are in.
    fn class(&self, class: Class) -> Arc<Class>;

    /// Returns the shared copy of rights that many clients have.
    fn rights(&self, rights: Rights) -> Arc<Rights>;

    /// S-12: returns what is kept of the words with which many clients reject a response: nothing that is sensitive in it. `rejected` is
    /// its content, if it is known.
    fn objection(&self, said: &Said<'_>, rejected: Option<&Arc<Batch>>) -> Arc<Objection>;

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
    fn difference(&self, from: Option<&Arc<State>>, cursor: Option<&Name>, to: &Arc<State>) -> Arc<Difference> {
        Arc::new(Difference::between(from.map(|from| &**from), cursor, to))
    }

    fn full(&self, state: &Arc<State>) -> Arc<Batch> {
        Arc::new(full_state(state))
    }

    fn remembered(&self, state: State) -> Arc<State> {
        Arc::new(state)
    }

    fn doubted(&self, state: &Arc<State>) -> Arc<State> {
        Arc::new(state.doubted())
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

    fn objection(&self, said: &Said<'_>, _rejected: Option<&Arc<Batch>>) -> Arc<Objection> {
        Arc::new(said.without(&Sensitive::default()))
    }

    fn chunk(&self) -> usize {
        self.chunk
    }
}

/// Returns all resources of the state.
#[must_use]
pub fn full_state(state: &State) -> Batch {
    let items = state.resources().map(|resource| Item::plain(resource.clone()));
    Batch::new(items.collect(), Vec::new())
}
