// SPDX-License-Identifier: Apache-2.0
//! Plays a scenario written in YAML: phase by phase, each within its limit, and checks after each phase what must hold.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{sleep, sleep_until};

use super::asking::Asking;
use super::cast::Cast;
use super::contender::{Contender, Server, Spent};
use super::file::Scenario;
use super::past::{Past, Rounds};
use super::phase::{Act, Change, Join, Part, Pattern, PhaseShape};
use super::{expect, now, telling};
use crate::command::arguments::Arguments;
use crate::fleet::progress::Refusal;
use crate::measure::record::{Claim, Quantity, Recorder, Relation, Schedule, Unit, counter, float};
use crate::measure::scrape::Metrics;
use crate::origin::ledger::{Content, What};

/// A scenario that is being played.
pub(super) struct Play<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) recorder: &'a Recorder,
    pub(super) cast: Cast,
    /// The phases before, for comparisons.
    pub(super) past: Vec<Past>,
    /// The streams and bytes that the control plane counted before this phase.
    upstream: (u64, u64),
    /// The number of changes so far.
    pub(super) turns: u32,
    /// The number of deliveries that the changes so far require.
    pub(super) wanted: u64,
    based: bool,
    /// Whether all clients must have a stream at the end of each phase.
    pub(super) keeps_streams: bool,
    /// The relay's counters when the phase began.
    metrics: Metrics,
}

/// The step from one changed resource to the next, which spreads the changes over all.
const STRIDE: u32 = 7919;
const LIMIT: Duration = Duration::from_secs(120);
/// How long memory may settle.
const SETTLE: Duration = Duration::from_secs(1);

