//! What the writer of a view holds back for what its clients read of other servers (D-11, D-12), and what it does not hold any more.
//!
//! Owns the order of the guard and the crossings, as their shell has it. Does not know what a control plane says.

use std::sync::Arc;
use std::time::Instant;

use cache::{Scopes, beside};
use xds::{Beside, Changes, Hold, HoldReason, Name, TypeUrl};

use super::tally::{Rule, Tally};
use super::writer::{ORDER_GATE, Writer};

impl Writer {
    /// What clients read of other servers is found among these views.
    pub(crate) fn look_beside(&mut self, scopes: &Arc<Scopes>) {
        self.scopes = Some(scopes.clone());
    }

    pub(crate) const fn looks_beside(&self) -> bool {
        self.scopes.is_some()
    }

    /// What its clients read of other servers. If it is `watching`, the writer is woken when that changes.
    fn beside(&self, watching: bool) -> Option<Beside> {
        let scopes = self.scopes.as_ref()?;
        beside(scopes, &self.view, watching)
    }

    /// What waits and is not said again by a source that says all it has each time has been taken back.
    pub(crate) fn hold_again(&mut self, changes: &mut Vec<Changes>, now: Instant) {
        self.crossings.hear_again(changes);
        self.guard.hold_again(changes, &self.view.cut(), now);
    }

    /// Takes out of what is to be published next what must wait for other servers.
    pub(crate) fn cross(&mut self, changes: &mut [Changes], now: Instant) {
        self.crossings.set(ORDER_GATE, self.view.guarded().settings().unready);
        let beside = self.beside(false);
        self.crossings.hold(changes, &self.view.cut(), beside.as_ref(), now);
    }

    /// Takes what waits for nothing any more.
    pub(crate) fn release(&mut self, now: Instant) -> Vec<Changes> {
        let waits = !(self.guard.is_empty() && self.crossings.is_empty());
        let beside = if waits { self.beside(true) } else { None };
        let wanted = |type_url: &TypeUrl, name: &Name| match &beside {
            Some(beside) => beside.wants(type_url, name),
            None => self.view.demand().wants(type_url, name),
        };
        let cut = self.view.cut();
        self.guard.look_beside(beside.as_ref(), now);
        let mut changes = self.guard.release(&cut, wanted, now);
        self.crossings.release(&mut changes, &cut, beside.as_ref(), now);
        changes
    }

    /// When `release` is due.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        let crossings = self.crossings.poll_timeout();
        self.guard.poll_timeout().into_iter().chain(crossings).min()
    }

    /// Publishes what is held now.
    pub(crate) fn note_holds(&mut self, tally: &mut Tally) {
        let (removals, changes) = (self.guard.take_holds(), self.crossings.take_holds());
        if removals.is_none() && changes.is_none() {
            return;
        }
        let known = self.view.head().holds();
        let unready = |hold: &&Hold| hold.reason == HoldReason::Unready;
        let (waiting, others) = known.iter().partition::<Vec<_>, _>(unready);
        let own = |holds: Vec<&Hold>| (holds.into_iter().cloned().collect(), Vec::new());
        let (mut holds, events) = removals.unwrap_or_else(|| own(others));
        let (waiting, happened) = changes.unwrap_or_else(|| own(waiting));
        holds.extend(waiting);
        self.view.publish_holds(holds);
        if !events.is_empty() {
            tally.hit(Rule::Hold);
        }
        if !happened.is_empty() {
            tally.hit(Rule::D12);
        }
    }
}
