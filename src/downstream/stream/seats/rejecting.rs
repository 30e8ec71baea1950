//! Where it is noted that the client of a session has rejected something (E-24).
//!
//! Owns at which views: at those that the session reads. Does not know what was rejected.

use super::{Binding, Seats};
use crate::cache::Seat;
use crate::xds::TypeUrl;

impl Seats {
    /// The client has rejected something of this type.
    pub fn reject(&self, type_url: &TypeUrl) {
        let views = self.bindings.iter().filter_map(Binding::seat).map(Seat::view);
        views.for_each(|view| view.note_rejection(type_url));
    }
}
