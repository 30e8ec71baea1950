// SPDX-License-Identifier: Apache-2.0
//! The state of every control plane: the state of its streams, and the clients that depend on it.
//!
//! Owns the joining of the two. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;

use super::fleet::{Fed, Fleet, ServerList};
use crate::admin::{Clusters, LackingNames, NameCounts, OfType, ServerRow, SpokenDialect, State, why};
use crate::cache::{Scopes, View};
use crate::census::visit;
use crate::clock::WallClock;
use crate::telemetry::Faults;
use crate::upstream::{StreamPhase, StreamStatus};
use crate::xds::{Name, Owners, ServerState, Target, TypeUrl};

/// How many missing names are shown, and how many characters of each.
const NAMES_SHOWN: usize = 5;
const NAME_SHOWN: usize = 80;
/// How many types are shown by name. Clients may invent types.
const TYPES_SHOWN: usize = 64;

/// All views and the streams that feed them.
pub(super) struct Overview {
    scopes: Arc<Scopes>,
    fleet: Arc<Fleet>,
    faults: Arc<Faults>,
    streams: Mutex<Vec<(Weak<View>, Statuses)>>,
}

type Statuses = Box<dyn Fn() -> Vec<StreamStatus> + Send + Sync>;

impl Overview {
    pub(super) fn new(fleet: &Arc<Fleet>, scopes: &Arc<Scopes>, faults: &Arc<Faults>) -> Arc<Self> {
        Arc::new(Self {
            scopes: scopes.clone(),
            fleet: fleet.clone(),
            faults: faults.clone(),
            streams: Mutex::default(),
        })
    }

    /// Adds a view and the function that returns the status of its streams.
    pub(super) fn add(&self, view: &Arc<View>, statuses: impl Fn() -> Vec<StreamStatus> + Send + Sync + 'static) {
        let mut streams = self.streams.lock();
        // Those that are gone are looked for only when there is no room, so that many views may come one after the other.
        if streams.len() == streams.capacity() {
            streams.retain(|(view, _)| view.strong_count() > 0);
        }
        streams.push((Arc::downgrade(view), Box::new(statuses)));
    }

    /// Returns the current state of everything.
    pub(super) fn look(&self) -> Clusters {
        let views = self.scopes.all();
        let mut clusters = Clusters {
            faults: self.faults.all(),
            ..Clusters::default()
        };
        for (name, row) in self.fleet.rows() {
            let concerned = |view: &&Arc<View>| row.readers.have(|| self.scopes.rule(view.class()));
            let concerned: Vec<&Arc<View>> = views.iter().filter(concerned).collect();
            let servers = row.servers.iter().copied().chain(left(&row, &concerned));
            let servers = servers.filter_map(|at| self.server(at, row.owner.as_deref(), &concerned));
            let servers = servers.collect();
            clusters.authorities.insert(name, servers);
        }
        for view in &views {
            let server = view.server();
            let name = self.fleet.get(server).map(|member| member.name.clone());
            clusters.names.extend(name.map(|name| (server, name)));
        }
        clusters
    }

    /// Counts all names.
    pub(super) fn count(&self) -> NameCounts {
        let mut counts = NameCounts::new();
        for view in self.scopes.all() {
            count(&view, self.scopes.routes().owners(), &mut counts);
        }
        counts
    }

    fn server(&self, at: usize, owner: Option<&str>, views: &[&Arc<View>]) -> Option<ServerRow> {
        let views: Vec<_> = views.iter().copied().filter(|view| view.server() == at).collect();
        let member = self.fleet.get(at)?;
        let of_views = self.statuses(&views);
        let mut streams: Vec<StreamStatus> = of_views.iter().flatten().cloned().collect();
        // What a stream has met is newer than the attempts before it.
        let source = member.status().filter(|_| !streams.iter().any(has_met));
        let unseen = source.as_ref().map(|source| match source.phase {
            StreamPhase::Answering => State::Answering,
            StreamPhase::Waiting => State::Unreachable,
            StreamPhase::Connecting if source.failing_since.is_some() => State::Unreachable,
            StreamPhase::Idle | StreamPhase::Connecting | StreamPhase::Open => State::Connecting,
        });
        streams.extend(source);
        let used: Vec<&StreamStatus> = streams
            .iter()
            .filter(|status| status.phase != StreamPhase::Idle)
            .collect();
        let state = if used.is_empty() {
            State::Unused
        } else {
            // I-05: problems with files, and reasons why a server is not reached, are shown before any client needs them.
            unseen
                .filter(|_| views.is_empty())
                .unwrap_or_else(|| server_state(&views, &of_views))
        };
        let since = match state {
            State::Unreachable => used.iter().filter_map(|status| status.failing_since).min(),
            State::Answering => since(&used, StreamPhase::Answering),
            State::Connected => since(&used, StreamPhase::Open),
            State::Connecting | State::Unused => used.iter().map(|status| status.since).min(),
        };
        let open = |status: &&&StreamStatus| is_open(status);
        let readers = views.iter().map(|view| view.demand().readers_of(owner));
        let (sessions, watching) = readers.fold((0, 0), |(a, b), (reading, watching)| (a + reading, b + watching));
        let mut types = BTreeMap::new();
        match &member.fed {
            // All views read the same files, which are there before any client asks.
            Fed::Files(files) => hold_all(&files.counts(), &mut types),
            Fed::Grpc(..) | Fed::Rest(..) => views.iter().for_each(|view| hold(view, &mut types)),
        }
        let clock = WallClock::read();
        let time = |at: Option<Instant>| at.map(|at| clock.time(at));
        let mut server = ServerRow {
            server: member.name.clone(),
            state: state.word().to_owned(),
            since: time(since),
            last_error: used.iter().find_map(|status| status.error.clone()),
            last_success: time(streams.iter().filter_map(|status| status.last_success).max()),
            next_attempt: time(used.iter().filter_map(|status| status.next_attempt).min()),
            streams: used.iter().filter(open).count(),
            refused: used.iter().filter(|status| status.refused).count(),
            dialects: dialects(&used),
            suspected: by_type(streams.iter().flat_map(|status| &status.suspected)),
            unserved: by_type(streams.iter().flat_map(|status| &status.unserved)),
            sessions,
            watching,
            types,
            lacking: lacking(&views, self.scopes.routes().owners(), owner),
            why: String::new(),
        };
        server.why = why(&server, since, used.len(), clock);
        Some(server)
    }

