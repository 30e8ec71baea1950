// SPDX-License-Identifier: Apache-2.0
//! Which names of a type are asked for beside the others, because a SotW server may be silent for the whole type while one of them is
//! missing (java-control-plane).
//!
//! Owns the division of names between the two streams of a view. Does not know what clients want, and holds no content.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::client::{Client, Feed};
use super::demand::LegKind;
use xds::{Dialect, Name, Target, TypeUrl, Want};

/// The names that have left the list of their type. They stay wanted where they are, with all that is held of them (K-16).
#[derive(Debug, Default)]
pub struct Division {
    types: BTreeMap<TypeUrl, NamesAside>,
}

/// What has left the list of one type.
#[derive(Debug)]
struct NamesAside {
    /// The stream on which the other names of the type are.
    home: LegKind,
    /// K-01: content named these and names them no longer. They are not in the list of the stream that they are on.
    unnamed: BTreeMap<Name, LegKind>,
    /// When to look again which of them are still held.
    look: Option<Instant>,
    /// E-27: these silenced the server, together. The first ones are asked for on the other stream.
    groups: VecDeque<Vec<Name>>,
    /// Those that silence it alone; they are asked for when no group is.
    alone: Vec<Name>,
    /// Since when what is asked for on the other stream is asked for.
    since: Instant,
    /// When those that stand alone are tried again, and how long after the time before.
    retry: Option<Instant>,
    pause: Duration,
    /// Whether no name was left at home. A server that waits to be asked for all that it has (E-18) needs them together.
    all: bool,
    /// When what was answered went back last, if nothing was heard at home since; `true`: in vain, so nothing goes back before.
    returned: Option<(Instant, bool)>,
}

/// The streams to one server, each with what it is for.
pub type Streams<'a> = [(LegKind, &'a mut Client)];

/// How long clients usually take to give up what nothing names any more.
const GIVEN_UP: Duration = Duration::from_secs(5);
/// How long a group is asked for. What answers at all does so at once; what comes later counts when its turn comes again.
const TURN: Duration = Duration::from_secs(5);
/// Those that stand alone are tried again when the server has had news of the type, or of any type if no other name of it is asked for: at
/// most so soon after the time before and as long as trying them may take, and then more and more seldom.
const PAUSE: Duration = Duration::from_secs(60);
const PAUSE_MAX: Duration = Duration::from_secs(3600);

impl Division {
    /// Whether any names of the type have left its list.
    #[must_use]
    pub fn concerns(&self, type_url: &TypeUrl) -> bool {
        self.types.contains_key(type_url)
    }

    /// Returns the stream that a want concerns which [`Demand`](super::Demand) has for this one.
    pub fn route(&mut self, which: LegKind, want: &Want, streams: &mut Streams<'_>) -> LegKind {
        let Some(aside) = self.types.get_mut(&want.type_url) else {
            return which;
        };
        match &want.target {
            Target::Wildcard if want.wanted && which != aside.home => {
                aside.reunite(&want.type_url, streams);
                self.types.remove(&want.type_url);
                which
            }
            Target::Name(name) if which == aside.home && aside.is_away(name) => {
                if !want.wanted {
                    aside.forget(name);
                }
                which.other()
            }
            Target::Name(name) if !want.wanted => {
                aside.forget(name);
                which
            }
            Target::Wildcard | Target::Name(_) => which,
        }
    }

    /// Moves names because of what was heard, and of time. `is_wanted`: whether any client wants a name. Returns whether any may have moved.
    pub fn turn(
        &mut self,
        streams: &mut Streams<'_>,
        is_wanted: impl Fn(&TypeUrl, &Name) -> bool,
        now: Instant,
    ) -> bool {
        let mut renamed = Vec::new();
        let mut silencers = Vec::new();
        for (which, client) in streams.iter_mut() {
            renamed.extend(client.take_renamed());
            silencers.extend(client.take_silencers().into_iter().map(|found| (*which, found)));
        }
        let mut moved = !renamed.is_empty() || !silencers.is_empty();
        for (kind, names) in renamed {
            self.rename(kind, names, streams, now);
        }
        for (which, (type_url, names)) in silencers {
            self.silence(which, type_url, &names, streams, now);
        }
        self.types.retain(|type_url, aside| {
            moved |= aside.turn(type_url, streams, &is_wanted, now);
            !aside.is_empty()
        });
        moved
    }

