// SPDX-License-Identifier: Apache-2.0
//! Changes of a control plane that is not part of this program: a command that makes one, how often, and how it is timed. Owns the keys
//! and the bounds of what runs. Knows nothing of what the control plane does with it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tokio::time::sleep_until;

use super::command;
use super::now;
use super::play::Play;
use crate::measure::quantities::Time;
use crate::measure::record::Schedule;

/// A command, run by `sh -c`, that makes a change; `{n}` in it is the number of the change, from 1.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exec {
    command: String,
    #[serde(default = "once")]
    times: u32,
    /// Times a second. Without it, each waits until all clients have content that differs.
    rate: Option<f64>,
    /// How long it may run each time.
    #[serde(default = "patience")]
    within: Time,
}

const fn once() -> u32 {
    1
}

const fn patience() -> Time {
    Time(Duration::from_secs(30))
}

/// What runs may take no longer.
const WITHIN_MAX: Duration = Duration::from_secs(600);
/// Before a change that waits for the one before, nothing comes for this long, or this long is waited.
const QUIET: Duration = Duration::from_millis(100);
const RESTLESS_MAX: Duration = Duration::from_secs(2);

impl Exec {
    /// Returns what is wrong with it.
    pub(super) fn fault(&self) -> Option<String> {
        let within = self.within.0;
        let fault = if self.command.trim().is_empty() {
            "runs an empty command: write one such as `kubectl apply -f new.yaml`"
        } else if self.times == 0 {
            "has `times: 0`: use 1 or more"
        } else if self.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            "has a `rate` that is not positive: use times a second, such as 2, or leave it out"
        } else if within.is_zero() || within > WITHIN_MAX {
            return Some(format!(
                "has `within: {within:?}`: use more than 0 and at most {WITHIN_MAX:?}"
            ));
        } else {
            return None;
        };
        Some(fault.to_owned())
    }
}

impl Play<'_> {
    /// Makes changes from outside, and times each until every client has content that differs.
    pub(super) async fn change_outside(&mut self, exec: &Exec, limit: Duration) -> anyhow::Result<()> {
        let world = self.cast.main.world();
        ensure!(
            world.is_foreign(),
            "`exec` is for a control plane that is not this program's: use `change`, or --server or --upstream"
        );
        let bell = std::sync::Arc::clone(&world.bell);
        bell.trials.set_active(true);
        let done = self.cause(exec, limit).await;
        // What is still to come belongs to the last change.
        self.settle().await;
        bell.trials.set_active(false);
        bell.trials.clear();
        done
    }

    async fn cause(&mut self, exec: &Exec, limit: Duration) -> anyhow::Result<()> {
        let clients = self.cast.main.steady();
        ensure!(
            clients > 0,
            "there are no clients that changes could be timed at: let some `join` before"
        );
        let bell = std::sync::Arc::clone(&self.cast.main.world().bell);
        let schedule = exec.rate.map(|rate| Schedule::new(now(), rate));
        let mut trials = Vec::new();
        for turn in 0..exec.times {
            let due = match &schedule {
                Some(schedule) => schedule.due(turn),
                None => {
                    self.settle().await;
                    now()
                }
            };
            sleep_until(due.into()).await;
            let number = turn + 1;
            trials.push(bell.trials.begin(clients, due));
            self.turns += 1;
            self.wanted += u64::from(clients);
            let ran = command::run(&exec.command.replace("{n}", &number.to_string()), exec.within.0).await;
            ran.with_context(|| format!("change {number} of {}", exec.times))?;
            if schedule.is_none() || number == exec.times {
                let missing = || trials.iter().map(|trial| trial.missing()).max().unwrap_or_default();
                let waited = self.cast.main.wait(limit, || missing() == 0).await;
                waited.with_context(|| {
                    format!(
                        "{} of {clients} clients still have what they had before change {number}",
                        missing()
                    )
                })?;
                trials.clear();
            }
        }
        Ok(())
    }

    /// Waits until what belongs to the change before has come.
    async fn settle(&self) {
        let _ = self.is_quiet(QUIET, RESTLESS_MAX).await;
    }
}
