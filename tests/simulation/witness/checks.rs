//! Judges a response when it is emitted, entry by entry.
//!
//! Owns what holds for every response of either dialect. Leaves the order of types and full states to other checks.

use std::collections::BTreeSet;

use xds::{Dialect, Reason, Resource};

use super::{Scene, Seen, Sent, Watch, Witness};
use crate::body::Type;
use crate::names::{canonical, covers, is_nothing};
use crate::reading::Lens;
use crate::tally::{Broken, Rule, Tally};
use crate::wire::{Answer, Entry};

/// The largest number of unsettled responses that a client can have, whatever it does.
const OPEN_MAX: usize = 64;

impl Witness {
    pub(crate) fn response(&mut self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let broken = |rule, what: String| Err(Broken::new(rule, what));
        tally.hit(Rule::B03);
        if answer.nonce.is_empty() || !self.nonces.insert(answer.nonce.clone()) {
            return broken(Rule::B03, format!("nonce {:?} again", answer.nonce));
        }
        tally.hit(Rule::K11);
        let prefix = answer.nonce.split('-').next().unwrap_or_default().to_owned();
        if prefix.len() != 8 || *self.prefix.get_or_insert_with(|| prefix.clone()) != prefix {
            return broken(Rule::K11, format!("nonce {:?}", answer.nonce));
        }
        let kind = answer.kind;
        let dialect = self.dialect;
        let Some(watch) = self.watches.get(&kind) else {
            return broken(Rule::B29, format!("{kind:?} was never asked for"));
        };
        watch.check_open(answer, dialect, tally)?;
        unique(answer, tally)?;
        for entry in &answer.entries {
            self.check_entry(kind, entry, scene, tally)?;
        }
        self.check_ttls(answer, scene, tally)?;
        watch.check_variants(answer, scene.reading.own, dialect == Dialect::Delta)?;
        for name in &answer.removed {
            if is_nothing(kind, name) {
                tally.hit(Rule::F15);
            }
            self.check_removal(kind, name, scene, tally)?;
        }
        if self.full_state(kind) {
            self.check_full(answer, scene, tally)?;
        } else {
            self.check_partial(answer, scene, tally)?;
        }
        self.check_order(answer, scene, tally)?;
        let endpoints = self.changed_clusters(answer);
        let chain = self.watches[&kind].chain;
        self.note(answer, scene, tally);
        if dialect == Dialect::Sotw {
            self.check_version(answer, scene, chain, tally)?;
        }
        self.force_endpoints(endpoints, scene);
        self.sent += 1;
        tally.responses += 1;
        Ok(())
    }

    fn check_entry(&self, kind: Type, entry: &Entry, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let watch = &self.watches[&kind];
        let lens = scene.lens(kind);
        let name = &entry.name;
        if scene.reading.permitted.is_some() {
            tally.hit(Rule::S01);
        }
        // S-07: what the rules have taken away stays in full states while its removal waits.
        let whole = self.full_state(kind) || self.lists_all(kind);
        let sent = watch.sent.get(name).filter(|_| whole).map(|sent| sent.revision);
        let unchanged = entry.facts.as_ref().is_some_and(|facts| sent == Some(facts.revision));
        if !lens.allows(name) && !unchanged {
            return Err(Broken::new(Rule::S01, format!("{kind:?} {name}")));
        }
        tally.hit(Rule::B29);
        let held = watch.sent.contains_key(name);
        let covers = lens.covers(name);
        let late = watch.chain || self.full_state(kind) && held;
        // A heartbeat does not repeat the aliases.
        let aliases = watch.sent.get(name).map_or(&entry.aliases, |sent| &sent.aliases);
        let wanted =
            watch.explicit(name, &entry.aliases) || watch.explicit(name, aliases) || watch.wildcard && (covers || late);
        if !wanted && !watch.asked.contains_key(name) {
            return Err(Broken::new(Rule::B29, format!("{kind:?} {name} was not asked for")));
        }
        if !watch.names.contains(name) && entry.aliases.iter().any(|alias| watch.names.contains(alias)) {
            tally.hit(Rule::C20);
        }
        let Some(facts) = &entry.facts else {
            return self.check_beat(kind, entry, scene, tally);
        };
        tally.hit(Rule::K02);
        let book = scene.reading.book(name);
        if scene.alone && !book.is_some_and(|book| book.has(facts.revision)) {
            return Err(Broken::new(
                Rule::K02,
                format!("{kind:?} {name}@{} is of another class", facts.revision),
            ));
        }
        tally.hit(Rule::Age);
        let before = watch.sent.get(name);
        let place = lens.place(name, facts.revision);
        // What a client holds from a server that is no longer read stays in full states while the view does not know the name
        // (G-17).
        if place.is_none() && !unchanged {
            return Err(Broken::new(
                Rule::Age,
                format!("{kind:?} {name}@{} was never in the view", facts.revision),
            ));
        }
        let older = |sent: &&Sent| place.zip(sent.place).is_some_and(|(now, then)| now.is_before(then));
        if let Some(sent) = before.filter(|sent| sent.revision != facts.revision).filter(older) {
            let what = format!("{kind:?} {name}@{} after @{}", facts.revision, sent.revision);
            return Err(Broken::new(Rule::Age, what));
        }
        if self.dialect == Dialect::Delta {
            tally.hit(Rule::C18);
            let revision = book.and_then(|book| book.stands_for(&entry.version));
            if revision != Some(facts.revision) {
                let what = format!("{kind:?} {name}@{} has the version of {revision:?}", facts.revision);
                return Err(Broken::new(Rule::C18, what));
            }
        }
        Ok(())
    }

