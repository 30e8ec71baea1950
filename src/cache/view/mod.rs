// SPDX-License-Identifier: Apache-2.0
//! The content of one server for one class of clients.
//!
//! Owns the current cut, who is told when it changes, and what is requested upstream. Knows nothing of the protocol on either
//! side.

mod asked;
mod demand;
mod ended;
mod guarded;
mod head;
mod mailbox;
mod neighbours;
mod older;
mod pressure;
mod publishing;
mod rejected;
mod rows;
mod seat;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use asked::Respondents;
pub use demand::Demand;
pub use guarded::Guarded;
pub use head::{Head, Knowledge};
pub use mailbox::{Mailbox, WordsQuestion};
pub use neighbours::Neighbours;
use pressure::Pressure;
pub use pressure::Summary;
pub use rejected::{Rejected, Rejecter};
pub use rows::Row;
pub use seat::Seat;

use crate::loops::Loops;
use crate::routes::WakeOnFailure;
use crate::vacancy::Vacancy;
use classes::{Class, Node};
use inquiry::Question;
use xds::{Cut, GuardSettings, Name, Rejection, Resource, Slot, Target, TypeUrl, Version, Want};

/// One view.
///
/// There is one writer, its upstream task. In its turn it takes what is wanted ([`View::take_wants`]), and publishes what
/// changes ([`View::publish`]); its next turn is when [`Mailbox::changed`] returns or [`Demand::poll_timeout`] is due. Any number of
/// readers take the current cut without a lock. Nothing is queued: an interest that ends before the writer has seen its
/// beginning leaves no trace, and all changes that a session has not looked at are one change.
pub struct View {
    class: Class,
    server: usize,
    head: Head,
    demand: Demand,
    mailbox: Mailbox,
    rejected: Rejected,
    guarded: Guarded,
    neighbours: Neighbours,
    pressure: Pressure,
}

/// The bounds and the times of a view.
#[derive(Clone, Copy, Debug)]
pub struct ViewSettings {
    /// How long a target is kept that nobody wants any more (K-01).
    pub linger: Duration,
    /// The most targets that can be wanted at the same time (`limits.names_per_view`); 0: no bound.
    pub names_per_view: usize,
    /// The most bytes of old content that sessions may keep in memory; 0: no bound.
    pub pinned_bytes_per_view: usize,
    /// The most bytes of older content that is kept for clients which reject the current one (`limits.history_bytes`).
    pub history_bytes: usize,
}

impl View {
    /// Creates a view of the only server, in which nothing is known.
    #[must_use]
    pub fn new(class: Class, settings: ViewSettings) -> Arc<Self> {
        Self::of(
            0,
            WakeOnFailure::Nobody,
            class,
            settings,
            (Arc::default(), Arc::default()),
        )
    }

    /// Creates a view of this server, in which nothing is known.
    pub(crate) fn of(
        server: usize,
        wake_on_failure: WakeOnFailure,
        class: Class,
        settings: ViewSettings,
        (vacancy, loops): (Arc<Vacancy>, Arc<Loops>),
    ) -> Arc<Self> {
        Arc::new(Self {
            class,
            server,
            head: Head::default(),
            demand: Demand::new(settings, vacancy),
            mailbox: Mailbox::new(loops),
            rejected: Rejected::new(settings),
            guarded: Guarded::default(),
            neighbours: Neighbours::new(wake_on_failure),
            pressure: Pressure::new(settings),
        })
    }

    /// Replaces the bounds and the times.
    pub(crate) fn set(&self, settings: ViewSettings) {
        self.demand.set(settings);
        self.pressure.set(settings);
        self.rejected.set(settings);
    }

    /// Replaces the settings by which removals are held, and wakes the writer if they are others.
    pub fn set_guard(&self, settings: GuardSettings) {
        if self.guarded.set(settings) {
            self.mailbox.wake();
        }
    }

    /// The class of clients that share it.
    #[must_use]
    pub const fn class(&self) -> &Class {
        &self.class
    }

    /// The number of the server that its content comes from.
    #[must_use]
    pub const fn server(&self) -> usize {
        self.server
    }

    /// What is known of it.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// What is wanted of it, and by whom.
    #[must_use]
    pub const fn demand(&self) -> &Demand {
        &self.demand
    }

    /// What its writer is told.
    #[must_use]
    pub const fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// What clients reject of it.
    #[must_use]
    pub const fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    /// How its removals are held.
    #[must_use]
    pub const fn guarded(&self) -> &Guarded {
        &self.guarded
    }

    /// The views of other servers that it has to do with.
    #[must_use]
    pub const fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Returns what is known now.
    #[must_use]
    pub fn cut(&self) -> Arc<Cut> {
        self.head.cut()
    }

