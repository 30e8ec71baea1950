//! What the beginning and the end of a stream mean for one type.
//!
//! Owns what survives a stream. Refuses to know connections.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Feed;
use crate::protocol::client::awaited::Patience;
use crate::xds::{Dialect, Name, split_variant_key};

impl Feed {
    /// A stream begins: everything is to be asked again, if `told` with the versions that this server gave (E-04).
    pub(in crate::protocol::client) fn connected(&mut self, dialect: Dialect, told: bool, patience: Patience) {
        self.patience = patience;
        self.kept.tell(told);
        // E-19: a type of which nothing is wanted is not mentioned.
        let wildcard = self.wildcard.then(|| Name::from(Name::WILDCARD));
        self.outbound
            .reset(self.names.iter().cloned().chain(wildcard).collect());
        if self.wildcard && dialect == Dialect::Delta {
            // What is not complete is asked for from the beginning: then the answer surely has an end to wait for.
            let complete = self.completeness.complete();
            let declared = |name: &Name| complete && self.kept.declared(name.as_str()).is_some();
            let held = self.kept.names().map(|name| (name.clone(), declared(name)));
            self.completeness.connected(held.collect());
        }
        if dialect == Dialect::Delta {
            // What is asked for by itself as well was declared by itself, and is waited for by itself.
            let named = |name: &&Name| self.names.contains(split_variant_key(name.as_str()).0);
            let held = |collection: &Name| {
                let members = self.kept.within(collection).filter(|name| !named(name));
                members
                    .map(|name| (name.clone(), self.kept.declared(name.as_str()).is_some()))
                    .collect()
            };
            self.collections.connected(held);
            self.doubt_variants();
        }
    }

    /// The stream ended. G-19: what is known stays known. If the server had answered on it: for which half.
    pub(in crate::protocol::client) fn disconnected(&mut self) -> Option<bool> {
        let answered = (self.outbound.answered && self.wanted()).then_some(self.wildcard);
        if self.hidden {
            self.drop_wildcard();
        }
        self.outbound.reset(BTreeSet::new());
        self.completeness.disconnected();
        self.collections.disconnected();
        self.names.disconnected();
        self.doubted.clear();
        answered
    }

    pub(in crate::protocol::client) fn forget_versions(&mut self) {
        self.kept.forget_versions();
        self.accepted = Arc::from("");
    }
}
