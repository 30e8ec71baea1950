//! The bindings of one session, by authority.
//!
//! Owns where they are kept. Does not know what a binding does.

use super::Binding;

/// The binding of names of old style, and one for each authority with servers of its own.
pub(super) struct Bindings {
    pub(super) plain: Binding,
    /// In the order of their authorities. Most sessions want no name of such an authority, and then nothing is allocated.
    #[expect(clippy::box_collection, reason = "every stream has this value")]
    others: Option<Box<Vec<Binding>>>,
}

impl Bindings {
    pub(super) const fn new(plain: Binding) -> Self {
        Self { plain, others: None }
    }

    /// Returns the binding of an authority.
    pub(super) fn of(&self, authority: &str) -> Option<&Binding> {
        let others = self.others();
        others.get(place(others, Some(authority)).ok()?)
    }

    /// Adds the binding of an authority, or replaces the one it had.
    pub(super) fn add(&mut self, binding: Binding) {
        let others = self.others.get_or_insert_default();
        match place(others, binding.authority.as_deref()) {
            Ok(at) => drop(others.get_mut(at).map(|known| *known = binding)),
            Err(at) => others.insert(at, binding),
        }
    }

    /// Whether there is only the one of names of old style.
    pub(super) const fn is_plain(&self) -> bool {
        self.others.is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Binding> {
        std::iter::once(&self.plain).chain(self.others())
    }

    /// Returns those of authorities.
    pub(super) fn others(&self) -> &[Binding] {
        self.others.as_deref().map_or(&[][..], Vec::as_slice)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Binding> {
        let others = self.others.as_deref_mut().map_or(&mut [][..], Vec::as_mut_slice);
        std::iter::once(&mut self.plain).chain(others)
    }
}

fn place(others: &[Binding], authority: Option<&str>) -> Result<usize, usize> {
    others.binary_search_by(|binding| binding.authority.as_deref().cmp(&authority))
}
