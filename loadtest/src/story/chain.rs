//! A relay below another relay, clients at both, and each relay is restarted once. Versions must be equal at both hops, and no
//! client may be sent what it already holds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::sleep_until;

use super::steps::{self, Sent};
use super::{alone, local, now, open};
use crate::command::arguments::Arguments;
use crate::fleet::{Fleet, Plan};
use crate::measure::record::{Quantity, Recorder, Schedule, Unit, float};
use crate::measure::scrape::Metrics;
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::Ledger;
use crate::subject::network::Network;
use crate::subject::relay::{Launch, Relay, Source, free_address};

/// One relay and its clients.
struct Hop {
    name: &'static str,
    plan: Plan,
    fleet: Fleet,
    relay: Option<Relay>,
    address: SocketAddr,
    /// Between the relay and its server.
    network: Network,
}

/// What a relay has cost so far.
#[derive(Clone, Copy)]
struct Cost {
    processor: Duration,
    bytes: u64,
}

const FAILURES: &str = "distributary_upstream_failures_total";
const STREAMS: &str = "distributary_streams";
/// How long two relays are watched that are each other's upstream.
const LOOP_WATCHED: Duration = Duration::from_secs(3);

/// Plays the story.
pub(super) async fn run(arguments: &Arguments, recorder: &Recorder, say: &mut impl FnMut(&str)) -> anyhow::Result<()> {
    let world = open(arguments, recorder, 2, "at each of two relays, one above the other")?;
    let ledger = world.ledgers().first().context("no resources")?;
    let control_plane = ControlPlane::start(local(), Arc::clone(&world), None)?;
    let upper = Hop::start(arguments, "the upper relay", control_plane.address, ledger).await?;
    let lower = Hop::start(arguments, "the lower relay", upper.address, ledger).await?;
    let mut hops = [upper, lower];
    for hop in &hops {
        steps::attach(recorder, &hop.fleet, None);
    }
    let outcome = play(arguments, &mut hops, recorder, say).await;
    recorder.end(now())?;
    for hop in hops {
        let times = steps::finish(hop.fleet, recorder)?.propagation;
        let at = |quantile| Quantity::new(float(times.at(quantile)), Unit::Micros);
        let text = format!("p50 {}, p99 {}", at(0.5), at(0.99));
        recorder.note(&format!("a change at the clients of {}", hop.name), text);
    }
    steps::rejections(&control_plane, recorder);
    recorder.expect(
        "streams at the control plane, of two lives of the upper relay",
        control_plane.counts.streams(),
        2,
    );
    let through = outcome.is_ok();
    steps::judge(recorder, "the chain", outcome);
    if through {
        steps::begin(recorder, say, "two relays, each the other's upstream")?;
        steps::judge(recorder, "the loop", circle(arguments, recorder).await);
    }
    Ok(())
}

