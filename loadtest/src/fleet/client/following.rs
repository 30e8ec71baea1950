// SPDX-License-Identifier: Apache-2.0
//! References between resources: the names that a client asks for because it got others, and the order in which resources may
//! come.

use std::time::Instant;

use super::Client;
use super::profile::Interest;
use crate::fleet::violation::Violation;
use crate::wire::kind::Kind;

impl Client {
    /// Asks for the references of resources that came, and drops the references of resources that went.
    pub(super) fn follow(&mut self, kind: Kind, came: &[u32], went: &[u32], now: Instant) {
        let Some(ledger) = self
            .world
            .ledger(kind)
            .filter(|_| !(came.is_empty() && went.is_empty()))
        else {
            return;
        };
        let Some(to) = ledger.leads() else { return };
        let follows = |(kind, interest): &(Kind, Interest)| *kind == to && *interest == Interest::Follow;
        if !self.profile.interests.iter().any(follows) {
            return;
        }
        let Some(target) = self.world.ledger(to) else {
            return;
        };
        let (more, less) = (ledger.references(came, target), ledger.references(went, target));
        let Some(subscription) = self.subscription(to) else {
            return;
        };
        let gone = subscription.drop_names(&less);
        let new = subscription.ask(&more);
        if !new.is_empty() {
            self.forget_polled(to);
        }
        if !(new.is_empty() && gone.is_empty()) {
            self.ask(to, &new, &gone, false, now);
        }
    }

    /// Make before break, if all types are on one stream: no route comes before its clusters, and no cluster goes before its
    /// routes.
    pub(super) fn check_order(&self, kind: Kind, came: &[u32], went: &[u32]) -> Result<(), Violation> {
        let all = |(kind, interest): &(Kind, Interest)| *kind == Kind::Cds && *interest == Interest::All;
        let learning = self.subscriptions.iter().any(|it| it.ledger.is_learning());
        if learning || !self.profile.aggregated || !self.profile.interests.iter().any(all) {
            return Ok(());
        }
        let find = |kind| self.subscriptions.iter().find(|it| it.kind() == kind);
        let (Some(clusters), Some(routes)) = (find(Kind::Cds), find(Kind::Rds)) else {
            return Ok(());
        };
        let leads = |route: u32| routes.ledger.refers(route).map_or(0..0, |(_, range)| range);
        let wrong = if kind == Kind::Rds {
            came.iter()
                .copied()
                .find(|route| leads(*route).any(|cluster| !clusters.has(cluster)))
        } else if kind == Kind::Cds && !went.is_empty() {
            let leads_there = |route: &u32| went.iter().any(|cluster| leads(*route).contains(cluster));
            routes.present().find(leads_there)
        } else {
            None
        };
        wrong.map_or(Ok(()), |route| Err(Violation::Order(routes.ledger.name(route))))
    }
}
