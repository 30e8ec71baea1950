//! Notes a response: what the client holds from now on, and which debts it pays.
//!
//! Owns the effects of an emission. Refuses to judge it.

use std::collections::BTreeMap;

use super::{Open, Scene, Sent, Watch, Witness, slot};
use crate::tally::{Rule, Tally};
use crate::wire::Answer;

impl Witness {
    /// Notes what the client is left with.
    pub(super) fn note(&mut self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) {
        let full = self.full_state(answer.kind);
        let kind = answer.kind;
        let Some(watch) = self.watches.get_mut(&kind) else {
            return;
        };
        let chain = watch.chain;
        watch.chain = answer.nonce.ends_with('+');
        watch.chained |= watch.chain;
        watch.first = false;
        let complete = slot(kind, scene.cut)
            .and_then(|slot| slot.wildcard.as_ref())
            .is_some_and(|state| state.complete());
        watch.again &= chain || !complete;
        let mut members: BTreeMap<String, Option<u64>> = BTreeMap::new();
        if full {
            watch.sent.clear();
            watch.reborn.clear();
        }
        for entry in &answer.entries {
            let confirmed = watch.sent.get(&entry.name).map(|sent| sent.revision);
            members.insert(entry.name.clone(), answer.revision(&entry.name).or(confirmed));
            watch.resolve(&entry.name, &entry.aliases, chain, tally);
            let Some(facts) = &entry.facts else { continue };
            let sent = Sent {
                revision: facts.revision,
                version: scene
                    .book
                    .versions
                    .get(&facts.revision)
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                place: scene.book.place(kind, &entry.name, facts.revision).unwrap_or_default(),
                sure: true,
                refers: facts.refers.clone(),
                aliases: entry.aliases.clone(),
            };
            watch.sent.insert(entry.name.clone(), sent);
            watch.remembered.remove(&entry.name);
        }
        for name in &answer.removed {
            members.insert(name.clone(), None);
            watch.resolve(name, &[], chain, tally);
            watch.sent.remove(name);
            watch.remembered.remove(name);
        }
        if full {
            watch.asked.clear();
            watch.licence.clear();
        }
        for refused in &mut watch.refused {
            refused.members.retain(|name, _| !members.contains_key(name));
        }
        watch.refused.retain(|refused| !refused.members.is_empty());
        let nonce = answer.nonce.clone();
        watch.open.push(Open { nonce, members });
    }
}

impl Watch {
    fn resolve(&mut self, name: &str, aliases: &[String], chain: bool, tally: &mut Tally) {
        for name in std::iter::once(name).chain(aliases.iter().map(String::as_str)) {
            if let Some(asked) = self.asked.remove(name) {
                tally.hit(asked.rule);
            }
            if self.all_again.remove(name) {
                tally.hit(Rule::C11);
            }
            if self.forced.remove(name) {
                tally.hit(Rule::K13);
            }
            // What was said while older answers were on their way may come once more.
            if self.again || self.wildcard && !self.names.contains(name) && !self.open.is_empty() {
                self.licence.insert(name.to_owned());
            } else if !chain {
                self.licence.remove(name);
            }
        }
    }
}
