//! The scenarios. The usual one is here: join, rest, change, remove, leave. It moves the parts and takes the figures.

mod cast;
mod chain;
mod contender;
mod expect;
mod failover;
pub(crate) mod file;
mod phase;
mod phases;
pub(crate) mod play;
mod quantities;
mod steps;
mod warm_start;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context as _, bail};
use tokio::time::timeout;

use crate::arguments::{Arguments, Overrides};
use crate::client::profile::Profile;
use crate::connection::Target;
use crate::control_plane::ControlPlane;
use crate::fleet::{Crew, Fleet, Plan};
use crate::ledger::{Ledger, Spec};
use crate::outcome::Outcome;
use crate::process;
use crate::progress::Breach;
use crate::record::{Claim, Fleets, Quantity, Recorder, Relation, Unit, counter, float};
use crate::relay::{Launch, Relay, Source};
use crate::report::{RelayFigures, Report};
use crate::world::World;
use file::{Scenario, Story};

/// The running parts. They end in the order of the fields: clients, relay, control plane.
struct Measurement<'a> {
    arguments: &'a Arguments,
    plan: Plan,
    fleet: Fleet,
    relay: Option<Relay>,
    control_plane: ControlPlane,
    recorder: Recorder,
    report: Report,
    figures: RelayFigures,
}

/// Open files besides one for each connection's end.
const FILES_BESIDES: u64 = 200;