    /// Returns what the writer must tell upstream. A want ends only after the linger time, and then the view has forgotten what
    /// it knew of the target: if the want begins anew, the server must be asked again.
    #[must_use]
    pub fn take_wants(&self, now: Instant) -> Vec<Want> {
        let cut = self.cut();
        // F-17: a resource that may not be cached is not kept after its last subscriber has gone.
        let fleeting = |type_url: &TypeUrl, target: &Target| match target {
            Target::Wildcard => false,
            Target::Name(name) => {
                let found = cut.slot(type_url).and_then(|slot| slot.named.resource(name));
                found.is_some_and(|resource| !resource.may_be_cached())
            }
        };
        let turn = self.demand.turn(now, &fleeting);
        if turn.is_short {
            self.mailbox.wake();
        }
        if !turn.ended.is_empty() {
            self.forget(&turn.ended);
        }
        turn.wants
    }

    /// Returns the wanted targets of which nothing is known.
    #[must_use]
    pub fn lacking(&self) -> Vec<(TypeUrl, Target)> {
        self.demand.leases().unanswered(&self.cut())
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
        self.demand.leases().unanswered_in(type_url, &self.cut())
    }

    /// Returns the types of which the target is wanted, and nothing is known of it.
    #[must_use]
    pub fn lacking_of(&self, target: &Target) -> Vec<TypeUrl> {
        self.demand.leases().unanswered_of(target, &self.cut())
    }

    /// A session of this view reads that one, of another server.
    pub fn note_elsewhere(&self, other: &Arc<Self>) {
        self.neighbours.note_elsewhere(other);
    }

    /// Returns what sessions of this view are served by the view of another server, if any read that, and whether all do.
    #[must_use]
    pub fn served_elsewhere(&self) -> Option<(Arc<Cut>, bool)> {
        let other = self.neighbours.elsewhere()?;
        let (reading, watching) = self.demand.readers();
        (watching > 0).then(|| (other.cut(), reading == 0))
    }

    /// Must be called about every second. Sessions whose wants have not changed since the last call get equal shared sets, if
    /// there are any. Each call does a bounded amount of work and leaves the rest to later calls.
    pub fn settle(&self) {
        self.demand.settle(&self.mailbox);
    }

    /// K-25: the server refuses what has come through this relay. The sessions that bring its mark end, and whoever has brought it is
    /// refused with it for a while.
    pub fn end_loop(&self, mark: &str, now: Instant) {
        let ended = self.mailbox.end_relay(mark, now);
        self.demand.dismiss(ended.into_iter());
    }

    /// Returns the sessions that a question is for, as far as the view knows. Others may be among them.
    #[must_use]
    pub fn respondents(self: &Arc<Self>, question: &Question) -> Respondents {
        Respondents::at(self, self.demand.concerned(question))
    }

    /// Returns what clients reject of a type, as the control plane is told.
    #[must_use]
    pub fn rejections(&self, type_url: &TypeUrl) -> Vec<Rejection> {
        let rows = self.rejected.of_type(&self.class, &self.cut(), type_url);
        rows.told(|count| self.demand.each_node(type_url, count))
    }

    /// Returns what clients reject of a name; without a name: what relays say of their clients.
    #[must_use]
    pub fn rejections_of(&self, key: &(TypeUrl, Option<Name>)) -> Vec<Row> {
        self.rejected.of(&self.class, &self.cut(), key).list()
    }

    /// Returns the older contents of a name that may be sent to a client in the place of what it rejects, the first one first.
    #[must_use]
    pub fn older(&self, type_url: &TypeUrl, name: &Name, node: &Node, now: Instant) -> Vec<Arc<Resource>> {
        let cut = self.cut();
        let is_current = |version: Version| {
            let halves = cut.slot(type_url).into_iter().flat_map(Slot::halves);
            let mut known = halves.filter_map(|state| state.resource(name));
            known.any(|current| current.version() == version)
        };
        let accepted = self.head.accepted(type_url, name, now.checked_sub(older::KEPT));
        let key = (type_url.clone(), name.clone());
        self.rejected
            .older(&key, 1 << node.user_agent.number(), accepted, is_current)
    }

    /// A person wants a name to have no older content any more: neither for those who use it, nor for those who come. Returns whether it had.
    pub fn release_older(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let released = self.rejected.release(type_url, name);
        self.publish_older();
        released
    }

    /// Time has passed. Returns the older contents that clients still use, and that do not keep what they name any more.
    #[must_use]
    pub fn expire_older(&self, now: Instant) -> Vec<(TypeUrl, Arc<Resource>)> {
        let over = self.rejected.expire(now);
        self.publish_older();
        over
    }

    /// Returns all that a later run may begin with.
    #[must_use]
    pub fn knowledge(&self, now: Instant) -> Knowledge {
        let mut older = self.rejected.all_older();
        let key = |one: &xds::Older| (one.type_url.clone(), one.name().clone(), one.content.version());
        let used: BTreeSet<_> = older.iter().map(key).collect();
        let accepted = self.head.all_accepted(now.checked_sub(older::KEPT)).into_iter();
        older.extend(accepted.filter(|one| !used.contains(&key(one))));
        self.head.knowledge(older)
    }

    /// Stores what an earlier run knew. It is not served before somebody wants it. What clients went on using stays.
    pub fn set_restored(&self, restored: Cut) {
        self.rejected.restore(restored.older());
        self.head.set_restored(restored.with_older(Vec::new()));
        self.publish_older();
    }
}
