// SPDX-License-Identifier: Apache-2.0
//! What the sessions of a view want.
//!
//! Owns the sessions, the sets of leases that they have, and that a set which nobody has ends. Knows nothing of content: what is known
//! is an argument.

mod changes;
mod rings;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use roaring::RoaringBitmap;

pub(super) use rings::Ring;

use super::ViewSettings;
use crate::Claims;
use crate::interest::{Leases, NameTexts, Seated, Set, Sets, Woken};
use crate::vacancy::Vacancy;
use classes::Node;
use inquiry::{Depth, Inquiry, Question};
use xds::{Name, Target, TypeUrl};

/// All that is wanted of one view, and by whom.
pub struct Demand {
    leases: Leases,
    written: NameTexts,
    sets: Sets,
    /// Numbers of the sessions whose leases have changed since their sets were settled.
    unsettled: Mutex<Vec<u32>>,
    /// Large sets that no session has any more. The writer ends their leases.
    ending: Mutex<Vec<Arc<Set>>>,
    /// Whether the last turn of the writer has left some for the next one.
    behind: AtomicBool,
}

/// Of how many targets the sessions are looked for before others may come or go.
const WANTED_AT_ONCE: usize = 256;

impl Demand {
    pub(super) fn new(settings: ViewSettings, vacancy: Arc<Vacancy>) -> Self {
        Self {
            leases: Leases::new(settings.linger, settings.names_per_view, vacancy),
            written: NameTexts::default(),
            sets: Sets::default(),
            unsettled: Mutex::default(),
            ending: Mutex::default(),
            behind: AtomicBool::new(false),
        }
    }

    /// Replaces the bounds and the times.
    pub(super) fn set(&self, settings: ViewSettings) {
        self.leases.set(settings.linger, settings.names_per_view);
    }

    pub(super) fn enter(
        &self,
        owner: Option<Arc<str>>,
        claims: Arc<Claims>,
        node: Option<Arc<Node>>,
    ) -> (u32, Arc<Seated>) {
        self.sets.enter(owner, claims, node)
    }

    /// What is leased.
    pub(super) const fn leases(&self) -> &Leases {
        &self.leases
    }

    /// How many sessions there are.
    #[must_use]
    pub fn seats(&self) -> usize {
        self.sets.read().len()
    }

    /// How many different sets of targets they want, as far as they are settled.
    pub(super) fn sets(&self) -> usize {
        self.sets.read().sets()
    }

    /// Returns the claims of the connection to which the view counts: that of its first session. None if there is no session.
    pub(crate) fn claims(&self) -> Option<Arc<Claims>> {
        let sets = self.sets.read();
        sets.iter().next().map(|(_, seated)| seated.claims().clone())
    }

