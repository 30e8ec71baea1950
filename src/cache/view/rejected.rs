// SPDX-License-Identifier: Apache-2.0
//! What clients of a view reject, and what they use meanwhile: the one table of that.
//!
//! Owns where each of them stands, what the server was told of it (E-24), and the older contents (K-37). Nothing is kept of clients that
//! reject nothing. Asks nobody: sessions say it as it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::ViewSettings;
use super::older::Stock;
use super::rows::Rows;
use classes::{Class, Node};
use inquiry::StreamNumber;
use xds::{Cut, Holds, Known, Name, Older, Resource, Slot, Stance, TypeUrl, Version};

/// What clients of a view reject.
pub struct Rejected {
    table: Mutex<Rejecters>,
    /// How many bytes of older content may be kept that nobody uses.
    history_bytes: AtomicUsize,
}

struct Rejecters {
    /// By type and name; without a name: what relays say of their own clients. Then by seat.
    rejecters: BTreeMap<(TypeUrl, Option<Name>), BTreeMap<u32, Rejecter>>,
    older: Stock,
    /// The types of which clients have rejected something since the writer was told.
    noted: BTreeSet<TypeUrl>,
    /// When the server was last told of each content.
    reported: BTreeMap<TypeUrl, ReportTimes>,
    linger: Duration,
}

type ReportTimes = BTreeMap<(Name, Version), Instant>;

/// A client, and where it stands with a name.
#[derive(Clone, Debug)]
pub struct Rejecter {
    /// Who it says it is.
    pub node: Arc<Node>,
    /// Its stream.
    pub stream: StreamNumber,
    /// Where it stands.
    pub stance: Stance,
}

/// Of this many contents of a type, it is remembered that the server was told.
const REPORTED_MAX: usize = 1024;
/// So much older content of a name is offered.
const OFFERED_MAX: usize = 8;

impl Rejected {
    pub(super) fn new(settings: ViewSettings) -> Self {
        let table = Rejecters {
            rejecters: BTreeMap::new(),
            older: Stock::default(),
            noted: BTreeSet::new(),
            reported: BTreeMap::new(),
            linger: settings.linger,
        };
        Self {
            table: Mutex::new(table),
            history_bytes: AtomicUsize::new(settings.history_bytes),
        }
    }

    pub(super) fn set(&self, settings: ViewSettings) {
        self.table.lock().linger = settings.linger;
        self.history_bytes.store(settings.history_bytes, Ordering::Relaxed);
    }

    /// How many bytes of older content may be kept that nobody uses.
    pub(super) fn history_bytes(&self) -> usize {
        self.history_bytes.load(Ordering::Relaxed)
    }

    /// The client at this seat says where it stands; `None`: it rejects nothing of the name any more. `replaced` returns what the view still
    /// has of the name with this version. Returns whether the server may have to be told.
    pub(super) fn tell(
        &self,
        seat: u32,
        (type_url, name): (&TypeUrl, Option<&Name>),
        rejecter: Option<Rejecter>,
        replaced: impl Fn(&Name, xds::Brief) -> Option<Arc<Resource>>,
        now: Instant,
    ) -> bool {
        let mut table = self.table.lock();
        if let Some(name) = name.filter(|_| !type_url.kind().is_fleeting()) {
            table.use_older(seat, (type_url.clone(), name.clone()), rejecter.as_ref(), replaced, now);
        }
        let rejects = rejecter.as_ref().is_some_and(|one| one.stance.rejects.is_some());
        let key = (type_url.clone(), name.cloned());
        match rejecter {
            Some(rejecter) => _ = table.rejecters.entry(key).or_default().insert(seat, rejecter),
            None => table.remove(&key, seat),
        }
        rejects && table.noted.insert(type_url.clone())
    }

    /// Whether older contents are used that were not at the last call of [`Rejected::take_roots`], or the other way round.
    pub(super) fn uses_others(&self) -> bool {
        self.table.lock().older.has_changed()
    }

