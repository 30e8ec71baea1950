//! A full state of listeners that pass on addresses.
//!
//! Owns that it is made once for all who get it. Does not know the order of the listeners.

use std::sync::Arc;

use super::Difference;
use crate::{Batch, Kind, State, full_state, takers};

impl Difference {
    /// Returns all listeners of the state that is sent, those last that take addresses of others (B-16). `None` if there are none.
    #[must_use]
    pub fn handover(&self, from: Option<&Arc<State>>, next: &Arc<State>) -> Option<Arc<Batch>> {
        let from = from.filter(|from| from.type_url().kind() == Kind::Lds && self.changed.left > 0)?;
        let make = || {
            let before = self.changed().filter_map(|new| from.resource(new.name()));
            let last = takers(before, self.changed());
            (!last.is_empty()).then(|| Arc::new(full_state(next).with_last(last)))
        };
        let (of, batch) = self.handover.get_or_init(|| (next.id(), make()));
        if *of == next.id() { batch.clone() } else { make() }
    }
}
