//! The scenarios. Those written in YAML are played from the file; a `story` is written in code.
//!
//! Owns what happens in a run, what must hold, and what the keys of a scenario mean. Refuses to know how figures are shown.

mod asking;
mod cast;
mod chain;
mod chaos;
mod check;
pub(crate) mod command;
mod contender;
mod expect;
pub(crate) mod extent;
mod failover;
pub(crate) mod file;
mod foreign;
mod growth;
pub(crate) mod keys;
mod listing;
mod outside;
mod past;
mod phase;
pub(crate) mod play;
mod profiles;
mod ramp;
mod reading;
mod returning;
mod scout;
mod steps;
mod streams;
mod warm_start;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use anyhow::bail;

use crate::command::arguments::{Arguments, Overrides};
use crate::fleet::identity::IdentityShape;
use crate::measure::process;
use crate::measure::record::Recorder;
use crate::origin::ledger::{Ledger, Spec};
use crate::origin::world::World;
use file::{Scenario, Story};
pub(crate) use listing::listing;
use reading::Faults;

/// Open files beyond one for each end of a connection.
const FILES_BESIDES: u64 = 200;

/// Plays the scenario. `say` gets a text for each step.
pub(crate) async fn play(
    arguments: &Arguments,
    overrides: &Overrides,
    recorder: &Recorder,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<()> {
    let mut scenario = Scenario::find(arguments.scenario())?;
    if scenario.story.is_some() && (arguments.floor || arguments.control_plane_dialect.is_some()) {
        bail!("--floor and --control-plane-dialect do not work with a story: leave them out");
    }
    if scenario.story.is_some() && arguments.identity != IdentityShape::default() {
        bail!("--node-id, --nodes and the other flags of identity do not work with a story: leave them out");
    }
    let alone = scenario.story.is_some() || scenario.floor || scenario.calm || arguments.floor;
    if let Some(shard) = arguments.sharing.shard.filter(|_| alone) {
        bail!(
            "--shard {shard} is a share of one fleet at one server: choose a scenario without story, floor and calm relay"
        );
    }
    if scenario.story.is_none() && overrides.kind {
        bail!(
            "--kind works only with a story: the file of a scenario says what its clients ask for; for an example see `by-name`"
        );
    }
    if scenario.story != Some(Story::Chain) && !arguments.delay.is_zero() {
        bail!("--delay works only with the story `chain`, whose tiers are apart");
    }
    match scenario.story {
        Some(Story::Failover) => failover::run(arguments, recorder, say).await,
        Some(Story::Chain) => chain::run(arguments, recorder, say).await,
        Some(Story::WarmStart) => warm_start::run(arguments, recorder, say).await,
        None => {
            scenario.override_with(overrides);
            let mut misfits = scenario.misfits();
            misfits.extend(scenario.missing(arguments.is_foreign()));
            if !misfits.is_empty() {
                bail!(Faults::of_flags(arguments.scenario(), &misfits));
            }
            play::run(&scenario, arguments, recorder, say).await
        }
    }
}

/// Opens a story with one type of resources: records its description, makes room for `connections` of every client, and returns
/// the world.
fn open(arguments: &Arguments, recorder: &Recorder, connections: u64, parts: &str) -> anyhow::Result<Arc<World>> {
    prepare(arguments, connections)?;
    recorder.describe(&format!(
        "{} clients {parts} (delta ADS, {} resources of {} bytes)",
        arguments.clients(),
        arguments.resources,
        arguments.bytes
    ));
    Ok(alone(arguments))
}

/// Raises the limit of open files for so many connections of every client.
fn prepare(arguments: &Arguments, connections: u64) -> anyhow::Result<()> {
    process::raise_open_files(u64::from(arguments.clients()) * connections + FILES_BESIDES)
}

/// Creates a world with the one type of `--kind`.
fn alone(arguments: &Arguments) -> Arc<World> {
    let spec = Spec {
        kind: arguments.kind,
        resources: arguments.resources,
        extras: 0,
        bytes: arguments.bytes,
        authority: None,
    };
    World::of(Arc::new(Ledger::alone(spec, now())))
}

/// The address that means any free port of this machine.
fn local() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

#[expect(clippy::disallowed_methods, reason = "a load test measures real time")]
fn now() -> Instant {
    Instant::now()
}
