//! What a session and the views that it reads tell each other besides wants and changes.
//!
//! Owns which views are told, and which are asked. Does not know what was rejected, and why something is foreseen.

use std::sync::Arc;
use std::time::Instant;

use super::{Binding, Seats};
use crate::cache::{NoPlace, Scopes};
use crate::classes::Node;
use crate::xds::{Condemned, Target, TypeUrl, Want};

impl Seats {
    /// K-25: records the relays through which the client comes; these may be others than in its first request.
    ///
    /// # Errors
    ///
    /// What has come through one of them would lead back to it.
    pub fn meet(&mut self, scopes: &Scopes, node: &Arc<Node>) -> Result<(), NoPlace> {
        if Arc::ptr_eq(&self.node, node) {
            return Ok(());
        }
        scopes.admit_marks(node)?;
        self.node = node.clone();
        let seats = self.bindings.iter().flat_map(|binding| &binding.seats);
        seats.for_each(|seat| seat.come_through(node.marks.as_ref()));
        Ok(())
    }

    /// Whether questions about the whole session are answered here: it has one answer, though it may read several views.
    pub(super) fn answers_at(&self, binding: &Binding) -> bool {
        let first = self.bindings.iter().find(|binding| !binding.seats.is_empty());
        first.is_some_and(|first| std::ptr::eq(first, binding))
    }

    /// The client has rejected something of this type (E-24).
    pub fn reject(&self, type_url: &TypeUrl) {
        let owners = self.routes.owners();
        let read = self.bindings.iter();
        let read = read.filter(|binding| owners.have(binding.owner.as_deref(), type_url));
        read.filter_map(Binding::seat).for_each(|seat| seat.reject(type_url));
    }

    /// Whether anything of this type is condemned for the client.
    pub fn is_spared(&self, type_url: &TypeUrl) -> bool {
        self.condemned().any(|one| one.type_url == *type_url)
    }

    /// Whether older content stands in for any of what the client wants.
    pub fn is_served_older(&self, want: &Want) -> bool {
        let covers = |one: &Condemned| match &want.target {
            Target::Wildcard => true,
            Target::Name(name) => name == one.name(),
        };
        want.wanted
            && self
                .condemned()
                .any(|one| one.type_url == want.type_url && covers(&one))
    }

    /// Returns what is condemned for the client.
    pub fn condemned(&self) -> impl Iterator<Item = Arc<Condemned>> {
        let seats = self.bindings.iter().filter_map(Binding::seat);
        seats.flat_map(|seat| seat.condemned(&self.node))
    }

    /// The session begins.
    pub fn come(&self, now: Instant) {
        let seats = self.bindings.iter().filter_map(Binding::seat);
        seats.for_each(|seat| seat.come(&self.node, now));
    }

    /// The session is about to want the wildcard of this type (K-23).
    pub fn foresee(&self, type_url: &TypeUrl) {
        let owner = self.routes.owners().of(type_url, None);
        if let Some(seat) = self.bindings.of(owner).and_then(Binding::seat) {
            seat.foresee(type_url);
        }
    }
}
