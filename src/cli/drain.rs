//! `distributary drain`: moves the clients of a relay away, for images that have no shell and no curl.

use std::io::Write;

use clap::Args;

use super::asking;
use crate::config::Address;

/// Move clients away from a running relay: /ready fails first, then they are disconnected one by one. SIGTERM ends the relay
#[derive(Debug, Args)]
pub(super) struct Drain {
    /// The admin address of the relay: ip:port, [v6]:port or unix:/path
    #[arg(long, value_name = "ADDRESS", env = "DISTRIBUTARY_ADMIN", default_value = "127.0.0.1:9901", value_parser = Address::parse)]
    admin: Address,
}

impl Drain {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        writeln!(
            out,
            "{}",
            asking::ask(&self.admin, "POST", "/drain_listeners?graceful")?
        )?;
        Ok(())
    }
}
