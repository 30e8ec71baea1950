//! `distributary health`: asks a relay whether it is ready, for images that have no shell and no curl.

use std::io::Write;

use clap::Args;

use super::asking;
use crate::config::Address;

/// Ask a running relay whether it can serve clients: prints the answer of /ready; the exit code is 0 if it can
#[derive(Debug, Args)]
pub(super) struct Health {
    /// The admin address of the relay: ip:port, [v6]:port or unix:/path
    #[arg(long, value_name = "ADDRESS", env = "DISTRIBUTARY_ADMIN", default_value = "127.0.0.1:9901", value_parser = Address::parse)]
    admin: Address,
}

impl Health {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        writeln!(out, "{}", asking::ask(&self.admin, "GET", "/ready")?)?;
        Ok(())
    }
}
