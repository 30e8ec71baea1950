// SPDX-License-Identifier: Apache-2.0
//! How a scenario's relay is started: with a control plane's address, or with a configuration. It builds no control plane.

use std::net::SocketAddr;
use std::sync::Arc;

use super::contender::Upstream;
use crate::command::arguments::Arguments;
use crate::subject::relay::{Launch, Relay, Source};
use crate::wire::folder::Folder;

/// How a relay is started.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    pub(super) address: SocketAddr,
    /// Added to its configuration.
    pub(super) config: String,
    pub(super) quiet: bool,
    /// Whether the configuration says where it listens.
    pub(super) listens: bool,
    /// A folder that its configuration names.
    #[expect(dead_code, reason = "it is there as long as this is")]
    pub(super) folder: Option<Arc<Folder>>,
}

impl Manner {
    /// Starts a relay with this control plane.
    pub(super) async fn start(&self, arguments: &Arguments, upstream: &Upstream) -> anyhow::Result<Relay> {
        let Upstream {
            uri,
            credentials,
            node,
            servers,
        } = upstream;
        let plain = credentials.is_none() && node.is_none() && servers.is_none();
        let source = if self.config.is_empty() && plain {
            Source::Upstream(uri.clone())
        } else {
            let credentials = credentials.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
            let node = node.as_ref().map(|node| format!("  node: {node}\n"));
            let usual = || format!("  xds_servers: [{{ server_uri: '{uri}'{credentials} }}]\n");
            let servers = servers.clone().unwrap_or_else(usual);
            let upstream = format!("upstream:\n{servers}{}", node.unwrap_or_default());
            Source::Config(format!("{upstream}{}\n", self.config))
        };
        Relay::start(&Launch {
            program: arguments.relay_bin.as_deref(),
            listen: self.address,
            listens: self.listens,
            source,
            quiet: self.quiet,
        })
        .await
    }
}
