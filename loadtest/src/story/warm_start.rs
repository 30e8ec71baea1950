//! The control plane is down, and the relay is killed and started again. From its snapshot it serves clients that reconnect,
//! which hold everything already, and new clients. Then the control plane returns with changed content.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use super::steps::{self, Sent};
use super::{local, now, open};
use crate::command::arguments::Arguments;
use crate::fleet::Fleet;
use crate::measure::record::Recorder;
use crate::origin::control_plane::ControlPlane;
use crate::origin::world::World;
use crate::subject::relay::{Launch, Relay, Source, free_address};
use crate::wire::folder::Folder;

const SNAPSHOTS: &str = "distributary_snapshots_total";
const WRITTEN: &str = "result=\"written\"";
const STREAMS: &str = "distributary_streams";

/// Plays the story.
pub(super) async fn run(arguments: &Arguments, recorder: &Recorder, say: &mut impl FnMut(&str)) -> anyhow::Result<()> {
    let world = open(arguments, recorder, 1, "at a relay with snapshots")?;
    let address = free_address()?;
    let mut plan = steps::plan(arguments, address, world.ledgers().first().context("no resources")?);
    plan.crew = plan.crew.returning();
    let old = Fleet::start(&plan, arguments.threads)?;
    plan.clients = 1;
    let fresh = Fleet::start(&plan, 1)?;
    for fleet in [&old, &fresh] {
        steps::attach(recorder, fleet, None);
    }
    let outcome = play(arguments, [&old, &fresh], &world, address, recorder, say).await;
    recorder.end(now())?;
    for fleet in [old, fresh] {
        steps::finish(fleet, recorder)?;
    }
    steps::judge(recorder, "the warm start", outcome);
    Ok(())
}

async fn play(
    arguments: &Arguments,
    [old, fresh]: [&Fleet; 2],
    world: &Arc<World>,
    address: std::net::SocketAddr,
    recorder: &Recorder,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<()> {
    let folder = Folder::new()?;
    let clients = arguments.clients();
    let ledger = world.ledgers().first().context("no resources")?;
    let control_plane = ControlPlane::start(local(), Arc::clone(world), None)?;
    let upstream = control_plane.address;
    let launch = Launch {
        program: arguments.relay_bin.as_deref(),
        listen: Some(address),
        listens: false,
        source: Source::Config(config(upstream, &folder.0)),
        quiet: true,
    };
    let relay = Relay::start(&launch).await?;
    recorder.watch(&relay.process())?;
    steps::begin(recorder, say, "everybody joins")?;
    steps::join(arguments, old, clients).await?;
    steps::quiet(arguments, old, Sent::to(old)).await?;
    let _ = ledger.change(2, clients, false, now());
    let metrics = relay.metrics().await?;
    let written = metrics.of(SNAPSHOTS, WRITTEN);
    let taken = steps::until_gauge(arguments, &relay, (SNAPSHOTS, WRITTEN), |now| now > written).await?;
    recorder.time("a change is in a snapshot after", taken);
    // If a snapshot was being written during the change, another one follows.
    steps::quiet(arguments, old, Sent::to(old)).await?;

    steps::begin(recorder, say, "the control plane goes, and the relay is killed")?;
    drop(control_plane);
    let (before, began) = (Sent::to(old), now());
    relay.kill()?;
    let relay = Relay::start(&launch).await?;
    recorder.watch(&relay.process())?;
    let back = || old.progress.returned() >= u64::from(clients);
    steps::until(arguments, "all clients come back", old, back).await?;
    let streams = f64::from(clients);
    steps::until_sum(arguments, &relay, STREAMS, |open| open >= streams).await?;
    recorder.time("the relay is killed, everybody is back after", began.elapsed());
    let sent = steps::quiet(arguments, old, before).await?;
    recorder.note("messages to clients that hold everything", sent.messages);
    recorder.expect("resources in these messages", sent.named, 0);
    let served = steps::join(arguments, fresh, 1).await.context("a fresh client")?;
    recorder.time("a fresh client has everything after", served);

    steps::begin(recorder, say, "the control plane returns with a change and a removal")?;
    let before = [old, fresh].map(Sent::to);
    let everybody = clients + 1;
    let _ = ledger.foretell(0, true, everybody, now());
    let _ = ledger.foretell(1, false, everybody, now());
    let control_plane = ControlPlane::start(upstream, Arc::clone(world), None)?;
    for ((fleet, before), clients) in [old, fresh].into_iter().zip(before).zip([clients, 1]) {
        let wanted = 2 * u64::from(clients);
        let done = || before.since(fleet).named >= wanted;
        let taken = steps::until(arguments, "the difference", fleet, done).await?;
        let sent = steps::quiet(arguments, fleet, before).await?;
        recorder.time("the control plane returns, the difference is there after", taken);
        recorder.note("messages for the difference", sent.messages);
        recorder.expect("resources that changed or went", sent.named, wanted);
    }
    steps::rejections(&control_plane, recorder);
    Ok(())
}

fn config(upstream: std::net::SocketAddr, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "upstream:\n  xds_servers: [{{ server_uri: 'http://{upstream}' }}]\nsnapshot: {{ dir: '{folder}', interval: 250ms }}\n"
    )
}
