// SPDX-License-Identifier: Apache-2.0
//! Log lines about types that a control plane is not asked for.
//!
//! Owns the rule that each type of a server makes one line, however many views want it. Knows nothing of the reasons.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use crate::xds::TypeUrl;

/// The types that one server is not asked for and that were logged.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Mutex<BTreeSet<TypeUrl>>);

/// Clients can invent types, so at most this many are logged.
const TYPES_MAX: usize = 64;

impl LeftOut {
    /// Logs that the server is not asked for this type, unless that was logged before.
    pub(super) fn note(&self, server: &str, type_url: &TypeUrl, why: &str) {
        let mut said = self.0.lock();
        if said.len() < TYPES_MAX && said.insert(type_url.clone()) {
            tracing::warn!(server, r#type = %type_url, reason = why, "the server is not asked for this type; clients are told so");
        }
    }

    /// Forgets all types: the server is asked for all of them again.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}
