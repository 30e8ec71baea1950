//! What a client may have of one type, when that changes (S-07).
//!
//! Owns what follows for what the client asked for and holds. Does not know the rules.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::subscription::Subscription;
use crate::xds::{Rights, Target, Want};

impl Subscription {
    /// From now on the client may have this; `None`: everything. What it may not have any more goes like what is gone at the server,
    /// and is not asked for; what it may have now is asked for.
    pub(super) fn handle_rights(&mut self, rights: Option<Arc<Rights>>, now: Instant) {
        if self.viewer.rights() == rights.as_ref() {
            return;
        }
        let before = self.requested();
        self.viewer = self.viewer.with(rights);
        let after = self.requested();
        let ended = before.difference(&after).map(|target| Want {
            type_url: self.type_url.clone(),
            target: target.clone(),
            wanted: false,
            written: None,
        });
        self.wants.extend(ended);
        for target in after.difference(&before) {
            self.want(target.clone(), true);
            self.asked.more(now);
        }
        self.handle_moved();
    }

    /// Returns what is asked of servers for this client.
    fn requested(&self) -> BTreeSet<Target> {
        if self.has_nothing() {
            return BTreeSet::new();
        }
        let names = self.asked_names().filter(|name| self.is_served(name));
        let names = names.cloned().map(Target::Name);
        self.wildcard
            .then_some(Target::Wildcard)
            .into_iter()
            .chain(names)
            .collect()
    }
}
