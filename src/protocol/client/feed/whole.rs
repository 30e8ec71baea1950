//! The beginning and the end of a type's wildcard.
//!
//! Owns the effects on content that is held for the wildcard. Knows nothing of names that were requested.

use arcstr::ArcStr;

use super::Feed;
use crate::client::completeness::Completeness;
use crate::client::kept::Kept;
use xds::{Changes, Name};

/// Who wants the wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wildcard {
    /// Nobody, and the server is not asked for it.
    Unwanted,
    Wanted,
    /// Nobody any more, but the server goes on sending it on this stream.
    Hidden,
}

impl Wildcard {
    /// Whether the server is asked for it.
    pub(super) const fn is_asked(self) -> bool {
        matches!(self, Self::Wanted | Self::Hidden)
    }

    pub(super) const fn is_wanted(self) -> bool {
        matches!(self, Self::Wanted)
    }

    pub(super) const fn is_hidden(self) -> bool {
        matches!(self, Self::Hidden)
    }
}

impl Feed {
    /// The wildcard is wanted from now on. If the server was still sending it, returns the content at once.
    pub(in crate::client) fn want_wildcard(&mut self) -> Option<Changes> {
        match std::mem::replace(&mut self.wildcard, Wildcard::Wanted) {
            Wildcard::Wanted => None,
            Wildcard::Unwanted => {
                self.completeness = Completeness::new();
                self.outbound.join(Name::from(Name::WILDCARD));
                None
            }
            Wildcard::Hidden => {
                let complete = self.completeness.complete().then_some(true);
                let answered = self.outbound.is_answered().then_some(true);
                let updates = self.kept.puts().chain(self.errors.updates()).collect();
                self.changes(updates, complete, answered)
            }
        }
    }

    /// The wildcard is not wanted any more. One stream cannot end it and begin it again (E-17): an answer to the first request
    /// could be mistaken for one to the second, and some servers do not answer the second. So the server goes on sending it, and
    /// the relay hides it.
    pub(in crate::client) fn unwant_wildcard(&mut self) {
        if self.outbound.has_told(Name::WILDCARD) {
            self.wildcard = Wildcard::Hidden;
        } else {
            self.drop_wildcard();
            self.outbound.leave(&Name::from(Name::WILDCARD));
        }
    }

    /// Whether nobody wants the wildcard and the server goes on sending it, for a type that no client has invented.
    pub(in crate::client) fn goes_on(&self) -> bool {
        self.wildcard.is_hidden() && self.type_url.traits().wildcard
    }

    pub(super) fn drop_wildcard(&mut self) {
        self.wildcard = Wildcard::Unwanted;
        self.kept = Kept::default();
        self.completeness = Completeness::new();
        self.errors.clear();
        self.outbound.acks_mut().accept(ArcStr::new());
    }
}