    /// The client at this seat has gone, or reads another view.
    pub(super) fn leave(&self, seat: u32) {
        let mut table = self.table.lock();
        let keys = table.rejecters.iter().filter(|(_, seats)| seats.contains_key(&seat));
        for key in keys.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            let node = table
                .rejecters
                .get(&key)
                .and_then(|seats| Some(seats.get(&seat)?.node.clone()));
            if let (Some(node), (type_url, Some(name))) = (node, &key) {
                let id = Arc::from(&*node.id);
                table.older.go(&(type_url.clone(), name.clone()), seat, &id);
            }
            table.remove(&key, seat);
        }
    }

    /// Returns the older contents that may be sent to a client in the place of what it rejects: first what clients with its software use or
    /// accepted, each group with the newest first. `accepted` is what the view still has of the name that clients have accepted.
    pub(super) fn older(
        &self,
        key: &(TypeUrl, Name),
        software: u16,
        accepted: Vec<Arc<Resource>>,
        is_current: impl Fn(Version) -> bool,
    ) -> Vec<Arc<Resource>> {
        if key.0.kind().is_fleeting() {
            return Vec::new();
        }
        let mut all: Vec<Arc<Resource>> = self.table.lock().older.of_name(key).cloned().collect();
        let known =
            |one: &Arc<Resource>, all: &[Arc<Resource>]| all.iter().any(|other| other.version() == one.version());
        for one in accepted {
            if !known(&one, &all) {
                all.push(one);
            }
        }
        all.retain(|one| !is_current(one.version()));
        all.sort_by_key(|one| (one.accepted() & software != 0, one.received()));
        all.reverse();
        all.truncate(OFFERED_MAX);
        all
    }

    /// How many clients use this content although it is not what the control plane says.
    #[must_use]
    pub fn users(&self, type_url: &TypeUrl, name: &Name, version: Version) -> usize {
        let key = (type_url.clone(), name.clone());
        self.table.lock().older.users(&key, version)
    }

    /// A person wants a name to have no older content any more. Returns whether it had.
    pub(super) fn release(&self, type_url: &TypeUrl, name: &Name) -> bool {
        self.table.lock().older.release(&(type_url.clone(), name.clone()))
    }

    /// Returns the older contents that refer to what they name, if these are others than at the last call.
    pub(super) fn take_roots(&self) -> Option<Vec<Older>> {
        self.table.lock().older.take_roots()
    }

    /// Returns all older contents, with the node ids of those who use them.
    pub(super) fn all_older(&self) -> Vec<Older> {
        let table = self.table.lock();
        if table.older.is_empty() {
            return Vec::new();
        }
        let ids = table.ids();
        table.older.all(|seat| ids.get(&seat).cloned())
    }

    /// Returns the older contents that clients use.
    #[must_use]
    pub fn used(&self) -> Vec<Older> {
        let mut all = self.all_older();
        all.retain(|one| !one.keepers.is_empty());
        all
    }

    /// Takes over the older contents of an earlier run of the relay.
    pub(super) fn restore(&self, older: &[Older]) {
        self.table.lock().older.restore(older);
    }

    /// Time has passed. Returns the contents that do not refer to what they name any more, although clients use them.
    pub(super) fn expire(&self, now: Instant) -> Vec<(TypeUrl, Arc<Resource>)> {
        let mut table = self.table.lock();
        if table.older.is_empty() {
            return Vec::new();
        }
        let (linger, room) = (table.linger, self.history_bytes());
        table.older.expire(linger, room, now)
    }

    /// Returns the types of which clients have rejected something since the last call.
    #[must_use]
    pub fn take(&self) -> BTreeSet<TypeUrl> {
        std::mem::take(&mut self.table.lock().noted)
    }

    /// Returns the types and names of which clients reject something; without a name: what relays say of their clients.
    #[must_use]
    pub fn names(&self) -> Vec<(TypeUrl, Option<Name>)> {
        self.table.lock().rejecters.keys().cloned().collect()
    }

    /// Returns the rows of a name; without one, of what relays say of their clients.
    pub(super) fn of(&self, class: &Class, cut: &Cut, key: &(TypeUrl, Option<Name>)) -> Rows {
        let (mut rows, table) = (Rows::of(class), self.table.lock());
        table.fill(&mut rows, cut, key);
        rows
    }

    /// Returns the rows of a type.
    pub(super) fn of_type(&self, class: &Class, cut: &Cut, type_url: &TypeUrl) -> Rows {
        let (mut rows, table) = (Rows::of(class), self.table.lock());
        let of_type = table.rejecters.range((type_url.clone(), None)..);
        let of_type = of_type.take_while(|((of, _), _)| of == type_url);
        of_type.for_each(|(key, _)| table.fill(&mut rows, cut, key));
        rows
    }

    /// Calls this for each rejection, with its stream, and with whether that was sent older content in the place of what it rejects.
    pub fn each(&self, mut found: impl FnMut(&TypeUrl, StreamNumber, bool)) {
        for ((type_url, _), seats) in &self.table.lock().rejecters {
            for one in seats.values().filter(|one| one.stance.rejects.is_some()) {
                found(type_url, one.stream, one.stance.holds.is_older());
            }
        }
    }

    /// The server was told that clients reject these contents. Forgets those that are not in the cut any more.
    pub fn note_reported(&self, cut: &Cut, type_url: &TypeUrl, contents: Vec<(Name, Version)>, at: Instant) {
        let mut table = self.table.lock();
        let reported = table.reported.entry(type_url.clone()).or_default();
        reported.retain(|(name, version), _| served(cut, type_url, name, *version).is_some());
        reported.extend(contents.into_iter().map(|content| (content, at)));
        while reported.len() > REPORTED_MAX {
            reported.pop_first();
        }
    }
}

