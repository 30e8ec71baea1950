//! What goes and comes back: resources, the relay, and clients.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::sleep;

use super::contender::Server;
use super::now;
use super::past::Usage;
use super::phase::{Reconnect, Remove};
use super::play::Play;
use crate::fleet::Order;
use crate::measure::record::float;
use crate::origin::ledger::What;

/// How long nobody must be sent anything.
const QUIET: Duration = Duration::from_millis(500);
/// After which part of their pause it is measured what the relay takes without clients.
const AWAY: f64 = 0.9;

impl Play<'_> {
    pub(super) async fn remove(&mut self, remove: Remove, limit: Duration) -> anyhow::Result<()> {
        let indexes: Vec<u32> = (0..remove.count).collect();
        for what in [What::Nothing, What::New] {
            let contents = self.cast.main.change(remove.kind, &indexes, what, false, now())?;
            self.cast
                .main
                .delivered(limit, &contents)
                .await
                .context("resources that go and return")?;
        }
        Ok(())
    }

    pub(super) async fn restart(&mut self, limit: Duration) -> anyhow::Result<()> {
        let main = &mut self.cast.main;
        let returned = main.fleet.progress.returned() + u64::from(main.plan.complete_of(u32::MAX));
        main.restart_relay(self.arguments).await?;
        if let Some(process) = main.process() {
            self.recorder.watch(&process)?;
        }
        let progress = Arc::clone(&main.fleet.progress);
        let all = main.plan.complete_of(u32::MAX);
        main.wait(limit, || progress.returned() >= returned && progress.complete() >= all)
            .await
            .context("all clients come back")?;
        self.quiet(limit).await
    }

    /// Returns what the relay took while everybody was away, if everybody was.
    pub(super) async fn reconnect(&mut self, reconnect: Reconnect, limit: Duration) -> anyhow::Result<Option<Usage>> {
        let main = &self.cast.main;
        let progress = Arc::clone(&main.fleet.progress);
        let (every, there) = (reconnect.one_in.max(1), main.fleet.admitted().min(main.plan.clients));
        let all = main.plan.complete_of(there);
        let back = main.plan.leaving(there, every);
        let returned = progress.returned() + back;
        main.fleet.order(Order::Leave {
            every,
            pause: reconnect.pause.0,
        });
        let away = match every {
            1 => self.away(reconnect.pause.0).await?,
            _ => None,
        };
        main.wait(limit, || progress.returned() >= returned && progress.complete() >= all)
            .await
            .context("all clients come back")?;
        self.quiet(limit).await?;
        Ok(away)
    }

    /// Waits until shortly before everybody comes back, and returns what the relay takes then; none if clients still have
    /// connections to it, or if it is not this program's.
    async fn away(&self, pause: Duration) -> anyhow::Result<Option<Usage>> {
        sleep(pause.mul_f64(AWAY)).await;
        let Server::Relay { relay: Some(relay), .. } = &self.cast.main.server else {
            return Ok(None);
        };
        let process = relay.process();
        let (resident_bytes, descriptors) = (process.resident_bytes()?, process.descriptors()?);
        let metrics = relay.metrics().await?;
        let usage = Usage {
            resident_bytes: float(resident_bytes),
            descriptors: float(descriptors),
            tasks: metrics.sum("distributary_tasks").unwrap_or(f64::NAN),
        };
        let note = |what, value: f64| self.recorder.note(what, value);
        note("while everybody is away: memory in bytes", usage.resident_bytes);
        note("while everybody is away: descriptors", usage.descriptors);
        note("while everybody is away: tasks", usage.tasks);
        let gone = metrics.sum("distributary_connections").is_some_and(|open| open < 0.5);
        Ok(Some(usage).filter(|_| gone))
    }

    /// Waits until no client was sent anything for a while.
    async fn quiet(&self, limit: Duration) -> anyhow::Result<()> {
        let (begin, progress) = (now(), &self.cast.main.fleet.progress);
        loop {
            let before = progress.messages();
            sleep(QUIET).await;
            if progress.messages() == before {
                return Ok(());
            }
            if begin.elapsed() > limit {
                bail!("clients still get messages after {limit:?}");
            }
        }
    }
}