    /// K-17: a heartbeat confirms what the client certainly holds.
    fn check_beat(&self, kind: Type, entry: &Entry, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        tally.hit(Rule::K17);
        let watch = &self.watches[&kind];
        let sent = watch.sent.get(&entry.name);
        let remembered = watch.remembered.get(&entry.name);
        let same = sent.is_some_and(|sent| sent.version == entry.version)
            || remembered == Some(&entry.version)
            || watch.memory.contains(&entry.name) && sent.is_none();
        if self.dialect == Dialect::Sotw || entry.ttl.is_none() || !same {
            let held = sent.map(|sent| (sent.revision, scene.lens(kind).place(&entry.name, sent.revision)));
            return Err(Broken::new(
                Rule::K17,
                format!("a heartbeat for {kind:?} {}, held {held:?}", entry.name),
            ));
        }
        Ok(())
    }

    fn check_ttls(&self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let sotw = self.dialect == Dialect::Sotw;
        let reads = self.ttl && (!sotw || self.wrapper) || self.envoy;
        let reads = reads && !(sotw && answer.kind == Type::Eds);
        let lens = scene.lens(answer.kind);
        let is_mortal = |now: &Resource, entry: &Entry| {
            let same = entry
                .facts
                .as_ref()
                .is_some_and(|facts| facts.revision == lens.revision(now));
            same && lens.expiry(&entry.name, entry.whom).is_some()
        };
        for entry in &answer.entries {
            if entry.wrapped && !self.wrapper && !(self.envoy && entry.ttl.is_some()) {
                return Err(Broken::new(Rule::K18, format!("{} is wrapped", entry.name)));
            }
            // the wrapper has the constraint of a variant; an Envoy's has the name alone, which it takes from there (B-30).
            if entry.wrapped && entry.full != (entry.whom.is_some() && self.wrapper) {
                return Err(Broken::new(Rule::K18, format!("{} is called otherwise", entry.name)));
            }
            let Some(ttl) = entry.ttl else {
                // D-03: what the view has for others only is listed as this client holds it, until it may go.
                let seen = self.watches[&answer.kind].seen(&entry.name, lens);
                if reads && matches!(seen, Seen::Present(now) if is_mortal(now, entry)) {
                    return Err(Broken::new(
                        Rule::K17,
                        format!("{} without its time to live", entry.name),
                    ));
                }
                continue;
            };
            tally.hit(Rule::K18);
            if !reads {
                return Err(Broken::new(
                    Rule::K18,
                    format!("a time to live for {:?} {}", answer.kind, entry.name),
                ));
            }
            tally.hit(Rule::K17);
            let expiry = lens.expiry(&entry.name, entry.whom);
            let remains = expiry.map(|expiry| expiry.at.saturating_duration_since(scene.now));
            if remains.is_some_and(|remains| remains < ttl) {
                return Err(Broken::new(
                    Rule::K17,
                    format!("{} lives {ttl:?} of {remains:?}", entry.name),
                ));
            }
        }
        Ok(())
    }

