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

/// The counters of one resource type.
#[derive(Debug)]
pub struct TypeMetrics {
    /// Requests from clients.
    pub requests: Counter,
    /// Responses to clients.
    pub responses: Counter,
    /// Bytes of these responses.
    pub response_bytes: Counter,
    /// Responses that clients acknowledged.
    pub acks: Counter,
    /// Responses that clients rejected.
    pub nacks: Counter,
    /// Resources that were held back after too many rejected tries.
    pub given_up: Counter,
    /// Requests with the nonce of a response that is not the latest.
    pub stale_nonces: Counter,
    /// How often the shared part of a response was encoded. One encoding may serve many clients.
    pub encoded_bodies: Counter,
    /// Clients that came back and did not ask for the type, although they had it.
    pub returned_without: Counter,
    /// Resources held, over all views.
    pub cache_resources: Gauge,
    /// Bytes of their bodies.
    pub cache_bytes: Gauge,
    /// Client streams that hold back something that the client has rejected.
    rejecting_clients: Gauge,
    older_clients: Gauge,
    /// Client streams that have not answered a response for ten seconds.
    lagging_clients: Gauge,
    /// Client streams that have waited for ten seconds for what nobody has answered.
    waiting_clients: Gauge,
    /// Seconds from the last byte of the oldest upstream message with a change in a response to the client's acknowledgement.
    pub convergence: Convergence,
    /// When the last changes were accepted.
    pub adoptions: Adoptions,
}

/// The metrics of all types, by label.
#[derive(Debug)]
pub(super) struct AllTypes {
    requests: Family<Labels<1>, Counter>,
    responses: Family<Labels<1>, Counter>,
    response_bytes: Family<Labels<1>, Counter>,
    acks: Family<Labels<1>, Counter>,
    nacks: Family<Labels<1>, Counter>,
    given_up: Family<Labels<1>, Counter>,
    stale_nonces: Family<Labels<1>, Counter>,
    returned_without: Family<Labels<1>, Counter>,
    encoded_bodies: Family<Labels<1>, Counter>,
    cache_resources: Family<Labels<1>, Gauge>,
    cache_bytes: Family<Labels<1>, Gauge>,
    rejecting_clients: Family<Labels<1>, Gauge>,
    older_clients: Family<Labels<1>, Gauge>,
    lagging_clients: Family<Labels<1>, Gauge>,
    waiting_clients: Family<Labels<1>, Gauge>,
    convergence: Family<Labels<1>, Histogram, fn() -> Histogram>,
    all: Mutex<BTreeMap<String, Arc<TypeMetrics>>>,
}

impl AllTypes {
    #[rustfmt::skip]
    pub(super) fn register(own: &mut Registry) -> Self {
        Self {
            requests: register(own, "requests", "Requests from clients", Family::default()),
            responses: register(own, "responses", "Responses to clients", Family::default()),
            response_bytes: register(own, "response_bytes", "Bytes of responses to clients", Family::default()),
            acks: register(own, "acks", "Responses that clients acknowledged", Family::default()),
            nacks: register(own, "nacks", "Responses that clients rejected", Family::default()),
            given_up: register(
                own,
                "given_up",
                "Resources that were held back from a client after 64 rejected tries in a row",
                Family::default(),
            ),
            stale_nonces: register(own, "stale_nonces", "Requests with the nonce of an old response", Family::default()),
            returned_without: register(own, "returned_without", "Clients that came back and did not ask for the type that they had", Family::default()),
            encoded_bodies: register(own, "encoded_bodies", "Response bodies encoded", Family::default()),
            cache_resources: register(own, "cache_resources", "Resources held", Family::default()),
            cache_bytes: register(own, "cache_bytes", "Bytes of the resources held", Family::default()),
            rejecting_clients: register(own, "rejecting_clients", "Client streams that are not sent something of the type because they rejected it", Family::default()),
            older_clients: register(own, "older_clients", "Client streams that were sent older content of the type in the place of what they rejected, because they had nothing", Family::default()),
            lagging_clients: register(own, "lagging_clients", "Client streams that were sent a response of the type and have not answered it for 10 s", Family::default()),
            waiting_clients: register(own, "waiting_clients", "Client streams that have waited for 10 s for something of the type that nobody has answered", Family::default()),
            convergence: register(own, "convergence_seconds", "Seconds from the arrival of a change to a client's acknowledgement", Family::new_with_constructor(histogram as fn() -> Histogram)),
            all: Mutex::default(),
        }
    }

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

    fn create(&self, label: &str) -> TypeMetrics {
        let labels = [("type", label.to_owned())];
        TypeMetrics {
            requests: self.requests.get_or_create(&labels).clone(),
            responses: self.responses.get_or_create(&labels).clone(),
            response_bytes: self.response_bytes.get_or_create(&labels).clone(),
            acks: self.acks.get_or_create(&labels).clone(),
            nacks: self.nacks.get_or_create(&labels).clone(),
            given_up: self.given_up.get_or_create(&labels).clone(),
            stale_nonces: self.stale_nonces.get_or_create(&labels).clone(),
            returned_without: self.returned_without.get_or_create(&labels).clone(),
            encoded_bodies: self.encoded_bodies.get_or_create(&labels).clone(),
            cache_resources: self.cache_resources.get_or_create(&labels).clone(),
            cache_bytes: self.cache_bytes.get_or_create(&labels).clone(),
            rejecting_clients: self.rejecting_clients.get_or_create(&labels).clone(),
            older_clients: self.older_clients.get_or_create(&labels).clone(),
            lagging_clients: self.lagging_clients.get_or_create(&labels).clone(),
            waiting_clients: self.waiting_clients.get_or_create(&labels).clone(),
            convergence: Convergence::new(self.convergence.get_or_create(&labels).clone()),
            adoptions: Adoptions::default(),
        }
    }
}
