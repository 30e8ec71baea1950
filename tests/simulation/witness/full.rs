//! Judges full states: the client deletes what is missing in one (B-16).
//!
//! Owns the comparison with the cut, and the versions of sets. Knows nothing of partial responses.

use std::collections::BTreeMap;

use xds::{Reason, Version};

use super::{Scene, Seen, Watch, Witness};
use crate::tally::{Broken, Rule, Tally};
use crate::wire::Answer;

/// The largest number of doubtful names for which all combinations are tried.
const DOUBTS: usize = 6;

impl Witness {
    pub(super) fn check_full(&self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let kind = answer.kind;
        let watch = &self.watches[&kind];
        let lens = scene.lens(kind);
        tally.hit(Rule::G20);
        if watch.wildcard && !lens.is_complete() {
            return Err(Broken::new(Rule::G20, format!("{kind:?} is not complete, and is sent")));
        }
        tally.hit(Rule::B16);
        let present = watch.present(lens);
        for (name, resource) in &present {
            let revision = lens.revision(resource);
            match answer.revision(name) {
                Some(sent) if sent == revision => {}
                other => {
                    let what = format!("{kind:?} {name} is @{revision} in the view, and {other:?} is sent");
                    return Err(Broken::new(Rule::B16, what));
                }
            }
        }
        let waited = |name: &String| {
            let asked = watch.asked.get(name);
            asked.is_some_and(|asked| scene.now >= asked.at + scene.unanswered)
        };
        // What the client holds and the response lacks must be known to be gone, or no longer wanted.
        for name in watch.sent.keys().filter(|name| answer.revision(name).is_none()) {
            match watch.seen(name, lens) {
                Seen::Unwanted | Seen::Uncovered | Seen::Absent(Reason::Said | Reason::Expired) => {}
                // The client perhaps never had what it rejected. What the relay has only a hash of cannot be listed again.
                Seen::Absent(Reason::TimedOut) if !watch.sent[name].sure || watch.sent[name].hollow => {}
                Seen::Absent(Reason::TimedOut) => {
                    tally.hit(Rule::K16);
                    return Err(Broken::new(
                        Rule::K16,
                        format!("{kind:?} {name} is left out because of a time-out"),
                    ));
                }
                // The same holds for unknown names; if the relay has only a hash, after it has waited long enough for an answer.
                Seen::Unknown if !watch.sent[name].sure => {}
                Seen::Unknown if watch.sent[name].hollow && waited(name) => {}
                Seen::Unknown | Seen::Present(_) => {
                    return Err(Broken::new(
                        Rule::G20,
                        format!("{kind:?} {name} is left out out of ignorance"),
                    ));
                }
            }
        }
        // A client that began with a version may hold any name that it asks for.
        for name in &watch.reborn {
            if matches!(watch.seen(name, lens), Seen::Unknown) && !waited(name) {
                let what = format!("{kind:?} {name} is left out out of ignorance; the client may hold it from before");
                return Err(Broken::new(Rule::G20, what));
            }
        }
        for entry in &answer.entries {
            if !present.contains_key(entry.name.as_str()) && !watch.sent.contains_key(&entry.name) {
                let what = format!("{kind:?} {} is neither in the view nor held", entry.name);
                return Err(Broken::new(Rule::B16, what));
            }
        }
        self.check_news(answer, scene, tally)
    }

    /// B-21, K-08: a full state is sent for a reason.
    fn check_news(&self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let kind = answer.kind;
        let watch = &self.watches[&kind];
        let set: BTreeMap<String, u64> = answer
            .entries
            .iter()
            .filter_map(|entry| Some((entry.name.clone(), entry.facts.as_ref()?.revision)))
            .collect();
        let lives =
            watch.sent.values().any(|sent| sent.mortal) || answer.entries.iter().any(|entry| entry.ttl.is_some());
        let asked = watch.first || !watch.licence.is_empty() || lives;
        if let Some(refused) = &watch.refused_set {
            tally.hit(Rule::K08);
            if *refused == set && !asked {
                return Err(Broken::new(Rule::K08, format!("{kind:?}: the refused set again")));
            }
        }
        tally.hit(Rule::B21);
        let held: BTreeMap<String, u64> = watch
            .sent
            .iter()
            .map(|(name, sent)| (name.clone(), sent.revision))
            .collect();
        let sure = watch.sent.values().all(|sent| sent.sure);
        if held == set && sure && !asked && self.sent > 0 && !watch.sent.is_empty() {
            return Err(Broken::new(
                Rule::B21,
                format!("{kind:?}: the held set again, for nothing"),
            ));
        }
        let _ = scene;
        Ok(())
    }