    fn check_removal(&self, kind: Type, name: &str, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let watch = &self.watches[&kind];
        let lens = scene.lens(kind);
        let collection = watch.collections.contains(name);
        let holds = match collection {
            true => watch.holds_of(name),
            false => watch.sent.contains_key(name) || watch.remembered.contains_key(name),
        };
        // B-22: a client that rejected the removal of routes may still hold them, and is told again.
        let rejected = watch.refused.iter().any(|refused| refused.members.contains_key(name));
        let lacks = !holds && !watch.memory.contains(name) && !rejected;
        if self.envoy && kind == Type::Rds && lacks && watch.names.contains(name) {
            return Err(Broken::new(
                Rule::C15,
                format!("an Envoy is told that routes {name} do not exist"),
            ));
        }
        tally.hit(Rule::G20);
        let seen = if collection {
            watch.extent(name, lens)
        } else {
            watch.seen(name, lens)
        };
        let sound = match seen {
            // C-13: the client remembers it and does not ask for it. C-20: the client holds it under another name than it asked
            // for.
            Seen::Unwanted => holds || watch.chain || watch.memory.contains(name) || watch.asked.contains_key(name),
            Seen::Uncovered => true,
            Seen::Unknown => watch.alias_is_gone(name, lens),
            Seen::Absent(Reason::TimedOut) => {
                tally.hit(Rule::K16);
                // If the wildcard lost the name, that alone is a reason to remove it.
                let left = watch.wildcard && lens.has_left(name);
                if holds && !left {
                    return Err(Broken::new(
                        Rule::K16,
                        format!("{kind:?} {name} is removed because of a time-out"),
                    ));
                }
                true
            }
            Seen::Absent(Reason::Said | Reason::Expired) => true,
            Seen::Present(_) => watch.chain,
        };
        if !sound {
            return Err(Broken::new(
                Rule::G20,
                format!("{kind:?} {name} is removed, and it is not known to be gone"),
            ));
        }
        Ok(())
    }

    /// B-18, B-21, B-22: a partial response contains only what is new or was asked for.
    fn check_partial(&self, answer: &Answer, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let watch = &self.watches[&answer.kind];
        let kind = answer.kind;
        tally.hit(Rule::B18);
        if answer.entries.is_empty() && answer.removed.is_empty() && !watch.first {
            return Err(Broken::new(Rule::B18, format!("an empty answer of {kind:?}")));
        }
        let listed = self.lists_all(kind);
        let news = answer
            .entries
            .iter()
            .map(|entry| self.check_news_of(kind, entry, scene, tally));
        let news: Vec<_> = news.collect();
        // B-18: beside what is new, it lists all the rest.
        let nothing = listed && !watch.first && !news.iter().any(Result::is_ok);
        if !listed || nothing {
            news.into_iter().collect::<Result<(), _>>()?;
        }
        self.check_listed(answer, scene, tally)?;
        for name in &answer.removed {
            let licensed = watch.licensed(name, &[]);
            watch.check_refused(kind, name, None, licensed, tally)?;
        }
        Ok(())
    }

    /// B-21, B-22: an entry is new to the client, or was asked for.
    fn check_news_of(&self, kind: Type, entry: &Entry, scene: &Scene<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let watch = &self.watches[&kind];
        let Some(facts) = entry.facts.as_ref().filter(|_| entry.ttl.is_none()) else {
            return Ok(());
        };
        let licensed = watch.licensed(&entry.name, &entry.aliases);
        watch.check_refused(kind, &entry.name, Some(facts.revision), licensed, tally)?;
        tally.hit(Rule::B21);
        if self.is_same(kind, entry, scene) && !licensed && !watch.chain {
            let what = format!("{kind:?} {}@{} is sent again for nothing", entry.name, facts.revision);
            return Err(Broken::new(Rule::B21, what));
        }
        Ok(())
    }

    /// Whether the client certainly holds exactly what an entry brings.
    pub(super) fn is_same(&self, kind: Type, entry: &Entry, scene: &Scene<'_>) -> bool {
        let watch = &self.watches[&kind];
        let Some(facts) = &entry.facts else { return false };
        // What the wildcard has lost since then without a response may be sent again.
        let brought = watch.brought.get(&entry.name).filter(|_| self.dialect == Dialect::Sotw);
        let lost = brought.is_some_and(|before| *before < scene.lens(kind).losses(&entry.name));
        let sent = watch.sent.get(&entry.name).filter(|_| !lost);
        // What was gone in the meantime may be sent again. E-11: only the resource itself can tell the client that it has no time
        // to live any more.
        sent.filter(|sent| scene.lens(kind).place(&entry.name, facts.revision) == sent.place)
            .is_some_and(|sent| sent.revision == facts.revision && sent.sure && !sent.mortal)
    }
}