async fn play(
    arguments: &Arguments,
    hops: &mut [Hop; 2],
    recorder: &Recorder,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<()> {
    steps::begin(recorder, say, "everybody joins")?;
    for hop in hops.iter() {
        let taken = steps::join(arguments, &hop.fleet, hop.plan.clients).await?;
        recorder.time(&format!("everybody has joined {} after", hop.name), taken);
    }
    steps::begin(recorder, say, "changes")?;
    let before = [hops[0].cost()?, hops[1].cost()?];
    let schedule = Schedule::new(now(), arguments.rate);
    for turn in 0..arguments.changes {
        sleep_until(schedule.due(turn).into()).await;
        change(arguments, hops, turn.wrapping_mul(7919), true).await?;
    }
    recorder.note(
        "changes that reached everybody once and under one version",
        arguments.changes,
    );
    for (hop, before) in hops.iter().zip(before) {
        let (after, changes) = (hop.cost()?, u64::from(arguments.changes.max(1)));
        let each = |sum: f64, unit| Quantity::new(sum / f64::from(arguments.changes.max(1)), unit);
        let processor = after.processor.saturating_sub(before.processor);
        let processor = each(processor.as_secs_f64() * 1e6, Unit::Micros);
        recorder.note(&format!("bytes to {}, until the changes", hop.name), before.bytes);
        recorder.note(
            &format!("bytes to {}, for each change", hop.name),
            (after.bytes - before.bytes) / changes,
        );
        recorder.note(&format!("processor time of {}, for each change", hop.name), processor);
    }
    for restarted in 0..hops.len() {
        let name = hops.get(restarted).map_or("", |hop| hop.name);
        steps::begin(recorder, say, &format!("{name} restarts"))?;
        restart(arguments, hops, restarted, recorder).await.context(name)?;
    }
    Ok(())
}

/// A change reaches every client at both hops exactly once. C-18, K-09: every client checks that it got the same version of a
/// content as all others.
async fn change(arguments: &Arguments, hops: &[Hop; 2], index: u32, measured: bool) -> anyhow::Result<()> {
    let before = hops.each_ref().map(|hop| Sent::to(&hop.fleet));
    let index = index % arguments.resources;
    let wanting = hops.each_ref().map(|hop| hop.plan.wanting(index));
    let ledger = hops[0].plan.ledger()?;
    let _ = ledger.change(index, wanting.iter().sum(), measured, now());
    for ((hop, before), wanting) in hops.iter().zip(before).zip(wanting) {
        let done = || before.since(&hop.fleet).named >= u64::from(wanting);
        let what = format!("a change at the clients of {}", hop.name);
        steps::until(arguments, &what, &hop.fleet, done).await?;
        let sent = before.since(&hop.fleet).named;
        anyhow::ensure!(sent == u64::from(wanting), "{what}: {sent} deliveries, not {wanting}");
    }
    Ok(())
}

/// One relay stops and starts again, empty, at the same address; its clients reconnect with what they hold.
async fn restart(
    arguments: &Arguments,
    hops: &mut [Hop; 2],
    restarted: usize,
    recorder: &Recorder,
) -> anyhow::Result<()> {
    let before = hops.each_ref().map(|hop| Sent::to(&hop.fleet));
    let Some(hop) = hops.get_mut(restarted) else {
        return Ok(());
    };
    let returned = hop.fleet.progress.returned() + u64::from(hop.plan.clients);
    hop.relay = None;
    let began = now();
    hop.relay = Some(hop.launch(arguments).await?);
    let what = format!("the clients of {}, back again", hop.name);
    let back = || hop.fleet.progress.returned() >= returned;
    steps::until(arguments, &what, &hop.fleet, back).await?;
    if let Some(relay) = &hop.relay {
        let streams = f64::from(hop.plan.clients);
        steps::until_sum(arguments, relay, STREAMS, |open| open >= streams).await?;
    }
    recorder.time(
        &format!("{} restarts, everybody is back after", hop.name),
        began.elapsed(),
    );
    for (hop, before) in hops.iter().zip(before) {
        let sent = steps::quiet(arguments, &hop.fleet, before).await?;
        recorder.note(&format!("messages to clients of {}", hop.name), sent.messages);
        recorder.expect(&format!("resources sent to clients of {}", hop.name), sent.named, 0);
    }
    let index = u32::try_from(restarted).unwrap_or_default() + 1;
    change(arguments, hops, index, false).await
}

/// K-25: of two relays that are each other's upstream, neither serves the other, and neither is kept busy.
async fn circle(arguments: &Arguments, recorder: &Recorder) -> anyhow::Result<()> {
    let addresses = [free_address()?, free_address()?];
    let launch = |listen, upstream| Launch {
        program: arguments.relay_bin.as_deref(),
        listen: Some(listen),
        listens: false,
        source: Source::Upstream(format!("http://{upstream}")),
        quiet: true,
    };
    let relays = [
        Relay::start(&launch(addresses[0], addresses[1])).await?,
        Relay::start(&launch(addresses[1], addresses[0])).await?,
    ];
    let one = Arguments {
        resources: 1,
        bytes: 0,
        ..arguments.clone()
    };
    let world = alone(&one);
    let ledger = world.ledgers().first().context("no resources")?;
    let mut plan = steps::plan(arguments, addresses[0], ledger);
    plan.clients = 1;
    plan.crew = plan.crew.returning();
    let fleet = Fleet::start(&plan, 1)?;
    fleet.admit(1);
    // The first asks the second, and the second asks the first, which refuses.
    let refused = steps::until_sum(arguments, &relays[1], FAILURES, |failures| failures >= 1.0).await?;
    recorder.time("two relays, each the other's upstream, refused after", refused);
    let (begin, cpu) = (now(), cpu(&relays)?);
    let sent = |metrics: &[Metrics]| {
        metrics
            .iter()
            .filter_map(|it| it.sum("distributary_requests_total"))
            .sum::<f64>()
    };
    tokio::time::sleep(LOOP_WATCHED).await;
    let busy = (self::cpu(&relays)?.saturating_sub(cpu)).as_secs_f64() / begin.elapsed().as_secs_f64();
    let metrics = [relays[0].metrics().await?, relays[1].metrics().await?];
    recorder.note("requests of both", sent(&metrics));
    recorder.note("processor time of both", format_args!("{:.1} %", busy * 100.0));
    let messages = fleet.progress.messages();
    recorder.expect("messages to a client", messages, 0);
    if busy > 0.2 {
        let why = format!("they use {:.0} % of a processor", busy * 100.0);
        recorder.fail("two relays, each the other's upstream, are not busy with it", Some(why));
    }
    drop(relays);
    Ok(())
}

fn cpu(relays: &[Relay; 2]) -> anyhow::Result<Duration> {
    Ok(relays[0].process().cpu("")? + relays[1].process().cpu("")?)
}

impl Hop {
    async fn start(
        arguments: &Arguments,
        name: &'static str,
        upstream: SocketAddr,
        ledger: &Arc<Ledger>,
    ) -> anyhow::Result<Self> {
        let address = free_address()?;
        let mut plan = steps::plan(arguments, address, ledger);
        plan.crew = plan.crew.returning();
        let mut hop = Self {
            name,
            fleet: Fleet::start(&plan, arguments.threads)?,
            plan,
            relay: None,
            address,
            network: Network::long(upstream, arguments.delay)?,
        };
        hop.relay = Some(hop.launch(arguments).await?);
        Ok(hop)
    }

    fn cost(&self) -> anyhow::Result<Cost> {
        let relay = self.relay.as_ref().context("the relay does not run")?;
        Ok(Cost {
            processor: relay.process().cpu("")?,
            bytes: self.network.passed(),
        })
    }

    async fn launch(&self, arguments: &Arguments) -> anyhow::Result<Relay> {
        Relay::start(&Launch {
            program: arguments.relay_bin.as_deref(),
            listen: Some(self.address),
            listens: false,
            source: Source::Upstream(format!("http://{}", self.network.address)),
            quiet: true,
        })
        .await
    }
}
