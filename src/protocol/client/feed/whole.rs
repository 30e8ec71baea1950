//! The wildcard of a type: how it begins and how it ends.
//!
//! Owns what becomes of what was held for its sake. Refuses to know names that were asked for.

use std::sync::Arc;

use super::Feed;
use crate::protocol::client::completeness::Completeness;
use crate::protocol::client::kept::Kept;
use crate::xds::{Changes, Dialect, Name};

impl Feed {
    /// The wildcard is wanted from now on. What it brings at once, if it was still being sent.
    pub(in crate::protocol::client) fn want_wildcard(&mut self) -> Option<Changes> {
        if self.wildcard {
            if !std::mem::take(&mut self.hidden) {
                return None;
            }
            let complete = self.completeness.complete().then_some(true);
            let answered = self.outbound.answered.then_some(true);
            return self.changes(self.kept.puts().collect(), complete, answered);
        }
        self.wildcard = true;
        self.outbound.join(Name::from(Name::WILDCARD));
        None
    }

    /// The wildcard is wanted no more. In SotW there is no way to end it and begin it again on one stream without reading an
    /// answer to one for the answer to the other, so it goes on unseen.
    pub(in crate::protocol::client) fn unwant_wildcard(&mut self, dialect: Dialect) {
        if dialect == Dialect::Sotw && self.outbound.has_told(Name::WILDCARD) {
            self.hidden = true;
        } else {
            self.drop_wildcard();
            self.outbound.leave(&Name::from(Name::WILDCARD));
        }
    }

    pub(super) fn drop_wildcard(&mut self) {
        self.wildcard = false;
        self.hidden = false;
        self.kept = Kept::default();
        self.completeness = Completeness::new();
        self.doubted.clear();
        self.errors.clear();
        self.accepted = Arc::from("");
    }
}
