//! A follower beside each client stream: it notes what the client asked for, what it was sent, and from which server that
//! came.
//!
//! Owns its own reading of requests and responses. Does not know how a server is chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xds::{Cut, Dialect, Known, Name, Reason, Resource};

use crate::body::Type;
use crate::names::{authority, canonical, covers, is_collection, is_nothing, is_unnamed};
use crate::reading::Reading;
use crate::tally::{Broken, Rule, Tally};
use crate::wire::{Answer, Entry, Up};

/// What was asked for on one stream, and what was sent.
pub(crate) struct Follower {
    pub(super) dialect: Dialect,
    pub(super) tracks: BTreeMap<Type, Track>,
    pub(crate) sent: u64,
    /// The server from which each authority was last read.
    pub(super) reads: BTreeMap<Option<String>, usize>,
    /// What the session could read when nothing was left to send; `None` once something is asked for.
    pub(super) said_all: Option<Contents>,
    /// Whether its client is hostile: then only the responses to it are judged.
    pub(crate) hostile: bool,
    /// The parameters of its client (TP2).
    pub(crate) own: Option<&'static str>,
    /// The class of its client, where there are several.
    pub(crate) class: usize,
}

/// One type.
#[derive(Default)]
pub(super) struct Track {
    named: bool,
    pub(super) wildcard: bool,
    pub(super) names: BTreeSet<String>,
    /// What was sent, by the name in the response.
    pub(super) sent: BTreeMap<String, Sent>,
    /// What the last full state, or the last response with secrets (B-18), listed, wanted or not: a resource that goes stays in
    /// it until everything that depends on it has gone.
    listed: BTreeMap<String, u64>,
    /// Names that it declared to hold from an earlier stream.
    pub(super) remembered: BTreeSet<String>,
    /// SotW: whether it began with a version, and so may hold anything.
    pub(super) reborn: bool,
    /// Names whose subscription it changed since the last response.
    pub(super) licence: BTreeSet<String>,
    /// The nonce that was not settled yet.
    pub(super) open: Option<String>,
    /// Whether the last response said that more follows: then that may be older than the view.
    pub(super) chain: bool,
}

/// What was sent under a name.
pub(super) struct Sent {
    pub(super) aliases: Vec<String>,
    /// Whether the client was sent a time to live.
    mortal: bool,
}

/// What is known of everything that is wanted: revisions, or 0 for what does not exist.
pub(super) type Contents = BTreeMap<(Type, String), u64>;

/// What is known of a name, as far as it is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Unwanted,
    Unknown,
    Absent(Reason),
    /// A wildcard that is complete does not have it.
    Uncovered,
    Present(u64),
}

