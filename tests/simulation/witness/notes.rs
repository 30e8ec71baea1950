//! Notes a response: what the client holds from now on, and what it is no longer owed.
//!
//! Owns the effects of a response. Does not judge it.

use std::collections::{BTreeMap, BTreeSet};

use xds::Dialect;

use super::{Open, Refused, Scene, Seen, Sent, Watch, Witness};
use crate::access::Permitted;
use crate::body::Type;
use crate::names::{canonical, covers};
use crate::reading::{Lens, Reading};
use crate::tally::{Rule, Tally};
use crate::wire::Answer;

impl Witness {
    /// Notes that the stream reads another server.
    pub(crate) fn moved(&mut self, reading: &Reading<'_>) {
        for (kind, watch) in &mut self.watches {
            watch.moved(reading.lens(*kind));
        }
    }

    /// Notes that the rules have changed: a name that the client may have now is answered once more, even if the client holds its
    /// resource by another name.
    pub(crate) fn governed(&mut self, before: Permitted<'_>, after: Permitted<'_>) {
        for (kind, watch) in &mut self.watches {
            let begins = |name: &&String| !before.allows(*kind, name) && after.allows(*kind, name);
            watch.licence.extend(watch.names.iter().filter(begins).cloned());
        }
    }

    /// Notes that the client lags: of full states the relay keeps only what was asked for by name, and hashes of the rest.
    pub(crate) fn lightened(&mut self) {
        for (kind, watch) in &mut self.watches {
            let full = self.dialect == Dialect::Sotw && kind.full_state();
            let covered = watch.sent.keys().filter(|name| full && !watch.asks(name));
            for name in covered.cloned().collect::<Vec<_>>() {
                watch.sent.entry(name).and_modify(|sent| sent.hollow = true);
            }
        }
    }

    /// Notes what the client is left with.
    pub(super) fn note(&mut self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) {
        let (kind, full) = (answer.kind, self.full_state(answer.kind));
        let listed = self.only_listed(answer, scene);
        let Some(watch) = self.watches.get_mut(&kind) else {
            return;
        };
        let chain = std::mem::replace(&mut watch.chain, answer.nonce.ends_with('+'));
        watch.answer(chain, kind, scene);
        let lens = scene.lens(kind);
        let mut members: BTreeMap<String, Option<u64>> = BTreeMap::new();
        if full {
            watch.sent.clear();
            watch.reborn.clear();
        }
        for entry in &answer.entries {
            let confirmed = watch.sent.get(&entry.name).map(|sent| sent.revision);
            members.insert(entry.name.clone(), answer.revision(&entry.name).or(confirmed));
            watch.resolve(&entry.name, &entry.aliases, chain, tally);
            if let Some(sent) = watch.sent.get_mut(&entry.name) {
                sent.mortal |= entry.ttl.is_some();
            }
            let Some(facts) = &entry.facts else { continue };
            let version = scene.reading.version(facts.revision).map(|version| version.to_string());
            let sent = Sent {
                revision: facts.revision,
                whom: entry.whom,
                version: version.unwrap_or_default(),
                place: lens.sent_place(&entry.name, facts.revision, chain),
                sure: true,
                hollow: false,
                refers: facts.refers.clone(),
                aliases: entry.aliases.clone(),
                mortal: entry.ttl.is_some(),
            };
            watch.resolve_collections(&entry.name, tally);
            watch.bring(&entry.name);
            watch.call(&entry.aliases);
            watch.hold(&entry.name, sent);
        }
        for name in &answer.removed {
            members.insert(name.clone(), None);
            watch.resolve(name, &[], chain, tally);
            watch.owe_aliases(name, lens);
            let held = watch.remove(name);
            if watch.remembered.remove(name).is_some() || held {
                watch.empty_collections(name);
            }
        }
        members.retain(|name, _| !listed.surely.contains(name));
        if full {
            watch.asked.clear();
            watch.licence.clear();
        }
        watch.send_again(&members, lens);
        watch.doubted.retain(|(name, _)| !members.contains_key(name));
        if !watch.chain {
            watch.end();
            let (collections, asked) = (&watch.collections, &watch.asked);
            watch
                .licence
                .retain(|name| !collections.contains(name) || asked.contains_key(name));
        }
        watch.open.push(Open {
            nonce: answer.nonce.clone(),
            members,
            beats: answer.beats(),
            variants: answer.variants(),
            held: listed.perhaps,
            undone: BTreeSet::new(),
        });
    }
}