    /// B-04, K-09: the version of a SotW response is the sum over what the client holds after it.
    pub(super) fn check_version(
        &mut self,
        answer: &Answer,
        scene: &Scene<'_>,
        chain: bool,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        let kind = answer.kind;
        let full = self.full_state(kind);
        let Some(watch) = self.watches.get_mut(&kind) else {
            return Ok(());
        };
        tally.hit(Rule::B04);
        if answer.version.is_empty() {
            return Err(Broken::new(Rule::B04, "an empty version"));
        }
        // It is unknown how much of a rejected response the client has applied.
        if !watch.sent.values().all(|sent| sent.sure) {
            let entries = answer.entries.iter().filter(|_| chain);
            entries.for_each(|entry| watch.bring_in_doubt(&entry.name, scene.lens(kind)));
            return Ok(());
        }
        let sum = |held: &BTreeMap<String, u64>| {
            let versions = held.values().filter_map(|revision| scene.reading.version(*revision));
            versions
                .fold(Version::EMPTY, |sum, version| sum.plus(version))
                .to_string()
        };
        let mut held = watch.set(full);
        if chain && sum(&held) != answer.version {
            watch.begin_anew(kind, scene);
            answer
                .entries
                .iter()
                .for_each(|entry| watch.bring_late(&entry.name, scene.lens(kind)));
            held = watch.set(full);
        }
        let doubts = watch.perhaps.len();
        if !watch.perhaps.is_empty() && sum(&held) != answer.version {
            let perhaps: Vec<String> = std::mem::take(&mut watch.perhaps).into_iter().collect();
            let choices = 1..1_usize << perhaps.len().min(DOUBTS);
            let without = |choice: usize| {
                let gone = |name: &String| perhaps.iter().position(|other| other == name);
                let mut held = held.clone();
                held.retain(|name, _| gone(name).is_none_or(|at| choice >> at & 1 == 0));
                held
            };
            if let Some(found) = choices.map(without).find(|held| sum(held) == answer.version) {
                let lost = |name: &String| perhaps.contains(name) && !found.contains_key(name);
                watch.own.retain(|name| !lost(name));
                watch.brought.retain(|name, _| !lost(name));
                // The relay does not count a secret that the wildcard brought and then lost: it need not list that one any more.
                for (_, sent) in watch.sent.iter_mut().filter(|(name, _)| lost(name)) {
                    sent.place = None;
                }
                held = found;
            }
        }
        if scene.reading.permitted.is_some() && sum(&held) != answer.version {
            held = watch.with_kept(held, |held| sum(held) == answer.version);
        }
        // Too many names are in doubt to judge.
        if doubts > DOUBTS && sum(&held) != answer.version {
            return Ok(());
        }
        let before = watch.sets.insert(answer.version.clone(), held.clone());
        if before.as_ref().is_some_and(|before| *before != held) {
            let what = format!("{:?} {} is {before:?} and {held:?}", answer.kind, answer.version);
            return Err(Broken::new(Rule::B04, what));
        }
        tally.hit(Rule::K09);
        if sum(&held) != answer.version {
            let what = format!("{kind:?} {} is not the sum over {held:?}", answer.version);
            return Err(Broken::new(Rule::K09, what));
        }
        Ok(())
    }
}

impl Watch {
    /// S-07: the client keeps what the rules took away and SotW cannot take away; if it then asks for it by name, the relay counts
    /// it. Returns what is held with such names, if it is `right` then.
    fn with_kept(
        &mut self,
        held: BTreeMap<String, u64>,
        right: impl Fn(&BTreeMap<String, u64>) -> bool,
    ) -> BTreeMap<String, u64> {
        let kept = self
            .sent
            .iter()
            .filter(|(name, _)| self.names.contains(*name) && !held.contains_key(*name));
        let kept: Vec<(String, u64)> = kept.map(|(name, sent)| (name.clone(), sent.revision)).collect();
        for choice in 1..1_usize << kept.len().min(DOUBTS) {
            let chosen = kept.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1);
            let chosen: BTreeMap<String, u64> = chosen.map(|(_, kept)| kept.clone()).collect();
            let all: BTreeMap<String, u64> = held
                .iter()
                .chain(&chosen)
                .map(|(name, revision)| (name.clone(), *revision))
                .collect();
            if right(&all) {
                self.own.extend(chosen.into_keys());
                return all;
            }
        }
        held
    }

    /// What the client holds of what it asks for. Without names that it gave up: it is unknown whether it still holds them.
    fn set(&self, full: bool) -> BTreeMap<String, u64> {
        let asked = |name: &String| full || self.own.contains(name) || self.brought.contains_key(name);
        let sent = self.sent.iter().filter(|(name, _)| asked(name));
        sent.map(|(name, sent)| (name.clone(), sent.revision)).collect()
    }
}
