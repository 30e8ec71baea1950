// SPDX-License-Identifier: Apache-2.0
//! The metrics of held removals.
//!
//! Owns their names and what they mean. Holds nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{Labels, TypeLabels, register};
use crate::xds::{HoldChange, HoldEnd, HoldEvent, HoldReason, TypeUrl};

/// The metrics of held removals, over all views.
#[derive(Debug)]
pub struct HoldMetrics {
    labels: Arc<TypeLabels>,
    holds: Family<Labels<2>, Gauge>,
    trouble: Family<Labels<2>, Gauge>,
    resources: Family<Labels<1>, Gauge>,
    oldest: Gauge,
    begun: Family<Labels<1>, Counter>,
    ended: Family<Labels<2>, Counter>,
}

/// One hold, for the metrics.
#[derive(Debug)]
pub struct HoldCount {
    /// Why.
    pub reason: HoldReason,
    /// The type.
    pub type_url: TypeUrl,
    /// How many resources it holds.
    pub resources: usize,
    /// Whether somebody should look.
    pub trouble: bool,
}

impl HoldMetrics {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry, labels: Arc<TypeLabels>) -> Arc<Self> {
        let metrics = Self {
            labels,
            holds: register(own, "holds", "Holds: removals or changes of one type of a view that are not passed on, for one reason", Family::default()),
            trouble: register(own, "holds_in_trouble", "Holds at which somebody should look: much was lost at once, or something that the control plane still sends refers to removed resources for over 15 minutes", Family::default()),
            resources: register(own, "hold_resources", "Resources that are served although the control plane has removed or changed them", Family::default()),
            oldest: register(own, "hold_oldest_seconds", "Seconds since the oldest of what is held was said", Gauge::default()),
            begun: register(own, "held_removals", "Removals and changes that were held", Family::default()),
            ended: register(own, "held_removals_ended", "Removals and changes that are not held any more, by what ended that", Family::default()),
        };
        for reason in HoldReason::ALL {
            drop(metrics.resources.get_or_create(&[("reason", reason.word().to_owned())]));
            drop(metrics.begun.get_or_create(&[("reason", reason.word().to_owned())]));
            for end in HoldEnd::ALL {
                drop(metrics.ended.get_or_create(&ended(reason, end)));
            }
        }
        Arc::new(metrics)
    }

    /// Counts the removals that an event is about.
    pub fn count(&self, event: &HoldEvent) {
        let removals = event.removals as u64;
        match event.change {
            HoldChange::Begun | HoldChange::Joined => {
                let reason = [("reason", event.reason.word().to_owned())];
                self.begun.get_or_create(&reason).inc_by(removals);
            }
            HoldChange::Ended(end) => {
                self.ended.get_or_create(&ended(event.reason, end)).inc_by(removals);
            }
        }
    }

    /// Sets what is held now, and how old the oldest of it is.
    pub fn show(&self, holds: &[HoldCount], oldest: Option<Duration>) {
        self.holds.clear();
        self.trouble.clear();
        let mut resources: BTreeMap<HoldReason, usize> = HoldReason::ALL.map(|reason| (reason, 0)).into();
        for hold in holds {
            let labels = [
                ("reason", hold.reason.word().to_owned()),
                ("type", self.labels.own(&hold.type_url).to_owned()),
            ];
            self.trouble.get_or_create(&labels).inc_by(i64::from(hold.trouble));
            self.holds.get_or_create(&labels).inc();
            *resources.entry(hold.reason).or_default() += hold.resources;
        }
        for (reason, count) in resources {
            let gauge = self
                .resources
                .get_or_create(&[("reason", reason.word().to_owned())])
                .clone();
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let oldest = oldest.map_or(0, |age| age.as_secs());
        self.oldest.set(i64::try_from(oldest).unwrap_or(i64::MAX));
    }
}

fn ended(reason: HoldReason, end: HoldEnd) -> Labels<2> {
    [("reason", reason.word().to_owned()), ("by", end.word().to_owned())]
}
