//! Variants of a name that are not for everybody (TP2).
//!
//! Owns what becomes of a name when its variants go. Refuses to choose one for a client.

use std::sync::Arc;

use super::Feed;
use crate::xds::{Name, Reason, Resource, Update};

impl Feed {
    /// C-23: a variant is gone, and with the last of all the name itself.
    pub(super) fn withdraw(&mut self, resource: Arc<Resource>, reason: Reason, updates: &mut Vec<Update>) {
        let name = resource.name().clone();
        updates.push(Update::Withdraw(resource));
        let left = self.kept.resource(name.as_str()).is_some() || self.kept.variants(name.as_str()).next().is_some();
        if !left && self.names.contains(name.as_str()) {
            updates.push(Update::Absent(name, reason));
        }
    }

    /// A name is wanted no more, and none of its variants.
    pub(super) fn drop_variants(&mut self, name: &Name) {
        let variants: Vec<Name> = self.kept.variants(name.as_str()).cloned().collect();
        for variant in variants {
            self.kept.remove(&variant);
        }
    }
}
