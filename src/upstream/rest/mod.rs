//! Control planes that are polled over HTTP with JSON (H-07).
//!
//! Owns what is known of one such server, and what all of them have in common. Refuses to know clients; what is asked for and
//! what an answer changes is the machine's part, as on a stream.

mod exchange;
mod leg;
mod poller;
mod topic;

use std::sync::Arc;
use std::time::Duration;

pub use leg::PollLeg;
pub use poller::{Poller, Question};

use super::clock::{dice, now};
use super::refused::Refused;
use super::token::Token;
use super::writer::Writer;
use crate::cache::View;
use crate::config::{Credentials, Rest};
use crate::json::Schemas;
use crate::proto::envoy::config::core::v3::Node;
use crate::protocol::{Backoff, Client, ClientSettings};
use crate::telemetry::UpstreamMetrics;
use crate::xds::Dialect;

/// A control plane that is polled.
#[derive(Debug)]
pub struct RestServer {
    uri: String,
    rest: Rest,
    token: Option<Token>,
    metrics: Arc<UpstreamMetrics>,
    refused: Refused,
}

/// How control planes are polled.
#[derive(Clone, Debug)]
pub struct Polling {
    /// For the machines.
    pub client: Arc<ClientSettings>,
    /// The largest answer that is read, in bytes (`limits.upstream_message`).
    pub upstream_message: usize,
    /// How often the kernel asks a silent peer whether it is there (`timers.keepalive`); zero: never.
    pub keepalive: Duration,
    /// The time from an answer to the next poll (`timers.rest_interval`).
    pub interval: Duration,
    /// What is known of types.
    pub schemas: Schemas,
}

impl RestServer {
    /// A control plane of which nothing is known yet.
    #[must_use]
    pub fn new(uri: &str, rest: Rest, metrics: Arc<UpstreamMetrics>) -> Arc<Self> {
        // A97: a token never travels without TLS.
        let token = match (&rest.credentials, &rest.token) {
            (Credentials::Tls(_), Some(path)) => Some(Token::new(path)),
            (Credentials::Insecure, _) | (Credentials::Tls(_), None) => None,
        };
        Arc::new(Self {
            uri: uri.to_owned(),
            rest,
            token,
            metrics,
            refused: Refused::default(),
        })
    }

    /// Tries until it could be connected to once.
    pub async fn reached(&self, polling: &Polling) {
        let mut backoff = Backoff::default();
        while let Err(failure) = exchange::connect(self, polling).await {
            tracing::warn!(server = self.uri, error = %failure, "control plane not reached");
            let wait = backoff.handle_failure(dice());
            tokio::time::sleep_until((now() + wait).into()).await;
        }
        tracing::info!(server = self.uri, "control plane reached");
    }
}

impl Writer<PollLeg> {
    /// The writer of a view that is polled, for which the relay says towards the control plane that it is `node`.
    #[must_use]
    pub fn polling(view: Arc<View>, node: &Node, server: &Arc<RestServer>, polling: &Arc<Polling>) -> Self {
        let leg = || {
            let client = Client::new(polling.client.clone(), Dialect::Sotw, node.clone());
            PollLeg::new(client, server.clone(), polling.clone())
        };
        let (main, aside) = (leg(), leg());
        Self::of(view, main, aside)
    }
}
