//! Beside each client stream: what was asked for, what was sent, and whose word that was.
//!
//! Owns its own reading of requests and responses. Refuses to know how a server is chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use distributary::xds::{Cut, Dialect, Known, Name, Reason, Resource};

use crate::body::Type;
use crate::feed::Zone;
use crate::tally::{Broken, Rule, Tally};
use crate::wire::{Answer, Up};

/// What one stream was asked and told.
pub(crate) struct Follower {
    dialect: Dialect,
    pub(super) tracks: BTreeMap<Type, Track>,
    pub(crate) sent: u64,
    /// Which server each authority was read from when it was last looked.
    pub(super) reads: BTreeMap<Option<String>, usize>,
    /// What there was to read when nothing was left to say, if nothing was asked for since.
    pub(super) said_all: Option<Contents>,
}

/// One type.
#[derive(Default)]
pub(super) struct Track {
    named: bool,
    pub(super) wildcard: bool,
    pub(super) names: BTreeSet<String>,
    pub(super) sent: BTreeMap<String, u64>,
    /// Whether the last response said that more follows: then that may be older than the view.
    pub(super) chain: bool,
}

/// What a session reads: of each authority one server's view.
pub(super) struct Reading<'a> {
    pub(super) zones: &'a [Zone],
    pub(super) reads: BTreeMap<Option<String>, (usize, Arc<Cut>)>,
}

/// All that is known of what is wanted: revisions, 0 for what does not exist.
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

/// The authority of a name.
pub(super) fn authority(name: &str) -> Option<String> {
    let rest = name.strip_prefix("xdstp://")?;
    Some(rest.split('/').next().unwrap_or_default().to_owned())
}

impl Reading<'_> {
    pub(super) fn seen(&self, kind: Type, name: &str, track: &Track) -> Seen {
        let explicit = track.names.contains(name);
        let authority = authority(name);
        let wildcard = track.wildcard && authority.is_none();
        if !explicit && !wildcard {
            return Seen::Unwanted;
        }
        let Some((server, cut)) = self.reads.get(&authority) else {
            return Seen::Absent(Reason::Said);
        };
        let Some(slot) = cut.slot(kind.type_url()) else {
            return Seen::Unknown;
        };
        let name = Name::from(name);
        let state = slot.wildcard.as_ref().filter(|_| wildcard);
        let covered = slot.wildcard.as_ref().and_then(|state| state.known(&name));
        let known = covered.or_else(|| slot.named.known(&name).filter(|_| explicit));
        match known {
            Some(Known::Present(resource)) => Seen::Present(self.zones[*server].book.revision(resource)),
            Some(Known::Absent(reason)) => Seen::Absent(*reason),
            None if !explicit && state.is_some_and(|state| state.complete()) => Seen::Uncovered,
            None => Seen::Unknown,
        }
    }

    /// Whether a cut knows nothing of something that is wanted of an authority (G-03).
    pub(super) fn lacks(tracks: &BTreeMap<Type, Track>, authority: Option<&str>, cut: &Cut) -> bool {
        tracks.iter().any(|(kind, track)| {
            let slot = cut.slot(kind.type_url());
            let whole = slot
                .and_then(|slot| slot.wildcard.as_ref())
                .is_some_and(|state| state.complete());
            let unknown = |name: &String| slot.is_none_or(|slot| slot.known(&Name::from(name.as_str())).is_none());
            let ours = |name: &&String| self::authority(name).as_deref() == authority;
            track.wildcard && authority.is_none() && !whole || track.names.iter().filter(ours).any(unknown)
        })
    }

    /// The resources that a wildcard has.
    pub(super) fn covered(&self, kind: Type) -> Vec<(String, u64)> {
        let Some((server, cut)) = self.reads.get(&None) else {
            return Vec::new();
        };
        let state = cut.slot(kind.type_url()).and_then(|slot| slot.wildcard.clone());
        let book = &self.zones[*server].book;
        let entry = |resource: &Arc<Resource>| (resource.name().as_str().to_owned(), book.revision(resource));
        state.iter().flat_map(|state| state.resources().map(entry)).collect()
    }

    pub(super) fn is_complete(&self, kind: Type) -> bool {
        let slot = self.reads.get(&None).and_then(|(_, cut)| cut.slot(kind.type_url()));
        let state = slot.and_then(|slot| slot.wildcard.as_ref());
        state.is_some_and(|state| state.complete())
    }

    /// Whether the server that is read for the name has ever said this of it.
    fn said(&self, kind: Type, name: &str, revision: u64) -> bool {
        let server = self.reads.get(&authority(name)).map(|(server, _)| *server);
        server.is_some_and(|server| self.zones[server].book.place(kind, name, revision).is_some())
    }
}

