//! `distributary health`: asks a relay whether it is ready, for images that have no shell and no curl.

use std::io::Write;

use clap::Args;

use super::asking::AdminAccess;

/// Ask running relays whether they can serve clients: prints the answers of /ready; the exit code is 0 if all can
#[derive(Debug, Args)]
pub(super) struct Health {
    #[command(flatten)]
    access: AdminAccess,
}

impl Health {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        self.access.order("GET", "/ready", out)
    }
}
