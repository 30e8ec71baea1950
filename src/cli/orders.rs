// SPDX-License-Identifier: Apache-2.0
//! `distributary drain`, `distributary reload` and `distributary log-level`: orders to running relays, also for images that have no shell
//! and no curl.
//!
//! Owns the arguments. The relays say what has come of it.

use std::io::Write;

use clap::Args;

use super::asking::{AdminAccess, Bounds, encoded};

/// Have running relays read their configuration again; prints what has changed, and from when on it holds
#[derive(Debug, Args)]
pub(super) struct ReloadCommand {
    #[command(flatten)]
    access: AdminAccess,
}

/// Move clients away from running relays: /ready fails first, then they are disconnected one by one. SIGTERM ends a relay
#[derive(Debug, Args)]
pub(super) struct DrainCommand {
    #[command(flatten)]
    access: AdminAccess,
}

/// Show or change how much running relays log, until the next order or a change of `logging.level`
#[derive(Debug, Args)]
pub(super) struct LogLevel {
    /// error, warn, info, debug or trace for all parts, or such as upstream=debug,h2=warn [default: only show]
    level: Option<String>,
    #[command(flatten)]
    access: AdminAccess,
}

impl ReloadCommand {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        self.access.order("POST", "/reload", b"", Bounds::LIST, out)
    }
}

impl DrainCommand {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let path = "/drain_listeners?graceful";
        self.access.order("POST", path, b"", Bounds::LINE, out)
    }
}

impl LogLevel {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let path = match self.level.as_deref() {
            None => "/logging".to_owned(),
            Some(level) if level.contains('=') => format!("/logging?paths={}", encoded(&level.replace('=', ":"))),
            Some(level) => format!("/logging?level={}", encoded(level)),
        };
        self.access.order("POST", &path, b"", Bounds::LIST, out)
    }
}
