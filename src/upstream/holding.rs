//! What a writer holds back of what its source says: removals, and changes that lead to other servers.
//!
//! Owns the order of the guard and the crossings, and that holds are published and logged. Decides nothing about what waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clock::now;
use super::hold_log;
use crate::cache::View;
use crate::protocol::{Crossings, Guard};
use crate::telemetry::HoldMetrics;
use crate::xds::{Beside, Changes, Cut, GuardSettings, Hold, HoldOrder, HoldReason, Name, ServerState, TypeUrl, Want};

/// Finds what the clients of a view read of other servers. `true`: the writer is to be woken when that changes.
pub type FindBeside = Arc<dyn Fn(&Arc<View>, bool) -> Option<Beside> + Send + Sync>;

/// What waits of one view.
pub(super) struct Holding {
    view: Arc<View>,
    /// The source's name for operators.
    source: String,
    metrics: Arc<HoldMetrics>,
    guard: Guard,
    crossings: Crossings,
    find_beside: Option<FindBeside>,
}

impl Holding {
    /// Nothing waits. What an earlier run of the relay held is remembered with [`Self::begin`].
    pub(super) fn new(view: Arc<View>, source: &str, metrics: Arc<HoldMetrics>, guard: Guard) -> Self {
        Self {
            view,
            source: source.to_owned(),
            metrics,
            guard,
            crossings: Crossings::default(),
            find_beside: None,
        }
    }

    /// D-11, D-12: removals and changes wait for what clients read of other servers, which is found in this way.
    pub(super) fn look_beside(&mut self, find: FindBeside) {
        self.find_beside = Some(find);
    }

    /// The writer begins.
    pub(super) fn begin(&mut self) {
        if let Some(restored) = self.view.head().restored() {
            self.guard.remember(restored.holds(), now());
        }
    }

    /// Replaces the times of the quiet rule, and the settings of the others.
    pub(super) fn set(&mut self, quiet: Duration, bound: Duration, settings: GuardSettings) {
        self.guard.set(quiet, bound);
        self.guard.handle_settings(settings);
        self.crossings.set(bound, settings.unready);
    }

    /// Changes wait so long for other servers: at most `bound`, and `unready` while these are away.
    pub(super) const fn set_unready(&mut self, bound: Duration, unready: Duration) {
        self.crossings.set(bound, unready);
    }

    /// A person has given an order.
    pub(super) fn handle_order(&mut self, order: &HoldOrder) {
        self.guard.handle_order(order, now());
        self.crossings.handle_order(order, now());
    }

    /// A want has ended: what waits of it is forgotten.
    pub(super) fn handle_unwanted(&mut self, want: &Want) {
        self.guard.handle_unwanted(&want.type_url, &want.target);
        self.crossings.handle_unwanted(&want.type_url, &want.target);
    }

    /// The state of the server, once nothing is left to be published.
    pub(super) fn handle_server(&mut self, state: ServerState, cut: &Cut) {
        if state == ServerState::Up && self.view.head().forget_restored() {
            self.guard.forget_unserved(cut);
        }
        self.guard.handle_server(state.reachable(), now());
    }

    /// Takes the removals that must wait out of what the server said.
    pub(super) fn hold(&mut self, changes: &mut Vec<Changes>, cut: &Cut) {
        if Guard::asks_for_inheritance(changes)
            && let Some((served, all)) = self.view.served_elsewhere()
        {
            self.guard.inherit(served, all);
        }
        if self.find_beside.is_some() {
            self.crossings.hear(changes);
        }
        self.guard.hold(changes, cut, now());
    }

    /// The same for a source that states all it has each time: what waits and is not said again has been taken back.
    pub(super) fn hold_again(&mut self, changes: &mut Vec<Changes>, cut: &Cut) {
        self.crossings.hear_again(changes);
        self.guard.hold_again(changes, cut, now());
    }

    /// Takes the changes that must wait for other servers out of all that is to be published next.
    pub(super) fn cross(&mut self, changes: &mut [Changes], cut: &Cut) {
        let find = self.find_beside.as_ref().filter(|_| !changes.is_empty());
        let beside = find.and_then(|find| find(&self.view, false));
        self.crossings.hold(changes, cut, beside.as_ref(), now());
    }

    /// Returns the removals and changes that wait for nothing any more. To be called once all that was said is published.
    pub(super) fn release(&mut self, cut: &Cut) -> Vec<Changes> {
        let waits = !(self.guard.is_empty() && self.crossings.is_empty());
        let find = self.find_beside.as_ref().filter(|_| waits);
        let beside = find.and_then(|find| find(&self.view, true));
        let wanted = |type_url: &TypeUrl, name: &Name| match &beside {
            Some(beside) => beside.wants(type_url, name),
            None => self.view.demand().wants(type_url, name),
        };
        self.guard.look_beside(beside.as_ref(), now());
        let mut changes = self.guard.release(cut, wanted, now());
        self.crossings.release(&mut changes, cut, beside.as_ref(), now());
        changes
    }

    /// Returns when `release` is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let crossings = self.crossings.poll_timeout();
        self.guard.poll_timeout().into_iter().chain(crossings).min()
    }

    /// Whether a removal has waited long enough.
    pub(super) fn removes_now(&self) -> bool {
        self.guard.poll_timeout().is_some_and(|due| due <= now())
    }

    /// Publishes the holds, and logs what has begun and ended.
    pub(super) fn tell(&mut self) {
        let (removals, changes) = (self.guard.take_holds(), self.crossings.take_holds());
        if removals.is_none() && changes.is_none() {
            return;
        }
        let known = self.view.head().holds();
        let (unready, others): (Vec<Hold>, Vec<Hold>) = known
            .iter()
            .cloned()
            .partition(|hold| hold.reason == HoldReason::Unready);
        let (mut holds, mut events) = removals.unwrap_or((others, Vec::new()));
        let (waiting, happened) = changes.unwrap_or((unready, Vec::new()));
        holds.extend(waiting);
        events.extend(happened);
        self.view.publish_holds(holds);
        for event in &events {
            hold_log::note(event, &self.source, &self.view, &self.metrics, now());
        }
    }

    /// The view ends, and with it what waits.
    pub(super) fn close(&mut self) {
        self.guard.close();
        self.crossings.close();
        self.tell();
    }
}
