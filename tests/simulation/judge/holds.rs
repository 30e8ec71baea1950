// SPDX-License-Identifier: Apache-2.0
//! Nothing disappears by accident (D-09, D-10): no cluster goes by itself while a route in use leads to it, what is held has a reason
//! that lasts, and what has none goes within its bound.
//!
//! Owns what each view served at the last look. Knows nothing of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::View;
use xds::{Cut, Hold, HoldReason, Known, Name, Reason, State, TypeUrl};

use crate::abilities::timed_out;
use crate::body::Type;
use crate::tally::{Broken, Rule, Tally};
use crate::writer::ORDER_GATE;
use crate::writer::serves;
use crate::zone::Zone;

/// How much later than it should something may be seen.
const SLACK: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(super) struct Holds {
    last: BTreeMap<usize, (Arc<View>, Arc<Cut>)>,
}

impl Holds {
    pub(super) fn see(&mut self, at: usize, zone: &Zone, now: Instant, tally: &mut Tally) -> Result<(), Broken> {
        let cut = zone.writer.view.cut();
        if let Some(what) = overdue(zone, &cut, now).or_else(|| groundless(zone, &cut, now)) {
            return broken!(Hold, "zone {at}: {what}");
        }
        if self.last.get(&at).is_some_and(|(_, last)| Arc::ptr_eq(last, &cut)) {
            return Ok(());
        }
        let last = self.last.insert(at, (zone.writer.view.clone(), cut.clone()));
        let Some((_, before)) = last.filter(|(view, _)| Arc::ptr_eq(view, &zone.writer.view)) else {
            return Ok(());
        };
        let guarded = zone.upper.is_none() && !zone.writer.forced;
        if !(guarded && zone.writer.view.guarded().settings().references) {
            return Ok(());
        }
        for cluster in lost(zone, &before, &cut) {
            tally.hit(Rule::D09);
            if let Some(route) = zone.leading(&cut, cluster) {
                return broken!(D09, "zone {at}: cluster {cluster} goes, and {route} leads to it");
            }
        }
        Ok(())
    }
}

/// Returns a removal that waits for longer than the quiet time may last, and is not held.
fn overdue(zone: &Zone, cut: &Cut, now: Instant) -> Option<String> {
    let late = zone
        .writer
        .waiting
        .iter()
        .filter(|(_, since)| **since + ORDER_GATE + SLACK < now);
    let mut late = late.filter(|(removal, _)| serves(cut, removal) && !zone.writer.holds(removal.0, &removal.2));
    late.next().map(|(removal, _)| format!("{removal:?} waits for nothing"))
}

/// Returns a hold that nothing ends, or that is not served.
fn groundless(zone: &Zone, cut: &Cut, now: Instant) -> Option<String> {
    // K-37: older content that clients use refers to what it names.
    let used = |of: &TypeUrl, name: &Name| cut.older().iter().any(|one| one.type_url == *of && one.name() == name);
    let has = |of: &TypeUrl, name| has(cut, of, name) || is_kept(zone, of, name) || used(of, name);
    let by = |of: &TypeUrl, name| {
        let referenced = |hold: &&Hold| hold.type_url == *of && hold.reason == HoldReason::Referenced;
        let mut holds = cut.holds().iter().filter(referenced);
        holds
            .find_map(|hold| hold.removals.get(name)?.by.as_ref())
            .map(|by| (&by.type_url, &by.name))
    };
    for hold in cut.holds().iter() {
        for (name, removal) in &hold.removals {
            let mut chain = BTreeSet::from([(&hold.type_url, name)]);
            let mut next = removal
                .by
                .as_ref()
                .filter(|_| hold.reason == HoldReason::Referenced)
                .map(|by| (&by.type_url, &by.name));
            while let Some((of, source)) = next {
                if !(has(of, source) || is_unconfirmed(cut, of, source)) || !chain.insert((of, source)) {
                    return Some(format!(
                        "{:?} {name} is held by {source}, which is gone or held by it",
                        hold.type_url
                    ));
                }
                next = by(of, source);
            }
            let late = removal.until.is_some_and(|until| until + SLACK < now);
            // What referred to it in an earlier run is looked for once the control plane has spoken of the type.
            let known = !zone.writer.remembers(&hold.type_url, name);
            // The clock of a judgement stands while the control plane is away or has not spoken.
            let judged = hold.judgement.is_some();
            let endless = removal.until.is_none() && removal.by.is_none() && known && !judged;
            if late || !has(&hold.type_url, name) || endless {
                return Some(format!("{:?} {name} is held for no reason: {removal:?}", hold.type_url));
            }
        }
    }
    None
}

