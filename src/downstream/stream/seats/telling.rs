//! What a session tells the views that it reads besides its wants.
//!
//! Owns which views are told. Does not know what was rejected, and why something is foreseen.

use super::{Binding, Seats};
use crate::cache::Seat;
use crate::xds::TypeUrl;

impl Seats {
    /// The client has rejected something of this type (E-24).
    pub fn reject(&self, type_url: &TypeUrl) {
        let views = self.bindings.iter().filter_map(Binding::seat).map(Seat::view);
        views.for_each(|view| view.note_rejection(type_url));
    }

    /// The session is about to want the wildcard of this type (K-23).
    pub fn foresee(&self, type_url: &TypeUrl) {
        if let Some(seat) = self.bindings.plain.seat() {
            seat.foresee(type_url);
        }
    }
}