impl Reading<'_> {
    pub(super) fn seen(&self, kind: Type, name: &str, track: &Track) -> Seen {
        let explicit = track.explicit(name, &[])
            || self.resource(kind, name).is_some_and(|found| {
                let mut aliases = found.aliases().iter();
                aliases.any(|alias| track.names.contains(alias.as_str()))
            });
        let authority = authority(name);
        let wildcard = track.wildcard && !name.starts_with("xdstp:");
        if !explicit && !wildcard {
            return Seen::Unwanted;
        }
        if is_nothing(kind, name) {
            return Seen::Absent(Reason::Said);
        }
        let Some((server, cut)) = self.reads.get(&authority) else {
            return Seen::Absent(Reason::Said);
        };
        let Some(slot) = cut.slot(kind.type_url()) else {
            return Seen::Unknown;
        };
        if let Some(variant) = self.lens(kind).variant(name, explicit) {
            return Seen::Present(self.zones[*server].book.revision(variant));
        }
        let name = Name::from(canonical(name));
        let state = slot.wildcard.as_ref().filter(|_| wildcard);
        let covered = slot.wildcard.as_ref().and_then(|state| state.known(&name));
        // C-20: while the wildcard has other content, it is not known what an alias stands for.
        let outdated = |known: &Known| {
            let found = known.resource().filter(|found| *found.name() != name);
            let wildcard = slot.wildcard.as_ref();
            let others = found.and_then(|found| {
                wildcard?
                    .resource(found.name())
                    .filter(|other| other.body() != found.body())
            });
            others.is_some()
        };
        let named = slot.named.known(&name).filter(|known| explicit && !outdated(known));
        let known = covered.or(named);
        match known {
            Some(Known::Present(resource)) => Seen::Present(self.zones[*server].book.revision(resource)),
            Some(Known::Absent(reason)) => Seen::Absent(*reason),
            None if explicit && self.lens(kind).is_for_others(name.as_str()) => Seen::Absent(Reason::Said),
            None if !explicit && state.is_some_and(|state| state.complete()) => Seen::Uncovered,
            None => Seen::Unknown,
        }
    }

    /// What there is by a name or alias among what was asked for by name.
    pub(super) fn resource(&self, kind: Type, name: &str) -> Option<&Arc<Resource>> {
        let (_, cut) = self.reads.get(&authority(name))?;
        cut.slot(kind.type_url())?.named.resource(&Name::from(canonical(name)))
    }

    /// The members of a collection that are known, and whether all are.
    pub(super) fn members(&self, kind: Type, collection: &str) -> (Vec<(String, u64)>, bool) {
        let read = self.reads.get(&authority(collection));
        let slot = read.and_then(|(server, cut)| Some((*server, cut.slot(kind.type_url())?)));
        let Some((server, slot)) = slot.filter(|_| is_collection(collection)) else {
            return (Vec::new(), false);
        };
        let book = &self.zones[server].book;
        let collection = Name::from(collection);
        let entry = |resource: &Arc<Resource>| (resource.name().as_str().to_owned(), book.revision(resource));
        let members = self.lens(kind).members(collection.as_str());
        (members.into_iter().map(entry).collect(), slot.named.whole(&collection))
    }

    /// Whether a cut knows nothing of something that is wanted of an authority (G-03).
    pub(super) fn lacks(tracks: &BTreeMap<Type, Track>, authority: Option<&str>, cut: &Cut) -> bool {
        tracks.iter().any(|(kind, track)| {
            let slot = cut.slot(kind.type_url());
            let whole = slot
                .and_then(|slot| slot.wildcard.as_ref())
                .is_some_and(|state| state.complete());
            let unknown = |name: &String| {
                let name = Name::from(canonical(name));
                slot.is_none_or(|slot| slot.known(&name).is_none() && slot.named.members(&name).next().is_none())
            };
            let ours =
                |name: &&String| crate::names::authority(name).as_deref() == authority && !is_nothing(*kind, name);
            track.wildcard && authority.is_none() && !whole || track.names.iter().filter(ours).any(unknown)
        })
    }

    /// The resources that a wildcard has.
    pub(super) fn covered(&self, kind: Type) -> Vec<(String, u64)> {
        let Some((server, _)) = self.reads.get(&None) else {
            return Vec::new();
        };
        let book = &self.zones[*server].book;
        let entry = |resource: &Arc<Resource>| (resource.name().as_str().to_owned(), book.revision(resource));
        self.lens(kind).all().into_iter().map(entry).collect()
    }

    pub(super) fn is_complete(&self, kind: Type) -> bool {
        let slot = self.reads.get(&None).and_then(|(_, cut)| cut.slot(kind.type_url()));
        let state = slot.and_then(|slot| slot.wildcard.as_ref());
        state.is_some_and(|state| state.complete())
    }

    /// Whether the server that is read for the name has ever sent this for it.
    fn said(&self, kind: Type, name: &str, revision: u64) -> bool {
        let server = self.reads.get(&authority(name)).map(|(server, _)| *server);
        server.is_some_and(|server| {
            self.zones[server]
                .book
                .place(kind, &canonical(name), revision)
                .is_some()
        })
    }
}

impl Track {
    /// Whether it is asked for by a name: its own, another one, or its collection's.
    pub(super) fn explicit(&self, name: &str, aliases: &[String]) -> bool {
        let named = |name: &String| self.names.contains(name);
        self.names.contains(name)
            || aliases.iter().any(named)
            || name.starts_with("xdstp:") && self.names.iter().any(|collection| covers(collection, name))
    }
}

impl Track {
    /// Whether an answer may come although nothing has changed.
    fn expects(&self, answer: &Answer, reading: &Reading<'_>) -> bool {
        // K-17: what has a time to live is confirmed again and again, and with some servers it lives for ever.
        let mortal = |entry: &Entry| {
            let mut truths = reading.zones.iter().map(|zone| &zone.truth);
            truths.any(|truth| {
                let it = truth.find_for(answer.kind, &canonical(&entry.name), entry.whom);
                it.is_some_and(|it| it.ttl.is_some())
            })
        };
        let mut entries = answer.entries.iter();
        // E-11: only the resource itself can tell the client that it has no time to live any more.
        let immortal = |entry: &Entry| self.sent.get(&entry.name).is_some_and(|sent| sent.mortal);
        let beat = |entry: &Entry| entry.facts.is_none() || entry.ttl.is_some() || immortal(entry);
        let beats = entries.any(|entry| beat(entry) || mortal(entry));
        // C-08: that a dropped name does not exist may be reported late, if its collection might have had it.
        let collections = || self.names.iter().filter(|name| is_collection(name));
        let dropped =
            |name: &String| !self.sent.contains_key(name) && collections().any(|collection| covers(collection, name));
        // K-16: that a collection was not answered in time is reported once the client holds nothing of it.
        let empty =
            |name: &String| collections().any(|other| other == name) && !self.sent.keys().any(|it| covers(name, it));
        let moot = |name: &String| dropped(name) || empty(name);
        beats || answer.entries.is_empty() && answer.removed.iter().all(moot)
    }

