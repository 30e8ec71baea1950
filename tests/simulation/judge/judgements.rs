// SPDX-License-Identifier: Apache-2.0
//! What a judgement holds waits for one of its ends: the server says the name again, its clock, a person, an addition that takes its
//! place. What nobody wants any more, what all who want it have lost at another server, what expires and what the settings do not hold is
//! over as well.
//!
//! Owns what each view held at the last look. Believes nothing that the guard says of the reasons of an end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::View;
use xds::{Cut, Dialect, HeldRemoval, Hold, HoldReason, Name, TypeUrl, Within};

use super::holds::{is_gone_elsewhere, is_kept};
use crate::body::Type;
use crate::tally::{Broken, Rule, Tally};
use crate::zone::Zone;

/// No hold is longer than that.
const DAY: Duration = Duration::from_secs(24 * 3600);

#[derive(Default)]
pub(super) struct Judgements(BTreeMap<usize, Last>);

/// A view at the last look.
struct Last {
    view: Arc<View>,
    cut: Arc<Cut>,
    /// The highest number of a judgement of each type, of all that there were.
    numbers: BTreeMap<TypeUrl, u32>,
}

impl Judgements {
    pub(super) fn see(&mut self, at: usize, zone: &Zone, now: Instant, tally: &mut Tally) -> Result<(), Broken> {
        let cut = zone.writer.view.cut();
        let same = |last: &&mut Last| Arc::ptr_eq(&last.view, &zone.writer.view);
        let Some(last) = self.0.get_mut(&at).filter(same) else {
            let mut last = Last {
                view: zone.writer.view.clone(),
                cut: cut.clone(),
                numbers: BTreeMap::new(),
            };
            let _ = last.count(&cut);
            self.0.insert(at, last);
            return Ok(());
        };
        if Arc::ptr_eq(&last.cut, &cut) {
            return Ok(());
        }
        let before = std::mem::replace(&mut last.cut, cut.clone());
        if let Some(what) = last.count(&cut) {
            return broken!(Hold, "zone {at}: {what}");
        }
        for hold in before.holds().iter().filter(|hold| hold.reason == HoldReason::Mass) {
            for (name, removal) in &hold.removals {
                if is_held(&cut, hold, name) {
                    continue;
                }
                tally.hit(Rule::Judged);
                if !is_over(zone, &before, hold, (name, removal), now) {
                    return broken!(
                        Judged,
                        "zone {at}: the judgement {:?} of {} ends for {name}, and nobody has ended it: {removal:?}",
                        hold.judgement,
                        hold.type_url.word()
                    );
                }
            }
        }
        let mut held = cut
            .holds()
            .iter()
            .flat_map(|hold| hold.removals.iter().map(move |(name, it)| (hold, name, it)));
        let unwanted = held.find_map(|(hold, name, removal)| {
            let kind = Type::of(hold.type_url.url())?;
            let late = removal.until.is_some_and(|until| until > now + DAY);
            // What was taken over has brought it along, for clients that come: it goes with what refers to it.
            let along = hold.reason == HoldReason::Referenced && !removal.wildcard;
            let wanted = zone.writer.wants(kind, name, removal.wildcard) || is_kept(zone, &hold.type_url, name);
            let wanted = wanted || along;
            (late || !wanted).then(|| format!("{kind:?} {name} is held too long or for nobody: {removal:?}"))
        });
        match unwanted {
            Some(what) => broken!(Judged, "zone {at}: {what}"),
            None => Ok(()),
        }
    }
}

impl Last {
    /// Counts the judgements; returns what is wrong with their numbers.
    fn count(&mut self, cut: &Cut) -> Option<String> {
        let holds = cut.holds();
        let numbered = holds.iter().filter_map(|hold| Some((&hold.type_url, hold.judgement?)));
        let mut numbers = self.numbers.clone();
        for (type_url, number) in numbered {
            let known = self
                .cut
                .holds()
                .iter()
                .any(|hold| (&hold.type_url, hold.judgement) == (type_url, Some(number)));
            let highest = self.numbers.get(type_url).copied();
            let is_new = highest.is_none_or(|highest| number > highest);
            if !known && !is_new && highest.is_some() {
                return Some(format!("judgement {number} of {} is there again", type_url.word()));
            }
            let highest = numbers.entry(type_url.clone()).or_default();
            *highest = number.max(*highest);
        }
        self.numbers = numbers;
        None
    }
}

/// Whether a name is held still. A person may hold it for longer than its judgement.
fn is_held(cut: &Cut, hold: &Hold, name: &Name) -> bool {
    let same = |other: &&Hold| other.type_url == hold.type_url;
    cut.holds()
        .iter()
        .filter(same)
        .any(|other| other.removals.contains_key(name))
}

/// Whether something has ended the hold of a removal.
fn is_over(zone: &Zone, before: &Cut, hold: &Hold, (name, removal): (&Name, &HeldRemoval), now: Instant) -> bool {
    let writer = &zone.writer;
    let wanted = Type::of(hold.type_url.url()).is_none_or(|kind| writer.wants(kind, name, removal.wildcard));
    // Over SotW, a wildcard that is asked for takes the place of all names.
    let is_covered = Type::of(hold.type_url.url()).is_some_and(|kind| writer.wants(kind, name, true));
    let mortal = || {
        let halves = before.slot(&hold.type_url).into_iter().flat_map(|slot| slot.halves());
        halves.into_iter().any(|state| state.expiry(name).is_some())
    };
    removal.until.is_some_and(|until| until <= now)
        || writer.words.says(&hold.type_url, name, now)
        // Content that an earlier run had is no news when the control plane says it.
        || writer.remembers(&hold.type_url, name)
        || writer.words.orders(hold, name, now)
        || writer.view.guarded().settings().within == Within::Never
        || !wanted
        || is_gone_elsewhere(zone, &hold.type_url, removal.wildcard, name)
        || zone.wire.habits.dialect == Dialect::Sotw && !removal.wildcard && is_covered
        || mortal()
}
