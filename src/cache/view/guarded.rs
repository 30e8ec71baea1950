//! The removals of a view that are held.
//!
//! Owns what others see of them, the settings by which they are held, and orders on their way to the writer. Holds nothing itself.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::View;
use xds::{Cut, GuardSettings, Hold, HoldOrder, Name, Target, TypeUrl};

/// The settings of a view, and orders.
#[derive(Default)]
pub(super) struct Guarded {
    settings: Mutex<GuardSettings>,
    orders: Mutex<Vec<HoldOrder>>,
    /// The view that the first session reads while this one begins.
    left: Mutex<Weak<View>>,
}

/// How many orders may wait for the writer.
const ORDERS_MAX: usize = 64;

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

    /// The first session of this view comes from that one.
    pub(crate) fn set_left(&self, left: &Arc<Self>) {
        *self.guarded.left.lock() = Arc::downgrade(left);
    }

    /// Returns what the view serves from which the first session of this one comes.
    #[must_use]
    pub fn served_before(&self) -> Option<Arc<Cut>> {
        let left = self.guarded.left.lock().upgrade();
        left.map(|left| left.cut())
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
    }

    /// Takes an order for the writer. Returns how many held removals it is for; none if too many orders wait.
    pub fn order(&self, order: HoldOrder) -> usize {
        let concerned = order.target.count(&self.holds());
        let mut orders = self.guarded.orders.lock();
        if concerned == 0 || orders.len() >= ORDERS_MAX {
            return 0;
        }
        orders.push(order);
        drop(orders);
        self.interest.notify_one();
        concerned
    }

    /// The writer takes the orders that have come since the last call.
    #[must_use]
    pub fn take_orders(&self) -> Vec<HoldOrder> {
        std::mem::take(&mut *self.guarded.orders.lock())
    }
}