    fn take(&mut self, answer: &Answer, full: bool, all: bool) {
        self.chain = answer.nonce.ends_with('+');
        if full {
            self.sent.clear();
        }
        if full || all {
            let listed = answer.entries.iter();
            let listed = listed.filter_map(|entry| Some((entry.name.clone(), entry.facts.as_ref()?.revision)));
            self.listed = listed.collect();
        }
        for name in &answer.removed {
            self.sent.remove(name);
            self.remembered.remove(name);
        }
        for entry in &answer.entries {
            if let Some(sent) = self.sent.get_mut(&entry.name) {
                sent.mortal |= entry.ttl.is_some();
            }
            let sent = entry.facts.as_ref().map(|_| Sent {
                aliases: entry.aliases.clone(),
                mortal: entry.ttl.is_some(),
            });
            self.sent.extend(sent.map(|sent| (entry.name.clone(), sent)));
        }
        self.licence.clear();
        self.open = Some(answer.nonce.clone());
    }
}

impl Follower {
    pub(crate) const fn new(dialect: Dialect, hostile: bool, class: usize) -> Self {
        Self {
            dialect,
            tracks: BTreeMap::new(),
            sent: 0,
            reads: BTreeMap::new(),
            said_all: None,
            hostile,
            own: None,
            class,
        }
    }

    /// The server that an authority was read from.
    pub(crate) fn reads(&self, authority: Option<String>) -> Option<usize> {
        self.reads.get(&authority).copied()
    }

    pub(crate) fn request(&mut self, kind: Type, request: &Up) {
        self.said_all = None;
        let first = !self.tracks.contains_key(&kind);
        let track = self.tracks.entry(kind).or_default();
        let nonce = match request {
            Up::Sotw(request) => &request.response_nonce,
            Up::Delta(request) => &request.response_nonce,
        };
        track.open.take_if(|open| open == nonce);
        match request {
            Up::Sotw(request) => {
                track.reborn |= first && !request.version_info.is_empty();
                let mut names: BTreeSet<String> = request.resource_names.iter().cloned().collect();
                let all = names.remove("*");
                track.named |= all || !names.is_empty();
                track.wildcard = all || !track.named && kind.full_state();
                track.licence.extend(names.symmetric_difference(&track.names).cloned());
                track.names = names;
            }
            Up::Delta(request) => {
                let (more, less) = (&request.resource_names_subscribe, &request.resource_names_unsubscribe);
                track.wildcard |= first && more.is_empty() && less.is_empty() && kind.full_state();
                let remembered = request.initial_resource_versions.keys().filter(|_| first);
                track.remembered.extend(remembered.cloned());
                track.licence.extend(more.iter().chain(less).cloned());
                track.names.extend(more.iter().filter(|name| *name != "*").cloned());
                track.wildcard |= more.iter().any(|name| name == "*");
                track.wildcard &= !less.iter().any(|name| name == "*");
                track.names.retain(|name| !less.contains(name));
                // B-15: what the client gives up, by its name or with its collection, it does not remember any more.
                let given_up = |name: &String| less.iter().any(|less| less == name || covers(less, name));
                let (names, wildcard) = (&track.names, track.wildcard);
                let asks = |name: &String| {
                    wildcard && !name.starts_with("xdstp:")
                        || names.contains(name)
                        || names.iter().any(|collection| covers(collection, name))
                };
                track.remembered.retain(|name| !given_up(name) || asks(name));
            }
        }
        // C-09: without a wildcard the client forgets what it does not name.
        let sent = std::mem::take(&mut track.sent).into_iter();
        let covers = |name: &str| track.wildcard && !name.starts_with("xdstp:");
        let keeps = |(name, sent): &(String, Sent)| covers(name) || track.explicit(name, &sent.aliases);
        track.sent = sent.filter(keeps).collect();
    }

