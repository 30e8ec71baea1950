//! What clients of a view reject, and what is condemned because of that.
//!
//! Owns what a client reads in place of what is condemned, who tries that, and which news wait for whoever judges. Condemns nothing.

mod kinds;
mod rejected;
mod rings;
mod trials;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use kinds::Kinds;
pub use rejected::Rejected;
pub(super) use rings::rings;
use trials::Trials;

use crate::docket::Docket;
use classes::{ClientKind, Node};
use xds::{Condemned, Cut, TypeUrl};

/// Whatever has to do with the verdicts on the content of one view.
pub struct Verdicts {
    any: AtomicBool,
    kinds: ArcSwap<Kinds>,
    trials: Mutex<Trials>,
    orders: Mutex<Vec<Arc<Condemned>>>,
    rejected: Rejected,
    /// Where views with rejections are listed.
    docket: Arc<Docket>,
}

impl Verdicts {
    pub(super) fn new(docket: Arc<Docket>) -> Self {
        Self {
            any: AtomicBool::new(false),
            kinds: ArcSwap::default(),
            trials: Mutex::default(),
            orders: Mutex::default(),
            rejected: Rejected::default(),
            docket,
        }
    }

    /// Where views with news are listed, and by which settings content is condemned.
    pub(super) fn docket(&self) -> &Docket {
        &self.docket
    }

    /// What clients reject.
    #[must_use]
    pub const fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    /// A client at this seat has rejected something of this type. Returns whether whoever judges must be told.
    pub(super) fn reject(&self, type_url: &TypeUrl) -> bool {
        self.docket.settings().after > 0 && self.rejected.note_unjudged(type_url)
    }

    /// The client at this seat will be asked what it has rejected of this type.
    pub(super) fn note_rejecting(&self, type_url: &TypeUrl, seat: u32) {
        if self.docket.settings().after > 0 {
            self.rejected.note_rejecting(type_url, seat);
        }
    }

    /// Another cut is there.
    pub(super) fn renew(&self, head: &Arc<Cut>) {
        if self.any.load(Ordering::Acquire) {
            self.kinds.load().renew(head);
        }
    }

    /// Returns what a client reads while this is what is known. `keeps` says whether it was sent a content and needs no other in its place.
    pub(super) fn cut_for(
        &self,
        head: Arc<Cut>,
        node: &Node,
        seat: u32,
        keeps: impl Fn(&Condemned) -> bool,
    ) -> Arc<Cut> {
        if !self.any.load(Ordering::Acquire) {
            return head;
        }
        let kinds = self.kinds.load();
        let Some((kind, cut)) = kinds.of(node) else { return head };
        if self.trials.lock().has(kind, seat) {
            return head;
        }
        let spared = cut.condemned().iter().enumerate().filter(|(_, one)| !keeps(one));
        let spared: Vec<usize> = spared.map(|(at, _)| at).collect();
        if spared.is_empty() {
            return head;
        }
        cut.cut(spared, &head)
    }

    /// Returns what is condemned for a client, unless it tries that.
    pub(super) fn condemned_for(&self, node: &Node, seat: u32) -> Vec<Arc<Condemned>> {
        if !self.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        let kinds = self.kinds.load();
        let found = kinds.of(node).filter(|(kind, _)| !self.trials.lock().has(*kind, seat));
        found.map(|(_, cut)| cut.condemned().to_vec()).unwrap_or_default()
    }

    /// A client comes: once in a while one of its kind tries what is condemned. Returns whether this one begins to.
    pub(super) fn come(&self, node: &Node, seat: u32, now: Instant) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        let kinds = self.kinds.load();
        kinds
            .of(node)
            .is_some_and(|(kind, _)| self.trials.lock().begin(kind, seat, now))
    }

    /// A client has rejected something, or is gone: if it tried what is condemned, it does not any more.
    pub(super) fn end_trial(&self, seat: u32) {
        if self.any.load(Ordering::Acquire) {
            self.trials.lock().end(seat);
        }
    }

    /// Returns whether a client has begun to try what is condemned since the last call.
    #[must_use]
    pub fn take_trial(&self) -> bool {
        self.trials.lock().take_begun()
    }

    /// Replaces what is condemned, and the kinds that are told apart.
    pub(super) fn set(&self, condemned: &[Arc<Condemned>], told_apart: Vec<ClientKind>, now: Instant) {
        let kinds = Kinds::new(condemned, told_apart);
        self.trials.lock().set(kinds.all(), now);
        self.kinds.store(Arc::new(kinds));
        self.any.store(!condemned.is_empty(), Ordering::Release);
    }

    /// A person wants this to be condemned no more.
    pub(super) fn release(&self, one: Arc<Condemned>) {
        self.orders.lock().push(one);
    }

    /// Returns what persons want to be condemned no more, since the last call.
    #[must_use]
    pub fn take_released(&self) -> Vec<Arc<Condemned>> {
        std::mem::take(&mut *self.orders.lock())
    }
}
