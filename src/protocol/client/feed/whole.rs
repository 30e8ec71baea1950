//! The beginning and the end of a type's wildcard.
//!
//! Owns the effects on content that is held for the wildcard. Knows nothing of names that were requested.

use arcstr::ArcStr;

use super::Feed;
use crate::client::completeness::Completeness;
use crate::client::kept::Kept;
use xds::{Changes, Name, Update};

impl Feed {
    /// The wildcard is wanted from now on. If the server was still sending it, returns the content at once.
    pub(in crate::client) fn want_wildcard(&mut self) -> Option<Changes> {
        if self.wildcard {
            if !std::mem::take(&mut self.hidden) {
                return None;
            }
            let complete = self.completeness.complete().then_some(true);
            let answered = self.outbound.answered.then_some(true);
            let errors = self.errors.iter();
            let errors = errors.map(|(name, error)| Update::Error(name.clone(), Some(error.clone())));
            return self.changes(self.kept.puts().chain(errors).collect(), complete, answered);
        }
        self.wildcard = true;
        self.outbound.join(Name::from(Name::WILDCARD));
        None
    }

    /// The wildcard is not wanted any more. One stream cannot end it and begin it again (E-17): an answer to the first request
    /// could be mistaken for one to the second, and some servers do not answer the second. So the server goes on sending it, and
    /// the relay hides it.
    pub(in crate::client) fn unwant_wildcard(&mut self) {
        if self.outbound.has_told(Name::WILDCARD) {
            self.hidden = true;
        } else {
            self.drop_wildcard();
            self.outbound.leave(&Name::from(Name::WILDCARD));
        }
    }

    /// Whether nobody wants the wildcard and the server goes on sending it, for a type that no client has invented.
    pub(in crate::client) fn goes_on(&self) -> bool {
        self.hidden && self.type_url.traits().wildcard
    }

    pub(super) fn drop_wildcard(&mut self) {
        self.wildcard = false;
        self.hidden = false;
        self.kept = Kept::default();
        self.completeness = Completeness::new();
        self.errors.clear();
        self.accepted = ArcStr::new();
    }
}
