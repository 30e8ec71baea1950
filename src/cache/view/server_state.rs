//! The state of a view's server, and which sessions must know of it.
//!
//! Owns who is told when the server fails or answers again. Does not choose another server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::View;
use crate::interest::{Seated, Woken};
use crate::routes::WakeOnFailure;
use xds::{Cut, Name, ServerState, Target, TypeUrl};

impl View {
    /// The writer publishes the state of the server. Wakes the sessions that may have to read another view because of it.
    pub fn publish_server_state(&self, server_state: ServerState) {
        let replaced = self.writer.lock();
        let cut = self.cut.load_full();
        if cut.server_state() == server_state {
            return;
        }
        let cut = Arc::new(cut.with_server_state(server_state));
        self.cut.store(cut.clone());
        drop(replaced);
        self.wake_onlookers();
        let fails = server_state == ServerState::Failing;
        let wake_on_failure = *self.wake_on_failure.lock();
        self.nudge(|seated| fails && wake_on_failure == WakeOnFailure::Everybody || seated.compares());
        if fails && wake_on_failure == WakeOnFailure::Lacking {
            self.ring_lacking(&cut);
        }
    }

    /// The writer publishes why the server has not answered on its present stream. Wakes nobody: a session that waits for an
    /// answer reads it when its time is over.
    pub fn publish_reason(&self, reason: Option<&str>) {
        let _replaced = self.writer.lock();
        let cut = self.cut.load_full();
        if cut.reason() != reason {
            self.cut.store(Arc::new(cut.with_reason(reason)));
        }
    }

    /// The servers of authorities have changed: wakes all sessions, and from now on these if the server fails.
    pub(crate) fn reroute(&self, wake_on_failure: WakeOnFailure) {
        *self.wake_on_failure.lock() = wake_on_failure;
        self.nudge(|_| true);
    }

    /// G-12: another server has replaced this one, which must not be sent the versions of its earlier responses any more.
    pub fn supersede(&self) {
        if !self.superseded.swap(true, Ordering::Relaxed) {
            self.interest.notify_one();
        }
    }

    /// Whether another server has replaced this one since the last call.
    #[must_use]
    pub fn take_superseded(&self) -> bool {
        self.superseded.swap(false, Ordering::Relaxed)
    }

    /// How many sessions read this view, and how many only watch it.
    #[must_use]
    pub fn readers(&self) -> (usize, usize) {
        self.readers_if(|_| true)
    }

    /// Whether any session reads this view.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.sets.read().iter().any(|(_, seated)| !seated.watches())
    }

    /// How many read and how many watch it for what one owner has, or for all that has no owner.
    #[must_use]
    pub fn readers_of(&self, owner: Option<&str>) -> (usize, usize) {
        self.readers_if(|seated| seated.owner() == owner)
    }

    /// Whether any session reads it for what one owner has, or for all that has no owner.
    pub(crate) fn is_read_for(&self, owner: Option<&str>) -> bool {
        let sets = self.sets.read();
        let is_reader = |seated: &Seated| seated.owner() == owner && !seated.watches();
        sets.iter().any(|(_, seated)| is_reader(seated))
    }

    fn readers_if(&self, counts: impl Fn(&Seated) -> bool) -> (usize, usize) {
        let sets = self.sets.read();
        let counted = sets.iter().filter(|(_, seated)| counts(seated));
        counted.fold((0, 0), |(reading, watching), (_, seated)| match seated.watches() {
            true => (reading, watching + 1),
            false => (reading + 1, watching),
        })
    }

    /// Returns the wanted targets of which nothing is known.
    #[must_use]
    pub fn lacking(&self) -> Vec<(TypeUrl, Target)> {
        self.leases.unanswered(&self.cut())
    }

    /// Returns the wanted targets which the server has not answered, also those which count as absent because of that.
    #[must_use]
    pub fn unanswered(&self) -> Vec<(TypeUrl, Target)> {
        let mut all = self.lacking();
        for (type_url, slot) in self.cut().slots() {
            let silent = slot.named.silent().iter();
            all.extend(silent.map(|name| (type_url.clone(), Target::Name(name.clone()))));
        }
        all
    }

    /// Returns the wanted targets of a type of which nothing is known.
    #[must_use]
    pub fn lacking_in(&self, type_url: &TypeUrl) -> Vec<Target> {
        self.leases.unanswered_in(type_url, &self.cut())
    }

    /// Returns the types of which the target is wanted, and nothing is known of it.
    #[must_use]
    pub fn lacking_of(&self, target: &Target) -> Vec<TypeUrl> {
        self.leases.unanswered_of(target, &self.cut())
    }

    /// Returns the sessions that want any of these, each as a number of its own.
    #[must_use]
    pub fn sessions_of(&self, wanted: &[(TypeUrl, Target)]) -> BTreeSet<usize> {
        let sets = self.sets.read();
        let mut concerned = BTreeSet::new();
        for (type_url, target) in wanted {
            self.leases.waiters(type_url, target, |set| {
                concerned.insert(set);
            });
        }
        let members = concerned.into_iter().flat_map(|set| sets.members(set));
        members.map(|member| Arc::as_ptr(member).addr()).collect()
    }

    fn ring_lacking(&self, cut: &Cut) {
        let (generation, mut woken) = (self.generation(), Vec::new());
        for lacking in self.leases.unanswered(cut).chunk_by(|a, b| a.0 == b.0) {
            let Some((type_url, _)) = lacking.first() else { continue };
            let names = lacking.iter().filter_map(|(_, target)| match target {
                Target::Wildcard => None,
                Target::Name(name) => Some(name.clone()),
            });
            let names: Vec<Name> = names.collect();
            self.ring_some(type_url, &names, names.len() < lacking.len(), generation, &mut woken);
        }
        drop(Woken::new(woken));
    }

    /// Wakes these sessions without a change in the view.
    fn nudge(&self, who: impl Fn(&Seated) -> bool) {
        let seated: Vec<_> = {
            let sets = self.sets.read();
            let chosen = sets.iter().filter(|(_, seated)| who(seated));
            chosen.map(|(_, seated)| seated.clone()).collect()
        };
        seated.iter().for_each(|seated| seated.bell.nudge());
    }
}
