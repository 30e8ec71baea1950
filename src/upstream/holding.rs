// SPDX-License-Identifier: Apache-2.0
//! What a writer holds back of what its source says: removals, and changes that lead to other servers; and what it publishes.
//!
//! Owns that changes are published and traced, and holds published and logged. Decides nothing about what waits.

use std::sync::Arc;
use std::time::Instant;

use super::clock::now;
use super::traced;
use crate::cache::View;
use crate::protocol::Holds;
use crate::telemetry::{HoldMetrics, TracedArrival, Traces};
use crate::xds::{Changes, Cut, HoldChange, HoldEvent, HoldOrder, HoldWords, Name, OtherViews, ServerState, TypeUrl};

/// Finds what the clients of a view read of other servers. `true`: the writer is to be woken when that changes.
pub type FindOtherViews = Arc<dyn Fn(&Arc<View>, bool) -> Option<OtherViews> + Send + Sync>;

/// What waits of one view.
pub(super) struct HeldView {
    view: Arc<View>,
    /// The source's name for operators.
    source: String,
    traces: Arc<Traces>,
    metrics: Arc<HoldMetrics>,
    holds: Holds,
    find_other_views: Option<FindOtherViews>,
}

impl HeldView {
    /// Nothing waits. What an earlier run of the relay held is remembered with [`Self::begin`].
    pub(super) fn new(
        view: Arc<View>,
        source: &str,
        (traces, metrics): (Arc<Traces>, Arc<HoldMetrics>),
        holds: Holds,
    ) -> Self {
        Self {
            view,
            source: source.to_owned(),
            traces,
            metrics,
            holds,
            find_other_views: None,
        }
    }

    /// D-11, D-12: removals and changes wait for what clients read of other servers, which is found in this way.
    pub(super) fn look_at_other_views(&mut self, find: FindOtherViews) {
        self.find_other_views = Some(find);
    }

    /// The writer begins.
    pub(super) fn begin(&mut self) {
        if let Some(restored) = self.view.head().restored() {
            self.holds.remember(restored.holds(), now());
        }
    }

    /// What waits.
    pub(super) const fn holds(&mut self) -> &mut Holds {
        &mut self.holds
    }

    /// Takes what people have ordered. Who has given an order is told that it is carried out when it is dropped.
    pub(super) fn take_orders(&mut self) -> Vec<(HoldOrder, impl Send + use<>)> {
        let orders = self.view.mailbox().take_orders();
        for (order, _) in &orders {
            self.holds.handle_order(order, now());
        }
        orders
    }

    /// The state of the server, once nothing is left to be published.
    pub(super) fn handle_server(&mut self, state: ServerState, cut: &Cut) {
        if state == ServerState::Up && self.view.head().forget_restored() {
            self.holds.forget_unserved(cut);
        }
        self.holds.handle_server(state.reachable(), now());
    }

    /// Takes the removals that must wait out of what the server said.
    pub(super) fn hear(&mut self, changes: &mut Vec<Changes>, cut: &Cut) {
        let elsewhere = || self.view.served_elsewhere();
        self.holds.hear(changes, cut, elsewhere, now());
    }

    /// Takes the changes that must wait for other servers out of all that is to be published next.
    pub(super) fn cross(&mut self, changes: &mut [Changes], cut: &Cut) {
        let find = self.find_other_views.as_ref().filter(|_| !changes.is_empty());
        let other_views = find.and_then(|find| find(&self.view, false));
        self.holds.cross(changes, cut, other_views.as_ref(), now());
    }

    /// Returns the removals and changes that wait for nothing any more. To be called once all that was said is published.
    pub(super) fn look(&mut self, cut: &Cut) -> Vec<Changes> {
        let find = self.find_other_views.as_ref().filter(|_| !self.holds.is_empty());
        let other_views = find.and_then(|find| find(&self.view, true));
        let wanted = |type_url: &TypeUrl, name: &Name| match &other_views {
            Some(other_views) => other_views.wants(type_url, name),
            None => self.view.demand().wants(type_url, name),
        };
        self.holds.look(cut, other_views.as_ref(), wanted, now())
    }

    /// Publishes changes, which these responses brought, in the view that has this cut. The other tasks of this thread have their turns
    /// in between, because very many may wait for them.
    pub(super) async fn publish(&self, changes: &[Changes], arrivals: &[TracedArrival], cut: &Cut) {
        if changes.is_empty() {
            return;
        }
        let traced = traced::begin(&self.traces, arrivals, changes, cut);
        let mut woken = self.view.publish(changes);
        traced.iter().for_each(|change| change.apply(now()));
        while woken.wake_some() {
            tokio::task::yield_now().await;
        }
    }

    /// Whether changes are traced.
    pub(super) fn traces(&self) -> bool {
        self.traces.is_on()
    }

    /// Returns when `look` is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.holds.poll_timeout()
    }

    /// Publishes the holds, and logs what has begun and ended.
    pub(super) fn tell(&mut self) {
        let Some((holds, events)) = self.holds.take_told() else {
            return;
        };
        self.view.publish_holds(holds);
        for event in events {
            self.metrics.count(&event);
            self.log(&event);
            if matches!(event.change, HoldChange::Ended(_)) {
                self.view.guarded().note_ended(event, now());
            }
        }
    }

    fn log(&self, event: &HoldEvent) {
        let HoldEvent {
            type_url,
            reason,
            judgement,
            change,
            removals,
            name,
        } = event;
        let (server, class, r#type) = (&self.source, self.view.class().to_string(), type_url.word());
        let judgement = judgement.map(tracing::field::display);
        let by = match change {
            HoldChange::Ended(end) => Some(end.word()),
            HoldChange::Begun | HoldChange::Joined => None,
        };
        let (words, trouble) = HoldWords::happened(*change, *reason);
        if trouble {
            tracing::warn!(server, class, r#type, %reason, judgement, resources = removals, one = %name, by, "{words}");
        } else {
            tracing::info!(server, class, r#type, %reason, judgement, resources = removals, one = %name, by, "{words}");
        }
    }

    /// The view ends, and with it what waits.
    pub(super) fn close(&mut self) {
        self.holds.close();
        self.tell();
    }
}
