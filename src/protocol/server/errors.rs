//! Errors of single names, for clients that can read them (B-31).
//!
//! Owns the errors that a client was sent. Does not know where an error comes from.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::subscription::Subscription;
use xds::{Dialect, Errors, Item, Known, Name, ResourceError, TypeSight};

/// The errors that a client was sent. Most were sent none, and then nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Told(Option<Box<Errors>>);

impl Told {
    fn get(&self, name: &Name) -> Option<&Arc<ResourceError>> {
        self.0.as_ref()?.get(name)
    }

    /// The client does not ask for a name any more.
    pub(super) fn forget(&mut self, name: &Name) {
        if let Some(told) = &mut self.0 {
            told.remove(name);
        }
    }
}

impl Subscription {
    /// Returns the error that a client must get for a name. K-16: in SotW, only an error can say that a name does not exist.
    pub(super) fn error(&self, name: &Name, slot: TypeSight<'_>) -> Option<Arc<ResourceError>> {
        let absent = || matches!(slot.known(name), Some(Known::Absent(_)));
        // B-31: an error has a name, so there is none for the empty name.
        let silent = self.dialect == Dialect::Sotw && !name.is_blank() && absent();
        let said = slot.error(name).cloned();
        said.or_else(|| silent.then(|| Arc::new(ResourceError::not_found())))
    }

    /// Whether the client was sent an error that does not hold any more.
    pub(super) fn is_absolved(&self, name: &Name, slot: TypeSight<'_>) -> bool {
        self.told.get(name).is_some() && self.error(name, slot).is_none()
    }

    /// B-31: returns the errors that the client was not sent yet, each once per change.
    pub(super) fn due_errors(&self, slot: TypeSight<'_>) -> Errors {
        if !self.features.errors {
            return Errors::new();
        }
        let names = self.owed.due().chain(self.glanced()).chain(self.collections.iter());
        let asked = names.filter(|name| self.asks(name));
        let due = asked.filter_map(|name| Some((name, self.error(name, slot)?)));
        let due = due.filter(|(name, error)| self.told.get(name) != Some(error));
        due.map(|(name, error)| (name.clone(), error)).collect()
    }

    /// Splits the errors into those that go with this response and those that wait, and notes the former as sent. B-31: a name
    /// whose resource is in the response gets no error in it.
    pub(super) fn tell_errors(
        &mut self,
        due: Errors,
        items: &BTreeMap<Name, Item>,
        slot: TypeSight<'_>,
    ) -> (Errors, Errors) {
        let listed = |name: &Name| {
            slot.resource(name)
                .is_some_and(|resource| items.contains_key(resource.name()))
        };
        // E-09: a new resource ends the error of its name.
        if let Some(told) = &mut self.told.0 {
            told.retain(|name, _| !listed(name));
        }
        let (wait, go): (Errors, Errors) = due.into_iter().partition(|(name, _)| listed(name));
        if !go.is_empty() {
            self.told.0.get_or_insert_default().extend(go.clone());
        }
        (go, wait)
    }
}
