//! What is written about types that a control plane is not asked for.
//!
//! Owns that each type of a server makes one line, however many views want it. Refuses to know why.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::xds::TypeUrl;

/// The types that one server is not asked for, as far as the log says.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Mutex<BTreeSet<TypeUrl>>);

/// Clients invent types; so many make a line.
const TYPES_MAX: usize = 64;

impl LeftOut {
    /// The server is not asked for this type, for this reason.
    pub(super) fn note(&self, server: &str, type_url: &TypeUrl, why: &str) {
        let mut said = self.0.lock();
        if said.len() < TYPES_MAX && said.insert(type_url.clone()) {
            tracing::warn!(server, %type_url, why, "the server is not asked for this type; clients are told so");
        }
    }

    /// It is asked for all types again.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}
