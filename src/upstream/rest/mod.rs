// SPDX-License-Identifier: Apache-2.0
//! Control planes that are polled over HTTP with JSON (H-07).
//!
//! Owns the state of one such server, and the settings for all of them. Knows nothing of clients. As on a stream, the machine
//! decides what to ask for and what an answer changes.

mod exchange;
mod leg;
mod poller;
mod topic;

use std::sync::Arc;

pub use leg::PollLeg;
pub use poller::{PollQuestion, Poller};

use super::access::{ClassFiles, ServerAccess};
use super::connect;
use super::record::ServerRecord;
use super::target::UpstreamSettings;
use super::writer::Writer;
use crate::cache::View;
use crate::config::RestPolls;
use crate::json::Schemas;
use crate::proto::envoy::config::core::v3::Node;
use crate::protocol::Client;
use crate::telemetry::UpstreamMetrics;
use crate::xds::Dialect;

/// A control plane that is polled.
#[derive(Debug)]
pub struct RestServer {
    /// What is known of it, as of any other.
    pub record: ServerRecord,
    rest: RestPolls,
    schemas: Schemas,
}

impl RestServer {
    /// Creates a polled control plane about which nothing is known yet.
    #[must_use]
    pub fn new(uri: &str, rest: RestPolls, schemas: Schemas, metrics: Arc<UpstreamMetrics>) -> Arc<Self> {
        let access = ServerAccess::of_server(&rest.credentials, rest.token.as_ref());
        Arc::new(Self {
            record: ServerRecord::new(uri, access, metrics),
            rest,
            schemas,
        })
    }

    /// Connects again and again until one connection succeeds. With `by_class`, certificates belong to classes of clients: a
    /// server without a certificate for the others counts as reached when it accepts a connection.
    pub async fn reached(&self, settings: &UpstreamSettings, by_class: bool) {
        let meet = || async move {
            if by_class && !self.record.access.identifies() {
                connect::reach(&self.rest.endpoint, settings.keepalive).await
            } else {
                exchange::connect(self, &self.record.access, settings).await.map(drop)
            }
        };
        self.record.meet(settings, meet).await;
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
        settings: &Arc<UpstreamSettings>,
    ) -> Self {
        let access = server.record.access.for_class(files);
        let leg = |_| {
            let client = Client::new(settings.client.clone(), Dialect::Sotw, node.clone());
            PollLeg::new(client, server.clone(), access.clone(), settings.clone())
        };
        Self::of(
            view,
            server.record.uri(),
            &server.record.metrics,
            settings,
            [(), ()].map(leg),
        )
    }
}
