// SPDX-License-Identifier: Apache-2.0
//! What can be said of clients whose control plane is not part of this program: who is left behind, and why some are not served.

use std::time::Duration;

use super::contender::Contender;
use super::now;

/// How long a pause between two questions is at least.
const PAUSE: Duration = Duration::from_millis(50);

impl Contender {
    /// Waits until no client lacks a change that another one saw, and returns how many do after all of this time.
    pub(super) async fn catch_up(&self, limit: Duration) -> anyhow::Result<usize> {
        let begin = now();
        loop {
            let asked = now();
            let behind = self.fleet.behind().await?;
            if behind == 0 || begin.elapsed() >= limit {
                return Ok(behind);
            }
            // The question takes time of the clients.
            tokio::time::sleep((asked.elapsed() * 10).max(PAUSE)).await;
        }
    }

    /// Says why clients of another control plane may lack something.
    pub(super) fn unserved(&self) -> String {
        if !self.world().is_foreign() {
            return String::new();
        }
        let refusal = self.fleet.progress.refusal();
        let refusal = refusal.map_or_else(String::new, |refusal| format!("; {refusal}"));
        format!("{refusal}; is each node known to the server? See `node_id`")
    }

    /// How many clients that are there get everything in time.
    pub(super) fn steady(&self) -> u32 {
        let numbers = self.plan.members(self.fleet.admitted(), 1);
        let numbers = numbers.filter_map(|number| self.plan.profile(number));
        u32::try_from(numbers.filter(|it| it.behaviour.is_steady()).count()).unwrap_or(u32::MAX)
    }
}
