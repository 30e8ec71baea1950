//! `distributary drain`: has the clients of a relay leave, where there is no shell and no curl to say so with.

use std::io::Write;

use clap::Args;

use super::asking;
use crate::config::Address;

/// Have the clients of a running relay leave: readiness goes first, then they go one after the other. The relay itself ends by SIGTERM
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
