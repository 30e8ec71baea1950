// SPDX-License-Identifier: Apache-2.0
//! `distributary health`: asks a relay whether it is ready, or only whether it runs, for images that have no shell and no curl.
//!
//! Owns how long it goes on asking. Does not know what ready means.

use std::io::Write;
use std::time::Duration;

use clap::Args;

use super::asking::{AdminAccess, Bounds, now, time};

/// Ask running relays whether they can serve clients: prints the answers of /ready; the exit code is 0 if all can
#[derive(Debug, Args)]
pub(super) struct HealthCommand {
    /// Ask again until all can, at most so long, such as 30s
    #[arg(long, value_name = "TIME", value_parser = time)]
    wait: Option<Duration>,
    /// Ask only whether they run (/live), which they also do while no control plane was reached, and while they drain
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    access: AdminAccess,
}

/// How often relays are asked.
const PACE: Duration = Duration::from_millis(200);
/// How long the last question may take, even if the time to wait is over before: an answer says why a relay is not ready.
const LAST: Duration = Duration::from_secs(1);

impl HealthCommand {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let path = if self.live { "/live" } else { "/ready" };
        let Some(wait) = self.wait else {
            return self.access.order("GET", path, b"", Bounds::LINE, out);
        };
        let until = now() + wait;
        loop {
            let left = until.saturating_duration_since(now()).max(LAST);
            let mut answers = Vec::new();
            let asked = self
                .access
                .order("GET", path, b"", Bounds::LINE.within(left), &mut answers);
            if asked.is_ok() || now() + PACE > until {
                out.write_all(&answers)?;
                return asked;
            }
            std::thread::sleep(PACE);
        }
    }
}
