//! `distributary drain`: moves the clients of relays away, for images that have no shell and no curl.

use std::io::Write;

use clap::Args;

use super::asking::{AdminAccess, Bounds};

/// Move clients away from running relays: /ready fails first, then they are disconnected one by one. SIGTERM ends a relay
#[derive(Debug, Args)]
pub(super) struct Drain {
    #[command(flatten)]
    access: AdminAccess,
}

impl Drain {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        self.access
            .order("POST", "/drain_listeners?graceful", b"", Bounds::LINE, out)
    }
}
