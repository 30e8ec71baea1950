//! What a client may have of one type, when that changes (S-07).
//!
//! Owns what follows for what the client asked for and holds. Does not know the rules.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::subscription::Subscription;
use xds::{Name, Rights, Target, Viewer};

impl Subscription {
    /// From now on the client may have this; `None`: everything. What it may not have any more goes like what is gone at the server,
    /// and is not asked for; what it may have now is asked for.
    pub(super) fn handle_rights(&mut self, rights: Option<Arc<Rights>>, now: Instant) {
        if self.viewer.rights() == rights.as_ref() {
            return;
        }
        let before = self.requested_targets();
        self.viewer = Viewer::new(rights);
        let after = self.requested_targets();
        // `want` would ask the new rights, which know nothing of these.
        for target in before.difference(&after) {
            self.end_want(target.clone());
        }
        for target in after.difference(&before) {
            self.want(target.clone(), true);
            self.asked.more(now);
        }
        self.handle_moved(now);
    }

    fn requested_targets(&self) -> BTreeSet<Target> {
        let requested = self.requested().map(Option::<&Name>::cloned);
        requested
            .map(|name| name.map_or(Target::Wildcard, Target::Name))
            .collect()
    }
}
