// SPDX-License-Identifier: Apache-2.0
//! The bindings of one session, by owner.
//!
//! Owns where they are kept. Does not know what a binding does.

use super::Binding;

/// The binding of names without an owner, and one for each authority and source that the session uses.
pub(super) struct Bindings {
    pub(super) plain: Binding,
    /// In the order of their owners. Most sessions want nothing of such an owner, and then nothing is allocated.
    #[expect(clippy::box_collection, reason = "every stream has this value")]
    others: Option<Box<Vec<Binding>>>,
}

impl Bindings {
    pub(super) const fn new(plain: Binding) -> Self {
        Self { plain, others: None }
    }

    /// Returns the binding of an owner.
    pub(super) fn of(&self, owner: Option<&str>) -> Option<&Binding> {
        if owner.is_none() {
            return Some(&self.plain);
        }
        let others = self.others();
        others.get(place(others, owner).ok()?)
    }

    pub(super) fn of_mut(&mut self, owner: Option<&str>) -> Option<&mut Binding> {
        self.iter_mut().find(|binding| binding.owner.as_deref() == owner)
    }

    /// Adds the binding of an authority or a source, or replaces the one it had.
    pub(super) fn add(&mut self, binding: Binding) {
        let others = self.others.get_or_insert_default();
        match place(others, binding.owner.as_deref()) {
            Ok(at) => drop(others.get_mut(at).map(|known| *known = binding)),
            Err(at) => others.insert(at, binding),
        }
    }

    /// Keeps only those of authorities and sources for which this is true, beside the plain one.
    pub(super) fn retain(&mut self, keeps: impl Fn(&Binding) -> bool) {
        if let Some(others) = &mut self.others {
            others.retain(keeps);
        }
        self.others.take_if(|others| others.is_empty());
    }

    /// Whether there is only the one of names without an owner.
    pub(super) const fn is_plain(&self) -> bool {
        self.others.is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Binding> {
        std::iter::once(&self.plain).chain(self.others())
    }

    /// Returns those of authorities and sources.
    pub(super) fn others(&self) -> &[Binding] {
        self.others.as_deref().map_or(&[][..], Vec::as_slice)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Binding> {
        let others = self.others.as_deref_mut().map_or(&mut [][..], Vec::as_mut_slice);
        std::iter::once(&mut self.plain).chain(others)
    }
}

fn place(others: &[Binding], owner: Option<&str>) -> Result<usize, usize> {
    others.binary_search_by(|binding| binding.owner.as_deref().cmp(&owner))
}
