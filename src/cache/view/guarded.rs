//! The removals of a view that are held.
//!
//! Owns what others see of them, the settings by which they are held, and orders on their way to the writer. Holds nothing itself.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::View;
use crate::onlookers::Onlookers;
use xds::{Cut, GuardSettings, Hold, HoldEvent, HoldOrder, Name, Target, TypeUrl};

/// The settings of a view, and orders.
#[derive(Default)]
pub(super) struct Guarded {
    settings: Mutex<GuardSettings>,
    orders: Mutex<Vec<GivenOrder>>,
    /// What is not held any more, the last of it.
    ended: Mutex<VecDeque<(Instant, HoldEvent)>>,
    /// The view of another server that sessions of this one read, as far as the last one that moved there has said.
    elsewhere: Mutex<Weak<View>>,
    /// Those whose writers wait for what this view has, or for who reads it.
    onlookers: Onlookers,
}

/// An order on its way to the writer, which drops the sender once the order is carried out and the holds are published.
pub(super) type GivenOrder = (HoldOrder, oneshot::Sender<Infallible>);

/// How many orders may wait for the writer.
const ORDERS_MAX: usize = 64;
/// How many ends of holds are kept.
const ENDED_MAX: usize = 100;

impl View {
    /// Returns by which settings removals are held.
    #[must_use]
    pub fn guard(&self) -> GuardSettings {
        *self.guarded.settings.lock()
    }

    /// Replaces these settings, and wakes the writer if they are others.
    pub fn set_guard(&self, settings: GuardSettings) {
        let mut held = self.guarded.settings.lock();
        if std::mem::replace(&mut *held, settings) != settings {
            self.interest.notify_one();
        }
    }

    /// A session of this view reads that one, of another server. What is condemned there is condemned here too.
    pub fn note_elsewhere(self: &Arc<Self>, other: &Arc<Self>) {
        *self.guarded.elsewhere.lock() = Arc::downgrade(other);
        if !other.condemned().is_empty() {
            self.docket.add(self);
        }
    }

    /// Returns that view.
    #[must_use]
    pub fn elsewhere(&self) -> Option<Arc<Self>> {
        self.guarded.elsewhere.lock().upgrade()
    }

    /// Returns what sessions of this view are served by the view of another server, if any read that, and whether all do.
    #[must_use]
    pub fn served_elsewhere(&self) -> Option<(Arc<Cut>, bool)> {
        let other = self.guarded.elsewhere.lock().upgrade()?;
        let (reading, watching) = self.readers();
        (watching > 0).then(|| (other.cut(), reading == 0))
    }

    /// The writer of that view is woken at the next change of this one.
    pub(crate) fn note_onlooker(&self, other: &Arc<Self>) {
        self.guarded.onlookers.add(other);
    }

    /// Something has changed here.
    pub(super) fn wake_onlookers(&self) {
        self.guarded.onlookers.wake();
    }

    /// The writer has a turn.
    pub(crate) fn wake_writer(&self) {
        self.interest.notify_one();
    }

    /// Whether a session wants this name now, or a collection that it belongs to.
    #[must_use]
    pub fn wants(&self, type_url: &TypeUrl, name: &Name) -> bool {
        let mut targets = std::iter::once(name.clone()).chain(name.collection()).map(Target::Name);
        targets.any(|target| self.leases.is_wanted(type_url, &target))
    }

    /// Returns the holds.
    #[must_use]
    pub fn holds(&self) -> Arc<Vec<Hold>> {
        self.cut.load().holds().clone()
    }

    /// The writer publishes the holds.
    pub fn publish_holds(&self, holds: Vec<Hold>) {
        let _replaced = self.writer.lock();
        let cut = self.cut.load_full();
        self.cut.store(Arc::new(cut.with_holds(holds)));
        self.wake_onlookers();
    }

    /// Takes an order for the writer. What is returned ends once the order is carried out; `None` if too many orders wait.
    pub fn order(&self, order: HoldOrder) -> Option<oneshot::Receiver<Infallible>> {
        let mut orders = self.guarded.orders.lock();
        if orders.len() >= ORDERS_MAX {
            return None;
        }
        let (doing, done) = oneshot::channel();
        orders.push((order, doing));
        drop(orders);
        self.interest.notify_one();
        Some(done)
    }

    /// The writer takes the orders that have come since the last call.
    #[must_use]
    pub fn take_orders(&self) -> Vec<GivenOrder> {
        std::mem::take(&mut *self.guarded.orders.lock())
    }

    /// The writer notes that removals are not held any more.
    pub fn note_ended(&self, event: HoldEvent, now: Instant) {
        let mut ended = self.guarded.ended.lock();
        if ended.len() == ENDED_MAX {
            ended.pop_front();
        }
        ended.push_back((now, event));
    }

    /// Returns what is not held any more, and since when: the last of it, oldest first.
    #[must_use]
    pub fn ended_holds(&self) -> Vec<(Instant, HoldEvent)> {
        self.guarded.ended.lock().iter().cloned().collect()
    }
}
