//! What a writer holds back of what its server says: removals, and changes that lead to other servers.
//!
//! Owns the order of the guard and the crossings, and that holds are published and logged. Decides nothing about what waits.

use std::sync::Arc;

use super::super::clock::now;
use super::super::hold_log;
use super::{Talk, Writer};
use crate::cache::View;
use crate::protocol::Guard;
use crate::xds::{Beside, Changes, Cut, Hold, HoldReason};

/// Finds what the clients of a view read of other servers. `true`: the writer is to be woken when that changes.
pub type FindBeside = Arc<dyn Fn(&Arc<View>, bool) -> Option<Beside> + Send + Sync>;

impl<L: Talk> Writer<L> {
    /// D-12: changes wait for what clients read of other servers, which is found in this way.
    #[must_use]
    pub fn beside(mut self, find: FindBeside) -> Self {
        self.find_beside = Some(find);
        self
    }

    /// Takes the removals and changes that must wait out of what the server said.
    pub(super) fn hold(&mut self, changes: &mut Vec<Changes>, cut: &Cut) {
        if Guard::asks_for_inheritance(changes)
            && let Some((served, all)) = self.view.served_elsewhere()
        {
            self.guard.inherit(served, all);
        }
        self.crossings.hear(changes);
        self.guard.hold(changes, cut, now());
        if let Some(find) = self.find_beside.as_ref().filter(|_| !changes.is_empty())
            && let Some(beside) = find(&self.view, false)
        {
            self.crossings.hold(changes, cut, &beside, now());
        }
    }

    /// Returns the changes that do not wait for other servers any more.
    pub(super) fn cross(&mut self, cut: &Cut) -> Vec<Changes> {
        if self.crossings.is_empty() {
            return Vec::new();
        }
        let beside = self.find_beside.as_ref().and_then(|find| find(&self.view, true));
        // There are no others any more.
        let beside = beside.unwrap_or_else(|| Beside::new(|_, _| None, |_, _| false));
        self.crossings.release(cut, &beside, now())
    }

    /// Publishes the holds, and logs what has begun and ended.
    pub(super) fn tell_holds(&mut self) {
        let (removals, changes) = (self.guard.take_holds(), self.crossings.take_holds());
        if removals.is_none() && changes.is_none() {
            return;
        }
        let known = self.view.holds();
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
            hold_log::note(event, &self.server, &self.view, &self.holds, now());
        }
    }
}