    /// Whether there is no session, and nothing is kept for one that might come back.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.sets.read().len() == 0 && self.leases.count().1 == 0
    }

    /// When the writer must call [`View::take_wants`](super::View::take_wants) again at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.leases.poll_timeout()
    }

    /// Returns how many types that are in no table wait until upstream is asked for them.
    #[must_use]
    pub fn waiting_types(&self) -> usize {
        self.leases.waiting_types()
    }

    /// Whether the last call of [`View::take_wants`](super::View::take_wants) has returned only some of them: very many at once would
    /// keep a thread from everybody else. The next call returns more.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }

    /// Whether a session wants this name now, or a collection that it belongs to.
    #[must_use]
    pub fn wants(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let mut targets = std::iter::once(name.clone()).chain(name.collection()).map(Target::Name);
        targets.any(|target| self.leases.is_wanted(type_url, &target))
    }

    /// How many sessions read this view, and how many only watch it.
    #[must_use]
    pub fn readers(&self) -> (usize, usize) {
        self.readers_if(|_, _| true)
    }

    /// Whether any session reads this view.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.sets.read().iter().any(|(_, seated)| !seated.watches())
    }

    /// How many read and how many watch it for what one owner has, or for all that has no owner. A session that wants nothing there
    /// reads nothing.
    #[must_use]
    pub fn readers_of(&self, owner: Option<&str>) -> (usize, usize) {
        self.readers_if(|leases, seated| seated.owner() == owner && (leases || seated.watches()))
    }

    /// Whether any session reads it for what one owner has, or for all that has no owner.
    pub(crate) fn is_read_for(&self, owner: Option<&str>) -> bool {
        let sets = self.sets.read();
        let is_reader = |seated: &Seated| seated.owner() == owner && !seated.watches();
        sets.iter().any(|(_, seated)| is_reader(seated))
    }

    /// Returns the connections of the sessions that read it for what one owner has, each as a number of its own, in order.
    pub(crate) fn connections_of(&self, owner: Option<&str>) -> Vec<usize> {
        let sets = self.sets.read();
        let reading = sets.iter().map(|(_, seated)| seated);
        let reading = reading.filter(|seated| seated.owner() == owner && !seated.watches());
        let mut connections: Vec<_> = reading.map(|seated| connection(seated)).collect();
        connections.sort_unstable();
        connections
    }

    /// Whether any session on one of these connections, which are in order, reads it for what one owner has.
    pub(crate) fn is_read_on(&self, owner: Option<&str>, connections: &[usize]) -> bool {
        let sets = self.sets.read();
        let is_one = |seated: &Seated| connections.binary_search(&connection(seated)).is_ok();
        let mut all = sets.iter();
        all.any(|(_, seated)| seated.owner() == owner && !seated.watches() && is_one(seated))
    }

    fn readers_if(&self, counts: impl Fn(bool, &Seated) -> bool) -> (usize, usize) {
        let sets = self.sets.read();
        let counted = sets.leasing().filter(|(leases, seated)| counts(*leases, seated));
        counted.fold((0, 0), |(reading, watching), (_, seated)| match seated.watches() {
            true => (reading, watching + 1),
            false => (reading + 1, watching),
        })
    }

    /// Returns the sessions that want any of these, each as a number of its own.
    #[must_use]
    pub fn sessions_of(&self, wanted: &[(TypeUrl, Target)]) -> BTreeSet<usize> {
        let mut sessions = BTreeSet::new();
        // Somebody who comes or goes waits for some of them, not for all.
        for some in wanted.chunks(WANTED_AT_ONCE) {
            let sets = self.sets.read();
            let mut concerned = BTreeSet::new();
            for (type_url, target) in some {
                self.leases.waiters(type_url, target, |set| {
                    concerned.insert(set);
                });
            }
            let members = concerned.into_iter().flat_map(|set| sets.members(set));
            sessions.extend(members.map(|member| Arc::as_ptr(member).addr()));
        }
        sessions
    }

    /// Returns the sessions that have not dealt with a change, the longest first, each with the generation of that change.
    #[must_use]
    pub fn laggards(&self) -> Vec<(u64, u32)> {
        let seats = self.sets.read();
        let laggards = seats
            .iter()
            .filter_map(|(number, seated)| Some((seated.bell.since()?, number)));
        let mut laggards: Vec<_> = laggards.collect();
        laggards.sort_unstable();
        laggards
    }

    /// Tells these sessions to end. Returns whether any was told.
    pub(super) fn dismiss(&self, seats: impl Iterator<Item = u32>) -> bool {
        let sets = self.sets.read();
        let seated: Vec<_> = seats.filter_map(|seat| sets.seated(seat).cloned()).collect();
        drop(sets);
        seated.iter().for_each(|laggard| laggard.bell.dismiss());
        !seated.is_empty()
    }

    /// Returns the seats of the sessions that a question is for, as far as it is known here. Others may be among them.
    pub(super) fn concerned(&self, question: &Question) -> Vec<u32> {
        let sets = self.sets.read();
        match &question.depth {
            Depth::Resource(type_url, name) => {
                let waiters = self.waiters(type_url, name).into_iter();
                waiters.flat_map(|set| sets.seats(set)).collect()
            }
            Depth::Types | Depth::Resources => sets.iter().map(|(seat, _)| seat).collect(),
        }
    }

    /// Calls this for the node of each client that asks for anything of a type.
    pub(super) fn each_node(&self, type_url: &TypeUrl, found: &mut dyn FnMut(&Node)) {
        let mut asking = Vec::new();
        let sets = self.sets.read();
        self.leases.everyone(type_url, |set| asking.push(set));
        asking.sort_unstable();
        asking.dedup();
        let seats: RoaringBitmap = asking.into_iter().flat_map(|set| sets.seats(set)).collect();
        let seated = seats.into_iter().filter_map(|seat| sets.seated(seat));
        let reading = seated.filter(|seated| !seated.watches());
        reading.filter_map(|seated| seated.node()).for_each(|node| found(node));
    }

    /// Asks some of the sessions at these seats a question.
    pub(super) fn ask(&self, seats: &mut impl Iterator<Item = u32>, most: usize, inquiry: &Arc<Inquiry>) {
        let whom = &inquiry.question().whom;
        let concerned = |seated: &&Arc<Seated>| !seated.watches() && whom.is_about_connection(seated.claims().number());
        let sets = self.sets.read();
        // Those that have left are not asked: nobody would answer.
        let seated = seats.filter_map(|seat| sets.seated(seat));
        let asked = seated.filter(concerned).take(most);
        let wakers = asked.filter_map(|seated| seated.bell.ask(inquiry.clone())).collect();
        drop(sets);
        drop(Woken::new(wakers));
    }

    /// Returns the sets that wait for a name: by itself, by its collection (C-22), or by the wildcard.
    fn waiters(&self, type_url: &TypeUrl, name: &Name) -> Vec<u32> {
        let named = std::iter::once(name.clone()).chain(name.collection());
        let targets = named.map(Target::Name).chain([Target::Wildcard]);
        let mut sets = Vec::new();
        targets.for_each(|target| self.leases.waiters(type_url, &target, |set| sets.push(set)));
        sets.sort_unstable();
        sets.dedup();
        sets
    }
}

/// Returns a number that no other connection has at the same time.
fn connection(seated: &Seated) -> usize {
    Arc::as_ptr(seated.claims()).addr()
}