/// Whether a cut has a resource.
fn has(cut: &Cut, type_url: &TypeUrl, name: &Name) -> bool {
    cut.slot(type_url).is_some_and(|slot| slot.resource(name).is_some())
}

/// K-16: whether the control plane did not confirm a name in time. Clients keep it, so what it leads to stays.
fn is_unconfirmed(cut: &Cut, type_url: &TypeUrl, name: &Name) -> bool {
    let known = cut.slot(type_url).and_then(|slot| slot.known(name));
    matches!(known, Some(Known::Absent(Reason::TimedOut)))
}

/// Whether an earlier run of the relay had a resource that nobody has asked for yet, or held it.
pub(super) fn is_kept(zone: &Zone, type_url: &TypeUrl, name: &Name) -> bool {
    let kept = zone.writer.view.head().restored();
    kept.is_some_and(|kept| has(&kept, type_url, name)) || zone.writer.remembers(type_url, name)
}

/// D-10: whether all who ask for it read another server, which has removed it: it is not brought back. Who wants everything has what the
/// wildcard covers there, and who wants a name has what either half knows.
pub(super) fn is_gone_elsewhere(zone: &Zone, type_url: &TypeUrl, wildcard: bool, name: &Name) -> bool {
    let view = &zone.writer.view;
    let elsewhere = view
        .served_elsewhere()
        .filter(|_| view.demand().readers_of(None).0 == 0);
    elsewhere.is_some_and(|(there, _)| {
        let covered = there.half(type_url, true).and_then(|state| state.resource(name));
        let known = || there.slot(type_url).and_then(|slot| slot.resource(name));
        if wildcard { covered.is_none() } else { known().is_none() }
    })
}

/// Returns the clusters that are gone since then, and are wanted still.
fn lost<'a>(zone: &Zone, before: &'a Cut, cut: &Cut) -> Vec<&'a str> {
    let kind = Type::Cds.type_url();
    let has = |state: &State, name: &Name| matches!(state.entries().get(name), Some(Known::Present(_)));
    let (Some(before), Some(now)) = (before.slot(kind), cut.slot(kind)) else {
        return Vec::new();
    };
    let halves = [
        (true, before.wildcard.as_ref(), now.wildcard.as_ref()),
        (false, Some(&before.named), Some(&now.named)),
    ];
    let halves = halves
        .into_iter()
        .filter_map(|(wildcard, before, now)| Some((wildcard, before?, now?)));
    let gone = halves.flat_map(|(wildcard, before, now)| {
        let mortal = |name: &Name| before.expiry(name).is_some();
        let wanted = move |name: &&Name| zone.writer.wants(Type::Cds, name, wildcard);
        let names = before.resources().map(|it| it.name());
        let gone = names
            .filter(wanted)
            .filter(move |name| !has(now, name) && !mortal(name));
        gone.map(move |name| (wildcard, name))
    });
    let kept = |name: &Name| now.halves().any(|state| has(state, name));
    let silent = |name: &Name| timed_out(cut, Type::Cds, name.as_str());
    gone.filter(|(wildcard, name)| !kept(name) && !silent(name) && !is_gone_elsewhere(zone, kind, *wildcard, name))
        .map(|(_, name)| name.as_str())
        .collect()
}