    /// Returns the status of the streams of each view.
    fn statuses(&self, views: &[&Arc<View>]) -> Vec<Vec<StreamStatus>> {
        let all = self.streams.lock();
        let mut of: BTreeMap<*const View, Vec<&Statuses>> = BTreeMap::new();
        for (view, statuses) in all.iter() {
            of.entry(view.as_ptr()).or_default().push(statuses);
        }
        let ours = |view: &&Arc<View>| of.get(&Arc::as_ptr(view)).into_iter().flatten();
        views
            .iter()
            .map(|view| ours(view).flat_map(|statuses| statuses()).collect())
            .collect()
    }
}

/// Returns the servers that are not configured for the readers of a list any more, and from which sessions still read what is asked for
/// there.
fn left(row: &ServerList, views: &[&Arc<View>]) -> BTreeSet<usize> {
    if row.is_canary {
        return BTreeSet::new();
    }
    let known = |at: &usize| row.servers.contains(at) || row.others.contains(at);
    let others = views.iter().filter(|view| !known(&view.server()));
    let read = others.filter(|view| view.demand().readers_of(row.owner.as_deref()).0 > 0);
    read.map(|view| view.server()).collect()
}

const fn is_open(status: &StreamStatus) -> bool {
    matches!(status.phase, StreamPhase::Open | StreamPhase::Answering)
}

/// Whether the stream has met its server, or failed to.
const fn has_met(status: &StreamStatus) -> bool {
    is_open(status) || status.error.is_some()
}

fn since(streams: &[&StreamStatus], phase: StreamPhase) -> Option<Instant> {
    let streams = streams.iter().filter(|status| status.phase == phase);
    streams.map(|status| status.since).min()
}

/// Returns the texts for each type, with readable type names.
fn by_type<'a>(all: impl Iterator<Item = (&'a TypeUrl, &'a Arc<str>)>) -> BTreeMap<String, String> {
    let shown = all.map(|(type_url, words)| (label(type_url), words.to_string()));
    shown.take(TYPES_SHOWN).collect()
}

/// Returns the dialects of the streams in use, where the server offers two.
fn dialects(streams: &[&StreamStatus]) -> BTreeMap<String, SpokenDialect> {
    let mut dialects: BTreeMap<_, SpokenDialect> = BTreeMap::new();
    for status in streams {
        let Some(why) = &status.why else { continue };
        let spoken = dialects.entry(status.dialect.word().to_owned()).or_default();
        spoken.streams += usize::from(matches!(status.phase, StreamPhase::Open | StreamPhase::Answering));
        spoken.reason = why.to_string();
    }
    dialects
}

/// Returns the state of the server of these views. A server that refuses some streams counts as reachable for the others.
fn server_state(views: &[&Arc<View>], streams: &[Vec<StreamStatus>]) -> State {
    let refused = |streams: &[StreamStatus]| streams.iter().any(|status| status.refused);
    let served = views.iter().zip(streams).filter(|(_, streams)| !refused(streams));
    let mut served = served.map(|(view, _)| view.head().server_state()).peekable();
    if served.peek().is_some() {
        return worst(served);
    }
    worst(views.iter().map(|view| view.head().server_state()))
}

/// Returns the worst of the states that the views of one server have.
fn worst(server_states: impl Iterator<Item = ServerState>) -> State {
    let rank = |server_state| match server_state {
        ServerState::Failing => (0, State::Unreachable),
        ServerState::Trying => (1, State::Connecting),
        ServerState::Open => (2, State::Connected),
        ServerState::Up => (3, State::Answering),
    };
    let worst = server_states.map(rank).min_by_key(|(rank, _)| *rank);
    worst.map_or(State::Unused, |(_, state)| state)
}

