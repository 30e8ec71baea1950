//! `distributary drain`: moves the clients of a relay away, for images that have no shell and no curl.

use std::io::Write;

use clap::Args;

use super::asking::AdminAccess;

/// Move clients away from a running relay: /ready fails first, then they are disconnected one by one. SIGTERM ends the relay
#[derive(Debug, Args)]
pub(super) struct Drain {
    #[command(flatten)]
    access: AdminAccess,
}

impl Drain {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        writeln!(out, "{}", self.access.ask("POST", "/drain_listeners?graceful")?)?;
        Ok(())
    }
}