impl Watch {
    /// Rejected content that is sent again unchanged, without a release, stays rejected until it is accepted. If the group was
    /// perhaps released earlier, because something in it was different for a while, it perhaps stays rejected.
    fn send_again(&mut self, members: &BTreeMap<String, Option<u64>>, lens: Lens<'_>) {
        let free = |refused: &Refused| refused.freed || self.differs(refused, |_| true, lens);
        let free: Vec<bool> = self.refused.iter().map(free).collect();
        let groups = self.refused.iter_mut().zip(free);
        for (refused, free) in groups.filter(|(refused, _)| refused.may_come()) {
            let Refused {
                members: rejected,
                held,
                ..
            } = refused;
            let same = |name: &String, revision: &Option<u64>| members.get(name) == Some(revision);
            rejected.retain(|name, revision| !members.contains_key(name) || !free && same(name, revision));
            let again = rejected.keys().filter(|name| members.contains_key(*name));
            held.extend(again.cloned());
        }
        self.refused.retain(|refused| !refused.members.is_empty());
    }

    /// B-22: a client that rejected that these aliases mean nothing is sent a resource with them: it may be told once more.
    fn call(&mut self, aliases: &[String]) {
        for refused in &mut self.refused {
            refused.released |= aliases.iter().any(|alias| refused.members.get(alias) == Some(&None));
        }
    }

    /// Begins an answer: when all its parts are sent, the client has what the wildcard has now.
    pub(super) fn begin(&mut self, kind: Type, scene: &Scene<'_>) {
        let lens = scene.lens(kind);
        if lens.state().is_none() || !self.wildcard {
            // The content of the wildcard is unknown, so nothing of it is sent.
            self.coming.clear();
            return;
        }
        let all = lens.all().into_iter().map(|resource| resource.name().as_str());
        let all = all.map(|name| (name.to_owned(), lens.losses(name)));
        self.coming = all.collect();
        self.forget_lost();
        self.brought.retain(|name, _| self.coming.contains_key(name));
        for (name, losses) in &self.coming {
            if !self.sent.contains_key(name) {
                continue;
            }
            let before = self.brought.insert(name.clone(), *losses);
            if before.is_some_and(|before| before < *losses) || before.is_none() && !self.own.contains(name) {
                self.perhaps.insert(name.clone());
            }
        }
    }

    /// Begins a response, which goes on with an answer that has begun if `chain` is true.
    fn answer(&mut self, chain: bool, kind: Type, scene: &Scene<'_>) {
        self.first = false;
        let lens = scene.lens(kind);
        // A response beside an unsettled one does not answer a wildcard that has just begun.
        self.again &= chain || !lens.is_complete() || !self.open.is_empty();
        let moved = std::mem::take(&mut self.moved);
        if !chain {
            self.begin(kind, scene);
        } else if moved {
            self.begin_anew(kind, scene);
        }
        self.begin_again(lens);
    }

    /// The first answer after a repeated wildcard is the answer to that.
    fn begin_again(&mut self, lens: Lens<'_>) {
        if self.repeated && lens.state().is_some() {
            self.repeated = false;
            let all = lens.all().into_iter();
            self.rest_again = all.map(|resource| resource.name().as_str().to_owned()).collect();
        }
    }

    /// SotW: handles names that the wildcard brought and then lost. No response reports that, so they may be sent again
    /// unchanged.
    fn forget_lost(&mut self) {
        let Self {
            sent,
            names,
            brought,
            coming,
            listed,
            ..
        } = self;
        let lost = |name: &String| brought.contains_key(name) && !coming.contains_key(name) && !names.contains(name);
        for (_, sent) in sent.iter_mut().filter(|(name, _)| *listed && lost(name)) {
            sent.place = None;
        }
    }

    /// Notes that the remaining parts were recalled and another answer has begun, with this part or, unnoticed, with an earlier
    /// one. What the wildcard has lost by now, it may have had then.
    pub(super) fn begin_anew(&mut self, kind: Type, scene: &Scene<'_>) {
        let before = self.brought.clone();
        self.begin(kind, scene);
        for (name, losses) in before {
            if !self.brought.contains_key(&name) {
                self.perhaps.insert(name.clone());
                self.brought.insert(name, losses);
            }
        }
    }

    /// Notes a name in a response.
    pub(super) fn bring(&mut self, name: &str) {
        self.perhaps.remove(name);
        if self.asks(name) {
            self.own.insert(name.to_owned());
        }
        if let Some(losses) = self.coming.get(name) {
            self.brought.insert(name.to_owned(), *losses);
        }
    }

    /// The same for a later part of an answer, which may contain what the wildcard has lost since that answer began.
    pub(super) fn bring_late(&mut self, name: &str, lens: Lens<'_>) {
        self.bring(name);
        if self.wildcard && !self.brought.contains_key(name) && !self.asks(name) {
            self.brought.insert(name.to_owned(), lens.losses(name));
            // The relay need not count it any more when the wildcard has it again.
            if !lens.covers(name) {
                self.perhaps.insert(name.to_owned());
            }
        }
    }

    /// Notes a name in a later part of an answer whose version cannot be judged: perhaps another answer began unnoticed.
    pub(super) fn bring_in_doubt(&mut self, name: &str, lens: Lens<'_>) {
        if !self.coming.contains_key(name) {
            self.bring_late(name, lens);
            self.perhaps.insert(name.to_owned());
        }
    }

