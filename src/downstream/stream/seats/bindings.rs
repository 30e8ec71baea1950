//! The bindings of one session, by authority.
//!
//! Owns where they are kept. Does not know what a binding does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Binding;

/// The binding of names of old style, and one for each authority with servers of its own.
pub(super) struct Bindings {
    pub(super) plain: Binding,
    /// Most sessions want no name of such an authority, and then nothing is allocated.
    #[expect(clippy::box_collection, reason = "every stream has this value")]
    others: Option<Box<BTreeMap<Arc<str>, Binding>>>,
}

impl Bindings {
    pub(super) const fn new(plain: Binding) -> Self {
        Self { plain, others: None }
    }

    /// Returns the binding of an authority.
    pub(super) fn of(&self, authority: &str) -> Option<&Binding> {
        self.others.as_ref()?.get(authority)
    }

    /// Adds the binding of an authority that had none.
    pub(super) fn add(&mut self, authority: Arc<str>, binding: Binding) {
        self.others.get_or_insert_default().insert(authority, binding);
    }

    /// Whether there is only the one of names of old style.
    pub(super) const fn is_plain(&self) -> bool {
        self.others.is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Binding> {
        let others = self.others.iter().flat_map(|others| others.values());
        std::iter::once(&self.plain).chain(others)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Binding> {
        let others = self.others.iter_mut().flat_map(|others| others.values_mut());
        std::iter::once(&mut self.plain).chain(others)
    }
}