    /// When the next turn is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.types.values().filter_map(NamesAside::due).min()
    }

    /// K-01: content named these names before it was replaced.
    fn rename(&mut self, kind: xds::Kind, mut names: BTreeSet<Name>, streams: &mut Streams<'_>, now: Instant) {
        let known = self.types.iter().filter(|(type_url, _)| type_url.kind() == kind);
        let before: BTreeSet<Name> = known.flat_map(|(_, aside)| aside.unnamed.keys().cloned()).collect();
        names.extend(before.iter().cloned());
        let all = names.clone();
        if !names.is_empty() {
            streams
                .iter()
                .for_each(|(_, client)| client.strike_named(kind, &mut names));
        }
        for name in before.difference(&names) {
            for (type_url, aside) in &mut self.types {
                aside.named_again(type_url, name, streams);
            }
        }
        for name in all.intersection(&names).filter(|name| !before.contains(*name)) {
            let with = streams.iter().flat_map(|(which, client)| {
                let types = client.types_with(kind, name).into_iter();
                types.map(move |type_url| (*which, type_url))
            });
            for (which, type_url) in with.collect::<Vec<_>>() {
                let mixed = is_mixed(streams, &type_url);
                let aside = self.aside(&type_url, which, now);
                if which == aside.home && !aside.is_away(name) && !mixed {
                    find(streams, which, &type_url).list(&type_url, [name], false);
                    aside.unnamed.insert(name.clone(), which);
                    aside.look.get_or_insert(now + GIVEN_UP);
                }
            }
        }
    }

    /// Returns what has left the list of this type; if that is nothing yet, from this stream.
    fn aside(&mut self, type_url: &TypeUrl, home: LegKind, now: Instant) -> &mut NamesAside {
        let aside = self.types.entry(type_url.clone());
        aside.or_insert_with(|| NamesAside::new(home, now))
    }

    /// E-27: the server says nothing of the type any more since it was asked for these names.
    fn silence(&mut self, which: LegKind, type_url: TypeUrl, names: &[Name], streams: &mut Streams<'_>, now: Instant) {
        let mixed = is_mixed(streams, &type_url);
        let aside = self.aside(&type_url, which, now);
        // What silences the other stream is found out by turns.
        if mixed || which != aside.home {
            return;
        }
        aside.hear(&type_url, streams);
        aside.returned = aside.returned.map(|(since, _)| (since, true));
        aside.shift(&type_url, names, streams, which.other());
        aside.groups.push_back(names.to_vec());
        let home = find(streams, which, &type_url).feed_of(&type_url);
        aside.all |= !home.is_some_and(Feed::has_names);
        aside.ask(&type_url, streams, now);
    }
}