impl Follower {
    pub(crate) const fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            tracks: BTreeMap::new(),
            sent: 0,
            reads: BTreeMap::new(),
            said_all: None,
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
        match request {
            Up::Sotw(request) => {
                let mut names: BTreeSet<String> = request.resource_names.iter().cloned().collect();
                let all = names.remove("*");
                track.named |= all || !names.is_empty();
                track.wildcard = all || !track.named && kind.full_state();
                track.names = names;
            }
            Up::Delta(request) => {
                let (more, less) = (&request.resource_names_subscribe, &request.resource_names_unsubscribe);
                track.wildcard |= first && more.is_empty() && less.is_empty() && kind.full_state();
                track.names.extend(more.iter().filter(|name| *name != "*").cloned());
                track.wildcard |= more.iter().any(|name| name == "*");
                track.wildcard &= !less.iter().any(|name| name == "*");
                track.names.retain(|name| !less.contains(name));
            }
        }
        // C-09: without a wildcard the client forgets what it does not name.
        let (names, wildcard) = (&track.names, track.wildcard);
        track.sent.retain(|name, _| wildcard || names.contains(name));
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
            for name in &track.names {
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
        let Some(track) = self.tracks.get_mut(&kind) else {
            return Err(Broken::new(Rule::B29, format!("{kind:?} was never asked for")));
        };
        // G-09, L-21: nothing of what it wants has changed since all was said, whoever's word it now is.
        tally.hit(Rule::G09);
        if self.said_all.is_some() {
            return Err(Broken::new(Rule::G09, format!("{} says nothing new", answer.brief())));
        }
        for entry in &answer.entries {
            let Some(facts) = &entry.facts else { continue };
            tally.hit(Rule::G17);
            let relisted = full && track.sent.get(&entry.name) == Some(&facts.revision);
            let kept = relisted
                && matches!(
                    reading.seen(kind, &entry.name, track),
                    Seen::Unknown | Seen::Absent(_) | Seen::Uncovered
                );
            if !kept && !reading.said(kind, &entry.name, facts.revision) {
                let server = reading.reads.get(&authority(&entry.name)).map(|(server, _)| *server);
                let what = format!("{} @{} is not the word of {server:?}", entry.name, facts.revision);
                return Err(Broken::new(Rule::G17, what));
            }
        }
        let listed: BTreeSet<&String> = answer.entries.iter().map(|entry| &entry.name).collect();
        let omitted = track.sent.keys().filter(|name| full && !listed.contains(name));
        for name in answer.removed.iter().chain(omitted) {
            tally.hit(Rule::G11);
            let seen = reading.seen(kind, name, track);
            let unserved = authority(name).is_some_and(|authority| !super::SERVED.contains(&authority.as_str()));
            if unserved {
                tally.hit(Rule::F15);
            }
            // K-16: that nobody answered in time takes nothing away.
            let held = track.sent.contains_key(name);
            let timed_out = seen == Seen::Absent(Reason::TimedOut) && held;
            if timed_out || !track.chain && matches!(seen, Seen::Unknown | Seen::Present(_)) {
                let what = format!("{kind:?} {name} goes, and the view that is read has {seen:?}");
                return Err(Broken::new(Rule::G11, what));
            }
        }
        track.chain = answer.nonce.ends_with('+');
        if full {
            track.sent.clear();
        }
        for name in &answer.removed {
            track.sent.remove(name);
        }
        for entry in &answer.entries {
            let revision = entry.facts.as_ref().map(|facts| facts.revision);
            track
                .sent
                .extend(revision.map(|revision| (entry.name.clone(), revision)));
        }
        self.sent += 1;
        tally.responses += 1;
        Ok(())
    }
}
