// SPDX-License-Identifier: Apache-2.0
//! What a session and the views that it reads tell each other besides wants and changes.
//!
//! Owns which views are told, and which are asked. Does not know what was rejected, and why something is foreseen.

use std::sync::Arc;
use std::time::Instant;

use super::{Binding, Seats};
use crate::cache::{NoPlace, Rejecter, Scopes, Seat};
use crate::classes::{Class, Node};
use crate::xds::{Name, Resource, TypeUrl};

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

    /// The client says where it stands with a name of which it has rejected something; without a name: it is a relay, and speaks for its
    /// clients (E-24).
    pub fn tell(&self, told: (&TypeUrl, Option<&Name>), rejecter: Option<Rejecter>, now: Instant) {
        if let Some(seat) = self.seat_of(told) {
            seat.tell(told, rejecter, now);
        }
    }

    /// The client has said for now where it stands.
    pub fn rest_stances(&self) {
        let seats = self.bindings.iter().filter_map(Binding::seat);
        seats.for_each(Seat::rest_stances);
    }

    /// Returns the older contents that may be sent in the place of what the client rejects of a name.
    pub fn older(&self, type_url: &TypeUrl, name: &Name, now: Instant) -> Vec<Arc<Resource>> {
        let seat = self.seat_of((type_url, Some(name)));
        seat.map(|seat| seat.view().older(type_url, name, &self.node, now))
            .unwrap_or_default()
    }

    fn seat_of(&self, (type_url, name): (&TypeUrl, Option<&Name>)) -> Option<&Seat> {
        self.bindings.of(self.routes.owners().of(type_url, name))?.seat()
    }

    /// The session reads other views: it says there where its client stands.
    pub fn take_back(&self) {
        let seats = self.bindings.iter().flat_map(|binding| &binding.seats);
        seats.for_each(Seat::take_back);
    }

    /// Returns the classes of the views that the session reads, by owner.
    pub fn classes(&self) -> Vec<(Option<Arc<str>>, Class)> {
        let read = self.bindings.iter();
        let read = read.filter_map(|binding| Some((binding.owner.clone(), binding.seat()?.view().class().clone())));
        read.collect()
    }

    /// The session is about to want the wildcard of this type (K-23).
    pub fn foresee(&self, type_url: &TypeUrl) {
        let owner = self.routes.owners().of(type_url, None);
        if let Some(seat) = self.bindings.of(owner).and_then(Binding::seat) {
            seat.foresee(type_url);
        }
    }
}