impl Rejecters {
    /// Returns the node ids of those who reject something, by seat.
    fn ids(&self) -> BTreeMap<u32, Arc<str>> {
        let mut ids: BTreeMap<u32, Arc<str>> = BTreeMap::new();
        for (seat, rejecter) in self.rejecters.values().flatten() {
            ids.entry(*seat).or_insert_with(|| Arc::from(&*rejecter.node.id));
        }
        ids
    }

    /// Adds what clients reject of a name, as far as it is what the server says now. What has changed since is on its way to them.
    fn fill(&self, rows: &mut Rows, cut: &Cut, key: &(TypeUrl, Option<Name>)) {
        let (type_url, name) = key;
        for one in self.rejecters.get(key).into_iter().flat_map(BTreeMap::values) {
            let Some(refusal) = &one.stance.rejects else { continue };
            let Some(name) = name else {
                rows.add(one, refusal, None, None);
                continue;
            };
            let content = (refusal.version).and_then(|version| served(cut, type_url, name, version));
            if let Some(content) = content {
                let reported = self.reported.get(type_url);
                let at = reported.and_then(|reported| reported.get(&(name.clone(), content.version())).copied());
                rows.add(one, refusal, Some(content), at);
            }
        }
    }

    fn remove(&mut self, key: &(TypeUrl, Option<Name>), seat: u32) {
        if let Some(seats) = self.rejecters.get_mut(key) {
            seats.remove(&seat);
            if seats.is_empty() {
                self.rejecters.remove(key);
            }
        }
    }

    /// Notes what the client at this seat uses.
    fn use_older(
        &mut self,
        seat: u32,
        key: (TypeUrl, Name),
        rejecter: Option<&Rejecter>,
        replaced: impl Fn(&Name, xds::Brief) -> Option<Arc<Resource>>,
        now: Instant,
    ) {
        let used = rejecter
            .filter(|one| !one.node.is_relay())
            .and_then(|one| match &one.stance.holds {
                Holds::Own(content) | Holds::Older(content) => Some((one, content.clone())),
                Holds::Version(version) => {
                    let known = self.older.find(&key, *version);
                    Some((one, known.or_else(|| replaced(&key.1, *version))?))
                }
                Holds::Unknown => Some((one, self.older.left_by(&key, &one.node.id)?)),
                Holds::Nothing => None,
            });
        let known = used.as_ref().map(|(_, content)| content.version());
        self.older.leave_others(&key, seat, known, now);
        if let Some((one, content)) = used {
            content.note_accepted(1 << one.node.user_agent.number());
            self.older.keep(&key.0, &content, seat, &one.node.id, now);
        }
    }
}

/// Returns what is served of a name, if it has this version.
fn served<'a>(cut: &'a Cut, type_url: &TypeUrl, name: &Name, version: Version) -> Option<&'a Arc<Resource>> {
    let halves = cut.slot(type_url).into_iter().flat_map(Slot::halves);
    let mut known = halves.filter_map(|state| state.entries().get(name).and_then(Known::resource));
    known.find(|found| found.version() == version)
}
