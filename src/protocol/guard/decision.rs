//! Which waiting removals go now.
//!
//! Owns the order in which they go: listeners, routes, clusters, endpoints. Does not know what was said of them.

use std::collections::BTreeMap;
use std::time::Instant;

use super::Guard;
use super::first_states::is_present;
use super::held::Stage;
use super::references::is_referred;
use super::removal::{Half, Item, Removal};
use xds::{Beside, Changes, Cut, HoldEnd, Kind, Name, TypeUrl, Update};

impl Guard {
    /// Whether no removal waits: then changes of other views concern nobody here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Something of what clients read of other servers may have changed (D-11). To be called before `release`.
    pub fn look_beside(&mut self, beside: Option<&Beside>, now: Instant) {
        if !self.held.is_empty() && self.references.read_beside(beside, &mut self.held) {
            self.directed = Some(now);
        }
    }

    /// Returns the removals that wait for nothing any more. What the view, at `cut`, has forgotten meanwhile is not removed.
    /// `wanted`: whether a client wants the route configuration of this name now. To be called once all that was said is published.
    pub fn release(&mut self, cut: &Cut, wanted: impl Fn(&TypeUrl, &Name) -> bool, now: Instant) -> Vec<Changes> {
        self.ripen(now);
        self.first_states.judge(cut, &self.settings.mass, &mut self.held, now);
        self.held.end_judgements(now);
        if self.held.is_empty() {
            self.references.clear();
            return Vec::new();
        }
        for item in self.references.read(cut, &mut self.held) {
            self.leave(&item, HoldEnd::Gone);
        }
        self.references.leave(&wanted, &mut self.held);
        let mut going: BTreeMap<Half, Vec<Update>> = BTreeMap::new();
        while let Some((stage, item)) = self.held.next(now) {
            if let Some(updates) = self.decide(stage, &item, &wanted, now) {
                let present = cut
                    .half(&item.0.0, item.0.1)
                    .is_some_and(|state| is_present(state, &item.1));
                if present {
                    going.entry(item.0).or_default().extend(updates);
                }
            }
        }
        let going = going.into_iter();
        going.map(|(half, updates)| Changes::of(half, updates)).collect()
    }

    /// Ends the quiet time of what has waited long enough.
    fn ripen(&mut self, now: Instant) {
        let mut any = false;
        while self.quiet_ends().is_some_and(|due| due <= now) {
            let Some((since, item)) = self.queue.pop_front() else {
                break;
            };
            // The name may have returned, and gone again later.
            if self.held.get(&item).and_then(Removal::quiet_since) == Some(since) {
                self.held.change(&item, HoldEnd::Free, Removal::ripen);
                any = true;
            }
        }
        if any {
            // At the bound, a listener goes no later than the clusters that it leads to.
            let listeners = |half: &Half| half.0.kind() == Kind::Lds;
            for item in self.held.select(listeners, |removal| removal.quiet_since().is_some()) {
                self.held.change(&item, HoldEnd::Free, Removal::ripen);
            }
        }
    }

    /// Whether a cluster stays because a listener names a route that is not known yet. Clients are about to ask for that, and send
    /// traffic by the route that they have.
    fn suspects(&mut self, item: &Item, now: Instant) -> bool {
        let until = self.held.get(item).and_then(Removal::suspected_until);
        if until.is_some_and(|until| until <= now) {
            return false;
        }
        let Some(source) = self.references.unknown_route(item) else {
            return false;
        };
        self.held.suspect(item, source, now + self.bound);
        true
    }

    /// Returns the cluster of another server that keeps an endpoint assignment, and whether that server still sends it: then it does so for a
    /// while only.
    fn of_endpoints(&self, item: &Item, now: Instant) -> Option<(Item, bool)> {
        let over = self.held.get(item)?.said() + self.bound <= now;
        let found = self.references.of_endpoints(item);
        found.filter(|(_, said)| !(*said && over))
    }

    /// Returns what was said of a removal, if it waits for nothing any more.
    fn decide(
        &mut self,
        stage: Stage,
        item: &Item,
        wanted: impl Fn(&TypeUrl, &Name) -> bool,
        now: Instant,
    ) -> Option<Vec<Update>> {
        let removal = self.held.get(item)?;
        if removal.is_remembered() && removal.ordered_until().is_some_and(|until| until <= now) {
            self.held.change(item, HoldEnd::Clock, Removal::forget_order);
            return None;
        }
        if removal.waits(now) {
            // What refers to it is looked for when nothing else holds it.
            self.held.refer(item, None);
            return None;
        }
        let over = self.held.limit(removal).is_some_and(|limit| limit <= now);
        let referred = self.follows_references() && is_referred(item.0.0.kind());
        if referred && removal.follows(now) && !over {
            let source = match stage {
                Stage::Listeners => None,
                Stage::Routes => self.references.of_route(item, None, &self.held),
                Stage::Clusters => self.references.of_cluster(item, wanted, &self.held),
                Stage::Members => self.references.of_member(item, &self.held, now),
                Stage::Endpoints => {
                    let own = self.held.clusters_of(&item.1).next().cloned();
                    let own = own.or_else(|| self.references.of_older_endpoints(item));
                    own.map(|cluster| (cluster, false))
                        .or_else(|| self.of_endpoints(item, now))
                }
            };
            if stage == Stage::Endpoints
                && let Some((cluster, true)) = source
            {
                let until = self.held.get(item)?.said() + self.bound;
                self.held.suspect(item, cluster, until);
                return None;
            }
            if source.is_none() && stage == Stage::Clusters {
                if !self.suspects(item, now) {
                    self.held.look_at(Stage::Members, item.clone());
                }
                return None;
            }
            if source.is_some() {
                self.held.refer(item, source);
                if stage == Stage::Members {
                    // It holds no members of its own any more.
                    self.references.touch(item, &mut self.held);
                }
                return None;
            }
        }
        if self.held.get(item)?.lingers() {
            let until = now + self.bound;
            self.held.change(item, HoldEnd::Free, |removal| removal.linger(until));
            return None;
        }
        let end = self.held.get(item)?.end(over, now);
        self.references.go(item, &mut self.held);
        self.leave(item, end).map(Removal::into_updates)
    }
}
