// SPDX-License-Identifier: Apache-2.0
//! Which waiting removals go now.
//!
//! Owns the order in which they go: listeners, routes, clusters, endpoints. Does not know what was said of them.

use std::collections::BTreeMap;
use std::time::Instant;

use super::Holds;
use super::ground::Referring;
use super::measure::is_present;
use super::reach::{Reach, Wanted};
use super::table::Stage;
use super::waiting::{Half, Item, Referrers, Row};
use xds::{Changes, Cut, HoldEnd, Name, OtherViews, TypeUrl, Update};

impl Holds {
    /// How many names wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether nothing waits: then changes of other views concern nobody here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what waits for nothing any more. What the view, at `cut`, has forgotten meanwhile is not removed. `others`: what clients of
    /// the view read of other servers; `wanted`: whether a client wants the route configuration of this name now. To be called once all
    /// that was said is published.
    pub fn look(
        &mut self,
        cut: &Cut,
        others: Option<&OtherViews>,
        wanted: impl Fn(&TypeUrl, &Name) -> bool,
        now: Instant,
    ) -> Vec<Changes> {
        if !self.table.removes_nothing() && self.reach.read_other_views(others, &mut self.table) {
            self.directed = Some(now);
        }
        self.end_quiet(now);
        self.first_states.judge(cut, &mut self.table, now);
        self.run_clocks(now);
        self.table.end_judgements(now);
        if self.table.removes_nothing() {
            self.reach = Reach::default();
            self.table.rest();
        }
        self.reach.read(cut, &mut self.table);
        self.reach.leave(&wanted, &mut self.table);
        let mut going: BTreeMap<Half, Vec<Update>> = BTreeMap::new();
        while let Some((stage, item)) = self.table.next(now) {
            if let Some(updates) = self.decide(stage, &item, &wanted, now) {
                let state = cut.half(&item.0.0, item.0.1);
                if state.is_some_and(|state| is_present(state, &item.1)) {
                    going.entry(item.0).or_default().extend(updates);
                }
            }
        }
        let going = going.into_iter();
        let mut going = going.map(|(half, updates)| Changes::of(half, updates)).collect();
        self.free_changes(&mut going, cut, others, now);
        going
    }

    /// Ends the quiet time of what has waited long enough.
    fn end_quiet(&mut self, now: Instant) {
        let mut any = false;
        while self.quiet_ends().is_some_and(|due| due <= now) {
            let Some((since, item)) = self.queue.pop_front() else {
                break;
            };
            // The name may have returned, and gone again later.
            if self.table.get(&item).and_then(Row::quiet_since) == Some(since) {
                self.table.change(&item, HoldEnd::Free, Row::end_quiet);
                any = true;
            }
        }
        if any {
            // At the bound, a listener goes no later than the clusters that it leads to.
            let listeners = |half: &Half| half.0.kind().listens();
            for item in self.table.select(listeners, |removal| removal.quiet_since().is_some()) {
                self.table.change(&item, HoldEnd::Free, Row::end_quiet);
            }
        }
    }

    /// Returns what refers to a removal, or may, of those that count.
    fn referring(
        &mut self,
        stage: Stage,
        item: &Item,
        wanted: Wanted<'_>,
        by: Referrers,
        now: Instant,
    ) -> Option<Referring> {
        let found = match stage {
            Stage::Listeners => None,
            Stage::Routes => self.reach.of_route(item, None, by, &self.table),
            Stage::Clusters => match self.reach.of_cluster(item, wanted, by, &self.table) {
                None => return self.unknown_route(item, by, now),
                found => found,
            },
            Stage::Members => self.reach.of_member(item, by, &self.table, now),
            Stage::Endpoints => {
                let is_named = |cluster: &&Item| self.table.get(cluster).is_some_and(|row| row.by().is_some());
                let counts = |cluster: &&Item| by == Referrers::All || is_named(cluster);
                match self.table.clusters_of(&item.1).find(counts) {
                    None => return self.cluster_abroad(item, by, now),
                    own => own.map(|cluster| (cluster.clone(), false)),
                }
            }
        };
        found.map(Into::into)
    }

    /// Returns the listener that names a route which is not known yet. Clients are about to ask for that, and send traffic by the route that
    /// they have, so clusters stay. While the control plane is away, nobody can say it.
    fn unknown_route(&self, cluster: &Item, by: Referrers, now: Instant) -> Option<Referring> {
        let until = self.table.get(cluster).and_then(Row::perhaps_until);
        let away = self.table.clocks().away;
        if away.is_none() && until.is_some_and(|until| until <= now) {
            return None;
        }
        Some(Referring {
            by: self.reach.unknown_route(cluster, by, &self.table)?,
            said: true,
            until: Some(away.unwrap_or(now) + self.bound()),
        })
    }

    /// Returns the cluster of another server, or an older one, that keeps an endpoint assignment. If its server still sends it, it does so
    /// for a while only.
    fn cluster_abroad(&self, assignment: &Item, by: Referrers, now: Instant) -> Option<Referring> {
        let (by, said) = self.reach.of_endpoints(assignment, by, &self.table)?;
        let until = self.table.get(assignment)?.said() + self.bound();
        let until = said.then_some(until);
        let lasts = until.is_none_or(|until| until > now);
        lasts.then_some(Referring { by, said, until })
    }

    /// Returns what was said of a removal, if it waits for nothing any more.
    fn decide(&mut self, stage: Stage, item: &Item, wanted: Wanted<'_>, now: Instant) -> Option<Vec<Update>> {
        let removal = self.table.removal(item)?;
        if removal.waits(now) {
            match removal.ordered_until().is_some_and(|until| until <= now) {
                // What a person said is over for itself, as long as something else holds it.
                true => self.table.change(item, HoldEnd::Clock, Row::forget_order),
                // What refers to it is looked for when nothing else holds it.
                false => self.table.refer(item, None),
            }
            return None;
        }
        let off = (!self.settings().references).then_some(Referrers::Here);
        let referrers = off.unwrap_or(removal.referrers());
        if item.0.0.kind().is_referred() && removal.can_be_named(now) {
            let referring = self.referring(stage, item, wanted, referrers, now);
            if referring.is_some() {
                self.table.refer(item, referring);
                if stage == Stage::Members {
                    // It holds no members of its own any more.
                    self.reach.touch(item, &mut self.table);
                }
                return None;
            }
            if stage == Stage::Clusters {
                self.table.look_at(Stage::Members, item.clone());
                return None;
            }
        }
        let row = self.table.get(item)?;
        if row.follows() {
            let until = now + self.bound();
            self.table.change(item, HoldEnd::Free, |row| row.outlive(until));
            return None;
        }
        let end = row.end(&item.0.0, self.table.clocks(), now);
        self.reach.go(item, &mut self.table);
        self.leave(item, end).map(Row::into_updates)
    }
}