    /// All that is surely known of what is wanted.
    pub(super) fn contents(&self, reading: &Reading<'_>) -> Contents {
        let mut contents = Contents::new();
        for (kind, track) in &self.tracks {
            if track.wildcard {
                let covered = reading.covered(*kind);
                contents.insert((*kind, "*".to_owned()), u64::from(reading.is_complete(*kind)));
                for (name, revision) in covered {
                    contents.insert((*kind, format!("*{name}")), revision);
                    contents.insert((*kind, name), revision);
                }
            }
            for collection in track.names.iter().filter(|name| is_collection(name)) {
                let (members, whole) = reading.members(*kind, collection);
                contents.insert((*kind, format!("{collection}{whole}")), u64::from(whole));
                contents.extend(members.into_iter().map(|(name, revision)| ((*kind, name), revision)));
            }
            // What is held of a collection may go by its own name.
            let member = |name: &&String| track.names.iter().any(|collection| covers(collection, name));
            for name in track.names.iter().chain(track.sent.keys().filter(member)) {
                match reading.seen(*kind, name, track) {
                    Seen::Present(revision) => drop(contents.insert((*kind, name.clone()), revision)),
                    Seen::Absent(Reason::Said | Reason::Expired) => drop(contents.insert((*kind, name.clone()), 0)),
                    Seen::Absent(Reason::TimedOut) => drop(contents.insert((*kind, name.clone()), u64::MAX)),
                    Seen::Unwanted | Seen::Unknown | Seen::Uncovered => {}
                }
            }
        }
        contents
    }

    /// G-20: whether a full state waits for what it cannot leave out.
    pub(super) fn waits(&self, reading: &Reading<'_>) -> bool {
        let full = |kind: &Type| self.dialect == Dialect::Sotw && kind.full_state();
        let unknown = |kind: &Type, track: &Track| {
            let mut names = track.names.iter();
            names.any(|name| reading.seen(*kind, name, track) == Seen::Unknown)
        };
        let mut tracks = self.tracks.iter().filter(|(kind, _)| full(kind));
        tracks.any(|(kind, track)| unknown(kind, track))
    }

    /// Judges a response by what the session reads.
    pub(super) fn response(&mut self, answer: &Answer, reading: &Reading<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let kind = answer.kind;
        let full = self.dialect == Dialect::Sotw && kind.full_state();
        // B-18: all secrets of the client are in each response.
        let all = self.dialect == Dialect::Sotw && kind == Type::Sds;
        let Some(track) = self.tracks.get_mut(&kind) else {
            return Err(Broken::new(Rule::B29, format!("{kind:?} was never asked for")));
        };
        // G-09, L-21: nothing that it wants has changed since everything was sent, whichever server it comes from now.
        tally.hit(Rule::G09);
        if self.said_all.is_some() && !track.expects(answer, reading) && !self.hostile {
            return Err(Broken::new(Rule::G09, format!("{} says nothing new", answer.brief())));
        }
        for entry in &answer.entries {
            let Some(facts) = &entry.facts else { continue };
            tally.hit(Rule::G17);
            if is_unnamed(&entry.name) {
                tally.hit(Rule::F13);
            }
            if canonical(&entry.name) != entry.name {
                tally.hit(Rule::F09);
                if !track.names.contains(&entry.name) {
                    return Err(Broken::new(Rule::F09, format!("nobody asked for {}", entry.name)));
                }
            }
            let relisted = (full || all) && track.listed.get(&entry.name) == Some(&facts.revision);
            let kept = relisted
                && matches!(
                    reading.seen(kind, &entry.name, track),
                    Seen::Unknown | Seen::Absent(_) | Seen::Uncovered | Seen::Unwanted
                );
            if !kept && !reading.said(kind, &entry.name, facts.revision) {
                let server = reading.reads.get(&authority(&entry.name)).map(|(server, _)| *server);
                let what = format!("{} @{} is not the word of {server:?}", entry.name, facts.revision);
                return Err(Broken::new(Rule::G17, what));
            }
        }
        let listed: BTreeSet<&String> = answer.entries.iter().map(|entry| &entry.name).collect();
        let omitted = track.sent.keys().filter(|name| full && !listed.contains(name));
        for name in answer.removed.iter().chain(omitted).filter(|_| !self.hostile) {
            tally.hit(Rule::G11);
            let seen = reading.seen(kind, name, track);
            if is_nothing(kind, name) {
                tally.hit(Rule::F15);
            }
            // K-16: a missing answer removes nothing.
            let held = track.sent.contains_key(name);
            let holds = || {
                track
                    .sent
                    .keys()
                    .chain(&track.remembered)
                    .any(|member| covers(name, member))
            };
            let timed_out = seen == Seen::Absent(Reason::TimedOut) && (held || holds());
            if timed_out || !track.chain && matches!(seen, Seen::Unknown | Seen::Present(_)) {
                let what = format!("{kind:?} {name} goes, and the view that is read has {seen:?}");
                return Err(Broken::new(Rule::G11, what));
            }
        }
        track.take(answer, full, all);
        self.sent += 1;
        Ok(())
    }
}
