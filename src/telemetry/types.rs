// SPDX-License-Identifier: Apache-2.0
//! The metrics of each resource type.
//!
//! Owns their names and what they mean. Does not know which types have a label of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::adoptions::Adoptions;
use super::convergence::{Convergence, Histogram, histogram};
use super::labels::{Labels, register};

/// Declares the metrics of each type, with what the metric counts: a member for one type, of a family by types.
macro_rules! of_each_type {
    ($($(#[$about:meta])* $vis:vis $metric:ident: $kind:ident, $help:literal;)*) => {
        /// The counters of one resource type.
        #[derive(Debug)]
        pub struct TypeMetrics {
            $($(#[$about])* $vis $metric: $kind,)*
            /// Seconds from the last byte of the oldest upstream message with a change in a response to the client's acknowledgement.
            pub convergence: Convergence,
            /// When the last changes were accepted.
            pub adoptions: Adoptions,
        }

        /// The metrics of all types, by label.
        #[derive(Debug)]
        pub(super) struct AllTypes {
            $($metric: Family<Labels<1>, $kind>,)*
            convergence: Family<Labels<1>, Histogram, fn() -> Histogram>,
            all: Mutex<BTreeMap<String, Arc<TypeMetrics>>>,
        }

        impl AllTypes {
            pub(super) fn register(own: &mut Registry) -> Self {
                let convergence = Family::new_with_constructor(histogram as fn() -> Histogram);
                Self {
                    $($metric: register(own, stringify!($metric), $help, Family::default()),)*
                    convergence: register(own, "convergence_seconds", "Seconds from the arrival of a change to a client's acknowledgement", convergence),
                    all: Mutex::default(),
                }
            }

            fn create(&self, label: &str) -> TypeMetrics {
                let labels = [("type", label.to_owned())];
                TypeMetrics {
                    $($metric: self.$metric.get_or_create(&labels).clone(),)*
                    convergence: Convergence::new(self.convergence.get_or_create(&labels).clone()),
                    adoptions: Adoptions::default(),
                }
            }
        }
    };
}

of_each_type! {
    /// Requests from clients.
    pub requests: Counter, "Requests from clients";
    /// Responses to clients.
    pub responses: Counter, "Responses to clients";
    /// Bytes of these responses.
    pub response_bytes: Counter, "Bytes of responses to clients";
    /// Responses that clients acknowledged.
    pub acks: Counter, "Responses that clients acknowledged";
    /// Responses that clients rejected.
    pub nacks: Counter, "Responses that clients rejected";
    /// Resources that were held back after too many rejected tries.
    pub given_up: Counter, "Resources that were held back from a client after 64 rejected tries in a row";
    /// Requests with the nonce of a response that is not the latest.
    pub stale_nonces: Counter, "Requests with the nonce of an old response";
    /// Clients that came back and did not ask for the type, although they had it.
    pub returned_without: Counter, "Clients that came back and did not ask for the type that they had";
    /// How often the shared part of a response was encoded. One encoding may serve many clients.
    pub encoded_bodies: Counter, "Response bodies encoded";
    /// Resources held, over all views.
    pub cache_resources: Gauge, "Resources held";
    /// Bytes of their bodies.
    pub cache_bytes: Gauge, "Bytes of the resources held";
    /// Client streams that hold back something that the client has rejected.
    rejecting_clients: Gauge, "Client streams that are not sent something of the type because they rejected it";
    older_clients: Gauge, "Client streams that were sent older content of the type in the place of what they rejected, because they had nothing";
    /// Client streams that have not answered a response for ten seconds.
    lagging_clients: Gauge, "Client streams that were sent a response of the type and have not answered it for 10 s";
    /// Client streams that have waited for ten seconds for what nobody has answered.
    waiting_clients: Gauge, "Client streams that have waited for 10 s for something of the type that nobody has answered";
}

impl AllTypes {
    /// Returns the metrics with this label.
    pub(super) fn of(&self, label: &str) -> Arc<TypeMetrics> {
        let mut all = self.all.lock();
        if let Some(found) = all.get(label) {
            return Arc::clone(found);
        }
        let new = Arc::new(self.create(label));
        all.insert(label.to_owned(), Arc::clone(&new));
        new
    }

    /// Sets the number and the bytes of the resources held, by label. What is not in `held` has none.
    pub(super) fn show_cache(&self, held: &BTreeMap<String, (usize, usize)>) {
        let shown = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        for (label, of_type) in &*self.all.lock() {
            let (resources, bytes) = held.get(label).copied().unwrap_or_default();
            of_type.cache_resources.set(shown(resources));
            of_type.cache_bytes.set(shown(bytes));
        }
    }

    /// Sets how many client streams reject, have older content, lag and wait, by label. What is not in `counts` has none.
    pub(super) fn show_clients(&self, counts: &BTreeMap<String, [usize; 4]>) {
        let shown = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        for (label, of_type) in &*self.all.lock() {
            let [rejecting, older, lagging, waiting] = counts.get(label).copied().unwrap_or_default();
            of_type.rejecting_clients.set(shown(rejecting));
            of_type.older_clients.set(shown(older));
            of_type.lagging_clients.set(shown(lagging));
            of_type.waiting_clients.set(shown(waiting));
        }
    }
}
