// SPDX-License-Identifier: Apache-2.0
//! What goes and comes back: resources, the relay, and clients.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::sleep;

use super::contender::Server;
use super::now;
use super::past::Usage;
use super::phase::{Part, Reconnect, Remove, Want};
use super::play::Play;
use crate::fleet::{Order, Wish};
use crate::measure::record::float;
use crate::origin::ledger::What;

/// How long nobody must be sent anything.
const QUIET: Duration = Duration::from_millis(500);
/// After which part of their pause it is measured what the relay takes without clients.
const AWAY: f64 = 0.9;

impl Play<'_> {
    pub(super) async fn remove(&mut self, remove: Remove, limit: Duration) -> anyhow::Result<()> {
        let indexes: Vec<u32> = (0..remove.count).collect();
        if remove.unseen {
            let gone = self
                .cast
                .main
                .write(remove.kind, &indexes, What::Nothing, false, now())?;
            self.cast.main.origin.unseen.extend(gone);
            return Ok(());
        }
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

    /// Starts a control plane again, and waits until it is asked, and until clients have what differs there.
    pub(super) async fn start_control_plane(&mut self, limit: Duration) -> anyhow::Result<()> {
        let main = &mut self.cast.main;
        main.start_control_plane()?;
        let differs = std::mem::take(&mut main.origin.unseen);
        let measured = differs.iter().filter(|content| content.measured);
        let awaited = measured.map(|content| u64::from(content.awaited.load(Ordering::Acquire)));
        self.wanted += awaited.sum::<u64>();
        if let (Server::Relay { .. }, Some(control_plane)) = (&main.server, &main.origin.control_plane) {
            let counts = Arc::clone(&control_plane.counts);
            let asked = main.wait(limit, || counts.streams() > 0).await;
            asked.context("the control plane that has come back is asked")?;
            main.delivered(limit, &differs).await.context("what differs there")?;
            self.quiet(limit).await?;
        }
        Ok(())
    }

    /// Stops a relay and starts it again at the same address, and waits for its clients.
    pub(super) async fn restart(&mut self, part: Part, limit: Duration) -> anyhow::Result<()> {
        let main = &mut self.cast.main;
        let above = part == Part::RelayAbove;
        let own = main.plan.complete_at(main.fleet.admitted(), above);
        let returned = main.fleet.progress.returned() + u64::from(own);
        if above {
            main.restart_above(self.arguments).await?;
        } else {
            main.start_relay(self.arguments).await?;
            if let Some(process) = main.process() {
                self.recorder.watch(&process)?;
            }
        }
        let progress = Arc::clone(&main.fleet.progress);
        let all = main.plan.complete_of(main.fleet.admitted());
        main.wait(limit, || progress.returned() >= returned && progress.complete() >= all)
            .await
            .context("all clients come back")?;
        self.quiet(limit).await
    }

    /// Some clients ask for one more resource, and nobody else is sent anything.
    pub(super) async fn want(&mut self, want: Want, limit: Duration) -> anyhow::Result<()> {
        let main = &mut self.cast.main;
        let ledger = main.world().ledger(want.kind);
        let ledger = Arc::clone(ledger.context("the world has no such resources")?);
        let index = ledger.len() + main.origin.wishes;
        anyhow::ensure!(index < ledger.all(), "there are no more `extras` of this type");
        main.origin.wishes += 1;
        let every = usize::try_from(want.one_in)?;
        let asking = u64::try_from(main.plan.members(main.fleet.admitted(), every).count())?;
        let progress = Arc::clone(&main.fleet.progress);
        let (messages, named) = (progress.messages(), progress.named());
        main.fleet.order(Order::Wish(Wish {
            every: want.one_in,
            kind: want.kind,
            index,
        }));
        let served = main.wait(limit, || progress.named() - named >= asking).await;
        served.context("clients that ask for one more")?;
        self.quiet(limit).await?;
        let sent = |what, before, now: u64| self.recorder.expect(what, now - before, asking);
        sent("messages to clients that ask for more", messages, progress.messages());
        sent("resources in these messages", named, progress.named());
        Ok(())
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
        match self.is_quiet(QUIET, limit).await {
            true => Ok(()),
            false => bail!("clients still get messages after {limit:?}"),
        }
    }

    /// The same for as long as `pause`; gives up after the limit.
    pub(super) async fn is_quiet(&self, pause: Duration, limit: Duration) -> bool {
        let (begin, progress) = (now(), &self.cast.main.fleet.progress);
        while begin.elapsed() < limit {
            let before = progress.messages();
            sleep(pause).await;
            if progress.messages() == before {
                return true;
            }
        }
        false
    }
}