fn hold(view: &View, types: &mut BTreeMap<String, OfType>) {
    let cut = view.cut();
    let away = cut.server_state() == ServerState::Failing;
    for (type_url, slot) in cut.slots() {
        let held = held_of(type_url, types);
        held.resources += slot.present();
        held.restored |= slot.stale();
        held.stale |= slot.stale() || away && slot.present() > 0;
    }
}

fn hold_all(counts: &BTreeMap<TypeUrl, usize>, types: &mut BTreeMap<String, OfType>) {
    for (type_url, count) in counts {
        held_of(type_url, types).resources += count;
    }
}

fn held_of<'a>(type_url: &TypeUrl, types: &'a mut BTreeMap<String, OfType>) -> &'a mut OfType {
    let mut name = label(type_url);
    if !types.contains_key(&name) && types.len() >= TYPES_SHOWN {
        "other".clone_into(&mut name);
    }
    types.entry(name).or_default()
}

fn label(type_url: &TypeUrl) -> String {
    type_url.word().to_owned()
}

/// Returns what is subscribed of the owner and was not answered yet.
fn lacking(views: &[&Arc<View>], owners: &Owners, owner: Option<&str>) -> LackingNames {
    let mut all = LackingNames::default();
    for view in views {
        let ours = |(type_url, target): &(TypeUrl, Target)| owners.of(type_url, target.name()) == owner;
        let lacking: Vec<_> = view.unanswered().into_iter().filter(ours).collect();
        all.sessions += view.demand().sessions_of(&lacking).len();
        all.count += lacking.len();
        let room = NAMES_SHOWN.saturating_sub(all.some.len());
        let some = lacking.iter().take(room);
        all.some.extend(some.map(|(type_url, target)| shown(type_url, target)));
    }
    all
}

/// G-15: counts the names of a view. Only what has an owner is counted apart, because clients may invent any other.
fn count(view: &View, owners: &Owners, counts: &mut NameCounts) {
    visit(view, |entry| {
        let owner = owners.of(&entry.type_url, entry.name.as_ref()).unwrap_or_default();
        let key = (owner.to_owned(), entry.cached, entry.type_url);
        *counts.entry(key).or_default() += 1;
    });
}

fn shown(type_url: &TypeUrl, target: &Target) -> String {
    let name = match target {
        Target::Wildcard => Name::WILDCARD,
        Target::Name(name) => name.as_str(),
    };
    // Clients choose the names, so they are escaped.
    let name: String = name.chars().take(NAME_SHOWN).flat_map(char::escape_default).collect();
    format!("{} {name}", label(type_url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::plan;
    use crate::cache::ViewSettings;
    use crate::classes::Class;

    /// A server that refuses the streams of one view answers the others. A server that answers no view is unreachable.
    #[test]
    fn a_server_without_room_is_there() {
        let settings = ViewSettings {
            linger: std::time::Duration::ZERO,
            names_per_view: 0,
            pinned_bytes_per_view: 0,
            history_bytes: 16 << 20,
        };
        let view = |server_state| {
            let view = View::new(Class::default(), settings);
            view.publish_server_state(server_state);
            view
        };
        let (up, failing) = (view(ServerState::Up), view(ServerState::Failing));
        let streams = |refused| {
            let status = StreamStatus {
                phase: StreamPhase::Waiting,
                refused,
                ..StreamStatus::idle(xds::Dialect::Delta, plan::now())
            };
            vec![status]
        };
        let both = [&up, &failing];
        assert_eq!(server_state(&both, &[streams(false), streams(true)]), State::Answering);
        assert_eq!(
            server_state(&both, &[streams(false), streams(false)]),
            State::Unreachable
        );
        assert_eq!(server_state(&[&failing], &[streams(true)]), State::Unreachable);
        assert_eq!(server_state(&[], &[]), State::Unused);
    }

    /// G-15: only an authority with servers of its own is counted apart.
    #[test]
    fn names_are_counted_by_authority() {
        let settings = ViewSettings {
            linger: std::time::Duration::ZERO,
            names_per_view: 0,
            pinned_bytes_per_view: 0,
            history_bytes: 16 << 20,
        };
        let view = View::new(Class::default(), settings);
        let seat = view.enter();
        for name in ["waits", "xdstp://a/x/waits", "xdstp://invented/x/waits"] {
            let want = xds::Want {
                type_url: TypeUrl::new("a.B"),
                target: Target::Name(name.into()),
                wanted: true,
                written: None,
            };
            assert_eq!(seat.want(&want), Ok(()));
        }
        let mut counts = BTreeMap::new();
        count(&view, &Owners::from_iter(["a"]), &mut counts);
        let counts: Vec<String> = counts
            .iter()
            .map(|((authority, cached, _), count)| format!("{authority} {} {count}", cached.word()))
            .collect();
        assert_eq!(counts, [" requested 2", "a requested 1"]);
    }
}
