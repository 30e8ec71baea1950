//! The metrics of condemned content.
//!
//! Owns their names and what they mean. Condemns nothing.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::{Labels, TypeLabels, register};
use crate::xds::TypeUrl;

/// The metrics of condemned content, over all views.
#[derive(Debug)]
pub struct VerdictMetrics {
    labels: Arc<TypeLabels>,
    condemned: Family<Labels<1>, Gauge>,
    served_older: Family<Labels<1>, Counter>,
}

impl VerdictMetrics {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry, labels: Arc<TypeLabels>) -> Arc<Self> {
        Arc::new(Self {
            labels,
            condemned: register(own, "condemned", "Contents that clients of one kind reject, and in whose place newcomers of the kind are served older ones", Family::default()),
            served_older: register(own, "newcomers_served_older", "Names, or wildcards, that a client began to ask for and that were answered with older content, because its kind rejects the newer one", Family::default()),
        })
    }

    /// Sets what is condemned now, by the types of the contents.
    pub fn show<'a>(&self, condemned: impl Iterator<Item = &'a TypeUrl>) {
        self.condemned.clear();
        for type_url in condemned {
            self.condemned.get_or_create(&self.label(type_url)).inc();
        }
    }

    /// Counts a client that is served older content.
    pub fn count_served_older(&self, type_url: &TypeUrl) {
        self.served_older.get_or_create(&self.label(type_url)).inc();
    }

    fn label(&self, type_url: &TypeUrl) -> Labels<1> {
        [("type", self.labels.own(type_url).to_owned())]
    }
}