/// Plays what is asked for. `say` is told what is being done.
pub(crate) async fn play(
    arguments: &Arguments,
    overrides: &Overrides,
    recorder: &Recorder,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<Outcome> {
    let Some(name) = arguments.scenario() else {
        return run(arguments, recorder, say)
            .await
            .map(|report| Outcome::Figures(Box::new(report)));
    };
    let mut scenario = Scenario::find(name)?;
    match scenario.story {
        Some(Story::Failover) => failover::run(arguments, say).await.map(Outcome::Findings),
        Some(Story::Chain) => chain::run(arguments, say).await.map(Outcome::Findings),
        Some(Story::WarmStart) => warm_start::run(arguments, say).await.map(Outcome::Findings),
        None => {
            scenario.override_with(overrides);
            play::run(&scenario, arguments, recorder, say).await?;
            Ok(Outcome::Played)
        }
    }
}

/// Runs the usual scenario once. `say` is told what is being done.
pub(crate) async fn run(
    arguments: &Arguments,
    recorder: &Recorder,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<Report> {
    prepare(arguments, if arguments.direct { 2 } else { 1 })?;
    let mut scenario = Measurement::start(arguments, recorder, say).await?;
    match scenario.phases(say).await {
        Ok(()) => {}
        Err(error) => scenario.report.failures.push(format!("{error:#}")),
    }
    scenario.finish()
}

impl<'a> Measurement<'a> {
    async fn start(arguments: &'a Arguments, recorder: &Recorder, say: &mut impl FnMut(&str)) -> anyhow::Result<Self> {
        let world = alone(arguments);
        let listen = arguments.control_plane.unwrap_or_else(local);
        let control_plane = ControlPlane::start(listen, Arc::clone(&world))?;
        let mut relay = None;
        let (server, what) = match (arguments.server, arguments.direct) {
            (Some(server), _) => (server, format!("through the server at {server}")),
            (None, true) => (control_plane.address, "directly at the control plane".to_owned()),
            (None, false) => {
                let started = Relay::start(&Launch {
                    program: arguments.relay_bin.as_deref(),
                    listen: None,
                    listens: false,
                    source: Source::Upstream(control_plane.address),
                    quiet: false,
                })
                .await?;
                recorder.watch(&started.process())?;
                let server = started.address;
                relay = Some(started);
                (server, "through a relay".to_owned())
            }
        };
        let asking = if arguments.kind.wildcard() {
            format!("all {}", arguments.kind.word())
        } else {
            let names = arguments.names.min(arguments.resources);
            format!("{names} {} by name", arguments.kind.word())
        };
        let setup = format!(
            "{} clients ({} ADS, {asking} of {}, {} bytes each) {what}",
            arguments.clients(),
            arguments.dialect.word(),
            arguments.resources,
            arguments.bytes
        );
        say(&setup);
        recorder.describe(&setup);
        let plan = Plan {
            target: Target { server, tls: None },
            clients: arguments.clients(),
            per_connection: 1,
            world,
            crew: Crew::of(Profile::plain(arguments.dialect, arguments.kind, arguments.names)),
        };
        let fleet = Fleet::start(&plan, arguments.threads)?;
        let progress = Arc::clone(&fleet.progress);
        recorder.attach(fleet.feeds.clone(), move || Fleets {
            clients: u64::from(progress.complete()),
            current: None,
        });
        Ok(Self {
            arguments,
            fleet,
            recorder: recorder.clone(),
            plan,
            relay,
            control_plane,
            report: Report {
                setup,
                clients: arguments.clients(),
                changes: arguments.changes,
                ..Report::default()
            },
            figures: RelayFigures::default(),
        })
    }

    /// Waits until `done`, a violation, or the deadline.
    async fn wait(&self, done: impl Fn() -> bool) -> anyhow::Result<()> {
        let progress = &self.fleet.progress;
        let waiting = async {
            loop {
                let mut rings = std::pin::pin!(progress.changed.notified());
                let mut delivered = std::pin::pin!(self.plan.world.bell.delivered.notified());
                // Registered before the look, so that no ring is lost between.
                rings.as_mut().enable();
                delivered.as_mut().enable();
                if done() {
                    return Ok(());
                }
                if progress.violated() > 0 {
                    bail!("{} clients saw violations", progress.violated());
                }
                tokio::select! { () = rings => {}, () = delivered => {} }
            }
        };
        timeout(self.arguments.deadline, waiting)
            .await
            .with_context(|| format!("not within {:?} (--deadline)", self.arguments.deadline))?
    }

    /// Ends everything, and judges.
    fn finish(mut self) -> anyhow::Result<Report> {
        let progress = Arc::clone(&self.fleet.progress);
        self.recorder.end(now())?;
        let tally = self.fleet.stop()?;
        // A run that failed early has no figures to show.
        let measured = self.relay.is_some() && self.figures.idle_bytes > 0;
        self.report.relay = measured.then_some(self.figures);
        self.report.count(&tally);
        for Breach {
            client,
            what,
            transcript,
        } in progress.violations()
        {
            self.report.failures.push(format!("client {client}: {what}"));
            self.recorder.breach(u64::from(client), what, transcript);
        }
        let rejections = self.control_plane.counts.rejections();
        let rejected = rejections
            .iter()
            .map(|message| format!("a response was rejected upstream: {message}"));
        self.report.failures.extend(rejected);
        if self.report.deliveries != self.report.deliveries_expected && self.report.held() {
            let failure = "some changes reached some clients never or twice".to_owned();
            self.report.failures.push(failure);
        }
        let expected = float(self.report.deliveries_expected);
        self.recorder.claim(&Claim {
            text: "measured changes reach every client that wants them, once",
            measured: Quantity::new(float(self.report.deliveries), Unit::Count),
            relation: Relation::Exactly,
            bound: expected,
            timed: false,
        });
        let counts = &self.control_plane.counts;
        self.report.upstream_streams = counts.streams.load(Ordering::Relaxed);
        self.report.upstream_responses = counts.responses.load(Ordering::Relaxed);
        self.report.upstream_acknowledgements = counts.acknowledgements.load(Ordering::Relaxed);
        let streams = float(self.report.upstream_streams);
        self.recorder.count(counter::UPSTREAM_STREAMS, streams);
        Ok(self.report)
    }
}

/// Room for so many connections of every client.
fn prepare(arguments: &Arguments, connections: u64) -> anyhow::Result<()> {
    process::raise_open_files(u64::from(arguments.clients()) * connections + FILES_BESIDES)
}

/// A world with the one type that is asked for.
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

/// Any free port of this machine.
fn local() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

#[expect(clippy::disallowed_methods, reason = "a load test measures real time")]
fn now() -> Instant {
    Instant::now()
}