/// Plays the scenario to its end, or to the first phase that does not complete.
pub(crate) async fn run(
    scenario: &Scenario,
    arguments: &Arguments,
    recorder: &Recorder,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<()> {
    let cast = Cast::assemble(scenario, arguments).await?;
    say(&cast.setup);
    recorder.describe(&cast.setup);
    telling::attach(recorder, &cast.main.fleet, cast.main.world());
    if let Some(process) = cast.main.process() {
        recorder.watch(&process)?;
    }
    let mut play = Play {
        arguments,
        recorder,
        cast,
        past: Vec::new(),
        upstream: (0, 0),
        turns: 0,
        wanted: 0,
        based: false,
        keeps_streams: scenario.keeps_streams(),
        metrics: Metrics::default(),
    };
    for phase in &scenario.phases {
        say(&phase.name);
        recorder.begin(&phase.name, now())?;
        let before = play.streams();
        let outcome = play.phase(phase).await;
        if outcome.as_ref().is_err_and(|error| error.is::<Refusal>()) {
            return outcome;
        }
        play.check_streams(before).await?;
        if let Err(error) = outcome {
            recorder.fail(&format!("phase `{}`", phase.name), Some(format!("{error:#}")));
            break;
        }
    }
    play.finish()
}

impl Play<'_> {
    async fn phase(&mut self, shape: &PhaseShape) -> anyhow::Result<()> {
        let limit = shape.limit.map_or(LIMIT, |limit| limit.0);
        let turns = self.turns;
        let sent = self
            .cast
            .main
            .origin
            .control_plane
            .as_ref()
            .map(|it| (it.counts.streams(), it.counts.bytes()));
        self.upstream = sent.unwrap_or_default();
        let wanted = self.wanted;
        let mut rounds = Rounds::default();
        if self.cast.main.world().is_foreign() && shape.act.needs_control_plane() {
            self.recorder
                .note("left out", "the control plane is not this program's");
            return Ok(());
        }
        let asking = Asking::start(self.cast.main.admin(), &shape.ask)?;
        match &shape.act {
            Act::Join(join) => {
                rounds.join = Some(self.join(*join, limit).await?);
            }
            Act::Rest(time) => sleep(time.0).await,
            Act::Idle(time) => {
                sleep(time.0).await;
                self.recorder.idle(now())?;
            }
            Act::Change(change) => rounds = self.change(*change, limit).await?,
            Act::Exec(exec) => self.change_outside(exec, limit).await?,
            Act::Remove(remove) => self.remove(*remove, limit).await?,
            Act::Want(want) => self.want(*want, limit).await?,
            Act::Restart(part) => self.restart(*part, limit).await?,
            Act::Kill(part) => {
                self.cast.main.kill_relay()?;
                self.restart(*part, limit).await?;
            }
            Act::Stop(Part::Fallback) => self.cast.main.origin.fallback = None,
            Act::Stop(_) => self.cast.main.stop_control_plane(),
            Act::Start(_) => self.start_control_plane(limit).await?,
            Act::Reconnect(reconnect) => rounds.away = self.reconnect(*reconnect, limit).await?,
            Act::Chaos(chaos) => self.chaos(*chaos, limit).await?,
        }
        if let Some(time) = shape.expect.reaches_all_within {
            rounds.behind = Some(self.cast.main.catch_up(time.0).await?);
        }
        rounds.answers = asking.stop(self.recorder).await?;
        if self.cast.main.fleet.progress.violated() > 0 {
            bail!("{} clients saw violations", self.cast.main.fleet.progress.violated());
        }
        let made = (self.turns - turns, self.wanted - wanted);
        let held = self.close(shape, rounds, made);
        self.count_relay().await;
        held
    }

    /// Records what the relay's own counters gained since the phase before. A relay without these counters is measured all the
    /// same.
    async fn count_relay(&mut self) {
        let Server::Relay { relay: Some(relay), .. } = &self.cast.main.server else {
            return;
        };
        let Ok(metrics) = relay.metrics().await else {
            return;
        };
        for (name, counter) in [
            ("distributary_encoded_bodies_total", "bodies encoded by the relay"),
            ("distributary_responses_total", "responses of the relay"),
        ] {
            let [before, after] = [&self.metrics, &metrics].map(|it| it.sum(name).unwrap_or_default());
            // A restarted relay counts from 0.
            let grown = if after < before { after } else { after - before };
            self.recorder.count(counter, grown);
        }
        self.metrics = metrics;
    }

    fn close(&mut self, shape: &PhaseShape, rounds: Rounds, (changes, wanted): (u32, u64)) -> anyhow::Result<()> {
        let counts = self.cast.main.origin.control_plane.as_ref().map(|it| &it.counts);
        let (streams, bytes) = counts.map_or((0, 0), |it| (it.streams(), it.bytes()));
        let (before, upstream_bytes) = (self.upstream, bytes.saturating_sub(self.upstream.1));
        if counts.is_some() {
            self.recorder
                .count(counter::UPSTREAM_STREAMS, float(streams.saturating_sub(before.0)));
            self.recorder.count(counter::UPSTREAM_BYTES, float(upstream_bytes));
        }
        expect::ratios(self.recorder, &rounds);
        let phase = self.recorder.look(now())?.context("no phase is running")?;
        let past = Past {
            phase,
            rounds,
            upstream_streams: streams,
            upstream_bytes,
            changes,
            wanted,
            calm_bytes: self
                .cast
                .calm
                .as_ref()
                .and_then(|calm| calm.process()?.resident_bytes().ok()),
        };
        let held = expect::check(&shape.expect, &past, self);
        self.past.push(past);
        held
    }

    async fn join(&mut self, join: Join, limit: Duration) -> anyhow::Result<Spent> {
        let clients = join.clients.unwrap_or(self.cast.main.plan.clients);
        let main = self.cast.main.join(clients, join.over.0, limit).await?;
        // The memory that the relay has with a few clients is its base.
        if !self.based && clients < self.cast.main.plan.clients {
            sleep(SETTLE).await;
            // Clients that share a connection have come together.
            self.recorder
                .base(u64::from(self.cast.main.fleet.progress.complete()))?;
            self.based = true;
        }
        self.recorder.time("everybody has everything after", main.taken);
        if self.cast.main.world().is_foreign() {
            let fleet = &self.cast.main.fleet;
            let (complete, all) = (
                fleet.progress.complete(),
                self.cast.main.plan.complete_of(fleet.admitted()),
            );
            self.recorder.expect(
                "clients with an answer to all that they asked for",
                complete.into(),
                all.into(),
            );
            let empty = u32::try_from(fleet.empty().await?).unwrap_or(u32::MAX);
            self.recorder.claim(&Claim {
                text: "clients that got nothing of all that they asked for",
                measured: Quantity::new(f64::from(empty), Unit::Count),
                relation: Relation::Exactly,
                bound: 0.0,
                timed: false,
                effort: None,
                why: Some("does the server have these types, and is each node known to it? See `node_id`".to_owned()),
            });
        }
        if let Some(floor) = &mut self.cast.floor {
            let floor = floor
                .join(clients, join.over.0, limit)
                .await
                .context("clients of the floor")?;
            self.recorder.time("at the floor after", floor.taken);
            let ratio = |main: Duration, floor: Duration| vec![main.as_secs_f64() / floor.as_secs_f64()];
            self.recorder.ratio("time to join", ratio(main.taken, floor.taken));
            self.recorder
                .ratio("processor time to join", ratio(main.cpu, floor.cpu));
        }
        if let Some(calm) = &mut self.cast.calm {
            let clients = calm.plan.clients;
            calm.join(clients, join.over.0, limit)
                .await
                .context("clients of the calm relay")?;
        }
        Ok(main)
    }

    /// Returns the resources of the next change.
    fn indexes(&mut self, change: Change) -> anyhow::Result<(Vec<u32>, What)> {
        let main = &self.cast.main;
        let ledger = main
            .world()
            .ledger(change.kind)
            .context("the world has no such resources")?;
        let (turn, all) = (self.turns, ledger.len().max(1));
        self.turns += 1;
        let neighbours = |first: u32, count: u32| (0..count.min(all)).map(|at| (first + at) % all).collect();
        let indexes = match change.pattern {
            Pattern::One => neighbours(turn.wrapping_mul(STRIDE) % all, 1),
            Pattern::Only(index) => vec![index],
            Pattern::Burst(count) | Pattern::Rollback(count) => neighbours(turn.wrapping_mul(STRIDE) % all, count),
            Pattern::Rolling(count) => neighbours(turn.wrapping_mul(count) % all, count),
            Pattern::Full => (0..all).collect(),
        };
        let size = change.bytes.and_then(|bytes| usize::try_from(bytes.0).ok());
        let what = match (change.pattern, size) {
            (Pattern::Rollback(_), _) => What::Former,
            (_, Some(bytes)) => What::Sized(bytes),
            (_, None) => What::New,
        };
        let wanting = indexes.iter().map(|index| u64::from(main.wanting(change.kind, *index)));
        self.wanted += wanting.sum::<u64>();
        Ok((indexes, what))
    }

    async fn change(&mut self, change: Change, limit: Duration) -> anyhow::Result<Rounds> {
        if change.unseen || change.one_in.is_some() {
            self.change_for_some(change, limit).await?;
            return Ok(Rounds::default());
        }
        match change.rate {
            Some(rate) => self
                .change_at_rate(change, rate, limit)
                .await
                .map(|()| Rounds::default()),
            None => self.change_in_turns(change, limit).await,
        }
    }

    /// Makes changes that reach only some clients, or none, before a control plane comes back.
    async fn change_for_some(&mut self, change: Change, limit: Duration) -> anyhow::Result<()> {
        for _ in 0..change.times {
            let (indexes, what) = self.indexes(change)?;
            let main = &self.cast.main;
            let contents = main.write(change.kind, &indexes, what, true, now())?;
            let reached = |index: &u32| main.plan.wanting_among(change.kind, *index, change.one_in);
            let reached: u64 = indexes.iter().map(|index| u64::from(reached(index))).sum();
            let awaited = |content: &Arc<Content>| u64::from(content.awaited.load(Ordering::Acquire));
            let left = || contents.iter().map(awaited).sum::<u64>();
            let later = left() - if change.unseen { 0 } else { reached };
            if !change.unseen {
                main.announce(change.kind, &indexes)?;
            }
            self.wanted -= later;
            main.wait(limit, || left() <= later)
                .await
                .context("a change for some")?;
            self.cast.main.origin.unseen.extend(contents);
        }
        Ok(())
    }

    /// Publishes each change when it is due, whether or not the one before has arrived, and waits for all of them at the end.
    async fn change_at_rate(&mut self, change: Change, rate: f64, limit: Duration) -> anyhow::Result<()> {
        let schedule = Schedule::new(now(), rate);
        let mut contents = Vec::new();
        for turn in 0..change.times {
            let due = schedule.due(turn);
            sleep_until(due.into()).await;
            let (indexes, what) = self.indexes(change)?;
            contents.extend(self.cast.main.change(change.kind, &indexes, what, true, due)?);
        }
        self.cast
            .main
            .delivered(limit, &contents)
            .await
            .context("not every client has every change")?;
        sleep_until(schedule.due(change.times).into()).await;
        Ok(())
    }

    /// Makes each change at each server, in random order of servers; each waits for the one before.
    async fn change_in_turns(&mut self, change: Change, limit: Duration) -> anyhow::Result<Rounds> {
        let mut rounds = Rounds::default();
        for turn in 0..change.times {
            let (indexes, what) = self.indexes(change)?;
            let Cast { main, floor, calm, .. } = &mut self.cast;
            let random = xxhash_rust::xxh3::xxh3_64_with_seed(&turn.to_le_bytes(), u64::from(std::process::id()));
            let first = random.is_multiple_of(2);
            for turn in [true, false] {
                if turn == first {
                    rounds.main.push(main.round(change.kind, &indexes, what, limit).await?);
                    continue;
                }
                if let Some(floor) = floor {
                    let round = floor.round(change.kind, &indexes, what, limit).await;
                    rounds.floor.push(round.context("the floor")?);
                }
                if let Some(calm) = calm {
                    let round = calm.round(change.kind, &indexes, what, limit).await;
                    rounds.calm.push(round.context("the calm one")?);
                }
            }
        }
        Ok(rounds)
    }

    /// Stops everything after a last check of what each client holds.
    fn finish(self) -> anyhow::Result<()> {
        let Self { cast, recorder, .. } = self;
        recorder.end(now())?;
        let contenders = [Some(cast.main), cast.floor, cast.calm];
        for contender in contenders.into_iter().flatten() {
            let Contender { fleet, origin, .. } = contender;
            let progress = Arc::clone(&fleet.progress);
            fleet.stop()?;
            telling::breaches(recorder, &progress);
            for control_plane in origin.control_plane.iter().chain(&origin.fallback) {
                telling::rejections(control_plane, recorder);
            }
        }
        Ok(())
    }
}