impl NamesAside {
    fn new(home: LegKind, now: Instant) -> Self {
        Self {
            home,
            unnamed: BTreeMap::new(),
            look: None,
            groups: VecDeque::new(),
            alone: Vec::new(),
            since: now,
            retry: None,
            pause: PAUSE,
            all: false,
            returned: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.unnamed.is_empty() && self.groups.is_empty() && self.alone.is_empty() && self.returned.is_none()
    }

    /// The server may have spoken at home since something went back there.
    fn hear(&mut self, type_url: &TypeUrl, streams: &mut Streams<'_>) {
        let home = find(streams, self.home, type_url).feed_of(type_url);
        let is_silent = |since| home.is_some_and(|feed| !feed.has_heard_since(since));
        self.returned = self.returned.filter(|(since, _)| is_silent(*since));
    }

    /// Whether a name is on the other stream.
    fn is_away(&self, name: &Name) -> bool {
        let unnamed = self.unnamed.get(name).is_some_and(|at| *at != self.home);
        unnamed || self.alone.contains(name) || self.groups.iter().any(|group| group.contains(name))
    }

    /// Nobody wants a name any more.
    fn forget(&mut self, name: &Name) {
        self.unnamed.remove(name);
        self.alone.retain(|other| other != name);
        self.groups
            .iter_mut()
            .for_each(|group| group.retain(|other| other != name));
    }

    fn due(&self) -> Option<Instant> {
        let turn = (!self.groups.is_empty()).then_some(self.since + TURN);
        turn.or(self.retry).into_iter().chain(self.look).min()
    }

    fn turn(
        &mut self,
        type_url: &TypeUrl,
        streams: &mut Streams<'_>,
        is_wanted: impl Fn(&TypeUrl, &Name) -> bool,
        now: Instant,
    ) -> bool {
        self.hear(type_url, streams);
        let home = find(streams, self.home, type_url);
        let delta = home.dialect() == Dialect::Delta;
        let joined = home.feed_of(type_url).is_some_and(Feed::has_names);
        let news = match home.feed_of(type_url) {
            Some(feed) if joined => feed.has_heard_since(self.since),
            Some(_) | None => home.goes_on_since(type_url, self.since),
        };
        // What was asked for last on a stream that has ended may have been lost.
        let news = news || !find(streams, self.home.other(), type_url).connected();
        if delta || self.all && joined {
            self.reunite(type_url, streams);
            return true;
        }
        let mut moved = self.groups.iter().any(Vec::is_empty);
        if moved {
            self.ask(type_url, streams, now);
        }
        if self.look.take_if(|at| *at <= now).is_some() {
            let here = self
                .unnamed
                .iter()
                .filter(|(name, at)| **at == self.home && is_wanted(type_url, name));
            let held: Vec<Name> = here.map(|(name, _)| name.clone()).collect();
            if !held.is_empty() {
                self.shift(type_url, &held, streams, self.home.other());
                self.unnamed
                    .extend(held.into_iter().map(|name| (name, self.home.other())));
                self.ask(type_url, streams, now);
                moved = true;
            }
        }
        let here = self.unnamed.values().any(|at| *at == self.home);
        self.look = self.look.filter(|_| here).or_else(|| here.then_some(now + GIVEN_UP));
        let answered = self.take_answered(type_url, streams);
        if !answered.is_empty() {
            self.all = false;
            self.pause = PAUSE;
            self.shift(type_url, &answered, streams, self.home);
            self.returned = Some((now, false));
            self.ask(type_url, streams, now);
        } else if self.retry.take_if(|at| *at <= now).is_some() && self.groups.is_empty() {
            self.pause = (self.pause * 2).min(PAUSE_MAX);
            self.groups.push_back(std::mem::take(&mut self.alone));
            self.ask(type_url, streams, now);
        } else if self.since + TURN <= now && !self.groups.is_empty() {
            // While there is no stream nothing can be answered.
            if find(streams, self.home.other(), type_url).connected() {
                self.halve();
            }
            self.ask(type_url, streams, now);
        } else {
            // One that stands quite alone need not be tried.
            let together =
                self.groups.is_empty() && !self.alone.is_empty() && self.alone.len() + self.unnamed.len() > 1;
            if news && together {
                let tries = u32::try_from(self.alone.len() * 2).unwrap_or(u32::MAX);
                self.retry
                    .get_or_insert(self.since + self.pause.max(TURN.saturating_mul(tries)));
            }
            return moved;
        }
        true
    }

    /// Nothing was heard of what had its turn.
    fn halve(&mut self) {
        let Some(mut silent) = self.groups.pop_front() else {
            return;
        };
        let half = silent.split_off(silent.len().div_ceil(2));
        match half.is_empty() {
            true => self.alone.append(&mut silent),
            false => [half, silent].into_iter().for_each(|half| self.groups.push_front(half)),
        }
    }

    /// Takes those that were answered on the other stream, in whichever turn. What is answered there is best asked for there, as long as home
    /// is silent with it as without it.
    fn take_answered(&mut self, type_url: &TypeUrl, streams: &mut Streams<'_>) -> Vec<Name> {
        let other = find(streams, self.home.other(), type_url).feed_of(type_url);
        let Some(other) = other.filter(|_| !self.returned.is_some_and(|(_, in_vain)| in_vain)) else {
            return Vec::new();
        };
        let all = self.groups.iter_mut().chain([&mut self.alone]);
        all.flat_map(|names| names.extract_if(.., |name| other.has_heard_of(name)))
            .collect()
    }

    /// Asks on the other stream for what has its turn there, and for nothing else that silences the server.
    fn ask(&mut self, type_url: &TypeUrl, streams: &mut Streams<'_>, now: Instant) {
        self.groups.retain(|group| !group.is_empty());
        let other = find(streams, self.home.other(), type_url);
        let away = self
            .unnamed
            .iter()
            .filter(|(_, at)| **at != self.home)
            .map(|(name, _)| name);
        let rest: BTreeSet<&Name> = self.alone.iter().chain(away).collect();
        let (first, later) = self
            .groups
            .iter()
            .enumerate()
            .partition::<Vec<_>, _>(|(at, _)| *at == 0);
        other.list(type_url, later.into_iter().flat_map(|(_, group)| group), false);
        other.list(type_url, rest.iter().copied(), first.is_empty());
        other.list(type_url, first.into_iter().flat_map(|(_, group)| group), true);
        self.since = now;
    }

    /// K-01: content names a name again.
    fn named_again(&mut self, type_url: &TypeUrl, name: &Name, streams: &mut Streams<'_>) {
        match self.unnamed.remove(name) {
            Some(at) if at == self.home => find(streams, at, type_url).list(type_url, [name], true),
            Some(_) => self.shift(type_url, std::slice::from_ref(name), streams, self.home),
            None => {}
        }
    }

    /// All come back.
    fn reunite(&mut self, type_url: &TypeUrl, streams: &mut Streams<'_>) {
        let unnamed = std::mem::take(&mut self.unnamed);
        let (here, away): (Vec<_>, Vec<_>) = unnamed.into_iter().partition(|(_, at)| *at == self.home);
        find(streams, self.home, type_url).list(type_url, here.iter().map(|(name, _)| name), true);
        let groups = std::mem::take(&mut self.groups).into_iter().flatten();
        let away = away.into_iter().map(|(name, _)| name).chain(groups);
        let away: Vec<Name> = away.chain(std::mem::take(&mut self.alone)).collect();
        self.shift(type_url, &away, streams, self.home);
    }

    /// Moves names from one stream to the other.
    fn shift(&self, type_url: &TypeUrl, names: &[Name], streams: &mut Streams<'_>, to: LegKind) {
        let parted = find(streams, to.other(), type_url).part_names(type_url, names);
        find(streams, to, type_url).join_names(type_url, parted);
    }
}

/// Whether a stream asks for the wildcard of the type.
fn is_mixed(streams: &Streams<'_>, type_url: &TypeUrl) -> bool {
    let mut feeds = streams.iter().filter_map(|(_, client)| client.feed_of(type_url));
    feeds.any(Feed::asks_wildcard)
}

/// Returns the stream of this leg on which the type is asked for, else the one that types share.
#[expect(clippy::indexing_slicing, reason = "there is a stream of each leg")]
fn find<'a>(streams: &'a mut Streams<'_>, which: LegKind, type_url: &TypeUrl) -> &'a mut Client {
    let of = |at: &usize| streams[*at].0 == which;
    let all = (0..streams.len()).filter(of);
    let own = all.clone().find(|at| streams[*at].1.feed_of(type_url).is_some());
    let at = own.or_else(|| all.clone().next()).unwrap_or(0);
    streams[at].1
}