    /// Notes that another server is read: for each name that the wildcard brought it is unknown whether the relay still counts
    /// it.
    pub(super) fn moved(&mut self, lens: Lens<'_>) {
        let Self { sent, names, .. } = self;
        let lost = |name: &String| self.listed && !names.contains(name) && !lens.covers(name);
        for (_, sent) in sent.iter_mut().filter(|(name, _)| lost(name)) {
            // SotW cannot report that it is gone, so it may be sent again.
            sent.place = None;
        }
        self.perhaps.extend(self.brought.keys().cloned());
        // The wildcard of the former server may have brought what the client gave up since the last response.
        let given_up = self.perhaps.iter().filter(|name| self.wildcard && !self.asks(name));
        let given_up: Vec<(String, u64)> = given_up.map(|name| (name.clone(), 0)).collect();
        self.brought.extend(given_up);
        // How often the wildcard has lost a name is counted for one server and one parameter.
        for (name, losses) in &mut self.brought {
            *losses = lens.losses(name);
        }
        // The rest of an answer that has begun is not sent any more.
        self.coming.clear();
        self.moved = true;
    }

    /// Ends an answer: all its parts are sent, so the client has what the wildcard has.
    fn end(&mut self) {
        self.perhaps.retain(|name| !self.coming.contains_key(name));
    }

    /// Notes that a member answers the request for its collections.
    fn resolve_collections(&mut self, member: &str, tally: &mut Tally) {
        let collections = self.collections.iter().filter(|collection| covers(collection, member));
        for asked in collections.filter_map(|collection| self.asked.remove(collection)) {
            tally.hit(asked.rule);
        }
    }

    /// Notes that a member that the client held is gone. Whether the client hears anything else about the collection depends on
    /// what was known of it by then.
    fn empty_collections(&mut self, member: &str) {
        let member = canonical(member);
        let collections = self.collections.iter().filter(|collection| covers(collection, &member));
        for collection in collections {
            if let Some(asked) = self.asked.get_mut(collection) {
                asked.lost = true;
            }
        }
    }

    /// The client holds this from now on. C-20: if it comes without an alias by which the client was sent it, it is unknown what the
    /// client makes of that.
    fn hold(&mut self, name: &str, sent: Sent) {
        let before = self.sent.get(name).map_or(&[][..], |sent| &sent.aliases);
        for lost in before.iter().filter(|alias| !sent.aliases.contains(alias)) {
            if let Some(asked) = self.asked.get_mut(lost) {
                asked.renamed = true;
            }
            if self.names.contains(lost) {
                self.renamed.insert(name.to_owned());
            }
        }
        self.bring_back(name, &sent.aliases);
        self.sent.insert(name.to_owned(), sent);
        self.remembered.remove(name);
    }

    /// Notes that a response brings what others on their way remove.
    fn bring_back(&mut self, name: &str, aliases: &[String]) {
        let own = canonical(name);
        for open in &mut self.open {
            let removed = open.members.iter().filter(|(_, revision)| revision.is_none());
            let removed = removed.map(|(text, _)| text);
            let back = removed.filter(|text| canonical(text) == own || aliases.contains(text));
            open.undone.extend(back.cloned());
        }
    }

    /// B-22, C-20: a name goes that the client rejected and asks for by an alias. If nothing is known of the alias yet, it is owed.
    fn owe_aliases(&mut self, name: &str, lens: Lens<'_>) {
        if !self.refused.iter().any(|refused| refused.members.contains_key(name)) {
            return;
        }
        let aliases = self.sent.get(name).map_or(&[][..], |sent| &sent.aliases);
        let unknown = |alias: &&String| self.names.contains(*alias) && matches!(self.seen(alias, lens), Seen::Unknown);
        let owed: Vec<String> = aliases.iter().filter(unknown).cloned().collect();
        self.licence.extend(owed);
    }

    /// Notes that a response removes a name. Returns whether the client held it.
    fn remove(&mut self, name: &str) -> bool {
        let brings = |open: &&mut Open| open.members.get(name).is_some_and(Option::is_some);
        for open in self.open.iter_mut().filter(brings) {
            open.undone.insert(name.to_owned());
        }
        self.sent.remove(name).is_some()
    }

    fn resolve(&mut self, name: &str, aliases: &[String], chain: bool, tally: &mut Tally) {
        for name in std::iter::once(name).chain(aliases.iter().map(String::as_str)) {
            if let Some(asked) = self.asked.remove(name) {
                tally.hit(asked.rule);
            }
            if self.all_again.remove(name) {
                tally.hit(Rule::C11);
            }
            self.rest_again.remove(name);
            if self.forced.remove(&canonical(name)) {
                tally.hit(Rule::K13);
            }
            // What was sent while older responses were on their way may be sent again.
            if self.again || self.wildcard && !self.names.contains(name) && !self.open.is_empty() {
                self.licence.insert(name.to_owned());
            } else if !chain {
                self.licence.remove(name);
                self.licence.remove(&canonical(name));
            }
        }
    }
}
