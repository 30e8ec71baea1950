// SPDX-License-Identifier: Apache-2.0
//! What comes from several sources fits together (D-11, D-12): no changed route leads to what another source does not have, no cluster goes
//! while a route of another source leads to it, and each change that waits has a ground and a bound.
//!
//! Owns what each view served at the last look. Does not know where a session reads what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use cache::View;
use xds::{Cut, Hold, HoldReason, Name};

use super::across::{Across, leads};
use super::holds::{SLACK, lost};
use crate::body::Type;
use crate::lists::Source;
use crate::tally::{Broken, Tally};
use crate::writer::GUARD;
use crate::zone::Zone;

#[derive(Default)]
pub(super) struct Crossings {
    last: BTreeMap<usize, (Arc<View>, Arc<Cut>)>,
    /// Since when all is there that a change waits for, by zone and name.
    ready: BTreeMap<(usize, Name), Instant>,
}

impl Crossings {
    pub(super) fn see(&mut self, all: &Across<'_>, at: usize, now: Instant, tally: &mut Tally) -> Result<(), Broken> {
        let zone = &all.origins[at];
        let cut = zone.writer.view.cut();
        self.check_waits(all, at, &cut, now)?;
        if self.last.get(&at).is_some_and(|(_, last)| Arc::ptr_eq(last, &cut)) {
            return Ok(());
        }
        let last = self.last.insert(at, (zone.writer.view.clone(), cut.clone()));
        let same = last.filter(|(view, _)| Arc::ptr_eq(view, &zone.writer.view) && !zone.writer.forced);
        let Some((_, before)) = same else { return Ok(()) };
        if !zone.writer.view.guarded().settings().unready.is_zero() {
            for (route, cluster) in newly_led(&before, &cut, now) {
                all.check_led(at, route, &cluster, tally)?;
            }
        }
        if is_guarded(zone) {
            lost(zone, &before, &cut)
                .into_iter()
                .try_for_each(|cluster| all.check_lost(at, cluster, tally))?;
        }
        Ok(())
    }

    /// D-12: what waits is waited for, and not for ever.
    fn check_waits(&mut self, all: &Across<'_>, at: usize, cut: &Cut, now: Instant) -> Result<(), Broken> {
        let unready = |hold: &&Hold| hold.reason == HoldReason::Unready;
        let waits = cut.holds().iter().filter(unready).flat_map(|hold| &hold.removals);
        let mut ready = BTreeMap::new();
        for (name, wait) in waits {
            let Some(by) = &wait.by else {
                return broken!(D12, "zone {at}: {name} waits for nothing");
            };
            if wait.since + GUARD.unready + SLACK < now && wait.extended.is_none() {
                return broken!(D12, "zone {at}: {name} waits for ever for {}", by.name);
            }
            if all.is_missing(&by.type_url, &by.name) {
                continue;
            }
            let key = (at, name.clone());
            let since = self.ready.get(&key).copied().unwrap_or(now);
            if since + SLACK < now {
                return broken!(D12, "zone {at}: {name} waits for {}, which is there", by.name);
            }
            ready.insert(key, since);
        }
        self.ready.retain(|(other, _), _| *other != at);
        self.ready.append(&mut ready);
        Ok(())
    }
}

/// The clusters to which changed routes newly lead that did not wait for as long as they may.
fn newly_led<'a>(before: &'a Cut, now: &'a Cut, time: Instant) -> Vec<(&'a Name, String)> {
    let waited = |name: &Name| {
        let waits = before.holds().iter().filter(|hold| hold.reason == HoldReason::Unready);
        let mut of_name = waits.filter_map(|hold| hold.removals.get(name)?.until);
        of_name.any(|until| until <= time)
    };
    let mut all = Vec::new();
    for wildcard in [true, false] {
        let half = |cut: &'a Cut| cut.half(Type::Rds.type_url(), wildcard);
        let Some((before, now)) = half(before).zip(half(now)) else {
            continue;
        };
        for route in now.resources() {
            let name = route.name();
            let Some(old) = before.resource(name).filter(|old| old.version() != route.version()) else {
                continue;
            };
            if now.expiry(name).is_some() || waited(name) {
                continue;
            }
            let led = leads(old);
            let newly = leads(route).into_iter().filter(|cluster| !led.contains(cluster));
            all.extend(newly.map(|cluster| (name, cluster)));
        }
    }
    all
}

/// Whether removals of clusters wait here for what leads to them.
fn is_guarded(zone: &Zone) -> bool {
    let folder = matches!(zone.source, Some(Source::Folder(_)));
    let references = zone.writer.view.guarded().settings().references;
    zone.upper.is_none() && !folder && references
}
