//! Control planes that are polled over HTTP with JSON (H-07).
//!
//! Owns the state of one such server, and the settings for all of them. Knows nothing of clients. As on a stream, the machine
//! decides what to ask for and what an answer changes.

mod exchange;
mod leg;
mod poller;
mod topic;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
pub use leg::PollLeg;
pub use poller::{Poller, Question};

use super::access::{Access, ClassFiles};
use super::away::Away;
use super::connect;
use super::contact::Contact;
use super::failure::Failure;
use super::left_out::LeftOut;
use super::refused::Refused;
use super::status::Status;
use super::writer::Writer;
use crate::cache::View;
use crate::config::Rest;
use crate::json::Schemas;
use crate::proto::envoy::config::core::v3::Node;
use crate::protocol::{Client, ClientSettings, Holds};
use crate::telemetry::UpstreamMetrics;
use crate::xds::Dialect;

/// A control plane that is polled.
#[derive(Debug)]
pub struct RestServer {
    uri: String,
    rest: Rest,
    /// The credentials for classes of clients that have none of their own.
    access: Arc<Access>,
    metrics: Arc<UpstreamMetrics>,
    refused: Refused,
    away: Away,
    contact: Contact,
    left_out: LeftOut,
    /// Settings that are newer than those with which its writers were created.
    newer: ArcSwapOption<Polling>,
}

/// How control planes are polled.
#[derive(Clone, Debug)]
pub struct Polling {
    /// The settings of the protocol machines.
    pub client: Arc<ClientSettings>,
    /// The largest answer that is read, in bytes (`limits.upstream_message`).
    pub upstream_message: usize,
    /// How often the kernel asks a silent peer whether it is there (`timers.keepalive`); zero: never.
    pub keepalive: Duration,
    /// The time from an answer to the next poll (`timers.rest_interval`).
    pub interval: Duration,
    /// The longest pause after a poll that failed (`timers.reconnect_max`).
    pub reconnect_max: Duration,
    /// D-03: how long nothing that directs traffic must have come before a removal counts (`timers.removal_quiet`).
    pub removal_quiet: Duration,
    /// The longest time that a removal waits (`timers.order_gate`).
    pub order_gate: Duration,
    /// The schemas of the message types.
    pub schemas: Schemas,
}

impl RestServer {
    /// Creates a polled control plane about which nothing is known yet.
    #[must_use]
    pub fn new(uri: &str, rest: Rest, metrics: Arc<UpstreamMetrics>) -> Arc<Self> {
        Arc::new(Self {
            uri: uri.to_owned(),
            access: Access::of_server(&rest.credentials, rest.token.as_ref()),
            rest,
            metrics,
            refused: Refused::default(),
            away: Away::default(),
            contact: Contact::new(),
            left_out: LeftOut::default(),
            newer: ArcSwapOption::empty(),
        })
    }

    /// Replaces the settings of all polls from now on.
    pub fn set(&self, polling: Polling) {
        self.newer.store(Some(Arc::new(polling)));
    }

    /// Connects again and again until one connection succeeds. With `by_class`, certificates belong to classes of clients: a
    /// server without a certificate for the others counts as reached when it accepts a connection.
    pub async fn reached(&self, polling: &Polling, by_class: bool) {
        let meet = || self.meet(polling, by_class);
        let told = (&self.away, &*self.metrics);
        self.contact.make(&self.uri, told, polling.reconnect_max, meet).await;
    }

    /// Returns the state of the attempts to reach it, until one succeeds.
    #[must_use]
    pub fn contact(&self) -> Option<Status> {
        self.contact.status()
    }

    async fn meet(&self, polling: &Polling, by_class: bool) -> Result<(), Failure> {
        if by_class && !self.access.identifies() {
            connect::reach(&self.rest.endpoint, polling.keepalive).await
        } else {
            exchange::connect(self, &self.access, polling).await.map(drop)
        }
    }
}

impl Writer<PollLeg> {
    /// Creates the writer of a view whose server is polled. The relay presents itself to the control plane as `node`, with the
    /// certificate and token in `files` if the view's class has its own.
    #[must_use]
    pub fn polling(
        view: Arc<View>,
        node: &Arc<Node>,
        server: &Arc<RestServer>,
        files: Option<ClassFiles>,
        polling: &Arc<Polling>,
    ) -> Self {
        let access = server.access.for_class(files);
        let leg = |_| {
            let client = Client::new(polling.client.clone(), Dialect::Sotw, node.clone());
            PollLeg::new(client, server.clone(), access.clone(), polling.clone())
        };
        let waiting = Holds::new(polling.removal_quiet, polling.order_gate, view.guarded().settings());
        let told = (server.metrics.traces.clone(), server.metrics.holds.clone());
        Self::of(view, &server.uri, told, waiting, [(), ()].map(leg))
    }
}
