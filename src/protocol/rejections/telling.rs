// SPDX-License-Identifier: Apache-2.0
//! What the view is told of rejections, and the older content that it has (K-37).
//!
//! Owns that everything is told once. Does not know the view.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::{Dispute, Rejections};
use xds::{Holds, Name, Objection, Refusal, Resource, Stance};

/// So much older content of a name is sent on one stream.
const OFFERED_MAX: usize = 8;

impl Rejections {
    /// E-24: the client, a relay, says that its own clients reject something.
    pub(crate) fn note_relayed(&mut self, objection: Arc<Objection>, now: Instant) {
        let trials = self.0.get_or_insert_default();
        trials.relayed = Some((objection, now));
        trials.news.insert(None);
    }

    /// What the client holds counts as unknown.
    pub(crate) fn forget_holds(&mut self) {
        let disputes = self.0.iter_mut().flat_map(|trials| trials.disputes.values_mut());
        let known = disputes.filter(|dispute| !matches!(dispute.holds, Holds::Nothing));
        known.for_each(|dispute| dispute.holds = Holds::Unknown);
    }

    /// The session reads another view, which must be told all.
    pub(crate) fn tell_again(&mut self) {
        if let Some(trials) = &mut self.0 {
            let names = trials.disputes.keys().cloned().map(Some);
            let relayed = trials.relayed.iter().map(|_| None);
            let all: BTreeSet<Option<Name>> = names.chain(relayed).collect();
            trials.news = all;
        }
    }

    /// Returns the next name of which the view must be told, or that it is what a relay says; where the client stands, if it rejects
    /// something; and whether older content is wanted.
    pub(crate) fn poll_news(&mut self) -> Option<(Option<Name>, Option<Stance>, bool)> {
        let trials = self.0.as_mut()?;
        let name = trials.news.pop_first()?;
        let dispute = name.as_ref().and_then(|name| trials.disputes.get_mut(name));
        let asks = dispute.is_some_and(|dispute| dispute.lacks() && !std::mem::replace(&mut dispute.asked, true));
        let stance = match &name {
            Some(name) => trials.disputes.get(name).map(Dispute::stance),
            None => trials.relayed.as_ref().map(|(objection, since)| Stance {
                rejects: Some(Refusal {
                    version: None,
                    objection: objection.clone(),
                    since: *since,
                }),
                holds: Holds::Unknown,
            }),
        };
        self.give_back();
        Some((name, stance, asks))
    }

    /// Older content is there that may be sent in the place of what is held back, the first one first.
    pub(crate) fn offer(&mut self, name: &Name, contents: Vec<Arc<Resource>>) {
        let Some(trials) = &mut self.0 else { return };
        let Some(dispute) = trials.disputes.get_mut(name) else {
            return;
        };
        // The first of them is what was rejected.
        let room = (OFFERED_MAX + 1).saturating_sub(dispute.offered.len());
        let new = contents
            .into_iter()
            .filter(|one| !dispute.offered.contains(&one.version()));
        dispute.older = new.take(room).collect();
        dispute.older.reverse();
        trials.offer(name);
    }
}