impl Watch {
    fn check_open(&self, answer: &Answer, dialect: Dialect, tally: &mut Tally) -> Result<(), Broken> {
        tally.hit(Rule::B24);
        tally.hit(Rule::K21);
        let open = self.open.len();
        if dialect == Dialect::Sotw && open > 0 {
            return Err(Broken::new(
                Rule::B24,
                format!("{:?}: {open} unsettled responses", answer.kind),
            ));
        }
        // C-13: what the client remembered is answered as soon as its state is certain. C-20: what it asked for by an alias is
        // removed by its own name, or replaced by what has that name now.
        let aliases = |name: &String| self.sent.get(name).map_or(&[][..], |sent| &sent.aliases);
        let own = |entry: &Entry| {
            self.licensed(&entry.name, &entry.aliases) || self.licensed(&entry.name, aliases(&entry.name))
        };
        let gone = |name: &String| self.licensed(name, aliases(name)) || self.memory.contains(name);
        let asked = self.again || answer.entries.iter().all(own) && answer.removed.iter().all(gone);
        if open > 0 && !self.chain && !asked {
            return Err(Broken::new(
                Rule::B24,
                format!("{:?}: a new cut before the last was settled", answer.kind),
            ));
        }
        if open > OPEN_MAX && !self.chain {
            return Err(Broken::new(
                Rule::K21,
                format!("{:?}: {open} unsettled responses", answer.kind),
            ));
        }
        Ok(())
    }

    /// Whether a name may be sent again unchanged.
    pub(super) fn licensed(&self, name: &str, aliases: &[String]) -> bool {
        let has = |name: &str| {
            let own = canonical(name);
            self.licence.contains(name)
                || self.licence.contains(&own)
                || self.rest_again.contains(name)
                || self
                    .collections
                    .iter()
                    .any(|collection| covers(collection, &own) && self.licence.contains(collection))
                || self.forced.contains(&own)
                || self
                    .refused
                    .iter()
                    .any(|refused| refused.may_come() && refused.members.contains_key(name))
        };
        has(name) || aliases.iter().any(|alias| has(alias))
    }

    /// The constraint of the variant that the client was last sent of a name.
    pub(crate) fn was_for(&self, name: &str) -> Option<&'static str> {
        self.sent.get(name)?.whom
    }

    /// Whether the client may hold the variant of a name with this constraint. F-09: a removal uses all spellings by which the
    /// client asks.
    pub(crate) fn may_be_for(&self, name: &str, whom: &'static str) -> bool {
        let own = canonical(name);
        let same = |text: &String| canonical(text) == own;
        let may = |sent: &Sent| sent.whom == Some(whom) || !sent.sure;
        self.sent.iter().any(|(text, sent)| same(text) && may(sent))
            || self.memory.iter().any(same)
            || self.doubted.iter().any(|(text, of)| same(text) && *of == whom)
    }

    /// Whether the client may hold a member of a collection.
    pub(super) fn holds_of(&self, collection: &str) -> bool {
        let mut all = self.sent.keys().chain(self.remembered.keys());
        all.any(|name| covers(collection, &canonical(name)))
    }

    /// Whether the client was sent this name for an alias that it asks for and that is now gone.
    fn alias_is_gone(&self, name: &str, lens: Lens<'_>) -> bool {
        let Some(sent) = self.sent.get(name) else { return false };
        let mut aliases = sent.aliases.iter().filter(|alias| self.names.contains(*alias));
        aliases.any(|alias| matches!(self.seen(alias, lens), Seen::Absent(_)))
    }
}

fn unique(answer: &Answer, tally: &mut Tally) -> Result<(), Broken> {
    tally.hit(Rule::B19);
    let mut names = BTreeSet::new();
    let entries = answer.entries.iter().map(|entry| &entry.name);
    for name in entries.chain(&answer.removed) {
        if !names.insert(name) {
            return Err(Broken::new(
                Rule::B19,
                format!("{:?} {name} is there twice", answer.kind),
            ));
        }
    }
    Ok(())
}
