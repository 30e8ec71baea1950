//! The phases, in their order, and the figures that each one takes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{sleep, sleep_until};

use super::{Measurement, now};
use crate::kind::{Dialect, Kind};
use crate::ledger::Content;
use crate::process::Process;
use crate::record::Schedule;
use crate::report::millis;
use crate::scrape::Metrics;

/// What the relay's memory is given to settle in after a join.
const SETTLE: Duration = Duration::from_secs(1);
/// Spreads the changes over the resources.
const STRIDE: u32 = 7919;

impl Measurement<'_> {
    /// Runs all of them.
    pub(super) async fn phases(&mut self, say: &mut impl FnMut(&str)) -> anyhow::Result<()> {
        say("the first client joins");
        self.recorder.begin("first client", now())?;
        let first = self.join(1).await.context("the first client's full state")?;
        self.report.first_client_ms = Some(millis(first));
        sleep(SETTLE).await;
        self.join_all(say).await?;
        say("everybody rests");
        sleep(SETTLE).await;
        self.recorder.begin("rest", now())?;
        let idle = self.rest().await?;
        self.recorder.idle(now())?;
        say(&format!("{} changes", self.arguments.changes));
        self.recorder.begin("changes", now())?;
        self.change(idle).await?;
        if self.arguments.kind == Kind::Cds || self.arguments.dialect == Dialect::Delta {
            say("a removal and a return");
            self.recorder.begin("removal", now())?;
            self.remove().await?;
        }
        Ok(())
    }

    async fn join_all(&mut self, say: &mut impl FnMut(&str)) -> anyhow::Result<()> {
        say("the others join");
        self.recorder.base(1)?;
        self.recorder.begin("join", now())?;
        let before = self.relay_metrics().await?;
        let cpu = self.relay_cpu()?;
        if let Some(relay) = &self.relay {
            self.figures.base_bytes = relay.process().resident_bytes()?;
        }
        let taken = self
            .join(self.arguments.clients())
            .await
            .context("everybody's full state")?;
        self.report.join_ms = Some(millis(taken));
        self.figures.join_cpu_ms = millis(self.relay_cpu()?.saturating_sub(cpu));
        self.figures.encoded_bodies_join = grown(&before, &self.relay_metrics().await?, ENCODED_BODIES);
        Ok(())
    }

    /// Lets clients in until there are `clients`, and returns how long it took until all had everything.
    async fn join(&self, clients: u32) -> anyhow::Result<Duration> {
        let progress = &self.fleet.progress;
        let begin = now();
        progress.expect(clients);
        self.fleet.admit(clients);
        self.wait(|| progress.complete() >= clients)
            .await
            .with_context(|| format!("{} of {clients} clients are complete", progress.complete()))?;
        Ok(begin.elapsed())
    }

    /// Watches the idle relay; returns the processor time that it takes per second.
    async fn rest(&mut self) -> anyhow::Result<f64> {
        let (begin, cpu) = (now(), self.relay_cpu()?);
        sleep(self.arguments.idle).await;
        let taken = self.relay_cpu()?.saturating_sub(cpu);
        let idle = taken.as_secs_f64() / begin.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        self.figures.idle_cpu_percent = idle * 100.0;
        if let Some(relay) = &self.relay {
            self.figures.idle_bytes = relay.process().resident_bytes()?;
            self.figures.peak_bytes = relay.process().peak_bytes()?;
            let grown = self.figures.idle_bytes.saturating_sub(self.figures.base_bytes);
            self.figures.bytes_per_client = ratio(grown, u64::from(self.arguments.clients().saturating_sub(1)));
        }
        Ok(idle)
    }

    /// Publishes the changes at their times, whether or not the one before has arrived, and waits for all of them.
    async fn change(&mut self, idle: f64) -> anyhow::Result<()> {
        let before = self.relay_metrics().await?;
        let own = Process::own();
        let cpu = (
            self.relay_cpu()?,
            own.cpu("clients-")?,
            own.cpu("control-plane")?,
            own.cpu("")?,
        );
        let begin = now();
        let ledger = Arc::clone(self.plan.ledger()?);
        let demand = self.plan.demand(ledger.kind(), 1);
        let schedule = Schedule::new(begin, self.arguments.rate);
        let mut contents = Vec::new();
        for turn in 0..self.arguments.changes {
            let due = schedule.due(turn);
            sleep_until(due.into()).await;
            let index = turn.wrapping_mul(STRIDE) % ledger.len();
            let wanting = usize::try_from(index).ok().and_then(|index| demand.get(index).copied());
            let wanting = wanting.unwrap_or_default();
            self.report.deliveries_expected += u64::from(wanting);
            contents.extend(ledger.change(index, wanting, true, due));
        }
        let all = "all changes at all clients";
        self.wait(|| contents.iter().all(|content| is_delivered(content)))
            .await
            .context(all)?;
        sleep_until(schedule.due(self.arguments.changes).into()).await;
        let elapsed = begin.elapsed().as_secs_f64();
        let relay = self.relay_cpu()?.saturating_sub(cpu.0).as_secs_f64();
        let own_all = own.cpu("")?.saturating_sub(cpu.3).as_secs_f64();
        let percent = |taken: f64| 100.0 * taken / elapsed;
        self.report.clients_cpu_percent = percent(own.cpu("clients-")?.saturating_sub(cpu.1).as_secs_f64());
        self.report.control_plane_cpu_percent = percent(own.cpu("control-plane")?.saturating_sub(cpu.2).as_secs_f64());
        self.report.own_share_percent = 100.0 * own_all / (own_all + relay).max(f64::MIN_POSITIVE);
        self.figures.cpu_percent = percent(relay);
        self.figures.changes_cpu_ms = (relay - idle * elapsed).max(0.0) * 1e3;
        let after = self.relay_metrics().await?;
        self.figures.encoded_bodies = grown(&before, &after, ENCODED_BODIES);
        self.figures.responses = grown(&before, &after, RESPONSES);
        Ok(())
    }

    /// Takes one resource away, waits until nobody has it, and brings it back.
    async fn remove(&mut self) -> anyhow::Result<()> {
        let begin = now();
        let wanting = self.plan.wanting(0);
        let ledger = Arc::clone(self.plan.ledger()?);
        let gone = ledger.remove(0, wanting, begin);
        let removed = self.wait(|| gone.iter().all(|content| is_delivered(content)));
        removed.await.context("one removal at all clients")?;
        let back = ledger.change(0, wanting, false, now());
        let returned = self.wait(|| back.iter().all(|content| is_delivered(content)));
        returned.await.context("the removed resource's return at all clients")?;
        self.report.removal_ms = Some(millis(begin.elapsed()));
        Ok(())
    }

    fn relay_cpu(&self) -> anyhow::Result<Duration> {
        self.relay
            .as_ref()
            .map_or(Ok(Duration::ZERO), |relay| relay.process().cpu(""))
    }

    async fn relay_metrics(&self) -> anyhow::Result<Option<Metrics>> {
        match &self.relay {
            // Without its counters the relay is measured all the same.
            Some(relay) => Ok(relay.metrics().await.ok()),
            None => Ok(None),
        }
    }
}

const ENCODED_BODIES: &str = "distributary_encoded_bodies_total";
const RESPONSES: &str = "distributary_responses_total";

fn grown(before: &Option<Metrics>, after: &Option<Metrics>, name: &str) -> Option<f64> {
    // A counter that nobody used yet may be missing.
    let before = before.as_ref()?.sum(name).unwrap_or_default();
    Some(after.as_ref()?.sum(name)? - before)
}

fn is_delivered(content: &Content) -> bool {
    content.awaited.load(Ordering::Acquire) == 0
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn ratio(amount: u64, count: u64) -> f64 {
    amount as f64 / count.max(1) as f64
}
